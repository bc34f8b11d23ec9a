"""What the pages read of XComs: plain JSON. Airflow would make objects of them, of classes that tasks name."""

from __future__ import annotations

import json
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_lance.ui.task_work import _mentions, plain_value

TABLE = {"__classname__": "deltalake.table.DeltaTable", "__version__": 1, "__data__": {"table_uri": "s3://evil/t"}}
STAGED = {"uri": "/lake/orders.lance", "identity": "5d2c", "attempt": "00ff"}


def test_no_object_is_made_of_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """A viewer's request opened a table of a stranger's choice: the value named the class that does so."""
    from airflow.models.xcom import XComModel

    def deserialize(row: Any) -> object:
        raise AssertionError("objects are made")

    values = [TABLE, json.dumps(TABLE), [TABLE, STAGED], json.dumps(STAGED), {"uri": TABLE, "identity": "x"}, None, "{", 3]
    names = {"dag_id": "d", "run_id": "r", "task_id": "t", "map_index": -1}
    rows = [SimpleNamespace(value=value, **names) for value in values]

    @contextmanager
    def session() -> Any:
        yield SimpleNamespace(scalars=lambda query: rows)

    monkeypatch.setattr("airflow.utils.session.create_session", session)
    monkeypatch.setattr(XComModel, "deserialize_value", deserialize)
    found = _mentions("d", None, None, None)
    assert [(item.uri, item.identity) for item in found] == [("/lake/orders.lance", "5d2c")] * 2


def test_tuples_become_lists() -> None:
    stored = {"__classname__": "builtins.tuple", "__version__": 1, "__data__": [STAGED, STAGED]}
    assert plain_value(stored) == plain_value(json.dumps(stored)) == [STAGED, STAGED]


def test_deep_values_are_none_of_ours() -> None:
    assert plain_value("[" * 100_000) is None
    deep: object = STAGED
    for _ in range(500):
        deep = [deep]
    assert "uri" not in str(plain_value(deep))
