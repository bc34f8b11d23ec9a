"""The protocol of quantizers: encode rows, describe the file, and measure distances of codes to a query.

::

    quantizer.encode(rows, residuals)     {"__pq_code": uint8[n, 96]}          row by row
    quantizer.arrange("__pq_code", rows)  as a partition is in the file      (product codes are turned)
    quantizer.score(...)                  float32[n]                           smaller is nearer

Rows given are ready: scaled to length one for cosine. `residuals` are rows less the centroid of their partition.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.arrays import Floats
from lance_core.format.index_details import Metric
from lance_core.index.vector.graph import Access

Columns = Mapping[str, npt.NDArray[Any]]
"""Columns of a partition as they are in the file: [n, width], or [n] for plain numbers."""


class Quantizer(Protocol):
    """Codes of one index; immutable, shared between threads."""

    def fields(self) -> list[pa.Field[Any]]:
        """The columns of the storage file besides the row ids."""

    def storage(self) -> tuple[dict[str, Any], tuple[bytes, ...]]:
        """(the JSON of the storage metadata, global buffers that follow the partitions: the first has number 2)."""

    def encode(self, rows: Floats, owners: npt.NDArray[np.uint32], centroids: Floats) -> dict[str, npt.NDArray[Any]]:
        """Codes [n, width] by column of `rows` [n, dim], each in partition `owners` [n] of `centroids` [num, dim]."""

    def arrange(self, name: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The values [n, width] (or [n]) of one partition as its file has them: the same shape, other order."""

    def restore(self, name: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The inverse of `arrange`: the values row by row."""

    def hold(self, columns: Columns) -> Columns:
        """The columns of a partition as they are best kept in memory: what `score`, `access` and `decode` are given."""

    def score(self, metric: Metric, query: Floats, centroid: Floats, columns: Columns) -> Floats:
        """Distances float32[n] of one partition's rows from a query [dim] (of length one for cosine); smaller is nearer."""

    def access(self, metric: Metric, query: Floats, centroid: Floats, columns: Columns) -> Access:
        """How a walk over a graph measures single rows against the query [dim]: squared L2, or minus the dot product."""

    def decode(self, columns: Columns, metric: Metric, centroid: Floats) -> Floats:
        """The rows float32[n, dim] that the codes stand for, as near as they say."""


def list_field(name: str, item: pa.DataType, width: int, *, nullable: bool = True) -> pa.Field[Any]:
    """A column of fixed-size lists."""
    return pa.field(name, pa.list_(pa.field("item", item), width), nullable=nullable)
