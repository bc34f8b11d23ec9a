"""Local sources read what Spark would read from the same spec."""

from __future__ import annotations

import sys

import pyarrow as pa
import pyarrow.csv
import pyarrow.orc
import pyarrow.parquet
import pytest

from lance_core.errors import InputError
from lance_core.jobs.sources.open_source import open_local_source
from lance_core.jobs.specs.spec import SourceSpec

TABLE = pa.table({"id": pa.array([1, 2, 3]), "name": pa.array(["a", None, "c"])})


def rows(spec: SourceSpec) -> list[dict]:
    source = open_local_source(spec)
    return pa.Table.from_batches(source.batches(), schema=source.schema).to_pylist()


@pytest.fixture
def folder(tmp_path):
    pa.parquet.write_table(TABLE, tmp_path / "p.parquet")
    pa.orc.write_table(TABLE, tmp_path / "o.orc")
    (tmp_path / "c.csv").write_text("id,name\n1,a\n2,\n3,c\n")
    (tmp_path / "n.csv").write_text("1;NA\n2;b\n")
    (tmp_path / "j.json").write_text('{"id":1,"name":"a"}\n{"id":2,"name":null}\n{"id":3,"name":"c"}\n')
    return tmp_path


@pytest.mark.parametrize(("name", "format_"), [("p.parquet", "parquet"), ("o.orc", "orc"), ("j.json", "json")])
def test_files(folder, name: str, format_: str) -> None:
    assert rows(SourceSpec(format=format_, paths=(str(folder / name),))) == TABLE.to_pylist()


def test_parquet_knows_its_rows(folder) -> None:
    assert open_local_source(SourceSpec(format="parquet", paths=(str(folder / "*.parquet"),))).num_rows == 3


def test_csv_follows_spark(folder) -> None:
    path = str(folder / "c.csv")
    text = [{"id": "1", "name": "a"}, {"id": "2", "name": None}, {"id": "3", "name": "c"}]
    assert rows(SourceSpec(format="csv", paths=(path,), options={"header": True})) == text
    assert rows(SourceSpec(format="csv", paths=(path,), options={"header": True, "inferSchema": True})) == TABLE.to_pylist()
    assert rows(SourceSpec(format="csv", paths=(path,), options={"header": True}, schema="id BIGINT, name STRING")) == (
        TABLE.to_pylist()
    )
    bare = {"sep": ";", "nullValue": "NA"}
    path = str(folder / "n.csv")
    assert rows(SourceSpec(format="csv", paths=(path,), options=bare)) == [
        {"_c0": "1", "_c1": None},
        {"_c0": "2", "_c1": "b"},
    ]
    assert rows(SourceSpec(format="csv", paths=(path,), options=bare, schema="a INT, b STRING"))[1] == {"a": 2, "b": "b"}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (SourceSpec(format="parquet", paths=("/nowhere/x.parquet",)), "/nowhere/x.parquet does not exist"),
        (SourceSpec(format="parquet", paths=("/nowhere/*.parquet",)), r"/nowhere/\*.parquet does not exist"),
        (SourceSpec(format="avro", paths=("/x",)), "'avro' cannot be read without Spark"),
        (SourceSpec(format="parquet"), "paths is empty"),
        (SourceSpec(callable="no_such_module:f"), "cannot import no_such_module"),
        (SourceSpec(callable="json:no_such"), "no function 'no_such'"),
        (SourceSpec(callable="json:dumps"), "does not take these kwargs"),
        (SourceSpec(callable="json:dumps", kwargs={"obj": 1}), "returned str"),
    ],
)
def test_refusals(spec: SourceSpec, message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_local_source(spec)


def test_unknown_option_and_unreadable_file(folder) -> None:
    with pytest.raises(InputError, match="option maxColumns of csv"):
        open_local_source(SourceSpec(format="csv", paths=(str(folder / "c.csv"),), options={"maxColumns": 1}))
    with pytest.raises(InputError, match=r"c\.csv cannot be read"):
        open_local_source(SourceSpec(format="parquet", paths=(str(folder / "c.csv"),)))


def test_sql_needs_an_engine(folder, monkeypatch) -> None:
    spec = SourceSpec(sql="select * from v", views={"v": SourceSpec(format="parquet", paths=(str(folder / "p.parquet"),))})
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(InputError, match=r"source\.sql needs the package duckdb.*Run the job with Spark"):
        open_local_source(spec)


def make_rows(kind: str):
    batches = TABLE.to_batches()
    return {
        "table": lambda: TABLE,
        "batch": lambda: batches[0],
        "reader": lambda: pa.RecordBatchReader.from_batches(TABLE.schema, batches),
        "list": lambda: batches,
        "generator": lambda: (batch for batch in batches),
        "dataset": lambda: pyarrow.dataset.dataset(TABLE),
    }[kind]()


@pytest.mark.parametrize("kind", ["table", "batch", "reader", "list", "generator", "dataset"])
def test_callable(kind: str) -> None:
    assert rows(SourceSpec(callable=f"{__name__}:make_rows", kwargs={"kind": kind})) == TABLE.to_pylist()
