"""`@task.lance`: what a function returns is written exactly once, whatever holds the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import lance
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from airflow.sdk import DAG

from airflow_lance.decorators.lance import lance_task
from airflow_lance.execution.returned_rows import write_rows
from airflow_lance.hooks.lance import LanceHook
from airflow_lance.operators.transaction import LanceTransaction
from lance_core.errors import InputError, SchemaMismatchError

RunDag = Callable[..., Any]


def _dag(dag_id: str) -> DAG:
    return DAG(dag_id, schedule=None, start_date=datetime(2013, 1, 1, tzinfo=timezone.utc))


def _batches() -> Iterator[pa.RecordBatch]:
    for start in (0, 2):
        yield pa.RecordBatch.from_pydict({"id": [start, start + 1]})


@pytest.mark.parametrize(
    "rows",
    [
        lambda: pa.table({"id": [0, 1, 2, 3]}),
        lambda: pd.DataFrame({"id": [0, 1, 2, 3]}),
        lambda: pl.DataFrame({"id": [0, 1, 2, 3]}),
        lambda: {"id": [0, 1, 2, 3]},
        lambda: [{"id": number} for number in range(4)],
        _batches,
        lambda: (pd.DataFrame({"id": [start, start + 1]}) for start in (0, 2)),
        lambda: pa.RecordBatchReader.from_batches(pa.schema([("id", pa.int64())]), _batches()),
    ],
    ids=["arrow", "pandas", "polars", "columns", "rows", "batches", "frames", "reader"],
)
def test_whatever_holds_rows_becomes_one_file(tmp_path: Path, rows: Callable[[], Any]) -> None:
    assert write_rows(rows(), tmp_path / "r.arrow", what="f") == 4
    assert pa.ipc.open_file(tmp_path / "r.arrow").read_all()["id"].to_pylist() == [0, 1, 2, 3]


@pytest.mark.parametrize("rows", [None, 3, "text", [], iter([]), [[1, 2]]])
def test_what_holds_no_rows_is_refused_by_the_functions_name(tmp_path: Path, rows: Any) -> None:
    with pytest.raises(InputError, match="the function load"):
        write_rows(rows, tmp_path / "r.arrow", what="the function load")


def test_batches_of_two_schemas_are_named(tmp_path: Path) -> None:
    mixed = iter([pa.RecordBatch.from_pydict({"id": [1]}), pa.RecordBatch.from_pydict({"id": ["x"]})])
    with pytest.raises(InputError, match="first id int64, then id string"):
        write_rows(mixed, tmp_path / "r.arrow", what="f")


def test_every_mode_in_one_run_and_a_retry_calls_nothing(tmp_path: Path, run_dag: RunDag) -> None:
    uri, calls = str(tmp_path / "t.lance"), tmp_path / "calls"

    def called() -> None:
        calls.write_text(calls.read_text() + "x" if calls.exists() else "x")

    with _dag("taskflow") as dag:

        @lance_task(uri=uri)
        def load(first: int, ds: str | None = None) -> Any:
            called()
            return pd.DataFrame({"id": range(first, first + 10), "v": [0] * 10})

        @lance_task(uri=uri, mode="merge", on="id")
        def correct() -> Any:
            return pa.table({"id": [8, 9, 10], "v": [1, 1, 1]})

        @lance_task(uri=uri, mode="replace_where", predicate="id < 2")
        def day() -> Any:
            return [{"id": 0, "v": 7}]

        @lance_task(uri=uri, mode="add_columns", on="id")
        def names() -> Any:
            return {"id": [0, 10], "name": ["a", "b"]}

        load(0) >> correct() >> day() >> names()
    start = datetime(2013, 1, 1, tzinfo=timezone.utc)
    for _ in range(2):
        assert run_dag(dag, logical_date=start, run_after=start).state == "success"
    table = lance.dataset(uri)
    table.validate()
    rows = {row["id"]: (row["v"], row["name"]) for row in table.to_table().to_pylist()}
    expected: dict[int, Any] = {**dict.fromkeys(range(2, 8), (0, None)), 8: (1, None), 9: (1, None)}
    assert rows == {**expected, 0: (7, "a"), 10: (1, "b")}
    assert calls.read_text() == "x", "work that has landed is not done again"
    assert table.version == 4


def test_functions_that_return_a_new_column_add_it(tmp_path: Path, run_dag: RunDag) -> None:
    uri = str(tmp_path / "t.lance")
    with _dag("taskflow_wider") as dag:

        @lance_task(uri=uri)
        def load() -> Any:
            return {"id": [0, 1], "v": [0, 0]}

        with LanceTransaction("wider", uri=uri) as wider:

            @lance_task(uri=uri, schema_drift="add_extra")
            def more(first: int) -> Any:
                return pd.DataFrame({"id": [first], "v": [first], "name": [f"n{first}"]})

            more.expand(first=[2, 3])

        @lance_task(uri=uri, mode="merge", on="id", schema_drift="add_extra")
        def correct() -> Any:
            return pa.table({"id": [1, 4], "note": ["known", "new"]})

        @lance_task(uri=uri, mode="replace_where", predicate="id = 0", schema_drift="fill_and_add")
        def day() -> Any:
            return [{"id": 0, "price": 1.5}]

        load() >> wider >> correct() >> day()
    start = datetime(2013, 1, 1, tzinfo=timezone.utc)
    for _ in range(2):
        assert run_dag(dag, logical_date=start, run_after=start).state == "success"
    table = lance.dataset(uri)
    table.validate()
    rows = {row.pop("id"): tuple(row.values()) for row in table.to_table().to_pylist()}
    assert table.schema.names == ["id", "v", "name", "note", "price"]
    assert rows == {
        0: (None, None, None, 1.5),
        1: (0, None, "known", None),
        2: (2, "n2", None, None),
        3: (3, "n3", None, None),
        4: (None, None, "new", None),
    }
    assert table.version == 4


def test_the_hook_appends_a_new_column(tmp_path: Path) -> None:
    uri, hook = str(tmp_path / "t.lance"), LanceHook()
    hook.write({"id": [1]}, uri)
    with pytest.raises(InputError, match="mode"):
        hook.write({"id": [2]}, uri, mode="overwrite", schema_drift="add_extra")
    with pytest.raises(SchemaMismatchError, match="'name'"):
        hook.write({"id": [2], "name": ["b"]}, uri, mode="append", schema_drift="fail")
    assert hook.write(pd.DataFrame({"id": [2], "name": ["b"]}), uri, mode="append", schema_drift="add_extra").version == 2
    assert lance.dataset(uri).to_table().to_pylist() == [{"id": 1, "name": None}, {"id": 2, "name": "b"}]


def test_mapped_functions_of_a_transaction_are_one_version(tmp_path: Path, run_dag: RunDag) -> None:
    uri = str(tmp_path / "t.lance")
    with _dag("taskflow_mapped") as dag, LanceTransaction("load", uri=uri):

        @lance_task(uri=uri)
        def load(first: int) -> Any:
            return {"id": [first, first + 1]}

        load.expand(first=[0, 2, 4])
    assert run_dag(dag).state == "success"
    table = lance.dataset(uri)
    assert (table.version, sorted(table.to_table()["id"].to_pylist())) == (1, [0, 1, 2, 3, 4, 5])


def test_what_does_not_go_together_is_refused_at_once() -> None:
    with pytest.raises(InputError, match="append, overwrite, replace_where, merge, add_columns"):
        lance_task(uri="/t.lance", mode="upsert")
    with pytest.raises(InputError, match="needs `on`"):
        lance_task(uri="/t.lance", mode="merge")


def test_airflow_knows_the_decorator() -> None:
    from airflow.sdk import task

    assert task.lance is lance_task
