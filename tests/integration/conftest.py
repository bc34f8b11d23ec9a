"""A real Airflow and a real Spark cluster for this folder's tests: started once, stopped by process id."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
sys.path.insert(0, str(REPOSITORY / "demo"))
sys.path[:0] = [str(HERE), str(HERE / "sources"), str(HERE.parent / "exactly_once"), str(REPOSITORY / "dags_examples")]

from airflow_stack import AirflowStack  # noqa: E402
from java import find_java  # noqa: E402
from run_demo import LOG4J, SPARK_DEFAULTS  # noqa: E402
from spark_cluster import SparkCluster  # noqa: E402

from tests.io.moto_server import moto_server  # noqa: E402


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that ask for the stack start Airflow and Spark."""
    for item in items:
        if HERE in item.path.parents and "stack" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.airflow)
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where everything of this session is."""
    return tmp_path_factory.mktemp("integration")


@pytest.fixture(scope="session")
def moto_endpoint() -> Iterator[str]:
    """An emulated S3."""
    with moto_server() as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def temporary(place: Path) -> Path:
    """The temporary folder of everything that the stack runs."""
    folder = place / "t"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def spark_env(place: Path) -> dict[str, str]:
    """Java, this Python, and a small JVM."""
    java = find_java()
    if java is None:
        pytest.skip("no Java 17 or newer: run `make setup`")
    conf = place / "spark-conf"
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text(SPARK_DEFAULTS)
    # The provider learns a driver's id from what spark-submit logs.
    (conf / "log4j2.properties").write_text(
        LOG4J + "logger.deploy.name = org.apache.spark.deploy\nlogger.deploy.level = info\n"
    )
    return {"JAVA_HOME": str(java), "SPARK_CONF_DIR": str(conf), "SPARK_LOCAL_IP": "127.0.0.1"}


@pytest.fixture(scope="session")
def cluster(place: Path, spark_env: dict[str, str]) -> Iterator[SparkCluster]:
    """A standalone master and one worker on loopback."""
    # The daemons say where they listen at INFO, which the sessions' log settings would hide.
    # More cores than the machine may have: a small driver waits more than it works, and must not wait for a core as well.
    with SparkCluster(place / "cluster", env={"JAVA_HOME": spark_env["JAVA_HOME"]}, cores=4, memory="4g") as running:
        yield running


@pytest.fixture(scope="session")
def stack(place: Path, temporary: Path, spark_env: dict[str, str], cluster: SparkCluster) -> Iterator[AirflowStack]:
    """Scheduler, dag processor, triggerer and API server, with the example DAGs and those of this folder."""
    dags = place / "dags"
    dags.mkdir()
    shipped = REPOSITORY / "airflow_provider_lance" / "example_dags"
    for source in [
        *(REPOSITORY / "dags_examples").glob("*.py"),
        *shipped.glob("example_*.py"),
        *(HERE / "dags").glob("*.py"),
    ]:
        shutil.copy(source, dags)
    local = {"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}}
    extra = {"deploy-mode": "client", "rest-port": cluster.rest_port}
    standalone = {"conn_type": "spark", "host": cluster.master, "extra": extra}
    env = {
        **spark_env,
        "FLIGHTS_TABLE": str(place / "flights.lance"),
        "FLIGHTS_RAW": str(place / "raw"),
        "FLIGHTS_MONTHS": "4",
        "BACKFILL_TABLE": str(place / "backfill.lance"),
        "BACKFILL_RAW": str(place / "backfill-raw"),
        "MAPPED_TABLE": str(place / "mapped.lance"),
        "MAPPED_RAW": str(place / "mapped-raw"),
        "TEXTS_TABLE": str(place / "texts.lance"),
        "DECLARED_TEXTS_TABLE": str(place / "declared_texts.lance"),
        "GDPR_TABLE": str(place / "gdpr.lance"),
        "MAINTAINED_FOLDER": str(place / "maintained"),
        "MAINTAINED_BACKOFF_SECONDS": "0",
        "TMPDIR": str(temporary),
        "LANCE_EXECUTION": "local",
        "LANCE_TEST_PLACE": str(place),
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(HERE / "sources"), str(HERE.parent / "exactly_once")]),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(local),
        "AIRFLOW_CONN_SPARK_CLUSTER": json.dumps(standalone),
        # A standalone master does not know this environment's interpreter.
        "PYSPARK_PYTHON": sys.executable,
    }
    pools = dict.fromkeys(
        ("lance_flights", "lance_backfill", "lance_mapped", "lance_gdpr", "lance_texts", "lance_maintained"), 1
    )
    with AirflowStack(place / "airflow", dags=dags, env=env, pools=pools, parallelism=6) as running:
        # In the database, where tasks and the triggerer ask their supervisor for it.
        lance = {"connection_id": "lance_default", "conn_type": "lance", "extra": json.dumps({"base_uri": str(place)})}
        running.call("POST", "connections", lance)
        yield running


@pytest.fixture(autouse=True)
def loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here talks to another machine."""
    monkeypatch.setitem(os.environ, "NO_PROXY", "127.0.0.1,localhost")
