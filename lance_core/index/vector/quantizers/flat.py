"""Vectors stored as they are: column `flat`, exact distances. With cosine they are stored scaled to length one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.arrays import Floats
from lance_core.format.index_details import Metric
from lance_core.index.vector.distances import distances
from lance_core.index.vector.graph import Access
from lance_core.index.vector.quantizer import Columns, list_field

COLUMN = "flat"


@dataclass(frozen=True)
class FlatQuantizer:
    """No quantization. `element` is the element type of the stored vectors."""

    dimension: int
    element: np.dtype[Any]

    def fields(self) -> list[pa.Field[Any]]:
        """`flat`: the vectors."""
        return [list_field(COLUMN, pa.from_numpy_dtype(self.element), self.dimension, nullable=False)]

    def storage(self) -> tuple[dict[str, Any], tuple[bytes, ...]]:
        """{"dim"}."""
        return {"dim": self.dimension}, ()

    def encode(self, rows: Floats, owners: npt.NDArray[np.uint32], centroids: Floats) -> dict[str, npt.NDArray[Any]]:
        """The rows themselves."""
        return {COLUMN: rows.astype(self.element, copy=False)}

    def arrange(self, name: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """As they are."""
        return values

    def restore(self, name: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """As they are."""
        return values

    def hold(self, columns: Columns) -> Columns:
        """As they are."""
        return columns

    def score(self, metric: Metric, query: Floats, centroid: Floats, columns: Columns) -> Floats:
        """Exact distances."""
        return distances(metric, query, self._rows(columns))

    def access(self, metric: Metric, query: Floats, centroid: Floats, columns: Columns) -> Access:
        """The rows themselves."""
        rows = np.ascontiguousarray(self._rows(columns)).reshape(-1)
        return Access(int(metric == "dot"), query, self.dimension, rows=rows)

    def decode(self, columns: Columns, metric: Metric, centroid: Floats) -> Floats:
        """The rows."""
        rows: Floats = self._rows(columns)
        return rows

    def _rows(self, columns: Columns) -> Any:
        values = columns[COLUMN]
        return values if values.dtype == np.uint8 else values.astype(np.float32, copy=False)
