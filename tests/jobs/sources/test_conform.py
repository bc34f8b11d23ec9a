"""A source's batches become the table's, or an error names the column."""

from __future__ import annotations

import datetime as dt
import decimal
import pickle

import pyarrow as pa
import pytest

from lance_core.errors import InputError, SchemaMismatchError
from lance_core.jobs.sources.conform import Conformer, check_schema, created_schema
from lance_core.jobs.sources.spark_ddl import parse_ddl

UTC = dt.timezone.utc
AB = pa.struct([("a", pa.int64()), ("b", pa.string())])
STRICT = pa.struct([pa.field("a", pa.int32(), nullable=False), pa.field("b", pa.string())])

CONVERSIONS = [
    (pa.array([1, None], pa.int64()), pa.uint8()),
    (pa.array([1, None], pa.int16()), pa.float64()),
    (pa.array([0.5, None], pa.float64()), pa.float16()),
    (pa.array([[1.0, 2.0], None], pa.list_(pa.float64())), pa.list_(pa.float32(), 2)),
    (pa.array([[1.0, 2.0], None], pa.large_list(pa.float64())), pa.list_(pa.float16())),
    (pa.array([[[1.0, 2.0]], None], pa.list_(pa.list_(pa.float64()))), pa.list_(pa.list_(pa.float32(), 2))),
    (pa.array(["a", None], pa.large_string()), pa.string()),
    (pa.array(["a", None], pa.string_view()), pa.string()),
    (pa.array(["a", None]).dictionary_encode(), pa.string()),
    (pa.array(["a", None]), pa.dictionary(pa.int32(), pa.string())),
    (pa.array([b"ab", None]), pa.binary(2)),
    (pa.array([dt.datetime(2013, 1, 1, tzinfo=UTC), None], pa.timestamp("us", "Asia/Tokyo")), pa.timestamp("ns", "UTC")),
    (pa.array([decimal.Decimal("1.5"), None], pa.decimal128(4, 1)), pa.decimal128(20, 3)),
    (pa.array([decimal.Decimal(2**64 - 1), decimal.Decimal(0), None], pa.decimal128(20, 0)), pa.uint64()),
    (pa.array([{"b": "x", "a": 1}, None], pa.struct([("b", pa.string()), ("a", pa.int64())])), STRICT),
    (pa.array([[{"a": 1, "b": None}], [], None], pa.list_(AB)), pa.list_(STRICT)),
    (pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())), pa.map_(pa.string(), pa.int32())),
    (pa.nulls(2), pa.list_(pa.float32(), 2)),
]  # fmt: skip


@pytest.mark.parametrize(("column", "kind"), CONVERSIONS, ids=lambda value: str(getattr(value, "type", value))[:40])
@pytest.mark.parametrize("offset", [0, 1])
def test_values_survive(column: pa.Array, kind: pa.DataType, offset: int) -> None:
    target = pa.schema([pa.field("c", kind)])
    check_schema(pa.schema([pa.field("c", column.type)]), target, drift="fail", uri="t")
    conformer = pickle.loads(pickle.dumps(Conformer(target, uri="t")))
    batch = pa.record_batch([column], names=["c"]).slice(offset)
    result = conformer.apply(batch)
    assert result.schema == target
    result.validate(full=True)
    assert result.column(0).to_pylist() == column.slice(offset).to_pylist()


REFUSED = [
    (pa.string(), pa.int64()),
    (pa.int64(), pa.string()),
    (pa.float64(), pa.int64()),
    (pa.decimal128(20, 2), pa.uint64()),
    (pa.timestamp("us"), pa.timestamp("us", "UTC")),
    (pa.list_(pa.string()), pa.list_(pa.float32(), 2)),
    (pa.list_(pa.float32(), 3), pa.list_(pa.float32(), 2)),
    (pa.struct([("a", pa.int32()), ("z", pa.int32())]), STRICT),
    (pa.struct([("b", pa.string())]), STRICT),
    (pa.struct([("a", pa.string())]), STRICT),
    (pa.int32(), pa.list_(pa.int32())),
    (pa.int8(), pa.bool_()),
]


