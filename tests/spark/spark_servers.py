"""Spark's own servers, each in a process of its own that no Python drives.

::

    with connect_server(folder, {"spark.jars": jar_path()}) as server: ...      server.url: sc://127.0.0.1:PORT
    with thrift_server(folder, {...}) as server: ...                            jdbc:hive2://127.0.0.1:PORT

Their Python is known by `spark.pyspark.python` only. Spark 3.5 has no Connect in its package: `LANCE_TEST_CONNECT_JAR` names
the jar that has it (`tests/matrix/spark_matrix.py` fetches it).
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SPARK_HOME = Path(pyspark.__file__).parent
CONNECT_JAR = "LANCE_TEST_CONNECT_JAR"
CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
THRIFT = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"


@dataclass(frozen=True)
class Server:
    """`url` is its address for clients, `pid` its process."""

    url: str
    pid: int


def environment() -> dict[str, str]:
    """Of a process of Spark: nothing that says which Python drives it, but where its Python finds this repository."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
    paths = os.pathsep.join(map(str, (ROOT, HERE, ROOT / "tests" / "exactly_once")))
    return {**kept, "SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": paths}


def arguments(folder: Path, conf: Mapping[str, str]) -> list[str]:
    """`--conf` of a process of Spark that has its files in this folder."""
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.pyspark.python": sys.executable,
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.shuffle.partitions": "2",
        "spark.log.level": "WARN",
        **conf,
    }
    return [word for name, text in settings.items() for word in ("--conf", f"{name}={text}")]


def needs_connect() -> None:
    """Skip where this Spark has no Connect."""
    if pyspark.__version__.startswith("3.") and not os.environ.get(CONNECT_JAR):
        pytest.skip(f"Spark 3.5 has Connect in a jar of its own: {CONNECT_JAR} names it")
    pytest.importorskip("grpc")
    pytest.importorskip("grpc_status")


@contextmanager
def connect_server(folder: Path, conf: Mapping[str, str], *, functions: bool = False) -> Iterator[Server]:
    """A Spark Connect server. `functions`: it is told which Python runs functions and Python sources, in its environment."""
    needs_connect()
    jars = ",".join(filter(None, [os.environ.get(CONNECT_JAR, ""), conf.get("spark.jars", "")]))
    port = _free_port()
    settings = {**conf, "spark.connect.grpc.binding.port": str(port), **({"spark.jars": jars} if jars else {})}
    more = {"PYSPARK_PYTHON": sys.executable} if functions else {}
    with _server(folder, CONNECT, arguments(folder, settings), port, more) as pid:
        yield Server(f"sc://127.0.0.1:{port}", pid)


@contextmanager
def thrift_server(folder: Path, conf: Mapping[str, str]) -> Iterator[Server]:
    """A Thrift server."""
    port = _free_port()
    settings = {
        **conf,
        "spark.sql.catalogImplementation": "in-memory",
        "spark.hadoop.hive.server2.thrift.port": str(port),
        "spark.hadoop.hive.server2.thrift.bind.host": "127.0.0.1",
    }
    with _server(folder, THRIFT, arguments(folder, settings), port, {}) as pid:
        yield Server(f"jdbc:hive2://127.0.0.1:{port}", pid)


@contextmanager
def _server(folder: Path, main: str, words: list[str], port: int, more: Mapping[str, str]) -> Iterator[int]:
    command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", "local[2, 2]", "--class", main]
    command += [*words, "spark-internal"]
    env = {**environment(), **more}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, env=env, cwd=folder, stdout=log, stderr=log)
    try:
        until = time.monotonic() + 180
        while not _answers(port):
            assert process.poll() is None, (folder / "log").read_text()[-5_000:]
            assert time.monotonic() < until, (folder / "log").read_text()[-5_000:]
            time.sleep(0.2)
        yield process.pid
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
