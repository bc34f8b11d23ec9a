"""Product quantization: a vector is cut into sub-vectors, each encoded as the nearest of 256 (or 16) centroids.

::

    column __pq_code   8 bits: [parts] bytes a row    4 bits: [parts / 2], the low half of a byte is the even sub-vector
    in the file a partition's codes are turned: byte s * n + r is sub-vector s of row r
    global buffer 2    the codebook: a tensor of shape [256, dim] whose data is [parts][256][dim / parts]

L2 and cosine store what is left of a vector after its centroid; dot stores the vector. (Spec: FORMAT E.5.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.arrays import Floats
from lance_core.cached import cached_property
from lance_core.errors import CorruptFileError
from lance_core.format.index_details import Metric, Tensor, TensorType
from lance_core.index.vector.clustering import encode, train_products
from lance_core.index.vector.graph import Access
from lance_core.index.vector.quantizer import Columns, list_field
from lance_core.kernels.quantize import product_scan, product_scan_4bit, product_table
from lance_core.wire.index import decode_tensor_bytes, encode_tensor_bytes

COLUMN = "__pq_code"


@dataclass(frozen=True, eq=False)
class ProductQuantizer:
    """`codebook` is float32[parts, dim / parts, 2 ** bits]."""

    codebook: Floats
    bits: int
    is_residual: bool
    is_turned: bool = True
    element: np.dtype[Any] = field(default_factory=lambda: np.dtype(np.float32))

    @property
    def parts(self) -> int:
        """Sub-vectors."""
        return len(self.codebook)

    @property
    def dimension(self) -> int:
        """Numbers of a vector."""
        return int(self.parts * self.codebook.shape[1])

    @cached_property
    def _flat(self) -> Floats:
        return np.ascontiguousarray(self.codebook).reshape(-1)

    def fields(self) -> list[pa.Field[Any]]:
        """`__pq_code`."""
        return [list_field(COLUMN, pa.uint8(), self.parts * self.bits // 8)]

    def storage(self) -> tuple[dict[str, Any], tuple[bytes, ...]]:
        """The parameters, and the codebook as a tensor."""
        rows = self.codebook.transpose(0, 2, 1)
        tensor = float_tensor(rows, (self.codebook.shape[2], self.dimension), self.element)
        told = {
            "codebook_position": 2,
            "nbits": self.bits,
            "num_sub_vectors": self.parts,
            "dimension": self.dimension,
            "codebook_tensor": [],
            "transposed": True,
        }
        return told, (encode_tensor_bytes(tensor),)

    def encode(self, rows: Floats, owners: npt.NDArray[np.uint32], centroids: Floats) -> dict[str, npt.NDArray[Any]]:
        """Codes uint8[n, parts * bits / 8] of the residuals (of the rows for dot)."""
        codes = encode(rows - centroids[owners] if self.is_residual else rows, self.codebook)
        return {COLUMN: codes if self.bits == 8 else codes[:, 0::2] | (codes[:, 1::2] << 4)}

    def arrange(self, name: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Column by column: all first bytes, then all second ones."""
        return np.ascontiguousarray(values.T).reshape(values.shape)

    def restore(self, name: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Row by row again."""
        if not self.is_turned:
            return values
        return np.ascontiguousarray(values.reshape(values.shape[1], values.shape[0]).T)

    def hold(self, columns: Columns) -> Columns:
        """As they are."""
        return columns

    def score(self, metric: Metric, query: Floats, centroid: Floats, columns: Columns) -> Floats:
        """Sums of table entries. Cosine: half the squared distance between vectors of length one."""
        codes, table = self._turned(columns), self._table(metric, query, centroid)
        out = np.empty(len(codes), np.float32)
        scan = product_scan if self.bits == 8 else product_scan_4bit
        scan(codes.reshape(-1), table, self.parts, out)
        if metric == "dot":
            out += 1
        elif metric == "cosine":
            out *= 0.5
        return out

    def access(self, metric: Metric, query: Floats, centroid: Floats, columns: Columns) -> Access:
        """The codes, and the table of the query."""
        codes = self._turned(columns)
        table = self._table(metric, query, centroid)
        return Access(4 if self.bits == 8 else 5, table, codes.shape[1], codes=codes.reshape(-1))

    def _turned(self, columns: Columns) -> npt.NDArray[Any]:
        codes = columns[COLUMN]
        return codes if self.is_turned else self.arrange(COLUMN, codes)

    def _table(self, metric: Metric, query: Floats, centroid: Floats) -> Floats:
        table = np.empty(self.parts << self.bits, np.float32)
        target = query - centroid if self.is_residual else query
        _, width, num = self.codebook.shape
        product_table(target, self._flat, width, num, int(metric == "dot"), table)
        return table

    def decode(self, columns: Columns, metric: Metric, centroid: Floats) -> Floats:
        """The centroids that the codes name."""
        codes = self.restore(COLUMN, columns[COLUMN])
        if self.bits == 4:
            codes = np.stack([codes & 15, codes >> 4], axis=2).reshape(len(codes), self.parts)
        book = self.codebook.transpose(0, 2, 1)
        rows = book[np.arange(self.parts), codes].reshape(len(codes), self.dimension)
        return np.ascontiguousarray(rows + centroid if self.is_residual else rows)


def train(
    rows: Floats, parts: int, bits: int, *, is_residual: bool, max_iters: int, seed: int, element: np.dtype[Any]
) -> ProductQuantizer:
    """A codebook for rows that are what will be stored (residuals already taken)."""
    book = train_products(rows, parts, 1 << bits, max_iters=max_iters, seed=seed)
    return ProductQuantizer(rounded(book, element), bits, is_residual, element=element)


def from_storage(told: dict[str, Any], buffer: bytes, metric: Metric, *, where: str) -> ProductQuantizer:
    """The quantizer of a storage file. Raises CorruptFileError when its numbers do not fit its codebook."""
    return of_codebook(told, decode_tensor_bytes(buffer), metric, where=where)


def of_codebook(told: Mapping[str, Any], tensor: Tensor, metric: Metric, *, where: str) -> ProductQuantizer:
    """The quantizer of a codebook and the numbers told of it. Raises CorruptFileError when they do not fit."""
    numbers = [told.get(name) for name in ("nbits", "num_sub_vectors", "dimension")]
    bits, parts, dimension = (value if isinstance(value, int) else 0 for value in numbers)
    if bits not in (4, 8) or parts < 1 or dimension % parts or tensor.shape != (1 << bits, dimension):
        raise CorruptFileError(
            f"{where}: the codebook has shape {tensor.shape}, "
            f"which does not match {parts} sub-vectors of {bits} bits and dimension {dimension}"
        )
    values = tensor_floats(tensor, where).reshape(parts, 1 << bits, dimension // parts)
    book = np.ascontiguousarray(values.transpose(0, 2, 1))
    element = np.dtype(tensor.data_type)
    return ProductQuantizer(book, bits, metric != "dot", bool(told.get("transposed")), element)


def rounded(values: Floats, element: np.dtype[Any]) -> Floats:
    """Numbers as a column's element type can tell them: what is written is what was measured with."""
    return np.ascontiguousarray(values.astype(element).astype(np.float32)) if element == np.float16 else values


def float_tensor(values: Floats, shape: tuple[int, ...], element: np.dtype[Any]) -> Tensor:
    """Numbers as a tensor of the column's element type."""
    kinds: Mapping[str, TensorType] = {"float16": "float16", "float64": "float64"}
    name = kinds.get(element.name, "float32")
    return Tensor(name, shape, np.ascontiguousarray(values, np.dtype(name).newbyteorder("<")).tobytes())


def tensor_floats(tensor: Tensor, where: str) -> Floats:
    """A tensor's numbers as float32 in its shape. Raises CorruptFileError for other than floats."""
    kinds = {"float16": "<f2", "float32": "<f4", "float64": "<f8", "uint8": "u1"}
    if tensor.data_type not in kinds:
        raise CorruptFileError(f"{where}: the codebook has type {tensor.data_type}, expected floats")
    return np.frombuffer(tensor.data, kinds[tensor.data_type]).astype(np.float32).reshape(tensor.shape)
