"""The parameters of a vector index build: the official names and defaults, validated.

::

    parse_parameters("IVF_PQ", dimension=768, num_rows=200_000, num_partitions=256, num_sub_vectors=96)

The kind's name says two things: how vectors are stored (flat, pq, sq, rq), and whether each partition has a graph.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lance_core.errors import InputError
from lance_core.format.index_details import Hnsw, Metric, QuantizerDetails, VectorDetails
from lance_core.index.vector.distances import parse_metric

Storage = Literal["flat", "pq", "sq", "rq"]
KINDS: Mapping[str, tuple[Storage, bool]] = {
    "IVF_FLAT": ("flat", False),
    "IVF_PQ": ("pq", False),
    "IVF_SQ": ("sq", False),
    "IVF_RQ": ("rq", False),
    "IVF_HNSW_FLAT": ("flat", True),
    "IVF_HNSW_PQ": ("pq", True),
    "IVF_HNSW_SQ": ("sq", True),
}
TARGET_PARTITION_SIZE: Mapping[str, int] = {"IVF_FLAT": 4096, "IVF_PQ": 8192, "IVF_SQ": 8192, "IVF_RQ": 4096}
GRAPH_PARTITION_SIZE = 1 << 20
BITS: Mapping[Storage, tuple[int, tuple[int, ...]]] = {
    "flat": (0, (0,)),
    "pq": (8, (4, 8)),
    "sq": (8, (8,)),
    "rq": (5, (1, 2, 3, 4, 5, 6, 7, 8, 9)),
}
MAX_PARTITIONS = 1 << 20
_OF_EVERY_KIND = frozenset({"metric", "num_partitions", "target_partition_size"})


@dataclass(frozen=True)
class VectorParameters:
    """Parameters of an index; counts of training rows are `sample_rate` for each centroid."""

    kind: str
    metric: Metric
    num_partitions: int
    num_bits: int = 0
    num_sub_vectors: int = 0
    m: int = 20
    ef_construction: int = 150
    max_level: int = 7
    sample_rate: int = 256
    max_iters: int = 50
    seed: int = 42

    @property
    def storage(self) -> Storage:
        """How vectors are stored."""
        return KINDS[self.kind][0]

    @property
    def has_graph(self) -> bool:
        """Whether each partition has an HNSW graph."""
        return KINDS[self.kind][1]

    def details(self) -> VectorDetails:
        """What the manifest says."""
        hints = {"lance.ivf.max_iters": str(self.max_iters), "lance.ivf.sample_rate": str(self.sample_rate)}
        if self.storage == "pq":
            hints |= {"lance.pq.max_iters": str(self.max_iters), "lance.pq.sample_rate": str(self.sample_rate)}
        return VectorDetails(
            metric=self.metric,
            quantizer=QuantizerDetails(self.storage, self.num_bits, self.num_sub_vectors),
            hnsw=Hnsw(self.m, self.ef_construction, self.max_level) if self.has_graph else None,
            runtime_hints=hints,
        )


def parse_parameters(
    kind: str,
    *,
    dimension: int,
    num_rows: int,
    metric: str = "l2",
    num_partitions: int | None = None,
    target_partition_size: int | None = None,
    num_sub_vectors: int | None = None,
    num_bits: int | None = None,
    **given: Any,
) -> VectorParameters:
    """Check the user's arguments. Raises InputError; TypeError for an unknown parameter."""
    name = kind.upper() if isinstance(kind, str) else ""
    if name not in KINDS:
        near = difflib.get_close_matches(name, [*KINDS], n=2)
        guess = f"Did you mean {' or '.join(near)}? " if near else ""
        raise InputError(
            f"index type {kind!r} is not implemented for vectors", cure=f"{guess}The kinds are {', '.join(KINDS)}."
        )
    storage, has_graph = KINDS[name]
    _check_numbers(name, has_graph, given)
    size = target_partition_size or (GRAPH_PARTITION_SIZE if has_graph else TARGET_PARTITION_SIZE[name])
    partitions = max(1, min(4096, num_rows // _positive("target_partition_size", size)))
    if num_partitions is not None:
        partitions = _positive("num_partitions", num_partitions)
    if partitions > MAX_PARTITIONS:
        raise InputError(f"num_partitions is {partitions}, the limit is {MAX_PARTITIONS}")
    default, allowed = BITS[storage]
    bits = default if num_bits is None else num_bits
    if bits not in allowed:
        raise InputError(f"{name}: num_bits is {bits!r}, expected one of {allowed}")
    return VectorParameters(
        kind=name,
        metric=parse_metric(metric),
        num_partitions=partitions,
        num_bits=bits,
        num_sub_vectors=_sub_vectors(name, dimension, num_sub_vectors, bits) if storage == "pq" else 0,
        **given,
    )


def _check_numbers(kind: str, has_graph: bool, given: Mapping[str, Any]) -> None:
    known = {"sample_rate", "max_iters", "seed"} | ({"m", "ef_construction", "max_level"} if has_graph else set())
    for name, value in given.items():
        if name not in known:
            raise TypeError(unknown_parameter(kind, name, known | _OF_EVERY_KIND | _of_storage(kind)))
        _positive(name, value)


def _of_storage(kind: str) -> frozenset[str]:
    return frozenset({"num_sub_vectors", "num_bits"} if KINDS[kind][0] == "pq" else ())


def unknown_parameter(kind: str, name: str, known: Collection[str]) -> str:
    """The text of the error for a parameter that a kind of index does not take: which it takes, and which may be meant."""
    near = difflib.get_close_matches(name, [*known], n=2)
    guess = f"Did you mean {' or '.join(near)}? " if near else ""
    takes = f"takes {', '.join(sorted(known))}" if known else "takes no parameters"
    return f"unexpected keyword argument {name!r} for an index of kind {kind}. {guess}{kind} {takes}."


def _positive(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 1 << 31:
        raise InputError(f"{name} must be a positive integer, got {value!r}")
    return value


def _sub_vectors(kind: str, dimension: int, given: int | None, bits: int) -> int:
    if given is None:
        raise InputError(
            f"{kind} needs num_sub_vectors", cure=f"Pass a divisor of {dimension}, such as {max(1, dimension // 8)}."
        )
    parts = _positive("num_sub_vectors", given)
    if dimension % parts or (bits == 4 and parts % 2):
        even = " and even with 4 bits" if bits == 4 else ""
        raise InputError(f"num_sub_vectors is {parts}; it must divide the dimension {dimension}{even}")
    return parts
