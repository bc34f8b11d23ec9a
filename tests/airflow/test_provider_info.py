"""What Airflow's provider manager sees."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import airflow
import jsonschema
import pytest

from airflow_lance.get_provider_info import get_provider_info


def test_provider_info_fits_airflows_schema() -> None:
    schema = json.loads((Path(airflow.__file__).parent / "provider_info.schema.json").read_text())
    jsonschema.validate(get_provider_info(), schema)


@pytest.mark.parametrize("room", ["operators", "sensors", "hooks", "triggers"])
def test_every_module_that_is_named_exists(room: str) -> None:
    for group in get_provider_info()[room]:
        for module in group["python-modules"]:
            importlib.import_module(module)


def test_every_module_of_a_room_is_named() -> None:
    info = get_provider_info()
    root = Path(importlib.import_module("airflow_lance").__file__ or "").parent
    for room in ("operators", "sensors", "hooks", "triggers"):
        named = {module.rsplit(".", 1)[1] for group in info[room] for module in group["python-modules"]}
        found = {path.stem for path in (root / room).glob("*.py")} - {
            "__init__",
            "base",
            "immediate",
            "job",
            "looks",
            "stage",
            "table",
            "write",
        }
        assert named == found


def test_airflow_lists_the_provider() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "airflow", "providers", "get", "airflow-provider-lance", "--full", "-o", "json"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    (provider,) = json.loads(shown.stdout[shown.stdout.index("[{") :])
    assert provider["name"] == "Lance"
    assert provider["connection-types"][0]["connection-type"] == "lance"


def test_the_connection_form_and_the_asset_scheme_are_known_to_airflow() -> None:
    from airflow.providers_manager import ProvidersManager

    manager = ProvidersManager()
    hook = manager.hooks["lance"]
    assert hook is not None
    assert (hook.hook_name, hook.connection_type) == ("Lance", "lance")
    fields = {name for name in manager.connection_form_widgets if "lance" in name}
    assert {name.rsplit("__", 1)[-1] for name in fields} >= {"base_uri", "spark_conn_id", "storage_options"}
    assert "lance" in manager.asset_uri_handlers
