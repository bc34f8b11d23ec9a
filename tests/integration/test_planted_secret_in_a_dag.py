"""A secret among a connection's storage options, through a whole DAG with Spark under a real scheduler: in no log, event,
XCom, event log, lineage event or file that stays, and on no command line while it runs.

What other users of the machine may see is looked at all the time: the command lines of all processes, and the files of the
temporary folder that others may read. The environment of a process is its own user's; a driver has the options there, in
client mode (docs/security.md), and nobody else has.
"""

from __future__ import annotations

import base64
import json
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from airflow_stack import AirflowStack
from spark_cluster import SparkCluster

import lance_core
from bench.object_client import RunningServer, object_server
from lance_core.io.resolve import resolve_store

CORE = "+".join(["hunter2", "secret=of", "the-store"])
SECRET = f"planted/{CORE}"
DAG, URI = "lance_planted", "s3://lake/dag.lance"
HERE = Path(__file__).resolve().parent


def _needles() -> list[bytes]:
    """The secret as it is, in a url, and inside of base64 at each of its three places."""
    coded = [base64.b64encode(b"x" * skipped + CORE.encode())[4:-4] for skipped in range(3)]
    urls = [text.replace(b"+", b"-").replace(b"/", b"_") for text in coded]
    return [CORE.encode(), CORE.replace("+", "%2B").replace("=", "%3D").encode(), *coded, *urls]


NEEDLES = _needles()


def _holds(data: bytes) -> bool:
    return any(needle in data for needle in NEEDLES)


@dataclass
class Watch:
    """Looks at all processes and at a folder's files five times a second."""

    folder: Path
    told: set[str] = field(default_factory=set)
    drivers: set[str] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)
    over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        while not self.over.wait(0.2):
            for place in Path("/proc").glob("[0-9]*"):
                with suppress(OSError):
                    self._look_at_process(place)
            for path in [*self.folder.rglob("*")]:
                with suppress(OSError):
                    self._look_at_file(path)

    def _look_at_process(self, place: Path) -> None:
        line = (place / "cmdline").read_bytes()
        words = " ".join(line.decode(errors="replace").split("\0"))
        self.seen.add(words[:200])
        if _holds(line) or _holds((place / "comm").read_bytes()):
            self.told.add(f"command line: {words[:300]}")
        if _holds((place / "environ").read_bytes()):
            self.drivers.add(words[:3000])

    def _look_at_file(self, path: Path) -> None:
        if _holds(path.name.encode()):
            self.told.add(f"name: {path}")
        mode = path.stat().st_mode
        if path.is_file() and mode & 0o077 and path.stat().st_size < 1 << 20 and _holds(path.read_bytes()):
            self.told.add(f"file of mode {mode & 0o777:o}: {path}")


@pytest.fixture
def server() -> Iterator[RunningServer]:
    with object_server() as running:
        yield running


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.airflow
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_a_secret_is_seen_by_nobody_while_a_dag_runs_and_afterwards(
    server: RunningServer, spark_env: dict[str, str], cluster: SparkCluster, place: Path, tmp_path: Path
) -> None:
    dags, events, temporary, lineage = (tmp_path / name for name in ("dags", "events", "t", "lineage.jsonl"))
    for folder in (dags, events, temporary):
        folder.mkdir()
    shutil.copy(HERE / "dags" / f"{DAG}.py", dags)
    env = {
        **spark_env, "TMPDIR": str(temporary), "PYSPARK_PYTHON": sys.executable, "LANCE_TEST_EVENTS": events.as_uri(),
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps({"type": "file", "log_file_path": str(lineage), "append": True}),
        "AIRFLOW__OPENLINEAGE__SPARK_INJECT_PARENT_JOB_INFO": "True",
    }  # fmt: skip
    options = {**server.options, "aws_secret_access_key": SECRET}
    server.fail({"operation": "", "contains": "refused", "status": 403, "code": "AccessDenied", "times": -1})
    watch = Watch(temporary)
    watching = threading.Thread(target=watch.run, daemon=True)
    watching.start()
    with AirflowStack(tmp_path / "airflow", dags=dags, env=env) as stack:
        lake = {"host": "s3://lake", "extra": json.dumps({"storage_options": options})}
        stack.call("POST", "connections", {"connection_id": "planted", "conn_type": "lance", **lake})
        for name, host, extra in (
            ("spark_here", "local[1]", {"deploy-mode": "client"}),
            ("spark_cluster", cluster.master, {"deploy-mode": "cluster", "rest-port": cluster.rest_port}),
        ):
            spark = {"connection_id": name, "conn_type": "spark", "host": host, "extra": json.dumps(extra)}
            stack.call("POST", "connections", spark)
        stack.wait_for_dag(DAG)
        stack.unpause(DAG)
        stack.trigger(DAG, run_id="planted")
        stack.wait_for_run(DAG, "planted", timeout=2_400)
        states = {task["task_id"]: task["state"] for task in stack.tasks(DAG, "planted")}
        log = "".join(stack.task_log(DAG, "planted", name) for name in ("load.append", "delete"))
        shown = json.dumps([stack.call("GET", f"dags/{DAG}/dagRuns/planted/taskInstances"), stack.call("GET", "eventLogs")])
    watch.over.set()
    watching.join()
    failed = {name for name, state in states.items() if state != "success"}
    assert {name.partition(".")[0] for name in failed} == {"broken", "refused"}, (states, log[-6000:])
    assert lance_core.dataset(URI, storage_options=options).count_rows() == 9

    assert not watch.told
    assert any("SparkSubmit" in words for words in watch.seen)
    assert watch.drivers, "no driver was seen with its options: is this watch blind?"
    assert not [words for words in watch.drivers if not _is_driver(words)]
    assert not _holds(shown.encode())
    logs = "".join(path.read_text() for path in events.rglob("*") if path.is_file())
    assert "SparkListenerEnvironmentUpdate" in logs
    assert "SparkListenerJobStart" in logs
    kinds = {json.loads(line)["eventType"] for line in lineage.read_text().splitlines()}
    assert {"START", "COMPLETE", "FAIL"} <= kinds, kinds
    for kept in (tmp_path, place):
        files = [path for path in kept.rglob("*") if path.is_file()]
        assert [str(path) for path in files if _holds(path.read_bytes()) or _holds(str(path).encode())] == []
    store = resolve_store(URI, options)
    assert [entry.path for entry in store.list("") if _holds(bytes(store.get(entry.path)))] == []


def _is_driver(words: str) -> bool:
    """Of a spark-submit in client mode: the shell scripts that start it, the JVM, its Python, and their workers."""
    names = ("spark-submit", "SparkSubmit", "spark-class", "find_spark_home", "pyspark.daemon", "spark/main.py")
    return any(name in words for name in names)
