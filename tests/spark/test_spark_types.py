"""Values of every type go from a table to Spark and back as they were: with the bridge, without it, and through a job.

The table is written and judged by the official library.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from lance_core.jobs.run import run_job
from lance_core.jobs.specs.spec import AppendSpec, CommitSpec, SourceSpec
from lance_core.spark.frame import read_table
from lance_core.spark.runner import SparkRunner

pytestmark = pytest.mark.spark

FIRST, LAST = dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)
TYPES = pa.table(
    {
        "boolean": pa.array([True, None, False]),
        "tiny": pa.array([-128, None, 127], pa.int8()),
        "small": pa.array([-(2**15), None, 2**15 - 1], pa.int16()),
        "int": pa.array([-(2**31), None, 2**31 - 1], pa.int32()),
        "long": pa.array([-(2**63), None, 2**63 - 1], pa.int64()),
        "float": pa.array([float("nan"), None, -0.0], pa.float32()),
        "double": pa.array([float("-inf"), None, 5e-324]),
        "decimal": pa.array([Decimal("-9.99"), None, Decimal("12345678.90")], pa.decimal128(38, 2)),
        "text": pa.array(["", None, "ü\U0001f600\x00"]),
        "binary": pa.array([b"", None, b"\x00\xff"]),
        "date": pa.array([dt.date(1, 1, 1), None, dt.date(9999, 12, 31)]),
        "zoned": pa.array([FIRST, None, LAST], pa.timestamp("us", "UTC")),
        "local": pa.array([FIRST, None, LAST], pa.timestamp("us")),
        "list": pa.array([[1, None], None, []], pa.list_(pa.int32())),
        "vector": pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float32(), 2)),
        "struct": pa.array(
            [{"a": 1, "b": None}, None, {"a": None, "b": "x"}], pa.struct([("a", pa.int64()), ("b", pa.string())])
        ),
        "map": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
    }
)
"""17 types with nulls, NaN, the first and the last year."""
OTHERS = pa.table(
    {
        "whole_decimal": pa.array([Decimal(-99999), None, Decimal(0)], pa.decimal128(5, 0)),
        "fraction": pa.array([Decimal("0.000001"), None, Decimal("-123456789012.345678")], pa.decimal128(18, 6)),
        "interval": pa.array([dt.timedelta(-3, 7, 9), None, dt.timedelta(99_999, 1)], pa.duration("us")),
        "milli": pa.array([FIRST, None, dt.datetime(9999, 12, 31)], pa.timestamp("ms")),
        "unsigned": pa.array([0, None, 2**64 - 1], pa.uint64()),
        "byte": pa.array([0, None, 255], pa.uint8()),
        "half": pa.array([[1.5, -2.0], None, [0.0, 65504.0]], pa.list_(pa.float16(), 2)),
        "large_text": pa.array(["", None, "x" * 1000], pa.large_string()),
        "large_bytes": pa.array([b"", None, bytes(1000)], pa.large_binary()),
        "structs": pa.array(
            [[{"at": FIRST, "n": None}, None], None, []],
            pa.list_(pa.struct([("at", pa.timestamp("us")), ("n", pa.decimal128(10, 2))])),
        ),
        "deep": pa.array(
            [{"m": [("k", [1.0, None, float("nan")])]}, None, {"m": None}],
            pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.float64())))]),
        ),
    }
)
"""What Spark has no type of its own for, which the table's types bring back, and values in values."""


def _write(table: pa.Table, uri: Path) -> str:
    lance.write_dataset(table, str(uri), data_storage_version="2.2")
    return str(uri)


def _same(found: pa.Table, expected: pa.Table) -> None:
    for name in expected.column_names:
        assert repr(found[name].to_pylist()) == repr(expected[name].to_pylist()), name  # NaN and -0.0 are themselves


@pytest.mark.parametrize("table", [TYPES, OTHERS], ids=["spark's", "others"])
def test_types_in_both_directions(formats: Any, tmp_path: Path, table: pa.Table) -> None:
    theirs, ours = _write(table, tmp_path / "theirs.lance"), _write(table.slice(0, 0), tmp_path / "ours.lance")
    frame = formats.read.format("lance").load(theirs)
    frame.write.format("lance").mode("append").save(ours)
    found = lance.dataset(ours).to_table()
    assert found.schema.equals(table.schema)
    _same(found, table)


def test_types_of_a_new_table(formats: Any, tmp_path: Path) -> None:
    theirs, fresh = _write(TYPES, tmp_path / "theirs.lance"), str(tmp_path / "fresh.lance")
    frame = formats.read.format("lance").load(theirs).coalesce(1)
    frame.write.format("lance").option("dataStorageVersion", "2.2").mode("overwrite").save(fresh)
    _same(lance.dataset(fresh).to_table(), TYPES)


@pytest.mark.parametrize("table", [TYPES, OTHERS], ids=["spark's", "others"])
def test_types_through_a_job(spark: Any, tmp_path: Path, table: pa.Table) -> None:
    """Which needs no source of Spark's: also on Spark 3.5 without the bridge."""
    theirs, ours = _write(table, tmp_path / "theirs.lance"), _write(table.slice(0, 0), tmp_path / "ours.lance")
    spec = AppendSpec(uri=ours, source=SourceSpec(format="lance", paths=(theirs,)))
    run_job(CommitSpec.of([run_job(spec, runner=SparkRunner(lambda: spark))], uri=ours))
    _same(lance.dataset(ours).to_table(), table)
    assert read_table(spark, theirs).count() == 3
