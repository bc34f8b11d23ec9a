"""A private Airflow for these tests: its home is made before anything imports Airflow, and removed with the session."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

_HOME = Path(tempfile.mkdtemp(prefix="lance-airflow-"))
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)

for _name in [name for name in os.environ if name.startswith("AIRFLOW")]:
    del os.environ[_name]
os.environ.update(
    {
        "AIRFLOW_HOME": str(_HOME),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(_HOME / "dags"),
        "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
        "AIRFLOW__CORE__TEST_CONNECTION": "Enabled",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{_HOME / 'airflow.db'}",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
    }
)
(_HOME / "dags").mkdir()
# As in an activated environment: a task looks for spark-submit before it submits anything.
os.environ["PATH"] = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder starts Airflow code."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.airflow)


@pytest.fixture(scope="session")
def airflow_database() -> None:
    """The metadata database of the private Airflow."""
    subprocess.run([sys.executable, "-m", "airflow", "db", "migrate"], check=True, capture_output=True, timeout=180)


@pytest.fixture(autouse=True)
def all_callables_are_allowed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task's process is told what its deployment allows; here the next test has the same process."""
    monkeypatch.setenv("LANCE_ALLOWED_CALLABLES", "")


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """`connection("lake", json_or_uri)` defines a connection for one test."""

    def define(conn_id: str, text: str) -> None:
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", text)

    return define


@pytest.fixture
def store_dag(airflow_database: None) -> Callable[[Any], None]:
    """`store_dag(dag)` puts a DAG through its real serialization into the metadata database."""

    def store(dag: Any) -> None:
        from airflow.dag_processing.bundles.manager import DagBundlesManager
        from airflow.dag_processing.dagbag import BundleDagBag, sync_bag_to_db

        DagBundlesManager().sync_bundles_to_db()
        bag = BundleDagBag(dag_folder=_HOME / "dags", bundle_path=_HOME / "dags", bundle_name="dags-folder")
        bag.bag_dag(dag)
        sync_bag_to_db(bag, "dags-folder", None)

    return store


@pytest.fixture
def run_dag(store_dag: Callable[[Any], None]) -> Callable[..., Any]:
    """`run_dag(dag)` runs a DAG with real Airflow objects, in this process; returns the finished run."""

    def run(dag: Any, **kwargs: Any) -> Any:
        # Airflow runs what it has stored.
        store_dag(dag)
        return dag.test(**kwargs)

    return run
