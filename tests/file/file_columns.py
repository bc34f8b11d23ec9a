"""Columns of every type, in every shape of nulls and distribution, for the tests of this folder."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

INNER = pa.struct([("x", pa.int64()), ("y", pa.string())])

Make = Callable[[int], Any]


def _struct(i: int) -> dict[str, Any]:
    return {"x": i, "y": None if i % 3 else str(i)}


_EPOCH = datetime.datetime(2020, 1, 1)
_UTC = _EPOCH.replace(tzinfo=datetime.timezone.utc)

VALUES: dict[str, tuple[pa.DataType, Make]] = {
    "bool": (pa.bool_(), lambda i: i % 3 == 0),
    "int8": (pa.int8(), lambda i: i % 256 - 128),
    "uint8": (pa.uint8(), lambda i: i % 256),
    "int16": (pa.int16(), lambda i: i % 1000),
    "uint16": (pa.uint16(), lambda i: i % 65536),
    "int32": (pa.int32(), lambda i: i * 7919 % 2**31),
    "uint32": (pa.uint32(), lambda i: i * 7919 % 2**32),
    "int64": (pa.int64(), lambda i: i * 2**33 - 2**40),
    "uint64": (pa.uint64(), lambda i: 2**64 - 1 - i),
    "float16": (pa.float16(), lambda i: np.float16(i % 100 / 8)),
    "float32": (pa.float32(), lambda i: i / 8),
    "float64": (pa.float64(), lambda i: i / 7),
    "decimal128": (pa.decimal128(20, 2), lambda i: decimal.Decimal(i * 101) / 100),
    "decimal256": (pa.decimal256(60, 3), lambda i: decimal.Decimal(10**30 + i) / 1000),
    "date32": (pa.date32(), lambda i: datetime.date(2020, 1, 1) + datetime.timedelta(days=i % 9999)),
    "date64": (pa.date64(), lambda i: datetime.date(2020, 1, 1) + datetime.timedelta(days=i % 9999)),
    "time32": (pa.time32("ms"), lambda i: datetime.time(i % 24, i % 60, i % 60, i % 1000 * 1000)),
    "time64": (pa.time64("us"), lambda i: datetime.time(i % 24, i % 60, i % 60, i % 1000)),
    "timestamp": (pa.timestamp("us"), lambda i: _EPOCH + datetime.timedelta(seconds=i)),
    "timestamp_zone": (pa.timestamp("ms", "UTC"), lambda i: _UTC + datetime.timedelta(seconds=i)),
    "duration": (pa.duration("us"), lambda i: datetime.timedelta(microseconds=i)),
    "string": (pa.string(), lambda i: f"value {i * 31 % 1009}" if i % 5 else ""),
    "large_string": (pa.large_string(), lambda i: "é" * (i % 7)),
    "binary": (pa.binary(), lambda i: bytes([i % 256]) * (i % 11)),
    "large_binary": (pa.large_binary(), lambda i: bytes([i % 256]) * (i % 11)),
    "long_string": (pa.string(), lambda i: f"{i:08d}" * 40),
    "fixed_binary": (pa.binary(7), lambda i: i.to_bytes(7, "big")),
    "wide_binary": (pa.binary(300), lambda i: i.to_bytes(300, "big")),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), lambda i: f"c{i % 5}"),
    "dictionary_int": (pa.dictionary(pa.uint16(), pa.int64()), lambda i: i % 50),
    "list": (pa.list_(pa.int32()), lambda i: list(range(i % 5))),
    "list_nulls": (pa.list_(pa.int32()), lambda i: [None if j % 2 else j for j in range(i % 5)]),
    "large_list": (pa.large_list(pa.string()), lambda i: [str(j) for j in range(i % 4)]),
    "list_list": (pa.list_(pa.list_(pa.int8())), lambda i: [[j % 100] * (j % 3) if j % 4 else None for j in range(i % 6)]),
    "struct": (INNER, _struct),
    "struct_struct": (pa.struct([("s", INNER), ("z", pa.bool_())]),
                      lambda i: {"s": _struct(i) if i % 4 else None, "z": None}),
    "list_struct": (pa.list_(INNER), lambda i: [_struct(j) if j % 3 else None for j in range(i % 4)]),
    "struct_list": (pa.struct([("l", pa.list_(pa.int16())), ("k", pa.int8())]),
                    lambda i: {"l": [i % 99] * (i % 3), "k": i % 9}),
    "map": (pa.map_(pa.string(), pa.int64()), lambda i: [(str(j), None if j % 2 else j) for j in range(i % 3)]),
    "fsl": (pa.list_(pa.float32(), 4), lambda i: [i / 2, 1.0, -1.0, float(i)]),
    "fsl_nulls": (pa.list_(pa.int16(), 3), lambda i: [i % 99, None, 3]),
    "fsl_wide": (pa.list_(pa.float32(), 96), lambda i: [float(i + j) for j in range(96)]),
    "fsl_bool": (pa.list_(pa.bool_(), 3), lambda i: [True, False, i % 2 == 0]),
    "fsl_fsl": (pa.list_(pa.list_(pa.int8(), 2), 3), lambda i: [[i % 99, 1], [2, 3], [4, 5]]),
    "list_fsl": (pa.list_(pa.list_(pa.float64(), 2)), lambda i: [[float(j), 1.0] for j in range(i % 3)]),
    "fsl_struct": (pa.list_(pa.struct([("a", pa.int8()), ("b", pa.string())]), 2),
                   lambda i: [{"a": i % 100, "b": None}, {"a": None, "b": str(i)}]),
    "null": (pa.null(), lambda i: None),
    "constant": (pa.int64(), lambda i: 42),
    "constant_string": (pa.string(), lambda i: "always the same"),
    "runs": (pa.int64(), lambda i: i // 100),
    "runs_string": (pa.string(), lambda i: f"run {i // 100}"),
    "low_cardinality": (pa.float64(), lambda i: float(i * 7919 % 13)),
    "sorted": (pa.int64(), lambda i: i),
}  # fmt: skip

NULLS: dict[str, Callable[[int], bool]] = {
    "none": lambda i: False,
    "some": lambda i: i % 7 == 3,
    "all": lambda i: True,
}

_NEEDS_2_2 = ("map", "fsl_struct")
_NEEDS_STRUCT_VALIDITY = ("struct_struct", "list_struct")
_STRUCTS = ("struct", "struct_list")


def is_known(name: str, nulls: str, version: str) -> bool:
    """Whether the official library can write such a column in this version: 2.0 keeps no nulls of structs."""
    if version == "2.0" and (name in _NEEDS_STRUCT_VALIDITY or (name in _STRUCTS and nulls != "none")):
        return False
    return version == "2.2" or name not in _NEEDS_2_2


def column(name: str, num_rows: int, nulls: str = "none") -> pa.Array:
    """One column; `nulls` names a row of NULLS."""
    arrow_type, make = VALUES[name]
    values = [None if NULLS[nulls](i) else make(i) for i in range(num_rows)]
    if pa.types.is_dictionary(arrow_type):
        plain = pa.array(values, arrow_type.value_type).dictionary_encode()
        return pa.DictionaryArray.from_arrays(plain.indices.cast(arrow_type.index_type), plain.dictionary)
    return pa.array(values, arrow_type)


def table(name: str, num_rows: int, nulls: str = "none") -> pa.Table:
    """A table of one such column, `c`."""
    return pa.table({"c": column(name, num_rows, nulls)})
