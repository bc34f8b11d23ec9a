"""Declared columns as operators: declared, refreshed, taken back; what a kill, a clear and a budget mean for a task."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_core
from airflow_lance import checks
from airflow_lance.assets import create_asset
from airflow_lance.compat import AirflowFailException
from airflow_lance.operators.declare_column import LanceDeclareColumnOperator
from airflow_lance.operators.refresh_columns import LanceRefreshColumnsOperator
from airflow_lance.operators.undeclare_columns import LanceUndeclareColumnsOperator
from lance_core.computed.history import read_records
from lance_core.computed.unseen import declared_freshness
from lance_core.dataset.snapshot.snapshot import open_snapshot
from lance_core.errors import InputError
from lance_core.io.local.store import LocalStore
from tests.airflow.operator_support import FakeTi, execute
from tests.computed.functions import EMBED, SHOUT, expected_vector

TEXTS = ["a fox", "a dog", "a cat", "an owl", "a bee", "an ant"]


@pytest.fixture
def uri(tmp_path: Path) -> str:
    place = str(tmp_path / "t.lance")
    for start in (0, 3):
        rows = pa.table({"id": range(start, start + 3), "text": TEXTS[start : start + 3]})
        lance.write_dataset(rows, place, mode="append" if start else "create")
    return place


def declare(uri: str, **arguments: Any) -> Any:
    given: dict[str, Any] = {"column": "vector", "function": EMBED, "inputs": ["text"], "data_type": "float",
                             "list_size": 4, "version": "1", **arguments}  # fmt: skip
    return execute(LanceDeclareColumnOperator(task_id="declare", uri=uri, **given))


def refresh(uri: str, run_id: str = "r", *, cleared_after: int = 0, **arguments: Any) -> Any:
    given: dict[str, Any] = {"functions": [EMBED, SHOUT], "execution": "local", **arguments}
    task = LanceRefreshColumnsOperator(task_id="refresh", uri=uri, **given)
    return execute(task, run_id=run_id, cleared_after=cleared_after)


def vectors(uri: str) -> list[Any]:
    rows = lance_core.dataset(uri).to_table(columns=["id", "vector"]).sort_by("id")
    return rows.column("vector").to_pylist()  # type: ignore[no-any-return]


def test_declare_refresh_and_take_back(uri: str) -> None:
    first = declare(uri)
    assert (first["declared"], declare(uri)["version"]) == (True, first["version"])
    result = refresh(uri)
    counts = result["columns"]["vector"]
    assert (counts["new"], counts["rows_given"], counts["left"], result["stopped"]) == (6, 6, 0, "")
    assert result["spent"] == {"vector": {"cents": 6.0}}
    assert vectors(uri) == [expected_vector(text) for text in TEXTS]
    assert len(json.dumps(result)) < 2_000
    (record,) = read_records(LocalStore(uri))
    assert record.task == "d/r/refresh"
    (column,) = declared_freshness(open_snapshot(uri))
    assert (column.name, column.stale_rows, column.refreshed_by, column.refreshed_at) == (
        "vector",
        0,
        record.task,
        record.when,
    )
    done = execute(LanceUndeclareColumnsOperator(task_id="undeclare", uri=uri, columns=["vector", "id"]))
    assert done["undeclared"] == ["vector"]
    assert vectors(uri) == [expected_vector(text) for text in TEXTS]


def test_a_retry_does_nothing_twice_and_a_clear_computes_what_is_stale_then(uri: str) -> None:
    declare(uri)
    first = refresh(uri)
    lance.dataset(uri).update({"text": "'a wolf'"}, where="id = 1")
    again = refresh(uri)
    assert (again["version"], again["columns"]) == (first["version"], first["columns"])
    assert vectors(uri)[1] == expected_vector("a dog")
    cleared = refresh(uri, cleared_after=1)
    assert (cleared["columns"]["vector"]["changed"], cleared["columns"]["vector"]["rows_given"]) == (1, 1)
    assert vectors(uri)[1] == expected_vector("a wolf")
    assert refresh(uri, run_id="next")["columns"]["vector"]["stale"] == 0


def test_a_budget_ends_a_task_and_the_next_run_goes_on(uri: str) -> None:
    declare(uri, batch_size=2)
    first = refresh(uri, max_rows=4)
    assert (first["stopped"], first["columns"]["vector"]["left"]) == ("rows", 2)
    dry = refresh(uri, run_id="2", dry_run=True)
    assert (dry["columns"]["vector"]["stale"], dry["estimated"]) == (2, {"vector": {"cents": 2.0}})
    assert refresh(uri, run_id="2")["columns"]["vector"]["rows_given"] == 2
    assert vectors(uri) == [expected_vector(text) for text in TEXTS]


def test_another_definition_is_computed_only_where_it_is_confirmed(uri: str) -> None:
    declare(uri)
    refresh(uri)
    with pytest.raises(AirflowFailException, match="all its 6 rows would be computed again"):
        declare(uri, version="2")
    declare(uri, version="2", confirm=True)
    assert refresh(uri, run_id="2")["columns"]["vector"]["changed"] == 6


def test_sql_by_a_template_and_rows_that_a_function_refuses(uri: str) -> None:
    declare(uri, column="words", function=None, inputs=(), data_type=None, list_size=None, sql="length(text)")
    declare(uri, column="loud", function=SHOUT, data_type="string", list_size=None, on_error={"ValueError": "skip"})
    lance.dataset(uri).update({"text": "'hey!'"}, where="id = 0")
    result = refresh(uri, columns=["words", "loud"])
    assert result["columns"]["loud"]["failed_now"] == 1
    rows = lance_core.dataset(uri).to_table(columns=["id", "words", "loud"]).sort_by("id").to_pylist()
    assert rows[0] == {"id": 0, "words": 4, "loud": None}
    assert rows[1] == {"id": 1, "words": 5, "loud": "A DOG"}
    assert lance_core.failed_rows(uri, "loud").rows[0].task == "d/r/refresh"
    assert refresh(uri, run_id="2", columns="loud", retry_failed=False)["columns"]["loud"]["left"] == 1


def test_what_the_dag_does_not_name_is_not_run(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(uri)
    with pytest.raises(AirflowFailException, match="which the caller did not name"):
        refresh(uri, functions=[])
    monkeypatch.setenv("AIRFLOW__LANCE__ALLOWED_CALLABLES", "our_company.*")
    with pytest.raises(AirflowFailException, match="is not allowed in this deployment"):
        refresh(uri)


def test_xcom_events_and_lineage_have_the_counts(uri: str) -> None:
    declare(uri, column="loud", function=SHOUT, data_type="string", list_size=None, on_error="skip")
    lance.dataset(uri).update({"text": "'hey!'"}, where="id = 0")
    asset = create_asset(uri=uri)
    task = LanceRefreshColumnsOperator(task_id="refresh", uri=uri, functions=[SHOUT], execution="local", outlets=[asset])
    event = SimpleNamespace(extra={})
    run = SimpleNamespace(start_date=None, clear_number=0)
    result = task.execute({"ti": FakeTi("refresh", "r"), "dag_run": run, "outlet_events": {asset: event}})
    counts = result["columns"]["loud"]
    assert (counts["new"], counts["failed_now"], counts["left"]) == (6, 1, 0)
    assert event.extra["columns"] == result["columns"]
    assert (event.extra["version"], event.extra["stopped"]) == (result["version"], "")
    pytest.importorskip("openlineage.client")
    (output,) = task.get_openlineage_facets_on_complete(None).outputs
    assert output.facets["version"].datasetVersion == str(result["version"])
    assert output.outputFacets["outputStatistics"].rowCount == 6
    assert output.outputFacets["lance_refresh"].failedRows == 1


def test_it_takes_no_commit_task(uri: str) -> None:
    with pytest.raises(InputError, match="publishes what it computes"):
        LanceRefreshColumnsOperator(task_id="refresh", uri=uri, commit="later")


def test_a_canary_that_its_gates_refuse_fails_the_task_for_good_and_its_values_wait(uri: str) -> None:
    declare(uri)
    wrong = [checks.vector_norms("vector", at_most=1.0)]
    with pytest.raises(
        AirflowFailException, match=r"column 'vector', canary of 2 rows: gate 'norms of vector'.*expected 0 to 1"
    ):
        refresh(uri, gates=wrong, canary="2")
    assert vectors(uri) == [None] * 6
    result = refresh(
        uri, gates=[checks.vector_norms("vector", at_least=1.0, at_most=1e3), checks.drift(vector=0.5)], canary=2
    )
    counts = result["columns"]["vector"]
    assert (result["canaries"], counts["reused"], counts["rows_given"]) == ({"vector": 2}, 2, 4)
    assert vectors(uri) == [expected_vector(text) for text in TEXTS]


@pytest.mark.parametrize(
    "wrong", [{"canary": 5}, {"canary": 5, "gates": [{"min_row": 1}]}, {"canary": 0, "gates": [{"min_rows": 1}]}]
)
def test_a_wrong_canary_is_refused_when_the_dag_is_parsed(uri: str, wrong: dict[str, Any]) -> None:
    task = LanceRefreshColumnsOperator(task_id="refresh", uri=uri, **wrong)
    with pytest.raises(InputError, match=r"needs gates|unknown key|between 1 and"):
        task.resolve_template_files()


def test_a_killed_try_is_gone_on_with(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed after the first version: what is published stays, and is given to no function again."""
    declare(uri)
    from lance_core.computed import refresh as module

    real, commits = module.commit_transaction, list[Any]()

    def commit(*arguments: Any, **options: Any) -> Any:
        if commits:
            raise KeyboardInterrupt
        commits.append(real(*arguments, **options))
        return commits[0]

    monkeypatch.setattr(module, "commit_transaction", commit)
    with pytest.raises(KeyboardInterrupt):
        refresh(uri, commit_every="1")
    monkeypatch.setattr(module, "commit_transaction", real)
    counts = refresh(uri, commit_every="1")["columns"]["vector"]
    assert (counts["fresh"], counts["reused"], counts["rows_given"]) == (3, 3, 0)
    assert vectors(uri) == [expected_vector(text) for text in TEXTS]
    assert not LocalStore(uri).list_names(f"_lance_core/columns/{_column_id(uri)}/results/")


