"""Jobs that outlive the worker: found by the next try, waited for in the triggerer, run once more when they were in vain."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import TaskDeferred

from airflow_lance.compat import AirflowFailException
from airflow_lance.operators.delete import LanceDeleteOperator
from airflow_lance.triggers.staging import LanceStagingTrigger
from lance_core.errors import InputError, RetryableConflictError
from lance_core.io.resolve import resolve_store
from lance_core.jobs import api
from lance_core.jobs.run import run_json
from lance_core.jobs.runtime.failure_record import record_failure
from lance_core.jobs.specs.spec import JobSpec
from lance_core.spark.argument import decode_argument
from tests.airflow.operator_support import FakeTi, make_table

JOBS: dict[str, Any] = {}


@pytest.fixture(autouse=True)
def java(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test here starts one."""
    monkeypatch.setattr("airflow_lance.execution.spark_installed._has_java", lambda: True)


class FakeSubmit:
    """The Spark provider's operator: jobs have a state that a test sets, their specs are kept."""

    external_id_key = "spark_job_id"

    def __init__(self, **arguments: Any) -> None:
        self.arguments = arguments
        self.conf = arguments.get("conf")

    def execute(self, context: Any) -> None:
        store = context["task_state_store"]
        job = store.get(self.external_id_key)
        if job is None or not self.is_job_active(JOBS[job]["state"]):
            job = self.submit_job(context)
            store.set(self.external_id_key, job)
        run_json(JOBS[job]["spec"])

    def submit_job(self, context: Any) -> str:
        job = f"application_{len(JOBS)}"
        JOBS[job] = {
            "state": "RUNNING",
            "spec": decode_argument(self.arguments["application_args"][0]),
            "arguments": self.arguments,
        }
        JOBS[job]["conf"] = self.conf
        return job

    def get_job_status(self, job: str, context: Any) -> str:
        return str(JOBS[job]["state"])

    def is_job_active(self, status: str) -> bool:
        return status == "RUNNING"

    def is_job_succeeded(self, status: str) -> bool:
        return status == "SUCCEEDED"


