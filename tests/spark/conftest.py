"""One Spark session for all tests of this room: local[2], loopback, workers of this interpreter.

::

    LANCE_TEST_BRIDGE=1     it has the bridge: `format("lance")` is the jar's
    LANCE_TEST_REMOTE=1     it is a client of a Spark Connect server, which has the jar or has it not; no JVM in this process

`test_spark_with_bridge` and `tests/matrix/spark_matrix.py` run this folder in these ways.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

WITH_BRIDGE = bool(os.environ.get("LANCE_TEST_BRIDGE"))
REMOTE = bool(os.environ.get("LANCE_TEST_REMOTE"))
needs_bridge = pytest.mark.skipif(not WITH_BRIDGE, reason="run by test_spark_with_bridge, in a JVM of its own")
needs_sources = pytest.mark.skipif(
    find_spec("pyspark.sql.datasource") is None, reason="Python data sources came with Spark 4.0"
)
needs_format = pytest.mark.skipif(
    find_spec("pyspark.sql.datasource") is None and not WITH_BRIDGE,
    reason='before Spark 4.0 format("lance") is the bridge\'s alone',
)
needs_classic = pytest.mark.skipif(REMOTE, reason="looks into the JVM, which a client of Connect has not")

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {
    "SPARK_LOCAL_IP": "127.0.0.1",
    "PYSPARK_PYTHON": sys.executable,
    "PYSPARK_DRIVER_PYTHON": sys.executable,
    # Workers import lance_core, and the modules of these tests.
    "PYTHONPATH": os.pathsep.join(
        filter(None, [str(ROOT), str(Path(__file__).parent), str(ROOT / "tests/exactly_once"), os.environ.get("PYTHONPATH")])
    ),
    # Says which worker of the bridge dies, while there is such a file: see `kill_file`.
    "LANCE_TEST_KILLS": str(Path(tempfile.gettempdir(), f"lance-kills-{os.getpid()}")),
}


QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A JVM of these tests ends before its second compiler has paid: without it they take three fifths of the processor time."""


@pytest.fixture(scope="session", autouse=True)
def quick_jvms() -> Iterator[None]:
    """Every JVM that is begun from here, `spark-submit`'s and the servers' too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", f"{os.environ.get('JDK_JAVA_OPTIONS', '')} {QUICK_JVM}".strip())
        yield


def end(session: Any) -> None:
    """Stop a session and its JVM, which would live on until this process ends."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    session.stop()
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()  # it waits for that to end
        gateway.proc.wait(60)
        SparkContext._gateway = SparkContext._jvm = None


def new_session(spark: Any) -> Any:
    """Another session of the application, with settings and views of its own."""
    if not REMOTE:
        return spark.newSession()
    _SESSIONS.append(type(spark).builder.remote(os.environ["SPARK_REMOTE"]).create())
    return _SESSIONS[-1]


_SESSIONS: list[Any] = []
"""Those on a server, which end before it does: a client that cannot say goodbye tries for minutes."""


def _connected(folder: Path) -> Iterator[Any]:
    from pyspark.sql import SparkSession
    from spark_servers import connect_server

    from lance_core.spark.bridge import EXTENSIONS, jar_path

    jar = {"spark.jars": jar_path(), "spark.sql.extensions": EXTENSIONS} if WITH_BRIDGE else {}
    conf = {"spark.sql.session.timeZone": "America/New_York", **jar}
    with connect_server(folder, conf, functions=True) as server:
        os.environ["SPARK_REMOTE"] = server.url
        _SESSIONS.append(SparkSession.builder.remote(server.url).create())
        yield _SESSIONS[0]
        for session in _SESSIONS:
            with suppress(Exception):
                session.stop()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, quick_jvms: None) -> Iterator[Any]:
    sql = pytest.importorskip("pyspark.sql")
    before = {name: os.environ.get(name) for name in ENVIRONMENT}
    os.environ.update(ENVIRONMENT)
    if REMOTE:
        yield from _connected(tmp_path_factory.mktemp("connect"))
        return
    builder = sql.SparkSession.builder.master("local[2, 2]")  # a task may fail once and is tried again
    if WITH_BRIDGE:
        from lance_core.spark.bridge import configure

        builder = configure(builder)
    session = (
        builder.appName("lance-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "America/New_York")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.python.daemon.module", "warm_daemon")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    end(session)
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@pytest.fixture(scope="session")
def formats(spark: Any) -> Any:
    """The session, with `format("lance")`: the Python source, or that of the jar where the session has it."""
    from lance_core.spark.source import register

    if not WITH_BRIDGE and not hasattr(spark, "dataSource"):
        pytest.skip("Python data sources came with Spark 4.0")
    register(spark)
    return spark
