"""What the segments of one vector index share: parameters, centroids, and how vectors become codes. Trained once.

::

    model = train_model(parameters, sample)           on a sample of the column, anywhere
    model.to_bytes() / model_from_bytes(data)         travels to the tasks that build segments
    model.prepare(rows)                               scaled to length one for cosine; rows that are no vectors left out
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from lance_core.arrays import Floats
from lance_core.cached import cached_property
from lance_core.errors import CorruptFileError, InputError
from lance_core.format.index_details import Metric
from lance_core.index.vector.clustering import owners_of, train, unit
from lance_core.index.vector.parameters import VectorParameters
from lance_core.index.vector.quantizer import Quantizer
from lance_core.index.vector.quantizers import flat, product, rabit, scalar

SAMPLE_BYTES = 1 << 30
"""Memory for the rows of a sample, unless there are so many partitions that they need more."""
Bits = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class VectorModel:
    """`centroids` is float32[partitions, dimension]; `element` the element type of the column."""

    parameters: VectorParameters
    element: np.dtype[Any]
    centroids: Floats
    loss: float
    quantizer: Quantizer

    @property
    def metric(self) -> Metric:
        """How distance is measured."""
        return self.parameters.metric

    @property
    def dimension(self) -> int:
        """Numbers of a vector."""
        return int(self.centroids.shape[1])

    @cached_property
    def is_spherical(self) -> bool:
        """Whether rows belong where the dot product is largest."""
        return self.metric == "dot"

    def owners(self, rows: Floats) -> npt.NDArray[np.uint32]:
        """The partition uint32[n] of each prepared row float32[n, dim]."""
        return owners_of(rows, self.centroids, is_spherical=self.is_spherical)[0]

    def to_bytes(self) -> bytes:
        """The model as bytes (numpy's container, no code inside)."""
        told, buffers = self.quantizer.storage()
        head = {"parameters": asdict(self.parameters), "element": self.element.str, "loss": self.loss, "storage": told}
        arrays = {f"buffer{number}": np.frombuffer(data, np.uint8) for number, data in enumerate(buffers)}
        out = io.BytesIO()
        text = np.frombuffer(json.dumps(head).encode(), np.uint8)
        np.savez(out, head=text, centroids=self.centroids, **arrays)  # type: ignore[arg-type]
        return out.getvalue()


def prepare(rows: Floats, metric: Metric) -> tuple[Floats, Bits | None]:
    """(rows [m, dim] ready to be stored, which [n] of the given [n, dim] they are; None: all); only finite rows are kept."""
    lengths = np.einsum("ij,ij->i", rows, rows, dtype=np.float32)
    good = np.isfinite(lengths)
    if metric == "cosine":
        good &= lengths > 0
    every = bool(good.all())
    kept = rows if every else rows[good]
    return (unit(kept) if metric == "cosine" else kept), None if every else good


def sample_size(parameters: VectorParameters, dimension: int) -> int:
    """Rows worth training on, as many as memory is given to them."""
    codes = 1 << parameters.num_bits if parameters.storage == "pq" else 256
    least = 32 * max(parameters.num_partitions, codes)
    wanted = parameters.sample_rate * max(parameters.num_partitions, codes)
    return min(wanted, max(least, SAMPLE_BYTES // (4 * dimension)))


def train_model(
    parameters: VectorParameters,
    sample: Floats,
    *,
    element: np.dtype[Any],
    centroids: Floats | None = None,
    codebook: Floats | None = None,
) -> VectorModel:
    """Train on a sample of the column (rows as stored). `centroids` and `codebook` [parts, 2 ** bits, dim / parts] given
    are taken as they are. Raises InputError when there is nothing to train on or a shape does not fit.
    """
    rows, _ = prepare(np.ascontiguousarray(sample, np.float32), parameters.metric)
    if len(rows) == 0:
        raise InputError("the column has no vector to train the index on", cure="Append rows first, or pass train=False.")
    spherical = parameters.metric == "dot"
    rng = np.random.default_rng(parameters.seed)
    loss = 0.0
    if centroids is None:
        most = parameters.sample_rate * parameters.num_partitions
        few = rows if len(rows) <= most else rows[np.sort(rng.permutation(len(rows))[:most])]
        centroids, loss = train(
            few, parameters.num_partitions, is_spherical=spherical, max_iters=parameters.max_iters, seed=parameters.seed
        )
    elif centroids.shape != (parameters.num_partitions, rows.shape[1]):
        raise InputError(
            f"ivf_centroids have shape {centroids.shape}, but the column's vectors have dimension {rows.shape[1]}"
        )
    centroids = product.rounded(np.ascontiguousarray(centroids, np.float32), element)
    quantizer = _train_quantizer(parameters, rows, element, centroids, codebook, rng)
    return VectorModel(parameters, element, centroids, loss, quantizer)


def _train_quantizer(
    parameters: VectorParameters,
    rows: Floats,
    element: np.dtype[Any],
    centroids: Floats,
    codebook: Floats | None,
    rng: np.random.Generator,
) -> Quantizer:
    storage, spherical = parameters.storage, parameters.metric == "dot"
    if storage == "flat":
        return flat.FlatQuantizer(rows.shape[1], element)
    if storage == "sq":
        return scalar.train(rows)
    if storage == "rq":
        return rabit.train(rows.shape[1], parameters.num_bits, parameters.metric, rng)
    parts, bits = parameters.num_sub_vectors, parameters.num_bits
    if codebook is not None:
        expected = (parts, 1 << bits, rows.shape[1] // parts)
        if codebook.shape != expected:
            raise InputError(f"pq_codebook has shape {codebook.shape}, expected {expected}")
        book = np.ascontiguousarray(codebook.transpose(0, 2, 1), np.float32)
        return product.ProductQuantizer(product.rounded(book, element), bits, not spherical, element=element)
    most = parameters.sample_rate << bits
    few = rows if len(rows) <= most else rows[rng.permutation(len(rows))[:most]]
    if not spherical:
        few = few - centroids[owners_of(few, centroids)[0]]
    iters, seed = parameters.max_iters, parameters.seed
    return product.train(few, parts, bits, is_residual=not spherical, max_iters=iters, seed=seed, element=element)


def open_quantizer(
    told: Mapping[str, Any], buffer: bytes | None, metric: Metric, element: np.dtype[Any], *, where: str
) -> Quantizer:
    """The quantizer that a storage file's metadata refers to. Raises CorruptFileError."""
    facts = dict(told)
    if "nbits" in facts:
        # Releases up to 0.29 kept the codebook in this text, as a list of bytes.
        inline = None if facts.get("codebook_position") else facts.get("codebook_tensor")
        return product.from_storage(facts, _bytes(inline, where) if inline else buffer or b"", metric, where=where)
    if "bounds" in facts:
        return scalar.from_storage(facts, where=where)
    if "rotation_type" in facts or "rotate_mat_position" in facts:
        return rabit.from_storage(facts, buffer, metric, where=where)
    dimension = facts.get("dim")
    if not isinstance(dimension, int) or dimension < 1:
        raise CorruptFileError(f"{where}: the storage metadata {facts} describes no known quantizer")
    return flat.FlatQuantizer(dimension, element)


def _bytes(listed: object, where: str) -> bytes:
    if not isinstance(listed, list) or not all(isinstance(item, int) and 0 <= item < 256 for item in listed):
        raise CorruptFileError(f"{where}: a codebook that is no list of bytes")
    return bytes(listed)


def model_from_bytes(data: bytes) -> VectorModel:
    """A model that `to_bytes` wrote. Raises CorruptFileError."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            head = json.loads(arrays["head"].tobytes())
            buffer = arrays["buffer0"].tobytes() if "buffer0" in arrays else None
            centroids = np.ascontiguousarray(arrays["centroids"], np.float32)
        parameters = VectorParameters(**head["parameters"])
        element = np.dtype(head["element"])
        quantizer = open_quantizer(head["storage"], buffer, parameters.metric, element, where="a vector model")
        return VectorModel(parameters, element, centroids, float(head["loss"]), quantizer)
    except (ValueError, KeyError, TypeError, OSError, EOFError, BadZipFile) as error:
        raise CorruptFileError(f"a vector model cannot be read: {error}") from error
