"""The flights on YARN under a real scheduler, in both modes, while a task and drivers are killed."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from airflow_stack import AirflowStack

from lance_core.spark.argument import decode_argument, is_encoded
from tests.cluster.conftest import CONNECTIONS
from tests.cluster.hadoop import MiniHadoop, until
from tests.cluster.yarn_support import SOURCES, judge, same_rows

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
MONTHS = 1


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dag")


@pytest.fixture(scope="module")
def stack(place: Path, hadoop: MiniHadoop, yarn_env: dict[str, str]) -> Iterator[AirflowStack]:
    """Scheduler, dag processor, triggerer and API server, with the DAGs of this folder."""
    dags = place / "dags"
    dags.mkdir()
    for file in (HERE / "dags").glob("*.py"):
        shutil.copy(file, dags)
    env = {
        **{name: value for name, value in yarn_env.items() if name != "AIRFLOW_HOME"},
        "YARN_TEST_PLACE": str(place),
        "YARN_TEST_MONTHS": str(MONTHS),
        "YARN_TEST_SOURCES": str(SOURCES),
        "YARN_TEST_ROOT": hadoop.root,
        "YARN_TEST_WEBHDFS": hadoop.web,
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "dags_examples")]),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    }
    with AirflowStack(place / "airflow", dags=dags, env=env, parallelism=2) as running:
        yield running


def test_flights_in_both_modes(stack: AirflowStack, hadoop: MiniHadoop, place: Path, flights: pa.Table) -> None:
    """The first run of each mode loses its driver: in client mode with the task, in cluster mode alone."""
    expected = flights.filter(pc.less_equal(flights["month"], MONTHS))
    for mode in CONNECTIONS.values():
        stack.wait_for_dag(f"flights_yarn_{mode}")
        stack.unpause(f"flights_yarn_{mode}")
    with ThreadPoolExecutor(2) as side_by_side:
        kills = [
            side_by_side.submit(_kill_task, place / "flights_client.lance"),
            side_by_side.submit(_kill_driver, hadoop, place / "flights_cluster.lance"),
        ]
    for kill in kills:
        kill.result()
    for mode in CONNECTIONS.values():
        runs = stack.wait_for_runs(f"flights_yarn_{mode}", num_runs=MONTHS, timeout=3000)
        table = judge(str(place / f"flights_{mode}.lance"))
        assert table.count_rows() == expected.num_rows
        assert same_rows(table, expected)
        assert table.version == MONTHS
        # YARN starts a driver again by itself; a task is tried again by Airflow.
        tries = [_tries(stack, f"flights_yarn_{mode}", run["dag_run_id"]) for run in runs]
        assert sorted(tries) == [1] * (MONTHS - 1) + [2 if mode == "client" else 1]


def _tries(stack: AirflowStack, dag: str, run_id: str) -> int:
    (append,) = [task for task in stack.tasks(dag, run_id) if task["task_id"] == "month.append"]
    return int(append["try_number"])


def _is_at_work(folder: Path) -> bool:
    return any((folder / "data").glob("*"))


def _kill_task(folder: Path) -> None:
    """The task whose driver has begun to write, and the driver."""
    until(lambda: _is_at_work(folder), what=f"a file in {folder}", seconds=1500)
    running = psutil.process_iter(["cmdline"])
    drivers = [found for found in running if _is_driver_for(found.info["cmdline"] or [], str(folder))]
    assert drivers
    for process in [*(driver.parent() for driver in drivers), *drivers]:
        process.kill()


def _is_driver_for(arguments: list[str], table: str) -> bool:
    """Whether this is the JVM of a submit for a table, whose spec it has as an argument."""
    specs = [decode_argument(argument) for argument in arguments if is_encoded(argument)]
    return "org.apache.spark.deploy.SparkSubmit" in arguments and any(table in spec for spec in specs)


def _kill_driver(hadoop: MiniHadoop, folder: Path) -> None:
    """The application master that has begun to write."""
    until(lambda: _is_at_work(folder), what=f"a file in {folder}", seconds=1500)
    drivers = [found for name in hadoop.running() for found in hadoop.containers(name) if found.is_driver]
    assert drivers
    for driver in drivers:
        driver.process.kill()