class States(dict[str, Any]):
    def set(self, key: str, value: Any) -> None:
        self[key] = value

    def delete(self, key: str) -> None:
        self.pop(key, None)


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch, connection: Callable[[str, str], None]) -> States:
    from airflow.providers.apache.spark.operators import spark_submit

    JOBS.clear()
    monkeypatch.setattr(spark_submit, "SparkSubmitOperator", FakeSubmit)
    connection("cluster", json.dumps({"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "cluster"}}))
    return States()


def _delete(uri: str, **kwargs: Any) -> LanceDeleteOperator:
    own: dict[str, Any] = {"spark_conn_id": "cluster", "spark_submit": {"yarn_track_via_rm_api": True}, **kwargs}
    return LanceDeleteOperator(task_id="forget", uri=uri, predicate="id < 3", commit="elsewhere", **own)


def _context(states: States) -> Any:
    return {"ti": FakeTi("forget", "r"), "outlet_events": {}, "task_state_store": states}


def _look(trigger: LanceStagingTrigger) -> str | None:
    kind, kwargs = trigger.serialize()
    assert kind == "airflow_lance.triggers.staging.LanceStagingTrigger"
    return LanceStagingTrigger(**kwargs)._look()


def test_a_deferred_job_is_waited_for_and_found_by_the_next_try(tmp_path: Path, states: States) -> None:
    uri = make_table(tmp_path / "t.lance", 0)
    operator = _delete(uri, deferrable=True)
    for _ in range(2):  # the second is a retry after the worker died: nothing is submitted again
        with pytest.raises(TaskDeferred) as deferred:
            operator.execute(_context(states))
        assert list(JOBS) == ["application_0"]
    trigger = deferred.value.trigger
    assert isinstance(trigger, LanceStagingTrigger)
    assert _look(trigger) == "unbegun"
    run_json(JOBS["application_0"]["spec"])

    async def first() -> Any:
        return await anext(trigger.run())

    event = asyncio.run(first()).payload
    assert event == {"state": "staged"}
    reference = operator.execute_complete(_context(states), event)
    assert (reference["operation"], reference["num_deleted_rows"]) == ("delete", 3)
    assert operator.execute(_context(states)) == reference


@pytest.mark.parametrize("came", [False, True])
def test_a_job_that_ends_before_its_driver_has_begun(
    tmp_path: Path, states: States, monkeypatch: pytest.MonkeyPatch, came: bool
) -> None:
    """The table cannot say so: the job itself is looked at, and waited for as long as the cluster has it."""
    uri = make_table(tmp_path / "t.lance", 0)
    operator = _delete(uri, deferrable=True)
    with pytest.raises(TaskDeferred) as deferred:
        operator.execute(_context(states))
    trigger: Any = deferred.value.trigger
    monkeypatch.setattr("airflow_lance.triggers.staging.UNBEGUN_SECONDS", 0.0)

    async def first() -> Any:
        return await anext(trigger.run())

    event = asyncio.run(first()).payload
    assert event == {"state": "unbegun", "job": "application_0", "stale": ""}
    with pytest.raises(TaskDeferred) as again:
        operator.execute_complete(_context(states), event)
    assert again.value.trigger.serialize() == trigger.serialize()  # type: ignore[union-attr]
    JOBS["application_0"]["state"] = "KILLED"
    if came:  # between the two looks
        run_json(JOBS["application_0"]["spec"])
        assert operator.execute_complete(_context(states), event)["num_deleted_rows"] == 3
        return
    with pytest.raises(RetryableConflictError, match="ended without a result or an error"):
        operator.execute_complete(_context(states), event)
    with pytest.raises(TaskDeferred):  # the next try submits again
        operator.execute(_context(states))
    assert [*JOBS] == ["application_0", "application_1"]


def test_a_job_that_is_let_go_of_is_told_of_its_task_too(
    tmp_path: Path, states: States, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = pytest.importorskip("airflow.providers.common.compat.openlineage.utils.spark")

    def inject(properties: dict[str, str], context: Any) -> dict[str, str]:
        return {**properties, "parent": context["ti"].task_id}

    monkeypatch.setattr(module, "inject_parent_job_information_into_spark_properties", inject)
    monkeypatch.setattr(FakeSubmit, "_openlineage_inject_parent_job_info", True, raising=False)
    with pytest.raises(TaskDeferred):
        _delete(make_table(tmp_path / "t.lance", 0), deferrable=True, conf={"a": "b"}).execute(_context(states))
    assert JOBS["application_0"]["conf"] == {"a": "b", "parent": "forget"}


def test_a_driver_that_failed_tells_why(tmp_path: Path, states: States) -> None:
    uri = make_table(tmp_path / "t.lance", 0)
    operator = _delete(uri, deferrable=True)
    with pytest.raises(TaskDeferred) as deferred:
        operator.execute(_context(states))
    spec = operator.make_spec(uri=uri, identity=deferred.value.trigger.identity)  # type: ignore[attr-defined]
    record_failure(spec, InputError("column 'nope' is not there"))
    assert _look(deferred.value.trigger) == "failed"  # type: ignore[arg-type]
    with pytest.raises(AirflowFailException, match="column 'nope' is not there"):
        operator.execute_complete(_context(states), {"state": "failed"})


def test_a_driver_that_was_killed_may_be_begun_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As YARN does. It counts as failed when nobody has done so for a while."""
    from lance_core.jobs.runtime.failure_record import RESTART_SECONDS
    from lance_core.publish.stage import begin_attempt

    uri = make_table(tmp_path / "t.lance", 0)
    spec = _delete(uri).make_spec(uri=uri, identity="5d2c0000-0000-0000-0000-000000000000")
    assert isinstance(spec, JobSpec)
    record_failure(spec, ConnectionRefusedError(111, "Connection refused"), is_final=False)
    assert api.watch(uri, spec.identity, stale="", options={}) == "unbegun"
    later = time.time() + RESTART_SECONDS
    monkeypatch.setattr("lance_core.jobs.runtime.failure_record.time.time", lambda: later)
    assert api.watch(uri, spec.identity, stale="", options={}) == "failed"
    begin_attempt(resolve_store(uri), identity=spec.identity, spec={}, read_version=1)
    assert api.watch(uri, spec.identity, stale="", options={}) is None


def test_a_job_that_succeeded_in_vain_is_run_again(tmp_path: Path, states: States) -> None:
    uri = make_table(tmp_path / "t.lance", 0)
    JOBS["application_0"] = {"state": "SUCCEEDED", "spec": ""}
    states["spark_job_id"] = "application_0"
    assert _delete(uri).execute(_context(states))["num_deleted_rows"] == 3
    assert (states["spark_job_id"], len(JOBS)) == ("application_1", 2)


def test_a_kill_in_the_triggerer_aborts_the_attempt(tmp_path: Path, states: States) -> None:
    uri = make_table(tmp_path / "t.lance", 0)
    operator = _delete(uri, deferrable=True)
    with pytest.raises(TaskDeferred) as deferred:
        operator.execute(_context(states))
    from lance_core.publish.decisions import look
    from lance_core.publish.stage import begin_attempt

    identity, store = deferred.value.trigger.identity, resolve_store(uri)  # type: ignore[attr-defined]
    attempt = begin_attempt(store, identity=identity, spec={}, read_version=1).attempt
    assert not look(store, identity).is_decided(attempt)
    asyncio.run(deferred.value.trigger.on_kill())
    assert attempt in look(store, identity).aborted, "what the job writes from now on never counts"


def test_where_nothing_can_let_go_the_worker_waits(tmp_path: Path, states: States) -> None:
    uri = make_table(tmp_path / "t.lance", 0)
    assert _delete(uri, deferrable=True, spark_submit={}).execute(_context(states))["num_deleted_rows"] == 3


def test_packaging(tmp_path: Path, states: States) -> None:
    uri = make_table(tmp_path / "t.lance", 0)
    seen: list[Any] = []
    submit = FakeSubmit.submit_job

    def look(self: FakeSubmit, context: Any) -> str:
        seen.append({**self.arguments, "zip": Path(str(self.arguments.get("py_files", ""))).is_file()})
        return submit(self, context)

    FakeSubmit.submit_job = look  # type: ignore[method-assign]
    try:
        _delete(uri, packaging="archive").execute(_context(states))
        _delete(uri, packaging="s3://lake/env.tar.gz", key="2").execute(_context(States()))
    finally:
        FakeSubmit.submit_job = submit  # type: ignore[method-assign]
    assert (seen[0]["zip"], Path(seen[0]["py_files"]).name) == (True, "lance_core.zip")
    assert seen[1]["archives"] == "s3://lake/env.tar.gz#lance_environment"
    assert seen[1]["conf"]["spark.pyspark.python"] == "./lance_environment/bin/python"


def test_a_silent_driver_counts_as_failed_when_its_lease_is_over(tmp_path: Path) -> None:
    from lance_core.publish.stage import begin_attempt

    uri = make_table(tmp_path / "t.lance", 0)
    spec = _delete(uri).make_spec(uri=uri, identity="5d2c0000-0000-0000-0000-000000000000")
    assert isinstance(spec, JobSpec)
    assert api.watch(uri, spec.identity, stale="", options={}) == "unbegun"
    begin_attempt(resolve_store(uri), identity=spec.identity, spec={}, read_version=1, lease_seconds=-1)
    assert api.watch(uri, spec.identity, stale="", options={}) == "failed"
    with pytest.raises(RetryableConflictError, match="without a result or an error"):
        api.raise_failure(spec, options={})