@pytest.mark.parametrize(("source", "target"), REFUSED, ids=str)
def test_types_that_cannot_match(source: pa.DataType, target: pa.DataType) -> None:
    with pytest.raises(SchemaMismatchError, match="'c"):
        check_schema(pa.schema([("c", source)]), pa.schema([("c", target)]), drift="fill_and_drop", uri="t")


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array([300]), pa.uint8()),
        (pa.array([decimal.Decimal(-1)], pa.decimal128(20, 0)), pa.uint64()),
        (pa.array([decimal.Decimal(2**64)], pa.decimal128(20, 0)), pa.uint64()),
        (pa.array([[1.0]]), pa.list_(pa.float32(), 2)),
        (pa.array([b"abc"]), pa.binary(2)),
        (pa.array([1], pa.timestamp("us")), pa.timestamp("ms")),
    ],
    ids=str,
)
def test_values_that_do_not_fit(column: pa.Array, kind: pa.DataType) -> None:
    with pytest.raises(SchemaMismatchError, match="column 'c'"):
        Conformer(pa.schema([("c", kind)]), uri="t").apply(pa.record_batch([column], names=["c"]))


def test_nulls_where_none_may_be() -> None:
    strict = pa.schema([pa.field("c", pa.int64(), nullable=False), pa.field("s", STRICT)])
    conformer = Conformer(strict, uri="t")
    good = pa.table({"c": [1, 2], "s": [{"a": 1, "b": None}, None]}).to_batches()[0]
    assert conformer.apply(good).to_pylist() == good.to_pylist()
    with pytest.raises(SchemaMismatchError, match="'c' is not nullable but holds a null"):
        conformer.apply(pa.table({"c": [1, None], "s": [{"a": 1, "b": ""}] * 2}).to_batches()[0])
    with pytest.raises(SchemaMismatchError, match=r"'s\.a' is not nullable but holds a null"):
        conformer.apply(pa.table({"c": [1, 2], "s": [{"a": 1, "b": ""}, {"a": None, "b": ""}]}).to_batches()[0])


def test_drift_policies() -> None:
    table = pa.schema([pa.field("a", pa.int32()), pa.field("b", pa.string()), pa.field("n", pa.int32(), nullable=False)])
    source = pa.schema([("n", pa.int64()), ("x", pa.int8()), ("a", pa.int64())])
    with pytest.raises(SchemaMismatchError, match=r"'x' is in the source.*'b' is in the table"):
        check_schema(source, table, drift="fail", uri="t")
    with pytest.raises(SchemaMismatchError, match="'x'"):
        check_schema(source, table, drift="fill_missing", uri="t")
    with pytest.raises(SchemaMismatchError, match="'b'"):
        check_schema(source, table, drift="drop_extra", uri="t")
    check_schema(source, table, drift="fill_and_drop", uri="t")
    batch = pa.record_batch([pa.array([1]), pa.array([2], pa.int8()), pa.array([3])], schema=source)
    assert Conformer(table, uri="t").apply(batch).to_pylist() == [{"a": 3, "b": None, "n": 1}]
    with pytest.raises(SchemaMismatchError, match=r"'n' is not in the source"):
        check_schema(source.remove(0), table, drift="fill_and_drop", uri="t")


def test_created_tables_are_nullable() -> None:
    source = pa.schema([pa.field("c", pa.int64(), nullable=False), pa.field("s", STRICT)])
    assert created_schema(source) == pa.schema(
        [("c", pa.int64()), ("s", pa.struct([("a", pa.int32()), ("b", pa.string())]))]
    )


def test_ddl() -> None:
    text = "`id x` BIGINT NOT NULL, v ARRAY<FLOAT>, m MAP<STRING, INT>, s STRUCT<a: INT, b: DECIMAL(10,2)>, t timestamp, "
    text += "c char(3)"
    expected = pa.schema(
        [
            pa.field("id x", pa.int64(), nullable=False),
            ("v", pa.list_(pa.float32())),
            ("m", pa.map_(pa.string(), pa.int32())),
            ("s", pa.struct([("a", pa.int32()), ("b", pa.decimal128(10, 2))])),
            ("t", pa.timestamp("us", "UTC")),
            ("c", pa.string()),
        ]
    )
    assert parse_ddl(text) == expected
    for bad in ("id", "id BIGINT,", "id ARRAY<", "id BIGINT extra", "id !", "id NOT"):
        with pytest.raises(InputError, match="schema"):
            parse_ddl(bad)
