"""CAST: SQL type names to Arrow types, with SQL's conversions.

::

    cast(x as int) -> int32      cast(x as decimal(10, 2)) -> decimal128(10, 2)      timestamp(3) -> timestamp[ms]
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from pyarrow import compute

from lance_core.arrow_numpy import constant, no_values
from lance_core.errors import FilterError
from lance_core.expr import decimals
from lance_core.expr.coerce import Value, cast, family_of, is_scalar, plain, repeat
from lance_core.expr.local_time import PER_SECOND, cast_ticks, to_local, to_zone, zone_of
from lance_core.expr.text_casts import cast_text, instant_of
from lance_core.expr.type_names import arrow_type
from lance_core.expr.value_text import is_list, leaf_type, with_leaf
from lance_core.shortage import ARROW_ERRORS

pc: Any = compute  # the stubs know only some of what the kernels take

_UNITS: Mapping[int, pa.DataType] = MappingProxyType(
    {0: pa.timestamp("s"), 3: pa.timestamp("ms"), 6: pa.timestamp("us"), 9: pa.timestamp("ns")}
)
_NAMES: Mapping[str, pa.DataType] = MappingProxyType(
    {
        "boolean": pa.bool_(), "bool": pa.bool_(),
        "tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "integer": pa.int32(), "bigint": pa.int64(),
        "utinyint": pa.uint8(), "usmallint": pa.uint16(), "uint": pa.uint32(), "ubigint": pa.uint64(),
        "float": pa.float32(), "real": pa.float32(), "double": pa.float64(),
        "text": pa.string(), "varchar": pa.string(), "char": pa.string(), "nvarchar": pa.string(), "string": pa.string(),
        "binary": pa.binary(), "varbinary": pa.binary(), "bytea": pa.binary(), "blob": pa.binary(),
        "date": pa.date32(), "date32": pa.date32(), "time": pa.time64("ns"),
        "int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "int64": pa.int64(),
        "uint8": pa.uint8(), "uint16": pa.uint16(), "uint32": pa.uint32(), "uint64": pa.uint64(),
        "float16": pa.float16(), "float32": pa.float32(), "float64": pa.float64(),
        "utf8": pa.string(), "largeutf8": pa.large_string(),
    }
)  # fmt: skip
_STAMPS = ("timestamp", "datetime", "timestampntz", "timestamptz", "timestampltz")


def cast_type(name: str, parameters: tuple[int, ...] = ()) -> pa.DataType:
    """The Arrow type of an SQL type name. Raises FilterError for a name SQL filters do not know."""
    if name in ("decimal", "numeric"):
        precision, scale = (*parameters, 0)[:2] if parameters else (38, 10)
        if not 1 <= precision <= 76 or scale > precision:
            raise FilterError(f"decimal({precision}, {scale}) is not a valid type", cure="Use precision 1 to 76.")
        return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
    if name in _STAMPS:
        digits = parameters[0] if parameters else 6
        if digits not in _UNITS:
            raise FilterError(f"timestamp({digits}) is not a valid type", cure="Use 0, 3, 6 or 9 fractional digits.")
        return _UNITS[digits]
    found = _NAMES.get(name) or arrow_type(name)
    if found is None:
        raise FilterError(f"cannot cast to {name!r}", cure=f"Known types: {', '.join(sorted(_NAMES))}, decimal, timestamp.")
    return found


def cast_to(value: Value, name: str, parameters: tuple[int, ...], *, safe: bool) -> Value:
    """`CAST(value AS name)`; with `safe` what does not convert becomes null. Raises FilterError otherwise."""
    return cast_as(value, cast_type(name, parameters), safe=safe)


def cast_as(value: Value, target: pa.DataType, *, safe: bool) -> Value:
    """The same, to a type."""
    is_half_text = pa.types.is_float16(value.type) and family_of(target) == "text"
    subject = value if is_half_text else plain(value)
    if family_of(subject.type) == "text" and (read := cast_text(subject, target, safe=safe)) is not None:
        return read
    if not safe:
        return _convert(subject, target)
    if is_scalar(subject):
        return _attempt(subject, target)
    try:
        return _convert(subject, target)
    except (*ARROW_ERRORS, FilterError, OverflowError):
        parts = [repeat(_attempt(item, target), 1) for item in subject]
        return pa.concat_arrays(parts) if parts else no_values(target)


def _attempt(value: Value, target: pa.DataType) -> Value:
    try:
        return _convert(value, target)
    except (*ARROW_ERRORS, FilterError, OverflowError):
        return constant(None, target)


def _convert(value: Value, target: pa.DataType) -> Value:
    source, wanted = family_of(value.type), family_of(target)
    if source == "text" and zone_of(target) is not None:
        return _instants_of(value, target)
    if source == "float" and wanted == "int":
        # SQL casts drop the fraction; Arrow's safe cast would refuse it, its unsafe one would wrap out-of-range values.
        return cast(pc.trunc(value), target)
    if source == "timestamp" and wanted == "date":
        return cast(to_local(value), target, safe=False)
    if source in _TICKS and wanted in ("int", "float") and source != wanted:
        ticks = cast(value, pa.int32() if pa.types.is_date32(value.type) or pa.types.is_time32(value.type) else pa.int64())
        return cast(ticks, target, safe=wanted == "int")
    if wanted == "decimal" and source in ("float", "decimal"):
        return decimals.from_float(value, target) if source == "float" else decimals.rescale(value, target)
    if source == wanted == "timestamp":
        # Digits of a fraction may be lost, not the whole: a finer unit does not reach as far.
        finer = PER_SECOND[str(getattr(target, "unit", "s"))] > PER_SECOND[value.type.unit]
        return cast(value, target, safe=finer)
    if wanted == "timestamp" and source in ("int", "float", "decimal"):
        return cast_ticks(_convert(value, pa.int64()), target)
    if wanted == "duration" and source in ("int", "float", "decimal"):
        return cast(_convert(value, pa.int64()), target)
    if wanted == "decimal" and source in ("timestamp", "duration"):
        return _convert(cast(value, pa.int64()), target)
    if target == pa.date32() and value.type == pa.int64():
        return cast(cast(value, pa.int32()), target)
    if source == "int" and target == pa.binary():
        return _bytes_of(value)
    if is_list(value.type) and is_list(target) and pa.types.is_floating(_item_type(target)):
        return cast(value, target, safe=False)  # large numbers as the floats next to them
    if is_list(value.type) and leaf_type(target) == pa.date32() and leaf_type(value.type) == pa.int64():
        return cast(cast(value, with_leaf(value.type, pa.int32())), target)
    if source in ("timestamp", "float", "decimal") and wanted in ("date", "timestamp", "float"):
        return cast(value, target, safe=False)
    if source == "decimal" and wanted == "int":
        return cast(pc.trunc(value), target)
    if source == "int" and wanted == "float":
        return cast(value, target, safe=False)
    if source == "int" and wanted == "decimal":
        return decimals.rescale(cast(value, pa.decimal128(20, 0)), target)
    return cast(value, target)


def _item_type(kind: Any) -> Any:
    return kind.value_type


def _instants_of(value: Value, target: Any) -> Value:
    """Texts as points in time of a zone: one that names a zone is that instant, others are local time."""
    if is_scalar(value):
        return _instants_of(repeat(value, 1), target)[0]
    found = [None if text is None else instant_of(text) for text in value.to_pylist()]
    own = 10**9 // PER_SECOND[target.unit]
    ticks = pa.array([None if each is None else each[0] // own for each in found], pa.int64())
    named = pa.array([each is not None and each[1] for each in found], pa.bool_())
    local = cast_ticks(pc.if_else(named, constant(0, pa.int64()), ticks), pa.timestamp(target.unit))
    return pc.if_else(named, ticks.cast(target), to_zone(local, target.tz))


def _bytes_of(value: Value) -> Value:
    """The bytes of whole numbers, the lowest first."""
    if is_scalar(value):
        return _bytes_of(repeat(value, 1))[0]
    size = value.type.bit_width // 8
    return value.view(pa.binary(size)).cast(pa.binary())


_TICKS = frozenset({"date", "timestamp", "time", "duration"})
