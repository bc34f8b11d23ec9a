"""Operators run here without a scheduler; Airflow gets a home of its own unless another folder's tests made one."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

if "AIRFLOW_HOME" not in os.environ:
    _HOME = Path(tempfile.mkdtemp(prefix="lance-airflow-"))
    atexit.register(shutil.rmtree, _HOME, ignore_errors=True)
    os.environ["AIRFLOW_HOME"] = str(_HOME)
    os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
    os.environ["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] = f"sqlite:///{_HOME / 'airflow.db'}"


@pytest.fixture(scope="session")
def forks() -> None:
    """Children start in a moment."""
    from kill_harness import warm_up

    warm_up()


@pytest.fixture(autouse=True)
def lance_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection in the environment, so that no operator asks a database for it."""
    monkeypatch.setenv("AIRFLOW_CONN_LANCE_DEFAULT", '{"conn_type": "lance"}')
