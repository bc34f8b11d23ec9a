"""Loads a DAG file of `dags_examples/` as Airflow does: the folder on the path, places from the environment."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "dags_examples"


def load_example(name: str, monkeypatch: pytest.MonkeyPatch, **environment: object) -> ModuleType:
    """The module of an example, executed anew with these places."""
    for variable, value in environment.items():
        monkeypatch.setenv(variable, str(value))
    monkeypatch.syspath_prepend(str(FOLDER))
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def dag_of(module: ModuleType, dag_id: str) -> Any:
    """A DAG that the module made."""
    from airflow.sdk import DAG

    return next(item for item in vars(module).values() if isinstance(item, DAG) and item.dag_id == dag_id)
