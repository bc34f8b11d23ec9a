"""Mistakes that people make, through each door where they can be made, and what every message must hold.

A row is one mistake: `says` are the names and values that each door's message must hold, `cure` what must be in it that
helps; `golden.txt` has the whole messages.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import lance_core
from airflow_lance import checks
from airflow_lance.operators.add_columns import LanceAddColumnsOperator
from airflow_lance.operators.alter_columns import LanceAlterColumnsOperator
from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.branch import LanceBranchOperator
from airflow_lance.operators.build_index import LanceBuildIndexOperator
from airflow_lance.operators.check import LanceCheckOperator
from airflow_lance.operators.cleanup import LanceCleanupOperator
from airflow_lance.operators.compact import LanceCompactOperator
from airflow_lance.operators.create_table import LanceCreateTableOperator
from airflow_lance.operators.delete import LanceDeleteOperator
from airflow_lance.operators.merge import LanceMergeOperator
from airflow_lance.operators.query import LanceQueryOperator
from airflow_lance.operators.replace_where import LanceReplaceWhereOperator
from airflow_lance.operators.restore import LanceRestoreOperator
from airflow_lance.operators.sql import LanceSqlOperator
from airflow_lance.operators.stage import LanceStageOperator
from airflow_lance.operators.tag import LanceTagOperator
from airflow_lance.operators.update import LanceUpdateOperator
from tests.airflow.operator_support import execute


@dataclass(frozen=True)
class Table:
    """The table that a mistake is made on: 600 rows of id, city, day and v, with a tag, a branch and an index of id."""

    uri: str
    folder: Path

    @property
    def dataset(self) -> Any:
        return lance_core.dataset(self.uri)

    def file(self, name: str, **columns: Any) -> str:
        """A Parquet file of these columns."""
        path = self.folder / name
        pq.write_table(pa.table(columns), path)
        return str(path)

    def text(self, name: str, content: str) -> str:
        (self.folder / name).write_text(content)
        return str(self.folder / name)


Call = Callable[[Table], object]
Words = Callable[[Table], Sequence[str]]


@dataclass(frozen=True)
class Mistake:
    """One mistake. `page` is a GET below the table, a search where it has "text" or "vector", or a button's request where it
    has "action"."""

    says: tuple[str, ...]
    cure: tuple[str, ...] = ()
    python: Call | None = None
    cli: Words | None = None
    dag: Call | None = None
    page: Mapping[str, Any] = field(default_factory=dict)


def task_of(kind: Any, **arguments: Any) -> Call:
    """A task of an operator with arguments, some of which are made for the table."""

    def call(table: Table) -> object:
        made = {name: value(table) if callable(value) else value for name, value in arguments.items()}
        where = made.pop("uri", table.uri)
        local = {"execution": "local"} if issubclass(kind, LanceStageOperator) else {}
        return execute(kind(task_id="t", uri=where, **{**local, **made}), publishes=True)

    return call


def rows_of(**columns: Any) -> Callable[[Table], str]:
    return lambda table: table.file("rows.parquet", **columns)


def rows_like(**columns: Any) -> pa.Table:
    return pa.table(columns)


def _query(**arguments: Any) -> Call:
    return task_of(LanceQueryOperator, **arguments)


def _filter(where: str, says: tuple[str, ...], cure: tuple[str, ...] = ()) -> Mistake:
    """A wrong filter of a read, through all four doors."""
    return Mistake(
        says,
        cure,
        python=lambda t: t.dataset.to_table(filter=where),
        cli=lambda t: ["count", t.uri, "--where", where],
        dag=_query(filter=where),
        page={"path": "/rows", "filter": where},
    )


V = pa.FixedSizeListArray.from_arrays(pa.array([0.0] * 4, pa.float32()), 4)
DAY = pa.array([15000], pa.date32())
ROW: dict[str, Any] = {"id": [1000], "city": ["Rome"], "day": DAY, "v": V}
WITHOUT_CITY = {name: value for name, value in ROW.items() if name != "city"}

READS = {
    "an unknown column in a filter": _filter("cty = 'Berlin'", ("cty",), ("city",)),
    "a filter that ends too early": _filter("id >", ("id >",), ("Write the expression",)),
    "an unknown function in a filter": _filter("uper(city) = 'BERLIN'", ("uper",), ("upper",)),
    "a number compared with a word": _filter("id = 'abc'", ("id", "abc"), ("without quotes",)),
    "a filter that is no condition": _filter("id + 1", ("id + 1", "int64"), ("Add a comparison",)),
    "a date that is none": _filter("day > date '2013-13-01'", ("2013-13-01",), ("1..12",)),
    "an unknown column of a result": Mistake(
        ("cty",),
        ("city",),
        python=lambda t: t.dataset.to_table(columns=["cty"]),
        cli=lambda t: ["head", t.uri, "-c", "cty"],
        dag=_query(columns=["cty"]),
        page={"path": "/rows", "columns": "cty"},
    ),
    "a version that is not there": Mistake(
        ("99",),
        ("from 1 to 2",),
        python=lambda t: lance_core.dataset(t.uri, version=99),
        cli=lambda t: ["head", t.uri, "--version", "99"],
        dag=_query(version=99),
        page={"path": "/rows", "version": 99},
    ),
    "a tag that is not there": Mistake(
        ("golden",),
        ("gold",),
        python=lambda t: lance_core.dataset(t.uri, version="golden"),
        cli=lambda t: ["head", t.uri, "--version", "golden"],
        dag=_query(version="golden"),
    ),
    "a table that is not there": Mistake(
        ("tt.lance",),
        ("Check the uri",),
        python=lambda t: lance_core.dataset(f"{t.folder}/tt.lance"),
        cli=lambda t: ["info", f"{t.folder}/tt.lance"],
        dag=_query(uri=lambda t: f"{t.folder}/tt.lance"),
    ),
    "a file instead of a table": Mistake(
        ("notes.txt",),
        ("Check the uri",),
        python=lambda t: lance_core.dataset(t.text("notes.txt", "x")),
        cli=lambda t: ["info", t.text("notes.txt", "x")],
        dag=_query(uri=lambda t: t.text("notes.txt", "x")),
    ),
    "a scheme that nobody knows": Mistake(
        ("s4",),
        ("s3",),
        python=lambda t: lance_core.dataset("s4://bucket/t.lance"),
        cli=lambda t: ["info", "s4://bucket/t.lance"],
        dag=_query(uri="s4://bucket/t.lance"),
    ),
    "a storage option without a value": Mistake(("region",), ("key=value",), cli=lambda t: ["info", t.uri, "-o", "region"]),
    "a row that is not there": Mistake(("5000", "600"), ("0 to 599",), python=lambda t: t.dataset.take([5000])),
    "an unknown table in SQL": Mistake(
        ("orderz",),
        ("The query may read",),
        python=lambda t: t.dataset.sql("SELECT * FROM orderz").build().to_batch_records(),
        cli=lambda t: ["sql", "SELECT * FROM orderz", "-t", f"orders={t.uri}"],
        dag=lambda t: execute(LanceSqlOperator(task_id="s", sql="SELECT * FROM orderz", tables={"orders": t.uri})),
    ),
    "an unknown column in SQL": Mistake(
        ("cty",),
        ("city",),
        cli=lambda t: ["sql", "SELECT cty FROM orders", "-t", f"orders={t.uri}"],
        dag=lambda t: execute(LanceSqlOperator(task_id="s", sql="SELECT cty FROM orders", tables={"orders": t.uri})),
    ),
    "a vector of another length": Mistake(
        ("3", "4"),
        ("Search with 4 numbers",),
        python=lambda t: t.dataset.to_table(nearest={"column": "v", "q": [1.0, 2.0, 3.0], "k": 2}),
        page={"vector": [1.0, 2.0, 3.0], "vector_column": "v"},
    ),
    "a search in a column that is not there": Mistake(
        ("vv",),
        ("v",),
        python=lambda t: t.dataset.to_table(nearest={"column": "vv", "q": [1.0, 2.0, 3.0, 4.0], "k": 2}),
        page={"vector": [1.0, 2.0, 3.0, 4.0], "vector_column": "vv"},
    ),
    "words searched in numbers": Mistake(
        ("id", "no strings"),
        ("Search a column of strings",),
        python=lambda t: t.dataset.to_table(full_text_query={"columns": ["id"], "query": "x"}),
        page={"text": "x", "text_column": "id"},
    ),
    "two versions, one of which is not there": Mistake(
        ("99",), ("from 1 to 2",), cli=lambda t: ["diff", t.uri, "1", "99"], page={"path": "/diff", "from": 1, "to": 99}
    ),
    "a wait for nothing": Mistake(("--version",), ("--rows",), cli=lambda t: ["wait", t.uri]),
}

EDITS = {
    "a delete of everything by an empty filter": Mistake(
        (),
        ('"true"',),
        python=lambda t: t.dataset.delete(""),
        cli=lambda t: ["delete", t.uri, "--where", ""],
        dag=task_of(LanceDeleteOperator, predicate=""),
    ),
    "a delete by an unknown column": Mistake(
        ("idd",),
        ("id",),
        python=lambda t: t.dataset.delete("idd = 1"),
        cli=lambda t: ["delete", t.uri, "--where", "idd = 1"],
        dag=task_of(LanceDeleteOperator, predicate="idd = 1"),
    ),
    "an update of an unknown column": Mistake(
        ("cty",),
        ("city",),
        python=lambda t: t.dataset.update({"cty": "'x'"}),
        dag=task_of(LanceUpdateOperator, updates={"cty": "'x'"}, where="id = 1"),
    ),
    "an update with another type": Mistake(
        ("id", "abc"),
        ("CAST",),
        python=lambda t: t.dataset.update({"id": "'abc'"}),
        dag=task_of(LanceUpdateOperator, updates={"id": "'abc'"}, where="id = 1"),
    ),
    "an update without quotes": Mistake(
        ("Rome",),
        ("'Rome'",),
        python=lambda t: t.dataset.update({"city": "Rome"}),
        dag=task_of(LanceUpdateOperator, updates={"city": "Rome"}, where="id = 1"),
    ),
    "rows with a column more": Mistake(
        ("country",),
        ("add_extra",),
        cli=lambda t: ["write", t.uri, rows_of(**ROW, country=["IT"])(t)],
        dag=task_of(LanceAppendOperator, source=rows_of(**ROW, country=["IT"])),
    ),
    "rows with a column more, from Python": Mistake(
        ("country",),
        ("Select, rename or cast",),
        python=lambda t: t.dataset.insert(rows_like(**ROW, country=["IT"])),
    ),
    "rows without a column": Mistake(
        ("city",),
        ("fill_missing",),
        cli=lambda t: ["write", t.uri, rows_of(**WITHOUT_CITY)(t)],
        dag=task_of(LanceAppendOperator, source=rows_of(**WITHOUT_CITY)),
    ),
    "rows of another type": Mistake(
        ("id", "string", "int64"),
        ("ast",),
        python=lambda t: t.dataset.insert(rows_like(**{**ROW, "id": ["x"]})),
        cli=lambda t: ["write", t.uri, rows_of(**{**ROW, "id": ["x"]})(t)],
        dag=task_of(LanceAppendOperator, source=rows_of(**{**ROW, "id": ["x"]})),
    ),
    "a merge by an unknown column": Mistake(
        ("key",),
        ("olumns",),
        python=lambda t: t.dataset.merge_insert("key").when_not_matched_insert_all().execute(rows_like(**ROW)),
        dag=task_of(LanceMergeOperator, on="key", source=rows_of(**ROW)),
    ),
    "a merge of rows without their key": Mistake(
        ("id",),
        ("olumns",),
        python=lambda t: t.dataset.merge_insert("id").when_not_matched_insert_all().execute(rows_like(city=["x"])),
        dag=task_of(LanceMergeOperator, on="id", source=rows_of(city=["x"])),
    ),
    "a merge with a key twice": Mistake(
        ("id", "7"),
        ("when_duplicate",),
        dag=task_of(LanceMergeOperator, on="id", source=lambda t: t.text("m.csv", "id,city\n7,A\n7,B\n")),
    ),
    "a replacement by an unknown column": Mistake(
        ("dya",), ("day",), dag=task_of(LanceReplaceWhereOperator, predicate="dya = 1", source=rows_of(**ROW))
    ),
    "a table that exists is made": Mistake(
        ("t.lance",), ("append",), python=lambda t: lance_core.write_dataset(rows_like(**ROW), t.uri)
    ),
    "a mode with a typing error": Mistake(
        ("apend",), ("append",), python=lambda t: lance_core.write_dataset(rows_like(**ROW), t.uri, mode="apend")
    ),
}

SHAPES = {
    "an index of a kind that is not there": Mistake(
        ("BTRE",),
        ("BTREE",),
        python=lambda t: t.dataset.create_scalar_index("id", "BTRE"),
        cli=lambda t: ["index", "build", t.uri, "id", "BTRE"],
        dag=task_of(LanceBuildIndexOperator, column="id", index_type="BTRE"),
    ),
    "an index of an unknown column": Mistake(
        ("cty",),
        ("city",),
        python=lambda t: t.dataset.create_scalar_index("cty", "BTREE"),
        cli=lambda t: ["index", "build", t.uri, "cty", "BTREE"],
        dag=task_of(LanceBuildIndexOperator, column="cty", index_type="BTREE"),
    ),
    "an index of words on numbers": Mistake(
        ("id", "INVERTED"),
        ("BTREE",),
        python=lambda t: t.dataset.create_scalar_index("id", "INVERTED"),
        cli=lambda t: ["index", "build", t.uri, "id", "INVERTED"],
        dag=task_of(LanceBuildIndexOperator, column="id", index_type="INVERTED"),
    ),
    "an index of vectors on words": Mistake(
        ("city", "string"),
        ("fixed-size list",),
        python=lambda t: t.dataset.create_index("city", "IVF_PQ"),
        cli=lambda t: ["index", "build", t.uri, "city", "IVF_PQ"],
        dag=task_of(LanceBuildIndexOperator, column="city", index_type="IVF_PQ"),
    ),
    "a parameter that an index has not": Mistake(
        ("rows_per_zon",),
        ("rows_per_zone",),
        cli=lambda t: ["index", "build", t.uri, "id", "ZONEMAP", "-p", "rows_per_zon=8"],
        dag=task_of(LanceBuildIndexOperator, column="id", index_type="ZONEMAP", parameters={"rows_per_zon": 8}),
    ),
    "an index that is not there is dropped": Mistake(
        ("id_index",),
        ("id_idx",),
        python=lambda t: t.dataset.drop_index("id_index"),
        cli=lambda t: ["index", "drop", t.uri, "id_index"],
    ),
    "a column that is not there is dropped": Mistake(
        ("cty",),
        ("city",),
        python=lambda t: t.dataset.drop_columns(["cty"]),
    ),
    "a column that exists is added": Mistake(
        ("city",),
        ("rename it first",),
        python=lambda t: t.dataset.add_columns({"city": "'x'"}),
        dag=task_of(LanceAddColumnsOperator, columns={"city": "'x'"}),
    ),
    "a column by an unknown one": Mistake(
        ("amount",),
        ("Known",),
        python=lambda t: t.dataset.add_columns({"gross": "amount * 2"}),
        dag=task_of(LanceAddColumnsOperator, columns={"gross": "amount * 2"}),
    ),
    "a column that is not there gets another type": Mistake(
        ("cty",),
        ("city",),
        python=lambda t: t.dataset.alter_columns({"path": "cty", "nullable": True}),
        dag=task_of(LanceAlterColumnsOperator, alterations=[{"path": "cty", "nullable": True}]),
    ),
    "words become dates": Mistake(
        ("city", "date"),
        ("computes the values",),
        python=lambda t: t.dataset.alter_columns({"path": "city", "data_type": pa.date32()}),
        dag=task_of(LanceAlterColumnsOperator, alterations=[{"path": "city", "data_type": "DATE"}]),
    ),
    "a type that is not there": Mistake(
        ("BIGIT",),
        ("BIGINT",),
        dag=task_of(LanceCreateTableOperator, uri=lambda t: f"{t.folder}/new.lance", schema="id BIGIT"),
    ),
    "a table that exists with other columns": Mistake(
        ("t.lance",),
        ('if_exists="skip"',),
        dag=task_of(LanceCreateTableOperator, schema="id BIGINT, name STRING", if_exists="fail"),
    ),
}

REFERENCES = {
    "a tag that exists": Mistake(
        ("gold",),
        ("lance tags update",),
        python=lambda t: t.dataset.tags.create("gold", 1),
        cli=lambda t: ["tags", "create", t.uri, "gold", "1"],
    ),
    "a tag that is not there is moved": Mistake(
        ("golden",),
        ("gold",),
        python=lambda t: t.dataset.tags.update("golden", 1),
        cli=lambda t: ["tags", "update", t.uri, "golden", "1"],
    ),
    "a tag that is not there is removed": Mistake(
        ("golden",),
        ("gold",),
        python=lambda t: t.dataset.tags.delete("golden"),
        cli=lambda t: ["tags", "delete", t.uri, "golden"],
    ),
    "a name that no tag can have": Mistake(
        ("a b",),
        ("Use letters",),
        python=lambda t: t.dataset.tags.create("a b", 1),
        cli=lambda t: ["tags", "create", t.uri, "a b", "1"],
        dag=task_of(LanceTagOperator, tag="a b"),
    ),
    "a tag of a version that is not there": Mistake(
        ("99",),
        ("from 1 to 2",),
        python=lambda t: t.dataset.tags.create("new", 99),
        cli=lambda t: ["tags", "create", t.uri, "new", "99"],
        dag=task_of(LanceTagOperator, tag="new", version=99),
    ),
    "a branch that exists": Mistake(
        ("dev",),
        ("another name",),
        python=lambda t: t.dataset.create_branch("dev"),
        cli=lambda t: ["branches", "create", t.uri, "dev"],
    ),
    "a branch that is not there is removed": Mistake(
        ("devel",),
        ("dev",),
        python=lambda t: t.dataset.branches.delete("devel"),
        cli=lambda t: ["branches", "delete", t.uri, "devel"],
    ),
    "an old version that is not there becomes the newest": Mistake(
        ("99",),
        ("from 1 to 2",),
        python=lambda t: lance_core.dataset(t.uri, version=99).restore(),
        cli=lambda t: ["restore", t.uri, "99"],
        dag=task_of(LanceRestoreOperator, version=99),
    ),
    "a branch from a version that is not there": Mistake(
        ("99",),
        ("from 1 to 2",),
        dag=task_of(LanceBranchOperator, branch="new", version=99),
    ),
}

WORK = {
    "a source that is not there": Mistake(
        ("nowhere.csv",),
        ("Pass a file",),
        cli=lambda t: ["write", t.uri, f"{t.folder}/nowhere.csv"],
        dag=task_of(LanceAppendOperator, source=lambda t: f"{t.folder}/nowhere.csv"),
    ),
    "a source of another kind": Mistake(
        (".xlsx",),
        ("parquet",),
        cli=lambda t: ["write", t.uri, t.text("book.xlsx", "x")],
        dag=task_of(LanceAppendOperator, source=lambda t: t.text("book.xlsx", "x")),
    ),
    "a format with a typing error": Mistake(
        ("parqet",),
        ("Did you mean 'parquet'",),
        dag=task_of(LanceAppendOperator, source={"format": "parqet", "paths": ["/x"]}),
    ),
    "a source with a key that is not there": Mistake(
        ("path",), ("paths",), dag=task_of(LanceAppendOperator, source={"format": "csv", "path": "/x.csv"})
    ),
    "an option that a format has not": Mistake(
        ("hedaer",),
        ("header",),
        dag=task_of(
            LanceAppendOperator,
            source=lambda t: {"format": "csv", "paths": [t.text("o.csv", "id\n1\n")], "options": {"hedaer": "true"}},
        ),
    ),
    "an execution that is not there": Mistake(
        ("locally",), ("local",), dag=task_of(LanceAppendOperator, source="/x.csv", execution="locally")
    ),
    "a policy for differing columns with a typing error": Mistake(
        ("add_new",), ("add_extra",), dag=task_of(LanceAppendOperator, source="/x.csv", schema_drift="add_new")
    ),
    "a gate with a key that is not there": Mistake(
        ("min_row",), ("min_rows",), dag=task_of(LanceAppendOperator, source="/x.csv", gates=[{"min_row": 1}])
    ),
    "a gate that the rows do not pass": Mistake(
        ("at least 5", "1"),
        ("Fix the rows",),
        dag=task_of(LanceAppendOperator, source=rows_of(**ROW), gates=[{"min_rows": 5}]),
    ),
    "a check of an unknown column": Mistake(
        ("cty",), ("city",), dag=task_of(LanceCheckOperator, checks=[checks.not_null("cty")])
    ),
    "a check that the rows do not pass": Mistake(
        ("600", "601"), ("Correct the rows",), dag=task_of(LanceCheckOperator, checks=[checks.row_count(at_least=601)])
    ),
    "a column that is not unique": Mistake(
        ("city",), ("Correct the rows",), dag=task_of(LanceCheckOperator, checks=[checks.unique("city")])
    ),
    "days below none": Mistake(("older_than_days", "-1"), ("7",), dag=task_of(LanceCleanupOperator, older_than_days=-1)),
    "an age without its unit": Mistake(
        ("--older-than", "7x"), ("14d",), cli=lambda t: ["cleanup", t.uri, "--older-than", "7x"]
    ),
    "fragments of no rows": Mistake(
        ("0",),
        ("at least 1",),
        python=lambda t: t.dataset.optimize.compact_files(target_rows_per_fragment=0),
        cli=lambda t: ["compact", t.uri, "--target-rows", "0"],
        dag=task_of(LanceCompactOperator, target_rows_per_fragment=0),
    ),
    "a policy with a key that is not there": Mistake(
        ("tabels",), ("tables",), cli=lambda t: ["maintain", t.text("policy.yaml", "tabels: []\n")]
    ),
    "a job with a field that is not there": Mistake(
        ("predicat",),
        ("predicate",),
        cli=lambda t: ["job", json.dumps({"kind": "delete", "uri": t.uri, "predicat": "id = 1"})],
    ),
    "a job of a kind that is not there": Mistake(
        ("delte",), ("Did you mean 'delete'",), cli=lambda t: ["job", json.dumps({"kind": "delte", "uri": t.uri})]
    ),
    "staged work that is not there is removed": Mistake(
        ("0000",), ("lance staged list",), cli=lambda t: ["staged", "abort", t.uri, "0000"]
    ),
    "staged work that is not there is published": Mistake(
        ("0000",), ("Run its staging task again",), cli=lambda t: ["commit", t.uri, "0000"]
    ),
    "a command with a typing error": Mistake(("tagz",), ("tags",), cli=lambda t: ["tagz", t.uri]),
    "an option with a typing error": Mistake(("--wher",), ("--where",), cli=lambda t: ["count", t.uri, "--wher", "id = 1"]),
    "a name in a catalog that has none": Mistake(
        ("orders",), ("lance catalog tables",), cli=lambda t: ["catalog", "describe", str(t.folder), "orders"]
    ),
}

FIRST: dict[str, Mistake] = {**READS, **EDITS, **SHAPES, **REFERENCES, **WORK}
