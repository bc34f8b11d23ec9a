"""The models of a vector index, trained apart from building it, with the official library's names (`lance.indices`).

::

    builder = IndicesBuilder(dataset, "vector")
    ivf = builder.train_ivf(256)
    pq = builder.train_pq(ivf, 16)
    ivf.save("/models/ivf.lance")
    dataset.create_index("vector", "IVF_PQ", ivf_centroids=ivf.centroids, pq_codebook=pq.codebook, num_sub_vectors=16)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lance_core.arrow.buffers import fields_schema
from lance_core.arrow_numpy import arrow_of
from lance_core.dataset.scan.nearest_request import vector_type
from lance_core.errors import CorruptFileError, InputError
from lance_core.file.single_file import LanceFileReader, LanceFileWriter
from lance_core.shortage import verbs_tell_shortages

if TYPE_CHECKING:
    from lance_core.dataset.handle.dataset import LanceDataset


class IvfModel:
    """The centres of an index's partitions: a fixed-size list column, and the distance they were trained for."""

    def __init__(self, centroids: pa.Array[Any], distance_type: str) -> None:
        self.centroids = centroids
        self.distance_type = distance_type

    @property
    def num_partitions(self) -> int:
        """How many partitions there are."""
        return len(self.centroids)

    def save(self, uri: str, *, storage_options: Mapping[str, str] | None = None) -> None:
        """Write the model as a Lance file."""
        _save(uri, "centroids", self.centroids, {"distance_type": self.distance_type}, storage_options)

    @classmethod
    def load(cls, uri: str, *, storage_options: Mapping[str, str] | None = None) -> IvfModel:
        """Read a model that `save`, or the official library, wrote. CorruptFileError for another file."""
        centroids, metadata = _load(uri, "centroids", storage_options)
        return cls(centroids, metadata["distance_type"])


class PqModel:
    """The codebook of product quantization: 2 ** `num_bits` rows of the vectors' dimension."""

    def __init__(self, num_subvectors: int, codebook: pa.Array[Any], *, num_bits: int = 8) -> None:
        self.num_subvectors = num_subvectors
        self.codebook = codebook
        self.num_bits = num_bits

    @property
    def dimension(self) -> int:
        """The dimension of the vectors."""
        stored: Any = self.codebook.type
        return int(stored.list_size)

    def save(self, uri: str, *, storage_options: Mapping[str, str] | None = None) -> None:
        """Write the model as a Lance file."""
        metadata = {"num_subvectors": str(self.num_subvectors), "num_bits": str(self.num_bits)}
        _save(uri, "codebook", self.codebook, metadata, storage_options)

    @classmethod
    def load(cls, uri: str, *, storage_options: Mapping[str, str] | None = None) -> PqModel:
        """Read a model that `save`, or the official library, wrote. CorruptFileError for another file."""
        codebook, metadata = _load(uri, "codebook", storage_options)
        return cls(int(metadata["num_subvectors"]), codebook, num_bits=int(metadata.get("num_bits", "8")))


@verbs_tell_shortages
class IndicesBuilder:
    """Trains models on one vector column of a table."""

    def __init__(self, dataset: LanceDataset, column: str) -> None:
        self.dataset = dataset
        self.column = [column]
        self.dimension = vector_type(dataset.snapshot.manifest.schema, column)[1]

    def train_ivf(
        self,
        num_partitions: int | None = None,
        *,
        distance_type: str = "l2",
        sample_rate: int = 256,
        max_iters: int = 50,
    ) -> IvfModel:
        """The centres of the partitions, about the square root of the number of rows by default, trained on a sample."""
        wanted = num_partitions or max(1, round(self.dataset.count_rows() ** 0.5))
        model = self.dataset.train_index(
            self.column[0],
            "IVF_FLAT",
            distance_type,
            num_partitions=wanted,
            sample_rate=sample_rate,
            max_iters=max_iters,
        )
        return IvfModel(_lists(model.centroids), distance_type)

    def train_pq(
        self,
        ivf_model: IvfModel,
        num_subvectors: int | None = None,
        *,
        sample_rate: int = 256,
        max_iters: int = 50,
        num_bits: int = 8,
    ) -> PqModel:
        """Train the codebook for the vectors' offsets from the centres: `num_subvectors` parts, a sixteenth or an eighth of
        the dimension by default, of 2^`num_bits` centres each.

        InputError when `num_subvectors` is left out and the dimension is divisible by neither 16 nor 8.
        """
        parts = num_subvectors or next((self.dimension // size for size in (16, 8) if self.dimension % size == 0), 0)
        if parts == 0:
            raise InputError(
                f"num_subvectors is required for dimension {self.dimension}", cure="Pass a divisor of the dimension."
            )
        model = self.dataset.train_index(
            self.column[0],
            "IVF_PQ",
            ivf_model.distance_type,
            ivf_centroids=ivf_model.centroids,
            num_sub_vectors=parts,
            num_bits=num_bits,
            sample_rate=sample_rate,
            max_iters=max_iters,
        )
        quantizer: Any = model.quantizer
        book = np.ascontiguousarray(quantizer.codebook.transpose(0, 2, 1))
        return PqModel(parts, _lists(book.reshape(-1, self.dimension)), num_bits=num_bits)

    def prepare_global_ivf_pq(
        self,
        num_partitions: int | None,
        num_subvectors: int | None,
        *,
        distance_type: str = "l2",
        sample_rate: int = 256,
        max_iters: int = 50,
        num_bits: int = 8,
    ) -> dict[str, pa.Array[Any]]:
        """Both models' arrays, for workers that build segments: {"ivf_centroids", "pq_codebook"}."""
        ivf = self.train_ivf(num_partitions, distance_type=distance_type, sample_rate=sample_rate, max_iters=max_iters)
        pq = self.train_pq(ivf, num_subvectors, sample_rate=sample_rate, max_iters=max_iters, num_bits=num_bits)
        return {"ivf_centroids": ivf.centroids, "pq_codebook": pq.codebook}


def _lists(rows: Any) -> pa.Array[Any]:
    flat = np.ascontiguousarray(rows, np.float32).reshape(-1)
    made: pa.Array[Any] = pa.FixedSizeListArray.from_arrays(arrow_of(flat), rows.shape[1])
    return made


def _save(
    uri: str, name: str, column: pa.Array[Any], metadata: Mapping[str, str], storage_options: Mapping[str, str] | None
) -> None:
    schema = fields_schema([pa.field(name, column.type)], metadata=dict(metadata))
    with LanceFileWriter(uri, schema, storage_options=storage_options) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays([column], schema=schema))


def _load(uri: str, name: str, storage_options: Mapping[str, str] | None) -> tuple[pa.Array[Any], dict[str, str]]:
    reader = LanceFileReader(uri, storage_options=storage_options)
    schema = reader.metadata().schema
    if schema.names != [name]:
        raise CorruptFileError(f"{uri} is not an index model: it has the columns {', '.join(schema.names)}, expected {name}")
    column: Any = reader.read_all().to_table().column(name).combine_chunks()
    return column, {key.decode(): value.decode() for key, value in (schema.metadata or {}).items()}
