"""One HDFS and YARN for the tests of this folder; without Hadoop's jars, a Java or a JDK they say so and are skipped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from demo.java import find_java
from tests.cluster.hadoop import LOG4J as PLAIN_LOG4J
from tests.cluster.hadoop import MiniHadoop, missing, spark_jars

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
CONNECTIONS = {"yarn_client": "client", "yarn_cluster": "cluster"}
DEFAULTS = """\
# The nodes have Spark where this machine has it, so nothing of it is uploaded for a job.
spark.yarn.jars                local:{jars}/*
spark.pyspark.python           {python}
spark.ui.enabled               false
spark.sql.session.timeZone     UTC
spark.sql.shuffle.partitions   2
spark.driver.memory            512m
spark.driver.extraJavaOptions  -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
spark.yarn.am.memory           256m
spark.executor.memory          512m
spark.executor.instances       1
# Containers on a busy machine are slow to answer.
spark.network.timeout          600s
spark.yarn.appMasterEnv.SPARK_LOCAL_IP  127.0.0.1
spark.executorEnv.SPARK_LOCAL_IP        127.0.0.1
spark.executor.extraJavaOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
"""
LOG4J = f"""{PLAIN_LOG4J}\
# The provider reads the id of a job in cluster mode from what this logs.
logger.yarn.name = org.apache.spark.deploy.yarn
logger.yarn.level = info
"""


@pytest.hookimpl(tryfirst=True)  # before `-m "not slow"` looks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here starts a Spark on YARN, by Airflow's operators, and takes long."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.airflow)


@pytest.fixture(scope="session")
def java_home() -> Path:
    """A JDK: the mini clusters are started from a source file."""
    java = find_java()
    if java is None or not (java / "bin" / "javac").exists():
        pytest.skip("no JDK 17 or newer")
    return java


@pytest.fixture(scope="session")
def hadoop(tmp_path_factory: pytest.TempPathFactory, java_home: Path) -> Iterator[MiniHadoop]:
    """HDFS and YARN on loopback."""
    lacks = missing()
    if lacks:
        pytest.skip(lacks)
    with MiniHadoop(tmp_path_factory.mktemp("hadoop"), java_home=java_home) as running:
        yield running


@pytest.fixture(scope="session")
def yarn_env(hadoop: MiniHadoop, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What a worker's environment has, so that its `spark-submit` finds YARN; and connections for both modes."""
    conf = tmp_path_factory.mktemp("spark-conf")
    (conf / "spark-defaults.conf").write_text(DEFAULTS.format(jars=spark_jars(), python=sys.executable))
    (conf / "log4j2.properties").write_text(LOG4J)
    env = {
        **hadoop.env,
        "SPARK_CONF_DIR": str(conf),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PATH": os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]]),
        "AIRFLOW_HOME": str(tmp_path_factory.mktemp("airflow")),
    }
    for name, mode in CONNECTIONS.items():
        extra = {"deploy-mode": mode, "yarn_resourcemanager_webapp_address": f"http://{hadoop.manager}"}
        env[f"AIRFLOW_CONN_{name.upper()}"] = json.dumps({"conn_type": "spark", "host": "yarn", "extra": extra})
    return env


@pytest.fixture
def worker(yarn_env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """This process is an Airflow worker beside the cluster."""
    for name in ("SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    for name, value in yarn_env.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="session")
def flights() -> pa.Table:
    """What the package ships, read by Arrow."""
    from dags_examples.flights_data import read_flights

    return read_flights()


@pytest.fixture(scope="session")
def month_on_hdfs(hadoop: MiniHadoop, flights: pa.Table) -> Callable[[int], tuple[str, pa.Table]]:
    """`month_on_hdfs(1)` -> the uri of January's Parquet file on HDFS, and its rows."""
    import io

    import pyarrow.parquet as pq

    written: dict[int, tuple[str, pa.Table]] = {}

    def of(month: int) -> tuple[str, pa.Table]:
        if month not in written:
            rows, content = flights.filter(pc.equal(flights["month"], month)), io.BytesIO()
            pq.write_table(rows, content, row_group_size=4096)
            written[month] = (hadoop.put(f"/raw/2013-{month:02}.parquet", content.getvalue()), rows)
        return written[month]

    return of


def bare_python(folder: Path) -> str:
    """An interpreter with everything that lance_core depends on, and without lance_core."""
    venv.create(folder / "python", symlinks=True)
    (place,) = (folder / "python").glob("lib/python*/site-packages")
    # A folder that a .pth file names is searched, but the .pth files in it are not read: one of them finds this repository.
    (place / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    python = str(folder / "python" / "bin" / "python")
    found = subprocess.run(
        [python, "-c", "import pyarrow, lance_core"], cwd="/", capture_output=True, text=True, check=False
    )
    assert "No module named 'lance_core'" in found.stderr, found.stderr
    return python
