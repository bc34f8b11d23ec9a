"""A table may be named by a `Path` or an `ObjectStoragePath` wherever it may be named by a text."""

from __future__ import annotations

import importlib
import inspect
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from airflow.sdk import DAG, ObjectStoragePath

from airflow_lance.assets import create_asset
from airflow_lance.connection import plain_uri
from airflow_lance.get_provider_info import get_provider_info
from airflow_lance.hooks.lance import LanceHook
from airflow_lance.operators.sql import LanceSqlOperator
from airflow_lance.operators.write_audit_publish import LanceWriteAuditPublish
from airflow_lance.sensors.version import LanceVersionSensor
from tests.airflow.operator_support import execute, make_table

TABLE = Path("/data/lake/t.lance")


def _classes() -> list[type[Any]]:
    """Every operator, sensor and trigger of the provider that has a uri and needs no other argument that is special."""
    info, found = get_provider_info(), []
    for room in ("operators", "sensors", "triggers"):
        for name in sorted(module for group in info[room] for module in group["python-modules"]):
            for kind in vars(importlib.import_module(name)).values():
                if isinstance(kind, type) and kind.__module__ == name and not inspect.isabstract(kind):
                    found.append(kind)
    # The tables of a SQL statement have names in it; `test_sql_operator` holds that they may be paths.
    found.remove(LanceSqlOperator)
    return [kind for kind in found if "uri" in _parameters(kind) and "group_id" not in _parameters(kind)]


def _parameters(kind: type[Any]) -> set[str]:
    makers = [vars(cls)["__init__"] for cls in kind.__mro__ if "__init__" in vars(cls)]
    return {name for maker in makers for name in inspect.signature(maker).parameters}


MORE: dict[str, dict[str, Any]] = {
    **{name: {"source": "/a.csv"} for name in ("LanceAppendOperator", "LanceOverwriteOperator")},
    "LanceMergeOperator": {"source": "/a.csv", "on": "id"},
    "LanceReplaceWhereOperator": {"source": "/a.csv", "predicate": "id = 1"},
    "LanceUpdateOperator": {"updates": {"id": "1"}},
    "LanceTableConfigOperator": {"values": {"a": "b"}},
    "LanceDescribeOperator": {"description": "a"},
    "LanceFragmentHealthSensor": {"max_fragments": 1},
    **{name: {"column": "id", "keys": ["1"]} for name in ("LanceMissingPartitionsOperator", "LancePartitionsSensor")},
    **{name: {"condition": {"kind": "version_at_least", "version": 1}} for name in ("LanceConditionTrigger",)},
}
"""What some classes cannot be made without; the others are given a word for every argument that they require."""


def _required(kind: type[Any]) -> dict[str, Any]:
    needed = {
        name
        for name, item in inspect.signature(kind).parameters.items()
        if item.default is item.empty and item.kind is item.KEYWORD_ONLY
    }
    return {**dict.fromkeys(needed - {"uri", "task_id"}, "id"), **MORE.get(kind.__name__, {})}


@pytest.mark.parametrize("kind", _classes(), ids=lambda kind: kind.__name__)
def test_every_class_keeps_the_text_of_a_path(kind: type[Any]) -> None:
    named = {} if kind.__name__.endswith("Trigger") else {"task_id": "t"}
    assert kind(uri=TABLE, **named, **_required(kind)).uri == str(TABLE)


def test_what_is_no_class_of_a_task(tmp_path: Path) -> None:
    uri = Path(make_table(tmp_path / "t.lance", 0))
    hook = LanceHook()
    assert hook.get_uri(uri) == str(uri)
    assert hook.dataset(uri).count_rows() == 10
    assert hook.table_exists(uri)
    hook.write(pa.table({"id": [1]}), tmp_path / "other.lance")
    assert create_asset(uri=uri).uri == f"lance://file{uri}"
    with DAG("paths", schedule=None, start_date=datetime(2013, 1, 1, tzinfo=timezone.utc)):
        group = LanceWriteAuditPublish("w", uri=uri, execution="local")
    assert group.branch_uri.startswith(f"{uri}/tree/w/")


def test_paths_of_object_storage() -> None:
    assert plain_uri(ObjectStoragePath("s3://lake/t.lance")) == "s3://lake/t.lance"
    assert plain_uri(ObjectStoragePath("file:///data/t.lance")) == "/data/t.lance"


def test_a_sensor_looks_at_the_path(tmp_path: Path) -> None:
    uri = Path(make_table(tmp_path / "t.lance", 0))
    sensor = LanceVersionSensor(task_id="t", uri=uri, min_version=1)
    assert execute(sensor)["version"] == 1
