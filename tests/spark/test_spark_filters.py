"""Filters handed to a Lance scan select exactly what Spark would; the rest stays with Spark. No session needed."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from lance_core.expr import evaluate, parse_filter
from lance_core.spark.filters import split_filters, to_sql

datasource = pytest.importorskip("pyspark.sql.datasource", reason="Python data sources came with Spark 4.0")
if not hasattr(datasource, "EqualTo"):
    pytest.skip("Python data sources are told filters from Spark 4.1 on", allow_module_level=True)
EqualTo, In, IsNotNull, IsNull, Not = (getattr(datasource, name) for name in ("EqualTo", "In", "IsNotNull", "IsNull", "Not"))
GreaterThan, LessThanOrEqual = datasource.GreaterThan, datasource.LessThanOrEqual

TABLE = pa.table(
    {
        "a": pa.array([1, 2, None, 4]),
        "s": ["x", "it's", None, "z"],
        "d": pa.array([dt.date(2013, 1, day) for day in range(1, 5)]),
        "b": [True, False, None, True],
        "f": [1.0, float("nan"), None, 4.0],
        "n": pa.array([{"k": 1}, {"k": 2}, None, {"k": None}]),
        "t": pa.array([0, 1, 2, 3], pa.timestamp("us", "UTC")),
    }
)

TAKEN = [
    (EqualTo(("a",), 2), [1]),
    (GreaterThan(("a",), 1), [1, 3]),
    (LessThanOrEqual(("d",), dt.date(2013, 1, 2)), [0, 1]),
    (EqualTo(("s",), "it's"), [1]),
    (EqualTo(("b",), True), [0, 3]),
    (In(("a",), (1, 4)), [0, 3]),
    (Not(In(("a",), (1, 4))), [1]),
    (Not(EqualTo(("s",), "x")), [1, 3]),
    (IsNull(("f",)), [2]),
    (IsNotNull(("s",)), [0, 1, 3]),
    (EqualTo(("n", "k"), 2), [1]),
    (IsNull(("n", "k")), [2, 3]),
]


@pytest.mark.parametrize(("item", "expected"), TAKEN, ids=lambda value: str(value)[:50])
def test_taken(item, expected: list[int]) -> None:
    sql = to_sql(item, TABLE.schema)
    assert sql is not None
    mask = evaluate(parse_filter(sql, TABLE.schema), TABLE.to_batches()[0])
    assert [index for index, hit in enumerate(mask.to_pylist()) if hit] == expected


LEFT = [
    GreaterThan(("f",), 1.0),
    EqualTo(("t",), dt.datetime(2013, 1, 1)),
    EqualTo(("a",), "1"),
    EqualTo(("a",), None),
    EqualTo(("nope",), 1),
    In(("a",), (1, None)),
    In(("a",), tuple(range(5000))),
    Not(EqualTo(("f",), 1.0)),
    datasource.StringContains(("s",), "x"),
]


@pytest.mark.parametrize("item", LEFT, ids=lambda value: str(value)[:50])
def test_left_to_spark(item) -> None:
    assert to_sql(item, TABLE.schema) is None


def test_split() -> None:
    taken, left = EqualTo(("a",), 2), GreaterThan(("f",), 1.0)
    assert split_filters([taken, left, IsNotNull(("a",))], TABLE.schema) == ("(`a` = 2) AND (`a` IS NOT NULL)", [left])
    assert split_filters([left], TABLE.schema) == (None, [left])
