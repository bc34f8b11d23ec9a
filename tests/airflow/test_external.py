"""Staging in another Python or behind a command: results, errors, credentials, versions, and what kills leave behind."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lance_core
from airflow_lance.compat import AirflowFailException
from airflow_lance.execution.external import MODULE, Command, CommandRun, ExternalPython
from airflow_lance.operators import LanceAppendOperator
from lance_core.errors import InputError, RetryableConflictError
from lance_core.jobs.specs.spec import AppendSpec, SourceSpec
from tests.airflow.operator_support import execute, ids
from tests.jobs.edit_support import leftovers

ROOT = Path(__file__).resolve().parents[2]
MODULES = """
import os, sys, time
import pyarrow as pa
def where(): return pa.table({"id": [1, 2], "prefix": [sys.prefix] * 2, "seen": [str(sorted(os.environ))] * 2})
def slow(path):
    def rows():
        yield pa.record_batch({"id": [1]})
        open(path, "w").write(str(os.getpid()))
        while os.path.exists(path): time.sleep(0.02)
        yield pa.record_batch({"id": [2]})
    return rows()
def bad(): raise ValueError("the source is down")
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Python of a second virtual environment, whose packages are those of this one and a module of its own."""
    home = tmp_path_factory.mktemp("other")
    venv.create(home / "env", with_pip=False)
    site = next((home / "env").glob("lib/python*/site-packages"))
    (site / "ours.pth").write_text(f"{ROOT}\n{sysconfig.get_path('purelib')}\n")
    (site / "far_sources.py").write_text(MODULES)
    return str(home / "env" / "bin" / "python")


def append(uri: Path, source: Any, execution: Any, **kwargs: Any) -> LanceAppendOperator:
    return LanceAppendOperator(task_id="a", uri=str(uri), source=source, execution=execution, **kwargs)


def test_work_runs_in_another_environment_exactly_once(tmp_path: Path, python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = tmp_path / "t.lance"
    monkeypatch.setenv("AIRFLOW_CONN_SECRET", "x")
    for _ in range(2):
        done = execute(append(uri, {"callable": "far_sources:where"}, ExternalPython(python)), publishes=True)
        assert done["version"] == 1
    (row, _) = lance_core.dataset(str(uri)).to_table().to_pylist()
    assert row["prefix"] == str(Path(python).parents[1]) != sys.prefix
    assert "AIRFLOW" not in row["seen"] and "PATH" in row["seen"]
    assert ids(str(uri)) == [1, 2]


def test_errors_keep_their_kind(tmp_path: Path, python: str) -> None:
    pq.write_table(pa.table({"id": ["x"]}), tmp_path / "a.parquet")
    lance_core.write_dataset(pa.table({"id": [1]}), str(tmp_path / "t.lance"))
    with pytest.raises(AirflowFailException, match="does not match the schema of the table"):
        execute(append(tmp_path / "t.lance", str(tmp_path / "a.parquet"), ExternalPython(python)))
    with pytest.raises(Exception, match="ValueError: the source is down") as caught:
        execute(append(tmp_path / "t.lance", {"callable": "far_sources:bad"}, ExternalPython(python)))
    assert not isinstance(caught.value, AirflowFailException)


def test_an_environment_without_the_library_is_named(tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    source = {"callable": "far_sources:where"}
    with pytest.raises(
        AirflowFailException, match=r"before its lance_core answered.*No module named.*Install airflow-provider"
    ):
        execute(append(tmp_path / "t.lance", source, ExternalPython(str(tmp_path / "bare" / "bin" / "python"))))
    with pytest.raises(AirflowFailException, match="cannot be started"):
        execute(append(tmp_path / "t.lance", source, Command([str(tmp_path / "absent")])))
    old = _script(tmp_path / "old", """echo 'lance-child {"protocol": 99, "version": "9.0"}'; cat > "$0.got" """)
    with pytest.raises(AirflowFailException, match=r"lance_core 9\.0 with protocol 99, expected 1"):
        execute(append(tmp_path / "t.lance", source, Command([old])))
    got = Path(f"{old}.got")
    assert not got.exists() or got.read_text() == "", "no spec for a protocol that we do not know"
    with pytest.raises(RetryableConflictError, match=r"status 125 before.*image is being pulled"):
        execute(
            append(tmp_path / "t.lance", source, Command([_script(tmp_path / "c", "echo image is being pulled; exit 125")]))
        )
    with pytest.raises(InputError, match="a list of texts"):
        Command("docker run")


def test_a_container_gets_its_credentials_through_standard_input_alone(tmp_path: Path, python: str) -> None:
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "a.parquet")
    container = _script(
        tmp_path / "container", f'(echo "$@"; env) > {tmp_path}/shown; exec env -i PATH="$PATH" {python} -m {MODULE}'
    )
    spec = AppendSpec(
        uri=str(tmp_path / "t.lance"),
        identity="3a3ff0c2-5f0b-4b5e-8a34-7c0c2d4f1a11",
        source=SourceSpec(format="parquet", paths=(str(tmp_path / "a.parquet"),)),
    )
    run = CommandRun(Command([container, "run", "-i", "image"]), log=logging.getLogger("t"))
    reference = run.run(spec, options={"aws_secret_access_key": "hunter2-in-a-test"})
    assert reference["num_rows"] == 2
    assert "hunter2" not in (tmp_path / "shown").read_text()


@pytest.mark.parametrize("killed", ["the job", "the task", "the task for good"])
def test_kills_leave_nothing_behind_and_the_next_try_writes_once(tmp_path: Path, python: str, killed: str) -> None:
    uri, flag = tmp_path / "t.lance", tmp_path / "running"
    lance_core.write_dataset(pa.table({"id": [0]}), str(uri))
    code = (
        "import logging; logging.basicConfig(level=20)\n"
        "from tests.airflow.test_external import append, execute, ExternalPython\n"
        "from pathlib import Path\nimport signal, sys\n"
        f"task = append(Path({str(uri)!r}), {{'callable': 'far_sources:slow', 'kwargs': {{'path': {str(flag)!r}}}}}, "
        f"ExternalPython({python!r}))\n"
        "signal.signal(signal.SIGTERM, lambda *_: (task.on_kill(), sys.exit(143)))\n"
        "execute(task, publishes=True)\n"
    )
    started: Any = ([sys.executable, "-c", code],)
    silent: Any = {"env": {**os.environ, "PYTHONPATH": str(ROOT)}, "stdout": subprocess.DEVNULL, "stderr": subprocess.STDOUT}
    first = subprocess.Popen(*started, **silent)
    _wait(lambda: flag.exists() and flag.read_text() != "")
    child = int(flag.read_text())
    if killed == "the job":
        os.kill(child, signal.SIGKILL)
    else:
        first.send_signal(signal.SIGTERM if killed == "the task" else signal.SIGKILL)
    assert first.wait(60) != 0
    _wait(lambda: not Path(f"/proc/{child}").exists() or "zombie" in Path(f"/proc/{child}/status").read_text())
    if killed != "the job":
        assert leftovers(str(uri)) == set()
    flag.unlink()
    source = {"callable": "far_sources:slow", "kwargs": {"path": str(flag)}}
    again = subprocess.Popen(*started, **silent)
    _wait(lambda: flag.exists() and flag.read_text() != "")
    flag.unlink()
    assert again.wait(60) == 0
    assert execute(append(uri, source, ExternalPython(python)), publishes=True)["version"] == 2
    assert ids(str(uri)) == [0, 1, 2]
    assert leftovers(str(uri)) == set()


def test_a_dag_with_another_python(tmp_path: Path, python: str, run_dag: Callable[..., Any]) -> None:
    from airflow.sdk import DAG

    with DAG("external", schedule=None) as dag:
        append(tmp_path / "t.lance", {"callable": "far_sources:where"}, ExternalPython(python))
    assert str(run_dag(dag).state) == "success"
    assert ids(str(tmp_path / "t.lance")) == [1, 2]


def _script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return str(path)


def _wait(holds: Callable[[], bool], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)
