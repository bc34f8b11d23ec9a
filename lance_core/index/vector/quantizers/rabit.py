"""RaBitQ: the residual of a vector is rotated at random, then encoded as a sign and some bits per number.

::

    _rabit_codes [dim / 8]             signs                __add_factors, __scale_factors, __error_factors
    __blocked_ex_codes [dim * b / 8]   b = num_bits - 1     __add_factors_ex, __scale_factors_ex
    distance = add + scale * (rotated query . code) + |query - centroid|^2      (dot: less query . centroid)

The rotation is the same for the whole index, kept as the bits of its sign flips. (Spec: FORMAT E.5.)

Where the bits of one-bit-and-more codes are in a file: signs by 32 rows, further bits by 64 numbers.

::

    signs    32 rows at a time, for each byte column 16 bytes of low halves, 16 of high halves, rows in the order 0 8 1 9 ...
             (low half of a byte: rows 0 to 15, high half: 16 to 31); rows that are left over are turned at the end
    levels   blocks of 64 numbers (the last one filled with zeros), in the layouts of `pack_levels`
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.arrays import Bytes, Floats
from lance_core.cached import cached_property
from lance_core.errors import CorruptFileError, InputError, UnsupportedFeatureError
from lance_core.format.index_details import Metric
from lance_core.index.vector.graph import Access
from lance_core.index.vector.quantizer import Columns, list_field
from lance_core.index.vector.quantizers.product import float_tensor, tensor_floats
from lance_core.kernels.rabit import LANES, ROUNDS, rabit_apart, rabit_levels, rotate_many, rotate_rows, signed_dots
from lance_core.wire.index import decode_tensor_bytes, encode_tensor_bytes

SIGNS, LEVELS = "_rabit_codes", "__blocked_ex_codes"
SIGN_FACTORS = ("__add_factors", "__scale_factors", "__error_factors")
LEVEL_FACTORS = ("__add_factors_ex", "__scale_factors_ex")
HELD = "codes"


@dataclass(frozen=True, eq=False)
class RabitQuantizer:
    """Codes of `num_bits` bits a number. `signs` are the flips of the rotation; or `matrix` [dim, dim] rotates.

    `is_residual`: the factors are for a query less the centroid, as releases up to 7.1 wrote them (one bit a number); such
    codes are searched, and never written.
    """

    dimension: int
    num_bits: int
    metric: Metric
    signs: npt.NDArray[np.uint8]
    matrix: Floats | None = None
    is_residual: bool = False

    @property
    def level_bits(self) -> int:
        """Bits besides the sign."""
        return self.num_bits - 1

    @cached_property
    def _factor_names(self) -> tuple[str, ...]:
        if self.is_residual:
            return SIGN_FACTORS[:2]
        return (*SIGN_FACTORS, *(LEVEL_FACTORS if self.level_bits else ()))

    def todays(self) -> RabitQuantizer:
        """The same rotation, for codes as they are written today."""
        return replace(self, is_residual=False)

    def rotate(self, rows: Floats) -> Floats:
        """Rows [n, dim] rotated."""
        if self.matrix is not None:
            return np.ascontiguousarray(rows @ self.matrix.T, np.float32)
        turned = np.array(rows, np.float32, order="C", copy=True)
        many = len(turned) // LANES * LANES
        if many:
            rotate_many(turned[:many].reshape(-1), self.signs, self.dimension)
        rotate_rows(turned[many:].reshape(-1), self.signs, self.dimension)
        return turned

    def fields(self) -> list[pa.Field[Any]]:
        """Signs, factors, levels."""
        found = [list_field(SIGNS, pa.uint8(), self.dimension // 8)]
        found += [pa.field(name, pa.float32()) for name in self._factor_names[: len(SIGN_FACTORS)]]
        if self.level_bits:
            found.append(list_field(LEVELS, pa.uint8(), level_bytes(self.dimension, self.level_bits)))
            found += [pa.field(name, pa.float32()) for name in LEVEL_FACTORS]
        return found

    def storage(self) -> tuple[dict[str, Any], tuple[bytes, ...]]:
        """The rotation and the bits; a matrix is a tensor in a buffer."""
        is_fast = self.matrix is None
        told = {
            "rotate_mat_position": None if is_fast else 2,
            "fast_rotation_signs": self.signs.tolist() if is_fast else None,
            "rotation_type": "fast" if is_fast else "matrix",
            "code_dim": self.dimension,
            "num_bits": self.num_bits,
            "packed": True,
            "query_estimator": None if self.is_residual else "raw_query",
        }
        if self.matrix is None:
            return told, ()
        return told, (encode_tensor_bytes(float_tensor(self.matrix, self.matrix.shape, np.dtype(np.float32))),)

    def encode(self, rows: Floats, owners: npt.NDArray[np.uint32], centroids: Floats) -> dict[str, npt.NDArray[Any]]:
        """Signs and levels (bits, packed by row) and factors float32[n] of the rotated residuals."""
        turned = self.rotate(rows - centroids[owners])
        middles = self.rotate(centroids).reshape(-1)
        levels = np.empty(turned.shape, np.uint8)
        factors = np.empty((len(rows), 5), np.float32)
        rabit_levels(
            turned.reshape(-1), middles, owners, self.dimension, self.level_bits, int(self.metric == "dot"),
            levels.reshape(-1), factors.reshape(-1),
        )  # fmt: skip
        positive = turned >= 0
        columns: dict[str, npt.NDArray[Any]] = {SIGNS: np.packbits(positive, axis=1, bitorder="little")}
        if self.level_bits:
            # A negative number's level is stored as its complement, so that sign and level are one number in order.
            stored = np.where(positive, levels, levels ^ np.uint8((1 << self.level_bits) - 1)).astype(np.uint8)
            columns[LEVELS] = pack_levels(stored, self.level_bits)
        for at, name in enumerate(self._factor_names):
            columns[name] = np.ascontiguousarray(factors[:, at])
        return columns

    def arrange(self, name: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Signs by groups of rows."""
        return pack_signs(values) if name == SIGNS else values

    def restore(self, name: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Signs row by row."""
        return unpack_signs(values) if name == SIGNS else values

    def hold(self, columns: Columns) -> Columns:
        """Codes as odd whole numbers [n, dim] (twice what they stand for), and the factors that go with them."""
        signs = unpack_signs(columns[SIGNS])
        positive = self._positive(signs)
        add, scale = (SIGN_FACTORS if not self.level_bits else LEVEL_FACTORS)[:2]
        kind = np.int8 if self.level_bits <= 6 else np.int16
        codes = np.ones(positive.shape, kind)
        if self.level_bits:
            codes += 2 * self._levels(columns, positive).astype(kind)
        np.negative(codes, out=codes, where=~positive)
        return {HELD: codes, "add": columns[add], "scale": columns[scale]}

    def _positive(self, signs: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
        return np.unpackbits(signs, axis=1, bitorder="little")[:, : self.dimension].astype(bool)

    def _levels(self, columns: Columns, positive: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint8]:
        """Levels as sizes: a negative number's is stored as its complement."""
        stored = unpack_levels(columns[LEVELS], self.level_bits, self.dimension)
        return np.where(positive, stored, stored ^ np.uint8((1 << self.level_bits) - 1))

    def code_error(
        self,
        residuals: Floats,
        squares: Floats,
        columns: Columns,
        owners: npt.NDArray[np.uint32],
        middles: Floats,
        noise: Floats,
        share: np.float32,
    ) -> Floats:
        """How far stored codes, row by row, are from those of `residuals` (not rotated): see `rabit_apart`. `middles` are
        the rotated centroids."""
        factors = np.zeros((len(residuals), 5), np.float32)
        for at, name in enumerate(self._factor_names):
            factors[:, at] = columns[name]
        signs, levels = np.ascontiguousarray(columns[SIGNS]), np.empty(0, np.uint8)
        if self.level_bits:
            levels = self._levels(columns, self._positive(signs)).reshape(-1)
        found = np.empty(len(residuals), np.float32)
        rabit_apart(
            self.rotate(residuals).reshape(-1), squares, middles.reshape(-1), owners, signs.reshape(-1), levels,
            factors.reshape(-1), noise, share, self.dimension, self.level_bits, int(self.metric == "dot"), found,
        )  # fmt: skip
        return found

    def score(self, metric: Metric, query: Floats, centroid: Floats, columns: Columns) -> Floats:
        """Estimated distances. Cosine: half the squared distance between vectors of length one."""
        codes = columns[HELD]
        out = np.empty(len(codes), np.float32)
        if self.is_residual:
            return self._score_residual(metric, query, centroid, columns, out)
        signed_dots(self.rotate(query[None, :])[0], codes.reshape(-1), self.dimension, out)
        out *= np.float32(0.5)
        out *= columns["scale"]
        out += columns["add"]
        if metric == "dot":
            out -= np.float32(query @ centroid)
            return out
        away = query - centroid
        out += np.float32(away @ away)
        if metric == "cosine":
            out *= np.float32(0.5)
        return out

    def _score_residual(self, metric: Metric, query: Floats, centroid: Floats, columns: Columns, out: Floats) -> Floats:
        away = query - centroid
        signed_dots(self.rotate(away[None, :])[0], columns[HELD].reshape(-1), self.dimension, out)
        out *= columns["scale"] / np.float32(np.sqrt(self.dimension))
        out += columns["add"]
        out += np.float32(-(query @ centroid) if metric == "dot" else away @ away)
        if metric == "cosine":
            out *= np.float32(0.5)
        return out

    def access(self, metric: Metric, query: Floats, centroid: Floats, columns: Columns) -> Access:
        """There are no graphs over these codes."""
        raise UnsupportedFeatureError("a graph over RaBitQ codes is not supported")

    def decode(self, columns: Columns, metric: Metric, centroid: Floats) -> Floats:
        """Rows are not made again from these codes."""
        raise UnsupportedFeatureError("vectors cannot be restored from RaBitQ codes")


def train(dimension: int, num_bits: int, metric: Metric, rng: np.random.Generator) -> RabitQuantizer:
    """A random rotation. Raises InputError for a dimension that is no multiple of eight."""
    if dimension % 8:
        raise InputError(f"IVF_RQ needs a dimension that is a multiple of 8, the column has dimension {dimension}")
    return RabitQuantizer(dimension, num_bits, metric, rng.integers(0, 256, ROUNDS * (dimension // 8), np.uint8))


def from_storage(told: dict[str, Any], buffer: bytes | None, metric: Metric, *, where: str) -> RabitQuantizer:
    """The quantizer of a storage file. Raises CorruptFileError, UnsupportedFeatureError for codes that are not packed."""
    is_residual = told.get("query_estimator") is None
    if told.get("packed") is not True or told.get("query_estimator") not in (None, "raw_query"):
        raise UnsupportedFeatureError(
            f"{where}: RaBitQ codes of an unknown kind are not supported", cure="Rebuild the index."
        )
    matrix = None
    if told.get("rotation_type") == "matrix" or told.get("rotate_mat_position"):
        matrix = tensor_floats(decode_tensor_bytes(buffer or b""), where)
    dimension, bits = told.get("code_dim"), told.get("num_bits")
    if dimension is None and matrix is not None:
        # Releases up to 3.0 did not write it down.
        dimension = len(matrix)
    if not isinstance(dimension, int) or not isinstance(bits, int) or dimension < 8 or dimension % 8 or not 1 <= bits <= 9:
        raise CorruptFileError(f"{where}: RaBitQ codes of dimension {dimension} with {bits} bits are not supported")
    if is_residual and bits != 1:
        raise UnsupportedFeatureError(
            f"{where}: RaBitQ codes of an older Lance release with {bits} bits are not supported", cure="Rebuild the index."
        )
    if matrix is not None:
        if matrix.shape != (dimension, dimension):
            raise CorruptFileError(
                f"{where}: the rotation has shape {matrix.shape}, which does not match dimension {dimension}"
            )
        return RabitQuantizer(dimension, bits, metric, np.empty(0, np.uint8), matrix, is_residual)
    signs = told.get("fast_rotation_signs")
    good = isinstance(signs, list) and all(isinstance(item, int) and 0 <= item < 256 for item in signs)
    if not good or not isinstance(signs, list) or len(signs) != ROUNDS * (dimension // 8):
        raise CorruptFileError(f"{where}: the sign flips of the rotation do not match dimension {dimension}")
    return RabitQuantizer(dimension, bits, metric, np.array(signs, np.uint8), None, is_residual)


GROUP, BLOCK = 32, 64
ORDER = np.array([0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15])


def pack_signs(rows: Bytes) -> Bytes:
    """Sign bytes [n, width] of a partition as its file has them."""
    count, width = rows.shape
    whole = count // GROUP * GROUP
    groups = rows[:whole].reshape(-1, GROUP, width).transpose(0, 2, 1)
    low, high = groups & 15, groups >> 4
    halves = [part[:, :, ORDER] | (part[:, :, ORDER + 16] << 4) for part in (low, high)]
    packed = np.concatenate(halves, axis=2).reshape(-1)
    return np.concatenate([packed, np.ascontiguousarray(rows[whole:].T).reshape(-1)]).reshape(count, width)


def unpack_signs(stored: Bytes) -> Bytes:
    """The inverse of `pack_signs`."""
    count, width = stored.shape
    whole = count // GROUP * GROUP
    flat = np.ascontiguousarray(stored).reshape(-1)
    groups = flat[: whole * width].reshape(-1, width, GROUP)
    rows = np.empty((len(groups), width, GROUP), np.uint8)
    low, high = groups[:, :, :16], groups[:, :, 16:]
    rows[:, :, ORDER] = (low & 15) | (high << 4)
    rows[:, :, ORDER + 16] = (low >> 4) | (high & 0xF0)
    rest = flat[whole * width :].reshape(width, count - whole).T
    return np.concatenate([rows.transpose(0, 2, 1).reshape(-1, width), rest])


def level_bytes(dim: int, bits: int) -> int:
    """Bytes of levels a row."""
    return -(-dim // BLOCK) * BLOCK * bits // 8


def pack_levels(levels: Bytes, bits: int) -> Bytes:
    """Levels [n, dim] of `bits` bits each as rows of blocks [n, level_bytes(dim, bits)]."""
    count, dim = levels.shape
    blocks = -(-dim // BLOCK)
    padded = np.zeros((count, blocks * BLOCK), np.uint8)
    padded[:, :dim] = levels
    v = padded.reshape(count, blocks, 4, 16)
    parts = [plane.reshape(count, blocks, int(np.prod(plane.shape[2:]))) for plane in _planes(v, bits)]
    return np.concatenate(parts, axis=2).reshape(count, level_bytes(dim, bits))


def _planes(v: Any, bits: int) -> list[Any]:
    if bits == 1:
        return [np.packbits(v.reshape(*v.shape[:2], BLOCK), axis=2, bitorder="little")]
    if bits in (2, 3):
        low = v & 3
        first = low[:, :, 0] | (low[:, :, 1] << 2) | (low[:, :, 2] << 4) | (low[:, :, 3] << 6)
        return [first] if bits == 2 else [first, _top_plane(v >> 2)]
    if bits == 4:
        return [v[:, :, :, :8] | (v[:, :, :, 8:] << 4)]
    if bits == 5:
        low = v & 15
        halves = np.stack([low[:, :, 0] | (low[:, :, 1] << 4), low[:, :, 2] | (low[:, :, 3] << 4)], axis=2)
        return [halves, _top_plane(v >> 4)]
    if bits in (6, 7):
        last = v[:, :, 3] & 63
        runs = [(v[:, :, k] & 63) | (((last >> (2 * k)) & 3) << 6) for k in range(3)]
        return [np.stack(runs, axis=2)] if bits == 6 else [np.stack(runs, axis=2), _top_plane(v >> 6)]
    return [v]


def _top_plane(v: Any) -> Any:
    """Bit 0 of number 16 k + b of a block at bit 8 (b % 8) + 2 k + b // 8 of eight bytes."""
    out = np.zeros((*v.shape[:2], 8), np.uint8)
    for k in range(4):
        for b in range(16):
            out[:, :, b % 8] |= (v[:, :, k, b] & 1) << (2 * k + b // 8)
    return out


def unpack_levels(stored: Bytes, bits: int, dim: int) -> Bytes:
    """The inverse of `pack_levels`: levels [n, dim]."""
    count = len(stored)
    blocks = -(-dim // BLOCK)
    s = stored.reshape(count, blocks, BLOCK * bits // 8)
    v = np.zeros((count, blocks, 4, 16), np.uint8)
    if bits == 1:
        v[:] = np.unpackbits(s, axis=2, bitorder="little").reshape(v.shape)
    elif bits in (2, 3):
        for k in range(4):
            v[:, :, k] = (s[:, :, :16] >> (2 * k)) & 3
    elif bits == 4:
        units = s.reshape(count, blocks, 4, 8)
        v[:, :, :, :8], v[:, :, :, 8:] = units & 15, units >> 4
    elif bits == 5:
        for k in range(4):
            v[:, :, k] = (s[:, :, 16 * (k // 2) : 16 * (k // 2) + 16] >> (4 * (k % 2))) & 15
    elif bits in (6, 7):
        for k in range(3):
            run = s[:, :, 16 * k : 16 * k + 16]
            v[:, :, k] = run & 63
            v[:, :, 3] |= (run >> 6) << (2 * k)
    else:
        v[:] = s.reshape(v.shape)
    if bits in (3, 5, 7):
        top = s[:, :, -8:]
        for k in range(4):
            for b in range(16):
                v[:, :, k, b] |= ((top[:, :, b % 8] >> (2 * k + b // 8)) & 1) << (bits - 1)
    return np.ascontiguousarray(v.reshape(count, blocks * BLOCK)[:, :dim])
