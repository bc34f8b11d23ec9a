"""Spark's types and Arrow's: the Arrow type of a DataFrame's column in a Python worker, and back.

::

    LongType -> int64      TimestampType -> timestamp[us, UTC]      ArrayType(FloatType) -> list<float>

The table's own types (vectors of a fixed size, other units and widths) are restored afterwards by `jobs.conform`.
Only classes' names are checked, so one table serves PySpark 3.5 and 4.x, classic and Connect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from lance_core.errors import SchemaMismatchError

_TO_ARROW: Mapping[str, Any] = {
    "BooleanType": pa.bool_(),
    "ByteType": pa.int8(),
    "ShortType": pa.int16(),
    "IntegerType": pa.int32(),
    "LongType": pa.int64(),
    "FloatType": pa.float32(),
    "DoubleType": pa.float64(),
    "StringType": pa.string(),
    "CharType": pa.string(),
    "VarcharType": pa.string(),
    "BinaryType": pa.binary(),
    "DateType": pa.date32(),
    "TimestampType": pa.timestamp("us", "UTC"),
    "TimestampNTZType": pa.timestamp("us"),
    "DayTimeIntervalType": pa.duration("us"),
    "TimeType": pa.time64("ns"),
    "NullType": pa.null(),
    "VariantType": pa.struct([pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False)]),
}


def arrow_schema(schema: Any) -> pa.Schema:
    """The Arrow schema of a Spark `StructType`. SchemaMismatchError names a column whose type Spark cannot pass."""
    return pa.schema([_arrow_field(field, field.name) for field in schema.fields])


def _arrow_field(field: Any, path: str) -> Any:
    return pa.field(field.name, _arrow_type(field.dataType, path), nullable=field.nullable)


def _arrow_type(kind: Any, path: str) -> Any:
    name = type(kind).__name__
    if name in _TO_ARROW:
        return _TO_ARROW[name]
    maker = _NESTED.get(name)
    if maker is not None:
        return maker(kind, path)
    if hasattr(kind, "sqlType"):  # a user-defined type arrives as what it is made of
        return _arrow_type(kind.sqlType(), path)
    raise SchemaMismatchError(
        f"column {path!r} has the Spark type {kind.simpleString()}, which Spark does not pass to Python",
        cure="Cast it in the source.",
    )


_NESTED: Mapping[str, Callable[[Any, str], Any]] = {
    "DecimalType": lambda kind, _: pa.decimal128(kind.precision, kind.scale),
    "ArrayType": lambda kind, path: pa.list_(
        pa.field("element", _arrow_type(kind.elementType, f"{path}.element"), kind.containsNull)
    ),
    "MapType": lambda kind, path: pa.map_(
        _arrow_type(kind.keyType, f"{path}.key"),
        pa.field("value", _arrow_type(kind.valueType, f"{path}.value"), kind.valueContainsNull),
    ),
    "StructType": lambda kind, path: pa.struct([_arrow_field(field, f"{path}.{field.name}") for field in kind.fields]),
}


def spark_schema(schema: pa.Schema) -> Any:
    """The Spark `StructType` under which Lance columns are read. Unsigned integers widen, since Spark has none;
    float16 becomes float; fixed-size lists become arrays; times and durations need Spark 4.1 or later."""
    from pyspark.sql import types

    return types.StructType([_spark_field(field, types) for field in schema])


def readable_schema(schema: pa.Schema) -> pa.Schema:
    """The Arrow schema that batches must have to be handed to Spark under `spark_schema(schema)`."""
    return arrow_schema(spark_schema(schema))


def _spark_field(field: Any, types: Any) -> Any:
    return types.StructField(field.name, _spark_type(field.type, types, field.name), field.nullable)


def _spark_type(kind: Any, types: Any, path: str) -> Any:
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pt.is_dictionary(kind):
        return _spark_type(kind.value_type, types, path)
    for test, make in _TO_SPARK:
        if test(kind):
            return make(kind, types, path)
    raise SchemaMismatchError(f"column {path!r} of type {kind} has no Spark type", cure="Exclude it from the select.")


def _integer(kind: Any, types: Any, _: str) -> Any:
    bits = kind.bit_width * (2 if pt.is_unsigned_integer(kind) else 1)
    by_bits = {8: types.ByteType, 16: types.ShortType, 32: types.IntegerType, 64: types.LongType}
    return by_bits[bits]() if bits in by_bits else types.DecimalType(20, 0)


def _list(kind: Any, types: Any, path: str) -> Any:
    return types.ArrayType(_spark_type(kind.value_type, types, f"{path}.item"), kind.value_field.nullable)


def _map(kind: Any, types: Any, path: str) -> Any:
    return types.MapType(
        _spark_type(kind.key_type, types, f"{path}.key"),
        _spark_type(kind.item_type, types, f"{path}.value"),
        kind.item_field.nullable,
    )


def _struct(kind: Any, types: Any, path: str) -> Any:
    fields = [kind.field(index) for index in range(kind.num_fields)]
    return types.StructType([_spark_field(field, types) for field in fields])


def _is_text(kind: Any) -> bool:
    return bool(pt.is_string(kind) or pt.is_large_string(kind))


def _is_bytes(kind: Any) -> bool:
    return bool(pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_fixed_size_binary(kind))


def _is_list(kind: Any) -> bool:
    return bool(pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind))


_TO_SPARK: tuple[tuple[Callable[[Any], bool], Callable[[Any, Any, str], Any]], ...] = (
    (pt.is_boolean, lambda kind, types, path: types.BooleanType()),
    (pt.is_integer, _integer),
    (lambda kind: pt.is_float16(kind) or pt.is_float32(kind), lambda kind, types, path: types.FloatType()),
    (pt.is_float64, lambda kind, types, path: types.DoubleType()),
    (
        lambda kind: bool(pt.is_decimal128(kind)) and kind.precision <= 38,
        lambda kind, types, path: types.DecimalType(kind.precision, kind.scale),
    ),
    (_is_text, lambda kind, types, path: types.StringType()),
    (_is_bytes, lambda kind, types, path: types.BinaryType()),
    (pt.is_date, lambda kind, types, path: types.DateType()),
    (lambda kind: pt.is_timestamp(kind) and kind.tz is not None, lambda kind, types, path: types.TimestampType()),
    (pt.is_timestamp, lambda kind, types, path: types.TimestampNTZType()),
    (pt.is_duration, lambda kind, types, path: types.DayTimeIntervalType()),
    (pt.is_null, lambda kind, types, path: types.NullType()),
    (_is_list, _list),
    (pt.is_map, _map),
    (pt.is_struct, _struct),
)
"""(test, maker) in order; the first that fits decides."""
