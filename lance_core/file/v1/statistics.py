"""Page statistics of a legacy file being written: how many nulls each batch of a field has, and bounds of its values.

    field 3, batches [1.0, nan, 0.0] [null]     column "3": null_count 0 1, min_value -0.0 -inf, max_value 1.0 inf

The rules are those of the official writer. NaNs count for nothing, a lowest zero is -0.0 and a highest 0.0, a batch without
values has the widest bounds its type has. Strings and bytes are cut after 64 bytes; a highest value that is cut is raised by
one in its last place, and left out (empty) when there is no higher. Other types have no statistics. (Spec: legacy files.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.arrow.logical import logical_of
from lance_core.file.v1.table import PageSpot, encode_table
from lance_core.format.schema import NO_PARENT, Field, FieldEncoding, Schema
from lance_core.wire.file import PageStatistics

MAX_BOUND_BYTES = 64
_TEXT = ("string", "large_string")
_VARIABLE = (*_TEXT, "binary", "large_binary")


def has_statistics(arrow_type: pa.DataType) -> bool:
    """Whether fields of this type get statistics."""
    types = pa.types
    is_number = types.is_integer(arrow_type) or types.is_boolean(arrow_type) or arrow_type in (pa.float32(), pa.float64())
    return bool(is_number or types.is_date(arrow_type) or types.is_decimal128(arrow_type) or str(arrow_type) in _VARIABLE)


@dataclass
class _Column:
    """What is known of one field, batch by batch; bounds are arrays of one value."""

    nulls: list[int] = field(default_factory=list)
    lows: list[Any] = field(default_factory=list)
    highs: list[Any] = field(default_factory=list)


class StatisticsCollector:
    """Statistics of all fields of a file. Batches of a field come in order."""

    def __init__(self) -> None:
        self._columns: dict[int, _Column] = {}

    def add(self, field_id: int, array: pa.Array[Any]) -> None:
        """The values of a field in one batch; types without statistics are passed over."""
        if not has_statistics(array.type):
            return
        column = self._columns.setdefault(field_id, _Column())
        low, high = _bounds(array)
        column.nulls.append(array.null_count)
        column.lows.append(low if isinstance(low, pa.Array) else pa.array([low], array.type))
        column.highs.append(high if isinstance(high, pa.Array) else pa.array([high], array.type))

    def write(
        self, write_values: Callable[[pa.Array[Any]], PageSpot], write_table: Callable[[bytes], int]
    ) -> PageStatistics | None:
        """Store the pages and their table; None when there are no statistics."""
        if not self._columns:
            return None
        fields: list[Field] = []
        spots: dict[tuple[int, int], PageSpot] = {}
        for field_id, column in sorted(self._columns.items()):
            parent = len(fields)
            fields.append(Field(parent, str(field_id), NO_PARENT, "struct", nullable=False))
            parts = {"null_count": pa.array(column.nulls, pa.int64()), "min_value": pa.concat_arrays(column.lows)}
            parts["max_value"] = pa.concat_arrays(column.highs)
            for name, values in parts.items():
                spots[len(fields), 0] = write_values(values)
                kind = values.type
                encoding = FieldEncoding.VAR_BINARY if str(kind) in _VARIABLE else FieldEncoding.PLAIN
                is_count = name == "null_count"
                logical = logical_of(kind, path=name)
                fields.append(Field(len(fields), name, parent, logical, nullable=not is_count, encoding=encoding))
        ids = tuple(item.id for item in fields)
        return PageStatistics(Schema(tuple(fields)), ids, write_table(encode_table(spots, ids, 1)))


def _bounds(array: pa.Array[Any]) -> tuple[Any, Any]:
    if str(array.type) in _VARIABLE:
        return _byte_bounds(array)
    values = array.drop_null()
    if pa.types.is_floating(array.type):
        values = values.filter(pc.invert(pc.is_nan(values)))
    if not len(values):
        return _widest(array.type)
    found = pc.min_max(values)
    low, high = found["min"], found["max"]
    if pa.types.is_floating(array.type):
        # Signed zeros are equal, so either of them may be in the batch.
        return low.as_py() if low.as_py() else -0.0, high.as_py() if high.as_py() else 0.0
    return low, high


def _widest(arrow_type: pa.DataType) -> tuple[Any, Any]:
    types = pa.types
    if types.is_boolean(arrow_type):
        return False, True
    if types.is_floating(arrow_type):
        return -np.inf, np.inf
    if types.is_decimal(arrow_type):
        # Beyond what the precision allows: the edges of 128 bits.
        edges = (b"\x00" * 15 + b"\x80", b"\xff" * 15 + b"\x7f")
        low, high = (pa.Array.from_buffers(arrow_type, 1, [None, pa.py_buffer(edge)]) for edge in edges)
        return low, high
    stored = {"date32[day]": np.int32, "date64[ms]": np.int64}.get(str(arrow_type)) or arrow_type.to_pandas_dtype()
    info = np.iinfo(stored)
    bounds = pa.array([info.min, info.max], pa.from_numpy_dtype(np.dtype(stored))).view(arrow_type)
    return bounds[0], bounds[1]


def _byte_bounds(array: pa.Array[Any]) -> tuple[Any, Any]:
    if array.null_count == len(array):
        return None, None
    found = pc.min_max(array)
    low, high = found["min"].as_py(), found["max"].as_py()
    if str(array.type) not in _TEXT:
        return low[:MAX_BOUND_BYTES], high if len(high) <= MAX_BOUND_BYTES else _raised_bytes(high[:MAX_BOUND_BYTES])
    return _cut(low), high if len(high.encode()) <= MAX_BOUND_BYTES else _raised_text(_cut(high))


def _cut(text: str) -> str:
    return text.encode()[:MAX_BOUND_BYTES].decode(errors="ignore")


def _raised_bytes(data: bytes) -> bytes | None:
    """The lowest value of no more bytes that is above all that begin with `data`."""
    kept = data.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def _raised_text(text: str) -> str | None:
    kept = text.rstrip("\U0010ffff")
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    # There are no characters in the range of surrogates.
    return kept[:-1] + chr(0xE000 if 0xD800 <= following < 0xE000 else following)
