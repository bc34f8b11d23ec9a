"""Whole DAGs with real Airflow objects and real tables, in this process: no Spark, the scheduler is `dag.test()`."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from airflow.sdk import DAG, task

from airflow_lance.assets import create_asset
from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.overwrite import LanceOverwriteOperator
from airflow_lance.operators.transaction import LanceTransaction
from airflow_lance.sensors.version import LanceVersionSensor

RunDag = Callable[..., Any]
START = datetime(2013, 1, 1, tzinfo=timezone.utc)


@pytest.fixture
def lake(tmp_path: Path, connection: Callable[[str, str], None]) -> Path:
    """A place with a lance connection to it, and three Parquet files of ten rows each."""
    connection("lake", json.dumps({"conn_type": "lance", "host": str(tmp_path)}))
    for part in range(3):
        ids = range(part * 10, part * 10 + 10)
        pq.write_table(pa.table({"id": list(ids), "part": [part] * 10}), tmp_path / f"part-{part}.parquet")
    return tmp_path


def _source(lake: Path, part: int | str) -> dict[str, Any]:
    return {"format": "parquet", "paths": [f"{lake}/part-{part}.parquet"]}


def _dag(dag_id: str) -> DAG:
    return DAG(dag_id, schedule=None, start_date=START)


def _state(run: Any, task_id: str, map_index: int = -1) -> str | None:
    instance = run.get_task_instance(task_id, map_index=map_index)
    return None if instance is None or instance.state is None else str(instance.state)


def _ids(lake: Path, name: str = "t.lance") -> list[int]:
    found: list[int] = sorted(lance.dataset(lake / name).to_table(columns=["id"])["id"].to_pylist())
    return found


def test_mapped_appends_become_one_version(lake: Path, run_dag: RunDag) -> None:
    with _dag("mapped") as dag:

        @task
        def sources() -> list[dict[str, Any]]:
            return [_source(lake, part) for part in range(3)]

        with LanceTransaction("load", outlets=[create_asset(uri=f"{lake}/t.lance")]):
            LanceAppendOperator.partial(task_id="append", uri="t.lance", lance_conn_id="lake", execution="local").expand(
                source=sources()
            )
        after = LanceVersionSensor(task_id="wait", uri="t.lance", lance_conn_id="lake", min_version=1, poke_interval=1)
        dag.get_task("load.commit") >> after
    run = run_dag(dag)
    assert run.state == "success"
    table = lance.dataset(lake / "t.lance")
    table.validate()
    assert (table.version, _ids(lake)) == (1, list(range(30)))
    result = run.get_task_instance("load.commit").xcom_pull(task_ids="load.commit")
    assert (result["version"], result["num_versions"], result["rows_added"]) == (1, 1, 30)
    assert list(result["identities"].values()) == ["committed"] * 3
    facts = run.get_task_instance("wait").xcom_pull(task_ids="wait")
    assert (facts["version"], facts["num_rows"]) == (1, 30)
    (extra,) = _event_extras(dag.dag_id)
    assert (extra["uri"], extra["version"], extra["rows_added"]) == (f"{lake}/t.lance", 1, 30)
    assert extra["identities"] == result["identities"]


def _event_extras(dag_id: str) -> list[dict[str, Any]]:
    """What the asset events of a DAG carry, as Airflow has stored them."""
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session

    with create_session() as session:
        events = session.query(AssetEvent).filter_by(source_dag_id=dag_id).order_by(AssetEvent.id)
        return [dict(event.extra) for event in events]


def test_the_same_run_again_adds_nothing(lake: Path, run_dag: RunDag) -> None:
    with _dag("again") as dag, LanceTransaction("load", uri="t.lance", lance_conn_id="lake"):
        LanceAppendOperator(
            task_id="append", uri="t.lance", lance_conn_id="lake", execution="local", source=_source(lake, "{{ 1 + 1 }}")
        )
    for _ in range(2):
        # The same dates give the same run id: to the table it is the same work.
        run = run_dag(dag, logical_date=START, run_after=START)
        assert run.state == "success"
    result = run.get_task_instance("load.commit").xcom_pull(task_ids="load.commit")
    assert set(result["identities"].values()) == {"already_committed"}
    assert (lance.dataset(lake / "t.lance").version, _ids(lake)) == (1, list(range(20, 30)))


def test_two_writes_of_one_task_have_keys(lake: Path, run_dag: RunDag) -> None:
    with _dag("keys") as dag, LanceTransaction("load", uri="t.lance", lance_conn_id="lake"):
        for key in ("a", "b"):
            LanceAppendOperator(
                task_id=f"append_{key}",
                uri="t.lance",
                lance_conn_id="lake",
                execution="local",
                source=_source(lake, 0),
                key=key,
            )
    assert run_dag(dag).state == "success"
    assert _ids(lake) == sorted([*range(10), *range(10)])


def test_overwrite_replaces_and_is_strict(lake: Path, run_dag: RunDag) -> None:
    lance.write_dataset(pa.table({"old": ["x"]}), str(lake / "t.lance"))
    with _dag("replace") as dag, LanceTransaction("load", uri="t.lance", lance_conn_id="lake"):
        staged = LanceOverwriteOperator(
            task_id="write", uri="t.lance", lance_conn_id="lake", execution="local", source=_source(lake, 1)
        )

        @task
        def meanwhile() -> None:
            lance.write_dataset(pa.table({"old": ["y"]}), str(lake / "t.lance"), mode="append")

        staged >> meanwhile()
    run = run_dag(dag)
    assert _state(run, "load.commit") == "failed"
    assert lance.dataset(lake / "t.lance").to_table()["old"].to_pylist() == ["x", "y"]

    with _dag("replace_now") as dag, LanceTransaction("load", uri="t.lance", lance_conn_id="lake"):
        LanceOverwriteOperator(
            task_id="write", uri="t.lance", lance_conn_id="lake", execution="local", source=_source(lake, 1)
        )
    assert run_dag(dag).state == "success"
    assert _ids(lake) == list(range(10, 20))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"format": "parquet", "paths": ["/nowhere/x.parquet"]}, "/nowhere/x.parquet"),
        ({"callable": "no_such_module:rows"}, "no_such_module"),
        ({"format": "parquet", "paths": ["{lake}/other.parquet"]}, "id"),
    ],
    ids=["missing path", "missing function", "column type"],
)
def test_bad_input_fails_clearly_and_leaves_the_table(
    lake: Path, run_dag: RunDag, source: dict[str, Any], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    lance.write_dataset(pq.read_table(lake / "part-0.parquet"), str(lake / "t.lance"))
    pq.write_table(pa.table({"id": ["text"], "part": [0]}), lake / "other.parquet")
    if "paths" in source:
        source = {**source, "paths": [path.format(lake=lake) for path in source["paths"]]}
    arguments = {"uri": "t.lance", "lance_conn_id": "lake", "execution": "local", "source": source, "retries": 3}
    arguments["on_missing"] = "fail"  # the default waits for the file, as `retries` say
    with _dag(f"bad_{abs(hash(words))}") as dag, LanceTransaction("load", uri="t.lance", lance_conn_id="lake"):
        append = LanceAppendOperator(task_id="append", **arguments)
    run = run_dag(dag)
    assert (_state(run, "load.append"), _state(run, "load.commit")) == ("failed", "upstream_failed")
    assert lance.dataset(lake / "t.lance").version == 1
    assert len(list((lake / "t.lance" / "data").iterdir())) == 1

    class Ti:
        dag_id, run_id, task_id, map_index = "bad", "again", "append", -1

    with pytest.raises(AirflowFailException, match=words):
        append.execute({"ti": Ti()})  # type: ignore[typeddict-item]


def test_skipped_staging_commits_nothing(lake: Path, run_dag: RunDag) -> None:
    with _dag("skipped") as dag:

        @task
        def none() -> list[dict[str, Any]]:
            return []

        with LanceTransaction("load", uri="t.lance", lance_conn_id="lake", commit_args={"trigger_rule": "none_failed"}):
            LanceAppendOperator.partial(task_id="append", uri="t.lance", lance_conn_id="lake", execution="local").expand(
                source=none()
            )
    run = run_dag(dag)
    assert _state(run, "load.commit") == "success"
    assert not (lake / "t.lance").exists()


def test_killing_a_local_run_unwinds_and_aborts_it(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import signal

    from airflow.sdk.exceptions import AirflowException

    from lance_core.jobs.runtime import local_runner as local

    class Ti:
        dag_id, run_id, task_id, map_index = "killed", "r", "a", -1

    operator = LanceAppendOperator(
        task_id="a", uri="t.lance", lance_conn_id="lake", execution="local", source=_source(lake, 0)
    )
    before = signal.signal(signal.SIGTERM, lambda *_: operator.on_kill())
    work = local.LocalRunner.run

    def killed_after_its_work(*arguments: Any) -> Any:
        results = work(*arguments)
        assert len(list((lake / "t.lance" / "data").iterdir())) == 1
        signal.raise_signal(signal.SIGTERM)
        return results

    monkeypatch.setattr(local.LocalRunner, "run", killed_after_its_work)
    try:
        with pytest.raises(AirflowException, match="was stopped"):
            operator.execute({"ti": Ti()})  # type: ignore[typeddict-item]
    finally:
        signal.signal(signal.SIGTERM, before)
    assert list((lake / "t.lance").rglob("*.lance")) == []


def test_killing_a_task_leaves_no_file(lake: Path) -> None:

    from lance_core.io.resolve import resolve_store
    from lance_core.publish.stage import begin_attempt

    operator = LanceAppendOperator(
        task_id="a", uri="t.lance", lance_conn_id="lake", execution="local", source=_source(lake, 0)
    )
    operator.on_kill()  # before it began: nothing to do
    spec = operator.make_spec(uri=str(lake / "t.lance"), identity="5d2c0000-0000-5000-8000-000000000000")
    store = resolve_store(str(lake / "t.lance"))
    attempt = begin_attempt(store, identity=spec.identity, spec={}, read_version=0)
    store.put(f"data/{'0' * 24}{attempt.attempt}0123456789.lance", b"half a file")
    operator._spec = spec
    operator.on_kill()
    assert list(store.list("data/")) == []


def test_an_attempt_is_aborted_where_its_spark_job_cannot_be_stopped(lake: Path) -> None:
    """On YARN in cluster mode releases of the Spark provider call a program `yarn`, which a worker need not have."""
    from lance_core.io.resolve import resolve_store
    from lance_core.publish.decisions import look
    from lance_core.publish.stage import begin_attempt

    class Submit:
        def kill(self) -> None:
            raise FileNotFoundError(2, "No such file or directory", "yarn")

    uri = str(lake / "t.lance")
    operator = LanceAppendOperator(task_id="a", uri=uri, source=_source(lake, 0))
    operator._spec = spec = operator.make_spec(uri=uri, identity="5d2c0000-0000-5000-8000-000000000000")
    operator._submit = Submit()  # type: ignore[assignment]
    attempt = begin_attempt(resolve_store(uri), identity=spec.identity, spec={}, read_version=0).attempt
    operator.on_kill()
    assert attempt in look(resolve_store(uri), spec.identity).aborted
