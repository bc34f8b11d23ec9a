"""Every statement of SQL on tables of every kind: a branch, a store of objects, declared columns. Without a JVM."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from kill_server import WorkerError, WorkerServer
from kill_statements import BASE, SPARK_SCHEMA, STATEMENTS, Conversation, rows

import lance_core
from bench.object_client import object_server
from lance_core.jobs.declared_columns import declare_column, refresh_columns

EXISTING = [name for name, statement in STATEMENTS.items() if not statement.creates]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerServer]:
    found = WorkerServer(tmp_path_factory.mktemp("s"))
    yield found
    found.close()


def _write(uri: str, **options: Any) -> None:
    for start in (0, 10, 20):
        part = rows(range(start, start + 10))
        lance_core.write_dataset(part, uri, mode="append" if start else "create", enable_stable_row_ids=True, **options)


@pytest.mark.parametrize("name", EXISTING)
def test_on_a_branch(server: WorkerServer, tmp_path: Path, name: str) -> None:
    uri = str(tmp_path / "t.lance")
    _write(uri)
    lance_core.dataset(uri).create_branch("trial")
    spark = Conversation(server, uri, options={"branch": "trial"})
    STATEMENTS[name].run(spark)
    spark.close()
    branch: list[Any] = lance.dataset(uri).checkout_version(("trial", None)).to_table()["id"].to_pylist()
    assert sorted(branch) == sorted(STATEMENTS[name].rows)
    assert sorted(lance.dataset(uri).to_table()["id"].to_pylist()) == BASE


@pytest.mark.parametrize("name", STATEMENTS)
def test_on_a_store_of_objects(server: WorkerServer, name: str) -> None:
    with object_server() as objects:
        uri = f"s3://b{uuid.uuid4().hex}/t.lance"
        if not STATEMENTS[name].creates:
            _write(uri, storage_options=objects.options)
        spark = Conversation(server, uri, options=objects.options)
        STATEMENTS[name].run(spark)
        spark.close()
        found: list[Any] = lance_core.dataset(uri, storage_options=objects.options).to_table()["id"].to_pylist()
    assert sorted(found) == sorted(STATEMENTS[name].rows)


class _WithAll(Conversation):
    """Spark, which has a value for every column of the table: that of an insert is null, of others what it was."""

    filled: int | None = None

    @property
    def schema(self) -> str:
        found = json.loads(SPARK_SCHEMA)
        found["fields"].append({"name": "twice", "type": "long", "nullable": True, "metadata": {}})
        return json.dumps(found)

    def rows(self, ids: Sequence[int]) -> pa.Table:
        return rows(ids).append_column("twice", pa.array([self.filled] * len(ids), pa.int64()))


MOVED = {
    "update": {number + 100: number for number in range(8, 23)},
    "update in place": {number: number for number in BASE},
    "merge": {107: 7, 117: 17},
}
"""Which row each row was, by its id before, where a statement changes rows."""


@pytest.mark.parametrize("name", [name for name in EXISTING if name != "overwrite"])
def test_with_a_declared_column(server: WorkerServer, tmp_path: Path, name: str) -> None:
    uri = str(tmp_path / "t.lance")
    _write(uri)
    declare_column(uri, "twice", sql="id * 2")
    refresh_columns(uri, ["twice"])
    spark = _WithAll(server, uri)
    spark.filled = 7 if name in MOVED else None
    STATEMENTS[name].run(spark)
    spark.close()
    table = lance_core.dataset(uri).to_table(columns=["id", "twice"]).to_pylist()
    assert sorted(row["id"] for row in table) == sorted(STATEMENTS[name].rows)
    kept = {number: number for number in BASE if name != "replace where" or number >= 12}
    before = {**kept, **MOVED.get(name, {})}
    assert {row["id"]: row["twice"] for row in table} == {
        row["id"]: before[row["id"]] * 2 if row["id"] in before else None for row in table
    }, "a row that changed has what was computed for it, a new one nothing"
    report = lance_core.refresh_columns(uri, ["twice"]).columns["twice"]
    assert report.stale == sum(before.get(row["id"]) != row["id"] for row in table)
    assert all(
        row["twice"] == 2 * row["id"] for row in lance_core.dataset(uri).to_table(columns=["id", "twice"]).to_pylist()
    )
    official: list[Any] = lance.dataset(uri).to_table(columns=["id", "twice"]).to_pylist()
    assert all(row["twice"] == 2 * row["id"] for row in official)


def test_a_value_for_a_declared_column_is_refused(server: WorkerServer, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    _write(uri)
    declare_column(uri, "twice", sql="id * 2")
    spark = _WithAll(server, uri)
    spark.filled = 7
    with pytest.raises(WorkerError, match="'twice' is declared"):
        STATEMENTS["insert"].run(spark)
    spark.close()
    assert sorted(lance_core.dataset(uri).to_table(columns=["id"])["id"].to_pylist()) == BASE
