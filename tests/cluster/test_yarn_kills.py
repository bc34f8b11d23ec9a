"""kill -9 on YARN of executors, their Python, drivers and tasks: whoever goes on, rows are exact and in one version."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest

from tests.cluster.hadoop import Container, MiniHadoop, until
from tests.cluster.yarn_support import append, judge, same_rows, slow

MonthOnHdfs = Callable[[int], tuple[str, pa.Table]]
HERE = Path(__file__).parent
MONTHS = (1, 2)


@pytest.fixture(scope="module")
def source(month_on_hdfs: MonthOnHdfs) -> dict[str, Any]:
    """Rows that take some twenty seconds, from two tasks."""
    return slow([month_on_hdfs(month)[0] for month in MONTHS])


@pytest.fixture(scope="module")
def expected(month_on_hdfs: MonthOnHdfs) -> pa.Table:
    return pa.concat_tables([month_on_hdfs(month)[1] for month in MONTHS])


class Try(threading.Thread):
    """A try of the task in a thread: what it returned or raised."""

    def __init__(self, uri: str, source: dict[str, Any], mode: str, **arguments: Any) -> None:
        super().__init__(daemon=True)
        self._call = lambda: append(uri, source, mode=mode, **arguments)
        self.result: dict[str, Any] | None = None
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.result = self._call()
        except BaseException as error:
            self.error = error


def _at_work(hadoop: MiniHadoop, folder: Path) -> str:
    """The application that has written a file of a table."""

    def found() -> str | None:
        running = hadoop.running()
        return running[-1] if running and any((folder / "data").glob("*")) else None

    def tell() -> str:
        return f"{hadoop.applications()}\n" + "\n".join(hadoop.logs(name) for name in hadoop.running())

    return str(until(found, what=f"a file in {folder}", tell=tell))


def _containers(hadoop: MiniHadoop, application: str, kind: str) -> list[Container]:
    return [found for found in hadoop.containers(application) if getattr(found, kind)]


def _check(folder: Path, expected: pa.Table) -> None:
    table = judge(str(folder))
    assert table.count_rows() == expected.num_rows
    assert same_rows(table, expected)
    assert table.version == 1


@pytest.mark.parametrize("mode", ["client", "cluster"])
@pytest.mark.parametrize("victim", ["executor", "python"])
def test_what_an_executor_is(
    worker: None, hadoop: MiniHadoop, tmp_path: Path, source: dict[str, Any], expected: pa.Table, mode: str, victim: str
) -> None:
    """Spark itself goes on: it is the same try of the task."""
    if (mode, victim) == ("client", "python"):
        pytest.skip("the other mode has the same executors")
    folder = tmp_path / "t.lance"
    attempt = Try(f"file://{folder}", source, mode)
    application = _at_work(hadoop, folder)
    executor = _containers(hadoop, application, "is_executor")[0]
    victims = executor.pythons() if victim == "python" else [executor.process]
    assert victims
    for process in victims:
        process.kill()
    attempt.join()
    assert attempt.error is None
    assert attempt.result is not None
    assert attempt.result["rows_added"] == expected.num_rows
    if victim == "python":
        assert "Python worker exited unexpectedly" in hadoop.logs(application)
    else:
        assert hadoop.num_containers(application) > 2, "the driver, the executor, and another in its place"
    _check(folder, expected)


@pytest.mark.parametrize("attempts", [1, 2])
def test_a_driver_on_the_cluster(
    worker: None, hadoop: MiniHadoop, tmp_path: Path, source: dict[str, Any], expected: pa.Table, attempts: int
) -> None:
    """YARN starts it again where it may; else the task fails and its retry goes on."""
    folder = tmp_path / "t.lance"
    conf = {"spark.yarn.maxAppAttempts": str(attempts)}
    attempt = Try(f"file://{folder}", source, "cluster", conf=conf)
    (driver,) = _containers(hadoop, _at_work(hadoop, folder), "is_driver")
    driver.process.kill()
    attempt.join()
    if attempts == 1:
        assert attempt.error is not None
        assert not (folder / "_versions").exists()
        append(f"file://{folder}", source, mode="cluster", conf=conf)
    else:
        assert attempt.error is None
    _check(folder, expected)


def test_a_driver_in_the_worker(
    worker: None, hadoop: MiniHadoop, tmp_path: Path, source: dict[str, Any], expected: pa.Table
) -> None:
    folder = tmp_path / "t.lance"
    attempt = Try(f"file://{folder}", source, "client")
    application = _at_work(hadoop, folder)
    (driver,) = [child for child in psutil.Process().children() if "org.apache.spark.deploy.SparkSubmit" in child.cmdline()]
    driver.kill()
    attempt.join()
    assert attempt.error is not None
    until(lambda: application not in hadoop.running(), what="the end of the executors")
    assert not (folder / "_versions").exists()
    append(f"file://{folder}", source, mode="client")
    _check(folder, expected)


@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_a_task_of_airflow(
    worker: None, hadoop: MiniHadoop, tmp_path: Path, source: dict[str, Any], expected: pa.Table, mode: str
) -> None:
    """In client mode the retry begins anew while the driver of the first try is still at work. In cluster mode it finds
    the application that is at work, and waits for it."""
    folder, states = tmp_path / "t.lance", tmp_path / "states.json"
    command = [sys.executable, str(HERE / "task_on_yarn.py"), mode, f"file://{folder}", str(states), json.dumps(source)]
    before = {found["id"] for found in hadoop.applications()}
    with (tmp_path / "first.log").open("wb") as log:
        first = subprocess.Popen(command, env=os.environ, stdout=log, stderr=log, start_new_session=True)
    try:
        application = _at_work(hadoop, folder)
        if mode == "cluster":
            until(states.exists, what="the id of the application in the state store")
    finally:
        first.kill()
        first.wait()
    try:
        second = subprocess.run(command, env=os.environ, capture_output=True, text=True, timeout=1200, check=False)
        assert second.returncode == 0, second.stderr[-4000:]
        until(lambda: not hadoop.running(), what="the end of the first driver")
    finally:
        with suppress(ProcessLookupError):
            os.killpg(first.pid, signal.SIGKILL)
    if mode == "cluster":
        assert {found["id"] for found in hadoop.applications()} - before == {application}
    assert json.loads(second.stdout.splitlines()[-1])["version"] == 1
    _check(folder, expected)
