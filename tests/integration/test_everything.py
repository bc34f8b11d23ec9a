"""Every operator and sensor under the real scheduler and a standalone cluster; the provider as Airflow's commands see it."""

from __future__ import annotations

import json
from pathlib import Path

import lance
import pytest
from airflow_stack import AirflowStack

from airflow_lance.get_provider_info import get_provider_info


@pytest.mark.slow
def test_every_operator_and_sensor(stack: AirflowStack, place: Path) -> None:
    for dag in ("lance_everything", "lance_watching"):
        stack.wait_for_dag(dag)
        stack.unpause(dag)
    run_id = stack.trigger("lance_everything")
    stack.wait_for_runs("lance_everything", num_runs=1, timeout=3000)
    assert {task["state"] for task in stack.tasks("lance_everything", run_id)} == {"success"}

    # 0..19 with 0, merged with 15..24 as 1; below 5 gone; 20..24 plus 10; the zeros replaced by 100 and 101; then 200.
    values = {**dict.fromkeys(range(15, 20), 1), **dict.fromkeys(range(20, 25), 11), 100: 0, 101: 0, 200: 2}
    seen = stack.xcom("lance_everything", run_id, "look")
    assert {row["id"]: row["value"] for row in seen["rows"]} == values
    assert {row["id"]: row["twice"] for row in seen["rows"]} == {**{number: number * 2 for number in values}, 200: None}

    table = lance.dataset(place / "everything.lance")
    table.validate()
    assert {row["id"]: row["value"] for row in table.to_table().to_pylist()} == values, "restored to the tag"
    validated = stack.xcom("lance_everything", run_id, "validate")
    assert validated["version"] == seen["version"]
    # The watcher in the triggerer saw versions come, and each set off a run.
    stack.wait_for_runs("lance_watching", num_runs=1, timeout=300)


def test_the_provider_is_known_to_airflow(stack: AirflowStack) -> None:
    listed = json.loads(stack.airflow("providers", "get", "airflow-provider-lance", "--full", "--output", "json"))
    text = json.dumps(listed)
    info = get_provider_info()
    for kind in ("hooks", "operators", "sensors", "triggers"):
        for module in info[kind][0]["python-modules"]:
            assert module in text, f"{kind}: {module}"
    for word in ("airflow_lance.assets.create_asset", "conn-fields", "base_uri", "LanceHook"):
        assert word in text, word


def test_the_connection_test_of_command_line_and_api(stack: AirflowStack, place: Path) -> None:
    printed = stack.airflow("connections", "test", "lance_default")
    assert "Connection success" in printed
    assert "conditional put is really conditional" in printed
    # What the button of the UI calls.
    body = {"connection_id": "lance_default", "conn_type": "lance", "extra": json.dumps({"base_uri": str(place)})}
    answer = stack.call("POST", "connections/test", body)
    assert answer["status"] is True
    assert "conditional put is really conditional" in answer["message"]
    nowhere = stack.call("POST", "connections/test", {**body, "extra": json.dumps({})})
    assert nowhere["status"] is False
    assert "base_uri" in nowhere["message"]
