"""The entry that spark-submit runs, in processes of their own: statuses, the registry, signals, a driver killed halfway."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import lance
import psutil
import pytest
import spark_sources

from lance_core.commit import naming
from lance_core.errors import InputError
from lance_core.io.resolve import resolve_store
from lance_core.jobs import api
from lance_core.jobs.run import run_job
from lance_core.jobs.runtime.failure_record import read_failure
from lance_core.jobs.specs.spec import AppendSpec, CommitSpec, SourceSpec
from lance_core.publish.attempts import list_staged
from lance_core.publish.stage import find_staged
from lance_core.spark import submit
from tests.spark.conftest import ENVIRONMENT, ROOT

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MAIN = str(ROOT / "lance_core" / "spark" / "main.py")
SUBMIT = str(Path(sys.executable).parent / "spark-submit")
CONF = ["--master", "local[2]", "--conf", "spark.ui.enabled=false", "--conf", "spark.driver.host=127.0.0.1"]


def environment(**more: str) -> dict[str, str]:
    # lance_core itself is found through the path of main.py; only the tests' own sources need a path.
    return {**os.environ, **ENVIRONMENT, "PYTHONPATH": str(Path(__file__).parent), **more}


def spark_submit(spec: AppendSpec, **more: str) -> subprocess.CompletedProcess[str]:
    command = [SUBMIT, *CONF, MAIN, spec.to_json()]
    # spark-submit itself joins the driver's two streams.
    return subprocess.run(
        command, env=environment(**more), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240
    )


def driver(spec: AppendSpec, tmp_path: Path) -> subprocess.Popen[bytes]:
    """The driver without the shell around it; it starts its own JVM. In a process group of its own."""
    (tmp_path / "spec.json").write_text(spec.to_json())
    submit_args = " ".join([*CONF, "pyspark-shell"])
    return subprocess.Popen(
        [sys.executable, MAIN, "--spec", str(tmp_path / "spec.json")],
        env=environment(PYSPARK_SUBMIT_ARGS=submit_args),
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=(tmp_path / "driver.log").open("wb"),
    )


def append(uri: str, name: str = "numbers", **kwargs: object) -> AppendSpec:
    source = SourceSpec(callable=f"spark_sources:{name}", kwargs=kwargs)
    return AppendSpec(uri=uri, identity="one", source=source, progress_seconds=0.5)


def data_files(uri: str) -> list[str]:
    return sorted(f"data/{path.name}" for path in Path(uri, "data").glob("*.lance"))


def wait_for(condition, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.2)


def test_spark_submit(tmp_path) -> None:
    uri = str(tmp_path / "t.lance")
    spec = append(uri)
    done = spark_submit(spec)
    assert done.returncode == 0, done.stdout
    staged = find_staged(resolve_store(uri), "one")
    assert staged is not None
    assert staged.num_rows == 1000
    again = spark_submit(spec)
    assert again.returncode == 0, again.stdout
    assert "nothing to do" in again.stdout
    assert run_job(CommitSpec(uri=uri, identities=("one",))).rows_added == 1000
    assert lance.dataset(uri).to_table().sort_by("id").equals(spark_sources.expected())


def test_a_failure_is_told_by_status_and_registry(tmp_path) -> None:
    uri = str(tmp_path / "t.lance")
    spec = AppendSpec(uri=uri, identity="one", source=SourceSpec(format="parquet", paths=("/nowhere/a.parquet",)))
    failed = spark_submit(spec)
    assert failed.returncode == 65, failed.stdout
    assert "InputError: source path" in failed.stdout
    assert "Traceback" not in failed.stdout
    error = read_failure(resolve_store(uri), "one")
    assert isinstance(error, InputError)
    assert "/nowhere/a.parquet does not exist" in str(error)
    assert not data_files(uri)


def test_kill_nine_then_again(tmp_path) -> None:
    uri = str(tmp_path / "t.lance")
    marker = tmp_path / "go on"
    spec = append(uri, "waits", marker=str(marker))
    process = driver(spec, tmp_path)
    wait_for(lambda: len(data_files(uri)) >= 2, process, tmp_path / "driver.log")
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    store = resolve_store(uri)
    (dead,) = list_staged(store)
    assert dead.state == "running"
    assert [name for name in data_files(uri) if naming.is_of_attempt(name, dead.attempt)]
    assert not Path(uri, "_versions").exists()
    marker.touch()
    process = driver(spec, tmp_path)
    assert process.wait(timeout=240) == 0, (tmp_path / "driver.log").read_text()
    assert not [name for name in data_files(uri) if naming.is_of_attempt(name, dead.attempt)]
    run_job(CommitSpec(uri=uri, identities=("one",)))
    table = lance.dataset(uri)
    table.validate()
    assert table.version == 1
    assert table.to_table().sort_by("id").equals(spark_sources.expected())
    assert len(data_files(uri)) == 4


def test_sigterm_aborts_the_attempt(tmp_path) -> None:
    uri = str(tmp_path / "t.lance")
    process = driver(append(uri, "waits", marker=str(tmp_path / "never")), tmp_path)
    wait_for(lambda: len(data_files(uri)) >= 2, process, tmp_path / "driver.log")
    process.terminate()
    assert process.wait(timeout=60) == 128 + signal.SIGTERM, (tmp_path / "driver.log").read_text()
    assert not data_files(uri)
    assert not list_staged(resolve_store(uri))
    assert json.dumps("aborted after Terminated")[1:-1] in (tmp_path / "driver.log").read_text()


def test_a_driver_that_lost_its_jvm_knows_nothing_of_the_job(tmp_path) -> None:
    """YARN begins a driver again whose JVM was killed: what its Python says then, for a moment, is no failure of the job."""
    uri = str(tmp_path / "t.lance")
    process = driver(append(uri, "waits", marker=str(tmp_path / "never")), tmp_path)
    wait_for(lambda: len(data_files(uri)) >= 2, process, tmp_path / "driver.log")
    (jvm,) = [child for child in psutil.Process(process.pid).children() if child.name() == "java"]
    jvm.kill()
    assert process.wait(timeout=60) == 70, (tmp_path / "driver.log").read_text()
    assert read_failure(resolve_store(uri), "one") is not None, "for who submitted it"
    assert api.watch(uri, "one", stale="", options={}) is None


@pytest.mark.parametrize("is_on_yarn", [True, False])
def test_a_driver_on_yarn_with_nothing_to_do_has_a_session(tmp_path, monkeypatch, is_on_yarn: bool) -> None:
    """YARN takes one that never had a session for one that failed."""
    spec = AppendSpec(uri=str(tmp_path / "t.lance"), identity="one", source=SourceSpec(callable="spark_sources:expected"))
    run_job(spec)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.delenv("SPARK_YARN_STAGING_DIR", raising=False)
    if is_on_yarn:
        monkeypatch.setenv("SPARK_YARN_STAGING_DIR", "hdfs://namenode/user/somebody/.sparkStaging/application_1_0001")
    begun: list[str] = []
    monkeypatch.setattr(submit, "start_session", begun.append)
    assert submit.run([spec.to_json()]) == 0
    assert begun == (["lance-append"] if is_on_yarn else [])


def test_spark_connect(tmp_path) -> None:
    """The same entry against a Connect server: no JVM gateway, no SparkContext."""
    uri = str(tmp_path / "t.lance")
    path = os.pathsep.join([str(ROOT), str(Path(__file__).parent)])
    command = [sys.executable, MAIN, append(uri).to_json()]
    done = subprocess.run(
        command,
        env=environment(SPARK_REMOTE="local[2]", PYTHONPATH=path),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout
    assert run_job(CommitSpec(uri=uri, identities=("one",))).rows_added == 1000
    assert lance.dataset(uri).to_table().sort_by("id").equals(spark_sources.expected())
