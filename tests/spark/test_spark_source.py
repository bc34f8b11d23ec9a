"""`spark.read.format("lance")` and `df.write.format("lance")`."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
import spark_sources

from lance_core.errors import InputError
from lance_core.io.resolve import resolve_store
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.spec import CommitSpec
from lance_core.publish.attempts import list_staged
from lance_core.spark.options import parse_options
from tests.spark.conftest import WITH_BRIDGE

pytestmark = pytest.mark.spark

TABLE = pa.table(
    {
        "id": pa.array(range(20), pa.int64()),
        "u": pa.array([None, *range(1, 20)], pa.uint16()),
        "name": [None if i % 7 == 0 else f"n{i}" for i in range(20)],
        "f": pa.array([float("nan") if i == 3 else i / 2 for i in range(20)], pa.float64()),
        "d": pa.array([dt.date(2013, 1, i + 1) for i in range(20)]),
        "t": pa.array([dt.datetime(2013, 7, 1, i, tzinfo=dt.timezone.utc) for i in range(20)], pa.timestamp("us", "UTC")),
        "v": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(40, dtype=np.float32)), 2),
        "s": pa.array([{"k": i, "l": [f"x{i}"]} for i in range(20)]),
    }
)


@pytest.fixture
def registered(formats):
    return formats


@pytest.fixture(scope="module")
def uri(tmp_path_factory) -> str:
    where = str(tmp_path_factory.mktemp("source") / "t.lance")
    lance.write_dataset(TABLE, where, max_rows_per_file=6, data_storage_version="2.2")
    lance.dataset(where).delete("id = 5")
    return where


@pytest.fixture
def read(registered, uri):
    return registered.read.format("lance").load(uri)


def test_a_table_without_fragments_has_no_rows(registered, tmp_path) -> None:
    where = str(tmp_path / "empty.lance")
    lance.write_dataset(TABLE.slice(0, 0), where, data_storage_version="2.2")
    assert registered.read.format("lance").load(where).select("id", "s").collect() == []


def test_rows_and_types(read) -> None:
    rows = {row["id"]: row.asDict(recursive=True) for row in read.collect()}
    assert sorted(rows) == [i for i in range(20) if i != 5]
    assert rows[3]["u"] == 3
    assert (rows[0]["u"], rows[0]["name"]) == (None, None)
    assert rows[2]["v"] == [4.0, 5.0]
    assert rows[2]["s"] == {"k": 2, "l": ["x2"]}
    assert rows[2]["d"] == dt.date(2013, 1, 3)
    assert read.selectExpr("unix_timestamp(t) as t").head()["t"] == 1372636800
    assert dict(read.dtypes)["u"] == "int"


def test_pruned_and_filtered(read) -> None:
    names = [row["name"] for row in read.where("id > 15 and name is not null").select("name").orderBy("name").collect()]
    assert names == ["n16", "n17", "n18", "n19"]
    assert read.select("s.k").where("id = 4").collect()[0]["k"] == 4
    assert read.where("f > 8").count() == 4  # NaN is above all numbers in Spark: ids 3, 17, 18, 19
    assert read.where("d <= date'2013-01-02'").count() == 2
    assert read.where("name in ('n1', 'n2')").count() == 2
    assert read.where("s.k = 8").select("id").collect()[0]["id"] == 8
    assert read.count() == 19


def test_columns_and_filter_by_option(registered, uri) -> None:
    reader = registered.read.format("lance").option("columns", "name, id").option("filter", "id > 15 and name is not null")
    frame = reader.load(uri)
    assert frame.columns == ["name", "id"]
    assert sorted(row["id"] for row in frame.collect()) == [16, 17, 18, 19]
    assert frame.where("id = 17").count() == 1
    assert frame.count() == 4
    with pytest.raises(Exception, match="no column 'nope'"):
        registered.read.format("lance").option("columns", "nope").load(uri).schema  # Connect asks no sooner


@pytest.mark.skipif(WITH_BRIDGE, reason="an option of the Python source")
def test_filters_pushed_by_spark(registered, uri) -> None:
    from lance_core.spark.source import register

    register(registered, push_filters=True)
    try:
        for condition, expected in [("id > 15 and name is not null", 4), ("f > 8", 4), ("s.k = 8", 1), ("u is null", 1)]:
            frame = registered.read.format("lance").load(uri).where(condition)  # one load, one query: see `source`
            assert frame.count() == expected
    finally:
        register(registered)


def test_versions(registered, uri) -> None:
    assert registered.read.format("lance").option("version", 1).load(uri).count() == 20
    with pytest.raises(Exception, match="no version 99"):
        registered.read.format("lance").option("version", 99).load(uri).count()
    with pytest.raises(Exception, match="unknown option 'verzion'"):
        registered.read.format("lance").option("verzion", 1).load(uri).schema


def test_append_and_overwrite(registered, tmp_path) -> None:
    uri = str(tmp_path / "w.lance")
    spark_sources.numbers(registered, rows=100).write.format("lance").mode("append").save(uri)
    spark_sources.numbers(registered, rows=100, start=100).write.format("lance").mode("append").save(uri)
    table = lance.dataset(uri)
    table.validate()
    assert table.version == 2
    assert table.to_table().sort_by("id").equals(spark_sources.expected(200))
    spark_sources.numbers(registered, rows=10).selectExpr("id as other").write.format("lance").mode("overwrite").save(uri)
    assert lance.dataset(uri).to_table().to_pydict() == {"other": list(range(10))}


def test_vectors_nested_values_and_nulls_survive_both_ways(registered, tmp_path) -> None:
    deep = pa.struct([pa.field("k", pa.int64()), pa.field("m", pa.list_(pa.struct([pa.field("x", pa.float32())])))])
    table = pa.table(
        {
            "id": pa.array(range(6), pa.int64()),
            "v": pa.array([[1.5, 2.5], None, [0.0, -1.0], [3.0, 4.0], None, [9.0, 9.5]], pa.list_(pa.float32(), 2)),
            "deep": pa.array(
                [{"k": 1, "m": [{"x": 1.0}, None]}, None, {"k": None, "m": None}, {"k": 2, "m": []}, None,
                 {"k": 3, "m": [{"x": None}]}],
                deep,
            ),
            "tags": pa.array([["a", None], [], None, ["b"], ["c", "d"], None], pa.list_(pa.string())),
            "raw": pa.array([b"x", None, b"", b"y", b"z", None], pa.binary()),
            "n": pa.array([1, None, 3, 4, 5, 6], pa.int16()),
            "at": pa.array([None, *[dt.datetime(2013, 7, 1, i) for i in range(5)]], pa.timestamp("us")),
        }
    )  # fmt: skip
    first, second = str(tmp_path / "a.lance"), str(tmp_path / "b.lance")
    lance.write_dataset(table, first, data_storage_version="2.1")
    lance.write_dataset(table.slice(0, 0), second, data_storage_version="2.1")
    registered.read.format("lance").load(first).write.format("lance").mode("append").save(second)
    found = lance.dataset(second)
    assert found.schema.equals(table.schema)
    assert found.to_table().sort_by("id").to_pylist() == table.to_pylist()
    fresh = str(tmp_path / "c.lance")
    registered.read.format("lance").load(first).write.format("lance").mode("overwrite").save(fresh)
    assert lance.dataset(fresh).to_table().sort_by("id").to_pylist() == table.to_pylist()


def test_an_identity_lands_once(registered, tmp_path) -> None:
    uri = str(tmp_path / "w.lance")
    for _ in range(2):
        frame = spark_sources.numbers(registered, rows=100)
        frame.write.format("lance").mode("append").option("identity", "one").save(uri)
    assert lance.dataset(uri).count_rows() == 100
    assert lance.dataset(uri).version == 1


def test_stage_only(registered, tmp_path) -> None:
    uri = str(tmp_path / "w.lance")
    frame = spark_sources.numbers(registered, rows=100)
    frame.write.format("lance").mode("append").option("identity", "one").option("stageOnly", True).save(uri)
    assert not Path(uri, "_versions").exists()
    assert [entry.state for entry in list_staged(resolve_store(uri))] == ["finished"]
    assert run_job(CommitSpec(uri=uri)).rows_added == 100


def test_a_failing_write_leaves_nothing(registered, tmp_path) -> None:
    uri = str(tmp_path / "w.lance")
    frame = spark_sources.numbers(registered, rows=100).selectExpr("id", "if(id = 90, raise_error('no luck'), id) as x")
    with pytest.raises(Exception, match="no luck"):
        frame.write.format("lance").mode("append").save(uri)
    assert not list_staged(resolve_store(uri))
    # Spark aborts the write while its other tasks are still ending; such a task takes its own file away.
    until = time.monotonic() + 60
    while list(Path(uri, "data").glob("*")) and time.monotonic() < until:
        time.sleep(0.05)
    assert not list(Path(uri, "data").glob("*"))


def test_options() -> None:
    parsed = parse_options({"path": "/t", "VERSION": "3", "stageOnly": "true", "Region": "eu"})
    assert (parsed.uri, parsed.version, parsed.stage_only, parsed.storage) == ("/t", 3, True, {"region": "eu"})
    assert "'eu'" not in repr(parsed) and parsed.unsealed_indices == "use"
    assert parse_options({"path": "/t", "unsealedIndices": "use"}).unsealed_indices == "use"
    for bad, message in [
        ({}, "needs the table's uri"),
        ({"path": "/t", "version": "x"}, "'version'"),
        ({"stageOnli": "1"}, "stageonly"),
        ({"path": "/t", "unsealedIndices": "yes"}, "'compare', 'skip', 'use'"),
    ]:
        with pytest.raises(InputError, match=message):
            parse_options(bad)
