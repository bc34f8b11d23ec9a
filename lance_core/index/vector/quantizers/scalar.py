"""Scalar quantization: each number as one byte between the least and the greatest number of the training rows.

::

    bounds -1 .. 1     0.5  ->  floor((0.5 + 1) * 255 / 2) = 191     column __sq_code [dim] bytes a row

A byte stands for the middle of what it covers. (Spec: FORMAT E.5.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.arrays import Floats
from lance_core.errors import CorruptFileError
from lance_core.format.index_details import Metric
from lance_core.index.vector.graph import Access
from lance_core.index.vector.quantizer import Columns, list_field
from lance_core.kernels.quantize import scaled_dot, scaled_l2

COLUMN = "__sq_code"


@dataclass(frozen=True)
class ScalarQuantizer:
    """Bytes between `start` and `end`."""

    dimension: int
    start: float
    end: float

    @property
    def step(self) -> float:
        """What one step of a byte stands for."""
        return max(self.end - self.start, 1e-30) / 255

    def fields(self) -> list[pa.Field[Any]]:
        """`__sq_code`."""
        return [list_field(COLUMN, pa.uint8(), self.dimension)]

    def storage(self) -> tuple[dict[str, Any], tuple[bytes, ...]]:
        """Dimension and bounds."""
        return {"dim": self.dimension, "num_bits": 8, "bounds": {"start": self.start, "end": self.end}}, ()

    def encode(self, rows: Floats, owners: npt.NDArray[np.uint32], centroids: Floats) -> dict[str, npt.NDArray[Any]]:
        """Bytes."""
        scaled = (rows - np.float32(self.start)) * np.float32(1 / self.step)
        return {COLUMN: np.clip(scaled, 0, 255).astype(np.uint8)}

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
        """Distances to what the bytes stand for. Cosine: half the squared distance between vectors of length one."""
        codes = columns[COLUMN]
        out: Floats = np.empty(len(codes), np.float32)
        middle = self.start + self.step / 2
        kernel = scaled_dot if metric == "dot" else scaled_l2
        kernel(query, np.ascontiguousarray(codes).reshape(-1), self.dimension, middle, self.step, out)
        if metric == "dot":
            np.subtract(1, out, out=out)
        elif metric == "cosine":
            out *= np.float32(0.5)
        return out

    def access(self, metric: Metric, query: Floats, centroid: Floats, columns: Columns) -> Access:
        """The bytes."""
        codes = np.ascontiguousarray(columns[COLUMN]).reshape(-1)
        mode = 3 if metric == "dot" else 2
        return Access(mode, query, self.dimension, codes=codes, low=self.start + self.step / 2, scale=self.step)

    def decode(self, columns: Columns, metric: Metric, centroid: Floats) -> Floats:
        """What the bytes stand for."""
        rows: Floats = columns[COLUMN].astype(np.float32)
        rows *= np.float32(self.step)
        rows += np.float32(self.start + self.step / 2)
        return rows


def train(rows: Floats) -> ScalarQuantizer:
    """Bounds of the rows."""
    return ScalarQuantizer(rows.shape[1], float(rows.min()), float(rows.max()))


def from_storage(told: dict[str, Any], *, where: str) -> ScalarQuantizer:
    """The quantizer of a storage file. Raises CorruptFileError."""
    bounds, dimension = told.get("bounds"), told.get("dim")
    if not isinstance(bounds, dict) or not isinstance(dimension, int) or dimension < 1 or told.get("num_bits") != 8:
        raise CorruptFileError(f"{where}: scalar quantization needs bounds, a dimension and 8 bits, got: {told}")
    start, end = bounds.get("start"), bounds.get("end")
    if not isinstance(start, (int, float)) or not isinstance(end, (int, float)):
        raise CorruptFileError(f"{where}: scalar quantization has the invalid bounds {bounds}")
    return ScalarQuantizer(dimension, float(start), float(end))
