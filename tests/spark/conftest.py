"""One Spark session for all tests of this room: local[2], loopback, workers of this interpreter."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

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


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    sql = pytest.importorskip("pyspark.sql")
    before = {name: os.environ.get(name) for name in ENVIRONMENT}
    os.environ.update(ENVIRONMENT)
    builder = sql.SparkSession.builder.master("local[2, 2]")  # a task may fail once and is tried again
    if os.environ.get("LANCE_TEST_BRIDGE"):  # `test_spark_with_bridge` runs a part of this folder again with it
        from lance_core.spark.bridge import configure

        builder = configure(builder)
    session = (
        builder.appName("lance-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "America/New_York")
        .config("spark.driver.host", "127.0.0.1")
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
