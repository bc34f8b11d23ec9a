"""Append and overwrite through Spark: each row once, whatever fails; judged by the official library."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet
import pytest
import spark_sources

from lance_core.commit import naming
from lance_core.errors import InputError, SchemaMismatchError
from lance_core.jobs.run import run_job
from lance_core.jobs.runtime.progress import PROGRESS
from lance_core.jobs.specs.spec import AppendSpec, CommitSpec, OverwriteSpec, SourceSpec
from lance_core.spark.runner import SparkRunner

pytestmark = pytest.mark.spark


def source(name: str = "numbers", **kwargs: object) -> SourceSpec:
    return SourceSpec(callable=f"spark_sources:{name}", kwargs=kwargs)


def stage(spark, spec):
    return run_job(spec, runner=SparkRunner(lambda: spark))


def publish(spark, spec) -> dict:
    staged = stage(spark, spec)
    return run_job(CommitSpec.of([staged], uri=spec.uri)).to_dict()


def files(uri: str, folder: str = "") -> list[str]:
    root = Path(uri)
    return sorted(str(path.relative_to(root)) for path in (root / folder).rglob("*") if path.is_file())


def rows_of(uri: str) -> pa.Table:
    table = lance.dataset(uri)
    table.validate()
    return table.to_table().sort_by("id")


@pytest.fixture
def uri(tmp_path) -> str:
    return str(tmp_path / "t.lance")


def test_append_creates_then_adds_once(spark, uri: str) -> None:
    spec = AppendSpec(uri=uri, identity="one", source=source())
    result = publish(spark, spec)
    assert (result["version"], result["rows_added"], result["fragments_added"]) == (1, 1000, 4)
    assert publish(spark, spec)["identities"] == {"one": "already_committed"}
    more = AppendSpec(uri=uri, identity="two", source=source(start=1000), max_rows_per_file=100, num_partitions=2)
    assert publish(spark, more)["fragments_added"] == 10
    assert rows_of(uri).equals(spark_sources.expected(2000))
    assert len(files(uri, "data")) == 14
    assert not files(uri, PROGRESS)


def test_types_survive(spark, uri: str) -> None:
    publish(spark, AppendSpec(uri=uri, source=source("typed")))
    table = lance.dataset(uri)
    table.validate()
    row = table.to_table(filter="i = 3").to_pylist()[0]
    assert row == {
        "i": 3,
        "f": 3.0,
        "b": False,
        "d": dt.date(2013, 1, 4),
        "t": dt.datetime(2013, 7, 1, 12, 0, 3, tzinfo=dt.timezone.utc),
        "m": Decimal("3.00"),
        "y": b"b3",
        "v": [3.0, 0.5],
        "s": {"k": 3, "l": ["x3"]},
        "p": [("id", 3)],
    }
    assert table.schema.field("t").type == pa.timestamp("us", "UTC")
    assert all(field.nullable for field in table.schema)


def test_the_tables_types_are_restored(spark, uri: str) -> None:
    schema = pa.schema([("i", pa.uint8()), ("v", pa.list_(pa.float16(), 2)), ("t", pa.timestamp("ms", "UTC"))])
    lance.write_dataset(schema.empty_table(), uri, data_storage_version="2.2")
    views = {"typed": source("typed")}
    publish(spark, AppendSpec(uri=uri, source=SourceSpec(sql="select i, v, t from typed", views=views)))
    table = lance.dataset(uri)
    table.validate()
    assert table.schema == schema
    assert table.to_table(filter="i = 3")["v"].to_pylist() == [[3.0, 0.5]]


@pytest.mark.parametrize("format_", ["parquet", "csv", "json", "orc"])
def test_formats(spark, uri: str, tmp_path, format_: str) -> None:
    expected = spark_sources.expected(100)
    path = tmp_path / f"rows.{format_}"
    options: dict = {}
    if format_ == "parquet":
        pa.parquet.write_table(expected, path)
    elif format_ == "orc":
        pa.orc.write_table(expected, path)
    elif format_ == "csv":
        path.write_text("id,name\n" + "".join(f"{row['id']},{row['name'] or ''}\n" for row in expected.to_pylist()))
        options = {"header": True}
    else:
        path.write_text(
            "".join(f'{{"id":{r["id"]},"name":"{r["name"]}"}}\n'.replace('"None"', "null") for r in expected.to_pylist())
        )
    schema = "id BIGINT, name STRING" if format_ in ("csv", "json") else None
    spec = SourceSpec(format=format_, paths=(str(path),), options=options, schema=schema)
    publish(spark, AppendSpec(uri=uri, source=spec))
    assert rows_of(uri).equals(expected)


def test_sql_and_overwrite(spark, uri: str) -> None:
    publish(spark, AppendSpec(uri=uri, source=source()))
    views = {"numbers": source(rows=50)}
    spec = OverwriteSpec(
        uri=uri, source=SourceSpec(sql="select id, id * 2 as twice from numbers where id >= 40", views=views)
    )
    staged = stage(spark, spec)
    assert lance.dataset(uri).count_rows() == 1000
    run_job(CommitSpec.of([staged], uri=uri))
    assert rows_of(uri).to_pydict() == {"id": list(range(40, 50)), "twice": list(range(80, 100, 2))}


@pytest.mark.parametrize("how", ["raise", "exit"])
def test_a_task_that_dies_halfway_leaves_each_row_once(spark, uri: str, tmp_path, how: str) -> None:
    marker = str(tmp_path / "died")
    result = publish(spark, AppendSpec(uri=uri, source=source("fails_once", marker=marker, how=how), max_rows_per_file=50))
    assert Path(marker).exists()
    assert result["rows_added"] == 1000
    assert len(files(uri, "data")) == result["fragments_added"] == 20
    assert rows_of(uri).equals(spark_sources.expected())


def test_refusals_leave_the_table_as_it_was(spark, uri: str) -> None:
    strict = pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.string(), nullable=False)])
    lance.write_dataset(pa.table({"id": [1], "name": ["a"]}, schema=strict), uri, data_storage_version="2.2")
    before = files(uri)
    with pytest.raises(SchemaMismatchError, match="'name' is not nullable but holds a null"):
        stage(spark, AppendSpec(uri=uri, source=source()))
    views = {"numbers": source()}
    with pytest.raises(SchemaMismatchError, match="column 'name': the table has string, the source has int64"):
        stage(spark, AppendSpec(uri=uri, source=SourceSpec(sql="select id, id as name from numbers", views=views)))
    with pytest.raises(InputError, match=r"/nowhere/a\.parquet does not exist"):
        stage(spark, AppendSpec(uri=uri, source=SourceSpec(format="parquet", paths=("/nowhere/a.parquet",))))
    # That a try was aborted stays on record until decisions are folded.
    assert [name for name in files(uri) if not name.startswith("_lance_core/decisions/")] == before
    assert lance.dataset(uri).version == 1


def test_a_value_too_large_for_the_table(spark, uri: str) -> None:
    lance.write_dataset(pa.schema([("id", pa.int8())]).empty_table(), uri, data_storage_version="2.2")
    views = {"numbers": source()}
    with pytest.raises(SchemaMismatchError, match="column 'id': a value of int64 cannot be converted to int8"):
        stage(spark, AppendSpec(uri=uri, source=SourceSpec(sql="select id from numbers", views=views)))
    assert not files(uri, "data")


def test_files_carry_the_attempt(spark, uri: str) -> None:
    staged = stage(spark, AppendSpec(uri=uri, source=source()))
    assert len(files(uri, "data")) == 4
    assert all(naming.is_of_attempt(name, staged.attempt) for name in files(uri, "data"))


def test_progress_is_logged(spark, uri: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="lance_core.jobs.runtime.lifecycle")
    stage(spark, AppendSpec(uri=uri, source=source(rows=200_000), max_rows_per_file=20_000, progress_seconds=0.05))
    lines = [record.getMessage() for record in caplog.records]
    assert [line for line in lines if "fragments, " in line and "tasks" in line]


def test_a_query_over_lance_tables_is_a_source(spark, tmp_path: Path) -> None:
    orders, daily = str(tmp_path / "orders.lance"), str(tmp_path / "daily.lance")
    lance.write_dataset(pa.table({"id": [1, 2, 3]}), orders)
    lance.write_dataset(pa.table({"id": [4]}), orders, mode="append")
    view = SourceSpec(format="lance", paths=(orders,), options={"version": "1"})
    query = SourceSpec(sql="SELECT id + 10 AS id FROM orders WHERE id > 1", views={"orders": view})
    publish(spark, AppendSpec(uri=daily, source=query))
    assert rows_of(daily)["id"].to_pylist() == [12, 13]
