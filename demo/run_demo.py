"""The main job in one command: twelve months of real flights through Airflow and Spark into one Lance table.

::

    python demo/run_demo.py            .demo/flights.lance grows by a month a run; then the report of the second DAG
    python demo/run_demo.py            again: every run finds that its identity was committed; nothing is added
    python demo/run_demo.py --fresh    starts over with an empty table

Everything it makes lies in `.demo/` beside this folder. Everything it starts listens on loopback only and is stopped, by
process id, before it returns.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from airflow_stack import REPOSITORY, AirflowStack, StackError
from java import ensure_java

PLACE = REPOSITORY / ".demo"
TABLE = PLACE / "flights.lance"
DAGS = REPOSITORY / "dags_examples"
INGEST, REPORT, MONTHS, ROWS = "flights_ingest", "flights_report", 12, 336_776
POOL = "lance_flights"

SPARK_DEFAULTS = """\
# A small machine and small jobs: quick start matters, peak speed does not.
spark.driver.extraJavaOptions  -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
spark.ui.enabled               false
spark.sql.shuffle.partitions   2
"""

LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
"""

_STARTED = time.monotonic()


def say(text: str) -> None:
    """One line with the seconds since the start."""
    print(f"[{time.monotonic() - _STARTED:5.1f} s] {text}", flush=True)


def environment() -> dict[str, str]:
    """Where the DAGs find table, raw data, Spark and Java; connections as environment variables."""
    spark_conf = PLACE / "spark-conf"
    spark_conf.mkdir(parents=True, exist_ok=True)
    (spark_conf / "spark-defaults.conf").write_text(SPARK_DEFAULTS, encoding="utf-8")
    (spark_conf / "log4j2.properties").write_text(LOG4J, encoding="utf-8")
    spark = {"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}}
    lance = {"conn_type": "lance", "host": str(PLACE), "extra": {"spark_conn_id": "spark_default"}}
    return {
        "FLIGHTS_TABLE": str(TABLE),
        "FLIGHTS_RAW": str(PLACE / "raw"),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(spark),
        "AIRFLOW_CONN_LANCE_DEFAULT": json.dumps(lance),
        "JAVA_HOME": str(ensure_java()),
        "SPARK_CONF_DIR": str(spark_conf),
        "NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", str(PLACE / "numba")),
    }


def ingest(stack: AirflowStack) -> list[dict[str, Any]]:
    """Run the twelve months; what each commit returned."""
    for dag in (INGEST, REPORT):
        stack.wait_for_dag(dag)
    # The report waits in the triggerer while the months come in.
    stack.unpause(REPORT)
    stack.trigger(REPORT, run_id="report")
    say(f"running {INGEST}: {MONTHS} monthly runs, two at a time")
    stack.unpause(INGEST)
    runs = stack.wait_for_runs(
        INGEST, num_runs=MONTHS, timeout=1800, progress=lambda done: say(f"{done} of {MONTHS} months done")
    )
    commits = [stack.xcom(INGEST, run["dag_run_id"], "month.commit") for run in runs]
    say(f"waiting for {REPORT}")
    stack.wait_for_runs(REPORT, num_runs=1, timeout=600)
    return commits


def summary(commits: Iterable[dict[str, Any]]) -> str:
    """What the commits did, in one sentence."""
    found = list(commits)
    outcomes = [outcome for commit in found for outcome in commit["identities"].values()]
    committed, already = outcomes.count("committed"), outcomes.count("already_committed")
    rows = sum(commit["rows_added"] for commit in found)
    if not committed:
        return f"Nothing was added: all {already} months had been committed before. Each is in the table exactly once."
    return f"{committed} months were committed now with {rows:,} rows; {already} had been before."


def main() -> None:
    """Run the demo."""
    parser = argparse.ArgumentParser(description="Twelve months of flights through Airflow and Spark into a Lance table.")
    parser.add_argument("--fresh", action="store_true", help="remove the table of an earlier run first")
    if parser.parse_args().fresh:
        shutil.rmtree(TABLE, ignore_errors=True)
    # Airflow starts over each time: only the table remembers. That is the point of the second run.
    shutil.rmtree(PLACE / "airflow", ignore_errors=True)
    say(f"table {TABLE} ({'is there already' if TABLE.exists() else 'not there yet'})")
    # A plain `kill` unwinds like Ctrl-C does, so that everything started here is stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    env = environment()
    # The kernels are compiled once, while Airflow starts, instead of by the first Spark workers side by side.
    warm_up = subprocess.Popen(
        [sys.executable, "-m", "lance_core.cli.main", "warmup"], env={**os.environ, **env}, stdout=subprocess.DEVNULL
    )
    try:
        with AirflowStack(PLACE / "airflow", dags=DAGS, env=env, pools={POOL: 1}, parallelism=6, say=say) as stack:
            warm_up.wait(timeout=600)
            commits = ingest(stack)
            report = str(stack.xcom(REPORT, "report", "report"))
            say("stopping Airflow")
    except StackError as error:
        raise SystemExit(f"The demo failed: {error}") from None
    finally:
        warm_up.kill()
        warm_up.wait()
    print(f"\n{report}\n\n{summary(commits)}")
    print(f"Done in {time.monotonic() - _STARTED:.0f} s. Open the table yourself:\n    {sys.executable} -c "
          f"\"import lance_core; print(lance_core.dataset('{TABLE}').count_rows())\"")  # fmt: skip
    if f"{ROWS:,} rows" not in report:
        raise SystemExit(f"Expected {ROWS:,} rows.")


if __name__ == "__main__":
    main()
