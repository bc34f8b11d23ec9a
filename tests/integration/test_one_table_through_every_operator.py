"""Every operator and sensor under the real scheduler and a standalone cluster; the provider as Airflow's commands see it."""

from __future__ import annotations

import importlib
import importlib.util
import json
from pathlib import Path
from typing import Any

import lance
import pytest
from airflow_stack import REPOSITORY, AirflowStack

from airflow_lance.get_provider_info import get_provider_info

INSIDE = ("__init__", "base", "immediate", "job", "stage", "table", "write")
"""Modules that hold what the others share, and no class for DAG files."""


@pytest.fixture(scope="module")
def run_ids(stack: AirflowStack, request: pytest.FixtureRequest) -> dict[str, str]:
    """The runs of every mode that is asked for, by mode: they go on at the same time, for each waits more than it works."""
    tests = [item for item in request.session.items if getattr(item, "originalname", "") == "test_every_operator_and_sensor"]
    modes = [str(item.callspec.params["mode"]) for item in tests]  # type: ignore[attr-defined]
    for name in ("lance_watching", *(f"lance_everything_{mode}" for mode in modes)):
        stack.wait_for_dag(name)
        stack.unpause(name)
    return {mode: stack.trigger(f"lance_everything_{mode}") for mode in modes}


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["client", "cluster", "local"])
def test_every_operator_and_sensor(stack: AirflowStack, place: Path, run_ids: dict[str, str], mode: str) -> None:
    dag, run_id = f"lance_everything_{mode}", run_ids[mode]
    if mode == "client":
        # The watcher in the triggerer saw a version come, and set off a run. One is enough.
        stack.wait_for_runs("lance_watching", num_runs=1, timeout=1200)
        stack.call("PATCH", "dags/lance_watching", {"is_paused": True})
    stack.wait_for_runs(dag, num_runs=1, timeout=3000)
    assert {task["state"] for task in stack.tasks(dag, run_id)} == {"success"}

    # 0..19 with 0, merged with 15..24 as 1; below 5 gone; 20..24 plus 10; the zeros replaced by 100 and 101; then 200.
    values = {**dict.fromkeys(range(15, 20), 1), **dict.fromkeys(range(20, 25), 11), 100: 0, 101: 0, 200: 2}
    seen = stack.xcom(dag, run_id, "look")
    assert {row["id"]: row["value"] for row in seen["rows"]} == values
    assert {row["id"]: row["twice"] for row in seen["rows"]} == {**{number: number * 2 for number in values}, 200: None}

    table = lance.dataset(place / f"everything-{mode}.lance")
    table.validate()
    assert {row["id"]: row["value"] for row in table.to_table().to_pylist()} == values, "restored to the tag"
    validated = stack.xcom(dag, run_id, "validate")
    assert validated["version"] == seen["version"]
    if mode == "cluster":
        log = stack.task_log(dag, run_id, "append.stage")
        assert "identified spark driver id: driver-" in log, "the driver ran on the cluster"
    if mode == "client":
        log = stack.task_log(dag, run_id, "append.stage")
        assert " staged " in log
        assert log.count(" INFO ") < 20, "Spark's own lines do not drown ours"


def test_nothing_is_left_out_of_that_dag(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LANCE_TEST_PLACE", str(tmp_path))
    path = Path(__file__).parent / "dags" / "lance_everything.py"
    spec = importlib.util.spec_from_file_location("lance_everything", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for dag in (module.client, module.cluster, module.local):
        used = {type(operator) for operator in dag.task_dict.values()}
        assert _offered() - used == set()


def _offered() -> set[type[Any]]:
    """Every class of the provider that stands for a task; the rooms are read from disk, so that none is forgotten."""
    found: set[type[Any]] = set()
    for room in ("operators", "sensors"):
        listed = set(get_provider_info()[room][0]["python-modules"])
        names = {path.stem for path in (REPOSITORY / "airflow_lance" / room).glob("*.py")} - {*INSIDE}
        assert listed == {f"airflow_lance.{room}.{name}" for name in names}
        for name in sorted(listed):
            for kind in vars(importlib.import_module(name)).values():
                if isinstance(kind, type) and kind.__module__ == name and kind.__name__.endswith(("Operator", "Sensor")):
                    found.add(kind)
    return found


def test_the_provider_is_known_to_airflow(stack: AirflowStack) -> None:
    listed = json.loads(stack.airflow("providers", "get", "airflow-provider-lance", "--full", "--output", "json"))
    text = json.dumps(listed)
    info = get_provider_info()
    for kind in ("hooks", "operators", "sensors", "triggers"):
        for module in info[kind][0]["python-modules"]:
            assert module in text, f"{kind}: {module}"
    for word in ("airflow_lance.assets.create_asset", "conn-fields", "base_uri", "LanceHook"):
        assert word in text, word


def test_the_connection_form_as_the_ui_fetches_it(stack: AirflowStack) -> None:
    forms = stack.call("GET", "connections/hook_meta", root="ui")
    (form,) = [entry for entry in forms if entry["connection_type"] == "lance"]
    assert form["hook_name"] == "Lance"
    assert {*form["extra_fields"]} == {
        "base_uri",
        "spark_conn_id",
        "storage_options",
        "aws_conn_id",
        "gcp_conn_id",
        "azure_conn_id",
        "catalog_uri",
        "catalog_token",
        "catalog_properties",
    }
    for name in ("storage_options", "catalog_token", "catalog_properties"):
        assert form["extra_fields"][name]["schema"]["format"] == "password"
    assert form["standard_fields"]["host"]["title"] == "Base uri (or use the field below)"
    assert form["standard_fields"]["port"]["hidden"] is True


def test_the_connection_test_of_command_line_and_api(stack: AirflowStack, place: Path) -> None:
    printed = stack.airflow("connections", "test", "lance_default")
    assert "Connection success" in printed
    # What the button of the UI calls.
    body = {"connection_id": "lance_default", "conn_type": "lance", "extra": json.dumps({"base_uri": str(place)})}
    answer = stack.call("POST", "connections/test", body)
    assert answer["status"] is True
    assert "conditional put is conditional" in answer["message"]
    nowhere = stack.call("POST", "connections/test", {**body, "extra": json.dumps({})})
    assert nowhere["status"] is False
    assert "base_uri" in nowhere["message"]