def _column_id(uri: str) -> str:
    return str(lance_core.dataset(uri).schema.field("vector").metadata[b"lance_core.column.id"].decode())


@pytest.mark.parametrize(
    ("needs", "conf", "expected"),
    [
        ({"cpus": 2}, {}, {"spark.task.cpus": "2"}),
        ({"gpu": 1}, {}, {"spark.task.resource.gpu.amount": "1", "spark.executor.resource.gpu.amount": "1"}),
        (
            {"gpu": 0.25, "cpus": 1},
            {"spark.executor.resource.gpu.amount": "2", "a": "b"},
            {
                "spark.task.resource.gpu.amount": "0.25", "spark.executor.resource.gpu.amount": "2",
                "spark.task.cpus": "1", "a": "b",
            },
        ),
    ],
)  # fmt: skip
def test_what_a_task_needs_is_told_to_spark(needs: Any, conf: Any, expected: Any) -> None:
    task = LanceRefreshColumnsOperator(
        task_id="r", uri="/t.lance", execution="spark-submit", spark_conn_id="s", task_resources=needs, conf=conf
    )
    task.resolve_template_files()
    assert dict(task._spark_settings().conf) == expected


@pytest.mark.parametrize(
    ("needs", "execution", "told"),
    [
        ({"gpu": 0.7}, "spark-submit", "gpu must be a whole number or at most 0.5, got 0.7"),
        ({"gpu": 0}, "spark-submit", "gpu must be more than 0"),
        ({"gpu": True}, "spark-submit", "gpu must be more than 0"),
        ({"cpus": 1.5}, "spark-submit", "cpus must be a whole number"),
        ({"cpus": 0.5}, "spark-submit", "cpus must be a whole number"),
        ({"gpu --conf x": 1}, "spark-submit", "is no name of a resource"),
        ({"cpus": 2}, "local", "cannot be combined with execution='local'"),
        ({"cpus": 2}, "spark-connect", "cannot be combined with execution='spark-connect'"),
    ],
)
def test_what_spark_would_refuse_is_an_error_of_the_dag(needs: Any, execution: Any, told: str) -> None:
    task = LanceRefreshColumnsOperator(task_id="r", uri="/t.lance", execution=execution, task_resources=needs)
    with pytest.raises(InputError, match=told):
        task.resolve_template_files()
