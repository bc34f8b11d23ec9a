"""The first try of a task that adds columns is suspended with its supervisor: Airflow's heartbeat runs out, a second try
adds and publishes them, and then the first goes on to its end. On the disk and on an emulated S3.

A stack of its own: its heartbeat runs out soon.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from airflow_stack import AirflowStack
from lakes import Lake, lake_of
from suspended_function import FIRST

import lance_core
from lance_core.publish.collect import collect_garbage
from tests.dataset.exact_storage import missing

pytestmark = [pytest.mark.slow, pytest.mark.airflow]

HERE = Path(__file__).resolve().parent
NUM_ROWS = 20
PATIENCE = 10.0
"""Seconds without work after which a process that was let go on is taken to wait for its supervisor."""


@pytest.fixture(scope="module")
def impatient(place: Path) -> Iterator[AirflowStack]:
    """An Airflow that takes a task for dead when it was not heard of for three quarters of a minute."""
    dags = place / "suspended-dags"
    dags.mkdir()
    shutil.copy(HERE / "dags" / "lance_suspended.py", dags)
    env = {
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "45",
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "3",
        "LANCE_EXECUTION": "local",
        "AIRFLOW_CONN_LANCE_DEFAULT": "lance://",
        "PYTHONPATH": os.pathsep.join([str(HERE.parents[1]), str(HERE / "sources")]),
    }
    with AirflowStack(place / "suspended-airflow", dags=dags, env=env) as running:
        yield running


@pytest.fixture(params=["disk", "s3"])
def lake(request: pytest.FixtureRequest, impatient: AirflowStack, tmp_path: Path) -> Iterator[Lake]:
    with lake_of(request, impatient, tmp_path) as found:
        yield found


def test_a_try_that_airflow_took_for_dead_takes_nothing_away(impatient: AirflowStack, lake: Lake, tmp_path: Path) -> None:
    dag = f"lance_suspended{lake.suffix}"
    for start in (0, NUM_ROWS // 2):
        rows = pa.table({"id": pa.array(range(start, start + NUM_ROWS // 2), pa.int64())})
        mode = "append" if start else "create"
        lance_core.write_dataset(rows, lake.uri("t"), mode=mode, storage_options=lake.options)
    impatient.wait_for_dag(dag)
    impatient.unpause(dag)
    impatient.trigger(dag, run_id="one", conf={"uri": lake.uri("t"), "marks": str(tmp_path)})
    supervisor, first = _suspended(tmp_path)
    try:
        assert impatient.wait_for_run(dag, "one") == "success"
        (task,) = impatient.tasks(dag, "one")
        assert (task["state"], task["try_number"]) == ("success", 2)
        _judge(lake)
        os.kill(first, signal.SIGCONT)
        _wait_until_it_rests(first)
    finally:
        for pid in (first, supervisor):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    deadline = time.monotonic() + 120
    while _processor_time(first) is not None:
        assert time.monotonic() < deadline, "the first try does not end"
        time.sleep(0.2)
    _judge(lake)
    (task,) = impatient.tasks(dag, "one")
    assert (task["state"], task["try_number"]) == ("success", 2), "the first try's end is not the task's"
    collect_garbage(lake.store("t"))
    _judge(lake)


def _suspended(marks: Path) -> tuple[int, int]:
    """The supervisor and the first try, both stopped."""
    deadline = time.monotonic() + 300
    while not (marks / FIRST).exists():
        assert time.monotonic() < deadline, "the function was not called"
        time.sleep(0.2)
    supervisor, first = map(int, (marks / FIRST).read_text().split())
    while not all(_state(pid) == "T" for pid in (supervisor, first)):
        assert time.monotonic() < deadline, "the first try is not suspended"
        time.sleep(0.05)
    return supervisor, first


def _stat(pid: int) -> list[str] | None:
    """What /proc says behind the process's name, or None when it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields


def _state(pid: int) -> str:
    return (_stat(pid) or ["gone"])[0]


def _processor_time(pid: int) -> int | None:
    """Ticks that a process has used so far; None when it has ended."""
    fields = _stat(pid)
    return None if fields is None else int(fields[11]) + int(fields[12])


def _wait_until_it_rests(pid: int) -> None:
    """Until a process has ended, or has done nothing for a while."""
    used, since = _processor_time(pid), time.monotonic()
    while used is not None and time.monotonic() - since < PATIENCE:
        time.sleep(0.2)
        now = _processor_time(pid)
        if now != used:
            used, since = now, time.monotonic()


def _judge(lake: Lake) -> None:
    """Every file of every version is there, and every row has its value, once."""
    found = lake.rows("t").to_pydict()
    assert sorted(zip(found["id"], found["twice"], strict=True)) == [(number, 2 * number) for number in range(NUM_ROWS)]
    assert missing(lake.store("t")) == []
    assert lance_core.dataset(lake.uri("t"), storage_options=lake.options).version == 3
