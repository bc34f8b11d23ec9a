"""`@task.lance_column`: a function of a DAG file computes a column, exactly the rows that are not fresh."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from types import ModuleType
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from airflow.sdk import DAG

import lance_core
from airflow_lance.decorators.column import lance_column_task
from lance_core.computed.declaration import declaration_of, find_declared
from lance_core.dataset.snapshot.snapshot import open_snapshot
from lance_core.errors import InputError
from lance_core.jobs import api

RunDag = Callable[..., Any]


def _dag(dag_id: str) -> DAG:
    return DAG(dag_id, schedule=None, start_date=datetime(2013, 1, 1, tzinfo=timezone.utc))


def _table(folder: Path, texts: list[str]) -> str:
    uri = str(folder / "t.lance")
    lance_core.write_dataset(pa.table({"id": range(len(texts)), "text": texts}), uri)
    return uri


def _run(run_dag: RunDag, dag: DAG, month: int = 1, *, state: str = "success") -> dict[str, Any]:
    """One run; what its task returned."""
    start = datetime(2013, month, 1, tzinfo=timezone.utc)
    run = run_dag(dag, logical_date=start, run_after=start)
    assert run.state == state
    (task,) = dag.task_ids
    found: dict[str, Any] = run.get_task_instance(task).xcom_pull(task_ids=task)
    return found


def test_it_declares_once_and_is_given_the_rows_that_are_not_fresh(tmp_path: Path, run_dag: RunDag) -> None:
    uri, given = _table(tmp_path, ["a b", "c"]), list[list[str]]()
    with _dag("columns") as dag:

        @lance_column_task(uri=uri, column="words", inputs=["text"], data_type="int", version="1")
        def words(batch: pa.RecordBatch, minimum: int) -> Any:
            given.append(batch["text"].to_pylist())
            counts = [len(text.split()) for text in batch["text"].to_pylist()]
            return pa.array([max(count, minimum) for count in counts], pa.int32())

        words(minimum=1)

    first = _run(run_dag, dag)
    assert (first["operation"], first["columns"]["words"]["new"]) == ("refresh_columns", 2)
    lance_core.write_dataset(pa.table({"id": [2], "text": [""]}), uri, mode="append")
    second = _run(run_dag, dag, 2)
    assert (second["columns"]["words"]["fresh"], second["columns"]["words"]["new"]) == (2, 1)
    assert given == [["a b", "c"], [""]]
    assert lance.dataset(uri).to_table(columns=["id", "words"]).sort_by("id")["words"].to_pylist() == [2, 1, 1]
    assert lance_core.dataset(uri).version == 5
    declared = declaration_of(find_declared(open_snapshot(uri).manifest.schema, "words"))
    assert declared.expression == f"{__name__}:words"


def test_another_argument_or_version_is_another_definition_and_needs_confirm(tmp_path: Path, run_dag: RunDag) -> None:
    uri, given = _table(tmp_path, ["a b", "c"]), list[int]()

    def dag(version: str, *, confirm: bool) -> DAG:
        with _dag(f"columns_{version}_{confirm}") as made:

            @lance_column_task(uri=uri, column="n", inputs=["text"], data_type="long", version=version, confirm=confirm)
            def length(batch: pa.RecordBatch) -> Any:
                given.append(batch.num_rows)
                return pc.utf8_length(batch["text"]).cast(pa.int64())

            length()
        return made

    _run(run_dag, dag("1", confirm=False))
    _run(run_dag, dag("2", confirm=False), state="failed")
    assert given == [2]
    _run(run_dag, dag("2", confirm=True))
    assert given == [2, 2]


def test_a_class_is_made_once_with_the_arguments_of_the_call(tmp_path: Path, run_dag: RunDag) -> None:
    uri, made = _table(tmp_path, ["a", "b", "c"]), list[str]()
    with _dag("classes") as dag:

        @lance_column_task(uri=uri, column="made", inputs=["text"], data_type="string", batch_size=1)
        class Marked:
            def __init__(self, mark: str) -> None:
                made.append(mark)
                self.mark = mark

            def __call__(self, batch: pa.RecordBatch) -> Any:
                return pa.array([text + self.mark for text in batch["text"].to_pylist()])

        Marked(mark="!")

    _run(run_dag, dag)
    assert made == ["!"]
    assert lance.dataset(uri).to_table()["made"].to_pylist() == ["a!", "b!", "c!"]


def test_gates_look_at_the_canary_before_anything_is_published(tmp_path: Path, run_dag: RunDag) -> None:
    uri = _table(tmp_path, ["a", "b", "c"])
    with _dag("gated") as dag:

        @lance_column_task(
            uri=uri, column="n", inputs=["text"], data_type="int", gates=[{"max_null_rates": {"n": 0.1}}], canary=2
        )
        def nulls(batch: pa.RecordBatch) -> Any:
            return pa.nulls(batch.num_rows, pa.int32())

        nulls()

    _run(run_dag, dag, state="failed")
    assert lance_core.dataset(uri).version == 2  # created, declared


def test_a_deployments_list_of_callables_does_not_concern_a_function_of_the_dag(
    tmp_path: Path, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANCE_ALLOWED_CALLABLES", "somebody.else:*")
    uri = _table(tmp_path, ["a", "b"])
    with _dag("listed") as dag:

        @lance_column_task(uri=uri, column="n", inputs=["text"], data_type="long")
        def length(batch: pa.RecordBatch) -> Any:
            return pc.utf8_length(batch["text"]).cast(pa.int64())

        length()

    _run(run_dag, dag)
    assert lance.dataset(uri).to_table()["n"].to_pylist() == [1, 1]


def _loaded_as(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_function_of_a_dag_file_has_one_name_wherever_the_file_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = set[str]()
    for number in range(2):
        path = tmp_path / str(number) / "reviews.py"
        path.parent.mkdir()
        path.write_text("def words(batch): ...\n")
        name = f"unusual_prefix_{number}_reviews"
        monkeypatch.setitem(sys.modules, name, module := _loaded_as(name, path))
        names.add(api.declared_name(module.words))
    assert names == {"reviews:words"}
    assert api.declared_name(api.declared_name) == "lance_core.jobs.api:declared_name"


def test_what_needs_another_process_is_refused_when_the_dag_is_read() -> None:
    with pytest.raises(InputError, match="takes no execution"):
        lance_column_task(uri="t", column="c", inputs=["a"], execution="spark-submit")  # type: ignore[call-arg]
    with pytest.raises(InputError, match="takes no batch"):

        @lance_column_task(uri="t", column="c", inputs=["a"])
        def nothing() -> None: ...
