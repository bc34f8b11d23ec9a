"""The DAG behind the buttons of the pages: it does what the run's configuration asks for, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_core
from airflow_lance.maintenance import lance_actions_dags
from airflow_lance.maintenance.action_arguments import ACTIONS, check_arguments
from lance_core.errors import InputError
from lance_core.maintenance import actions
from lance_core.maintenance.actions import act


@pytest.fixture
def table(tmp_path: Path, connection: Callable[[str, str], None]) -> str:
    connection("lake", json.dumps({"conn_type": "lance", "extra": {"base_uri": str(tmp_path / "lake")}}))
    uri = str(tmp_path / "lake" / "orders.lance")
    for number in range(9):
        data = pa.table({"id": range(number * 20, number * 20 + 20)})
        lance_core.write_dataset(data, uri, mode="append" if number else "create")
    return uri


def run_action(run_dag: Any, **conf: Any) -> Any:
    (dag,) = lance_actions_dags(lance_conn_ids=["lake"]).values()
    return run_dag(dag, run_conf={"lance_conn_id": "lake", **conf})


def test_a_compaction_and_a_tag_say_who_asked(table: str, run_dag: Any) -> None:
    run = run_action(run_dag, action="compact", uri=table, arguments={})
    assert run.state == "success"
    found = lance_core.dataset(table)
    assert (len(found.get_fragments()), found.count_rows()) == (1, 180)
    transaction = found.read_transaction(found.version)
    assert transaction is not None
    (note,) = [json.loads(text) for name, text in transaction.properties.items() if name.startswith("lance_core.identity.")]
    assert (note["asked"]["dag_id"], note["asked"]["task_id"]) == ("lance_actions", "act")
    named = {"name": "prod", "version": 3, "action": "set"}
    assert run_action(run_dag, action="tag", uri="orders.lance", arguments=named).state == "success"
    assert lance_core.dataset(table, version="prod").version == 3


@pytest.mark.parametrize(
    "conf",
    [
        {"lance_conn_id": "other"},
        {"uri": "/etc/passwd"},
        {"uri": "../orders.lance"},
        {"action": "drop"},
        {"arguments": {"uri": "/etc"}},
        {"uri": ""},
    ],
    ids=["connection", "absolute", "above", "action", "argument", "empty"],
)
def test_anything_else_fails(table: str, run_dag: Any, conf: dict[str, Any]) -> None:
    run = run_action(run_dag, **{"action": "compact", "uri": table, "arguments": {}, **conf})
    assert run.state == "failed"
    assert lance_core.dataset(table).version == 9, "nothing was done"


@pytest.mark.parametrize("step", ["..", "%2e%2e", "%2E.", ".%2e", "%2e", "a/%2e%2e/.."])
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_no_spelling_of_a_step_upwards_passes_the_fence(
    tmp_path: Path, connection: Callable[[str, str], None], run_dag: Any, scheme: str, step: str
) -> None:
    outside = str(tmp_path / "other.lance")
    for number in range(9):
        lance_core.write_dataset(pa.table({"id": [number]}), outside, mode="append" if number else "create")
    (tmp_path / "lake").mkdir()
    base = f"{scheme}{tmp_path / 'lake'}"
    connection("lake", json.dumps({"conn_type": "lance", "extra": {"base_uri": base}}))
    run = run_action(run_dag, action="compact", uri=f"{base}/{step}/other.lance", arguments={})
    assert run.state == "failed"
    assert lance_core.dataset(outside).version == 9, "nothing was done"


def test_every_action_with_arguments_is_carried_out() -> None:
    assert set(ACTIONS) == {*actions._SPECS, *actions._RECORDS}


def test_actions_on_staged_work(table: str) -> None:
    from lance_core.io.resolve import resolve_store
    from lance_core.publish.attempts import list_staged
    from lance_core.publish.decisions import look
    from lance_core.publish.stage import begin_attempt

    store = resolve_store(table)
    begin_attempt(store, identity="died", spec={"kind": "append"}, read_version=9, lease_seconds=0.0)
    assert act("abort", table, check_arguments("abort", {"identity": "died"}))["files_removed"] == 0
    assert list_staged(store) == []
    act("settle", table, check_arguments("settle", {"identity": "elsewhere", "version": 4}))
    committed = look(store, "elsewhere").committed
    assert committed is not None
    assert committed.version == 4
    act("restore", table, check_arguments("restore", {"version": 4, "expected_version": 9}))
    assert lance_core.dataset(table).count_rows() == 80
    removed = act("cleanup", table, check_arguments("cleanup", {"older_than_days": 0, "retain_versions": 1}))
    assert removed["old_versions"] > 0


def test_arguments_are_checked() -> None:
    assert check_arguments("cleanup", {}) == {"older_than_days": 7.0, "retain_versions": 3}
    for action, given in (
        ("tag", {"name": ""}), ("tag", {"name": "x" * 2000}), ("tag", {"name": "x", "action": "steal"}),
        ("restore", {"version": True, "expected_version": 1}), ("restore", {"version": 1}),
        ("cleanup", {"retain_versions": -1}),
    ):  # fmt: skip
        with pytest.raises(InputError):
            check_arguments(action, given)
