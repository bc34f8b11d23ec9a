"""What reaches spark-submit: the spec on the command line, storage options beside it, never on it, never in a log."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException

from airflow_lance.execution.spark_submit import (
    PASSED_ON,
    VARIABLE,
    SparkSettings,
    SparkSubmitRun,
    application_path,
    environment,
    hide_in_environment,
    hide_in_file,
)
from lance_core.errors import InputError
from lance_core.jobs.specs.secret import reveal_all
from lance_core.jobs.specs.spec import AppendSpec, SourceSpec
from lance_core.spark.argument import decode_argument

SECRET = "hush-hush-hush"
OPTIONS = {"aws_secret_access_key": SECRET, "dotted.name": "x", "region": {"env": "THE_REGION"}}

FAKE = """#!{python}
import base64, json, os, sys, time, zipfile
record = {{"argv": sys.argv[1:], "env": dict(os.environ), "files": {{}}}}
if "--files" in sys.argv:
    for path in sys.argv[sys.argv.index("--files") + 1].split(","):
        record["files"][path] = [open(path).read(), oct(os.stat(path).st_mode & 0o777)]
for argument in sys.argv[1:]:
    spec = json.loads(base64.urlsafe_b64decode(argument[10:] + "==")) if argument.startswith("base64url:") else {{}}
    for option in spec.get("storage_options", {{}}).values():
        if isinstance(option, dict) and os.path.isabs(option.get("file", "")):
            path = option["file"]
            record["files"][path] = [open(path).read(), oct(os.stat(path).st_mode & 0o777)]
    if argument.endswith(".jar") and os.path.exists(argument):
        record["jar"] = zipfile.ZipFile(argument).namelist()
open({record!r}, "w").write(json.dumps(record))
print("driver says 12 rows, 1 fragments")
if os.environ.get("FAKE_SLEEP"):
    time.sleep(float(os.environ["FAKE_SLEEP"]))
sys.exit(int(os.environ.get("FAKE_EXIT", "0")))
"""


@pytest.fixture
def fake_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A spark-submit that writes down how it was called."""
    binary, record = tmp_path / "bin" / "spark-submit", tmp_path / "record.json"
    binary.parent.mkdir()
    binary.write_text(FAKE.format(python=sys.executable, record=str(record)))
    binary.chmod(binary.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{binary.parent}{os.pathsep}{os.environ['PATH']}")
    # A session of Spark that another test of this process started leaves these behind.
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    return record


def _spec() -> AppendSpec:
    return AppendSpec(uri="/data/t.lance", identity="5d2c", source=SourceSpec(format="csv", paths=("/raw/a.csv",)))


def _submit(conn_id: str, **settings: Any) -> None:
    run = SparkSubmitRun(SparkSettings(conn_id, **settings), task_id="month.append")
    run.run(_spec(), options=OPTIONS, context={})  # type: ignore[typeddict-item]


def test_client_mode(fake_spark: Path, connection: Callable[[str, str], None], caplog: pytest.LogCaptureFixture) -> None:
    connection("spark_here", json.dumps({"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}}))
    before = dict(os.environ)
    _submit("spark_here", conf={"spark.ui.enabled": "false"}, arguments={"driver_memory": "1g"})
    assert dict(os.environ) == before
    called = json.loads(fake_spark.read_text())
    argv = called["argv"]
    assert argv[argv.index("--master") + 1] == "local[2]"
    assert argv[argv.index("--driver-memory") + 1] == "1g"
    assert "spark.ui.enabled=false" in argv
    assert "spark.log.level=WARN" in argv
    assert argv[-2] == application_path()
    spec = json.loads(decode_argument(argv[-1]))
    assert (spec["kind"], spec["uri"], spec["identity"]) == ("append", "/data/t.lance", "5d2c")
    assert SECRET not in " ".join(argv)
    assert SECRET not in caplog.text
    assert called["env"]["PYSPARK_PYTHON"] == called["env"]["PYSPARK_DRIVER_PYTHON"] == sys.executable
    with environment({VARIABLE: called["env"][VARIABLE], "THE_REGION": "eu"}):
        revealed = reveal_all(spec["storage_options"])
    assert revealed == {"aws_secret_access_key": SECRET, "dotted.name": "x", "region": "eu"}


def test_a_log_level_of_the_user_is_kept(fake_spark: Path, connection: Callable[[str, str], None]) -> None:
    connection("spark_here", json.dumps({"conn_type": "spark", "host": "local[2]"}))
    _submit("spark_here", conf={"spark.log.level": "INFO"})
    argv = json.loads(fake_spark.read_text())["argv"]
    assert [text for text in argv if text.startswith("spark.log.level")] == ["spark.log.level=INFO"]


def test_the_spark_job_is_told_of_the_task_that_runs_it(
    fake_spark: Path, connection: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenLineage's events of the Spark job name the task as their parent, where the deployment asks for it."""
    provider = pytest.importorskip("airflow.providers.apache.spark.operators.spark_submit")

    def inject(properties: dict[str, str], context: Any) -> dict[str, str]:
        return {**properties, "spark.openlineage.parentJobName": f"d.{context['name']}"}

    monkeypatch.setattr(provider, "inject_parent_job_information_into_spark_properties", inject)
    connection("spark_here", json.dumps({"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}}))
    asked = {"openlineage_inject_parent_job_info": True}
    run = SparkSubmitRun(SparkSettings("spark_here", arguments=asked), task_id="append")
    run.run(_spec(), options=OPTIONS, context={"name": "append"})  # type: ignore[typeddict-item, typeddict-unknown-key]
    assert "spark.openlineage.parentJobName=d.append" in json.loads(fake_spark.read_text())["argv"]


def test_a_remote_master_keeps_its_own_python(fake_spark: Path, connection: Callable[[str, str], None]) -> None:
    connection("spark_far", json.dumps({"conn_type": "spark", "host": "spark://127.0.0.1:7077"}))
    _submit("spark_far")
    called = json.loads(fake_spark.read_text())
    assert called["env"]["PYSPARK_DRIVER_PYTHON"] == sys.executable
    assert "PYSPARK_PYTHON" not in called["env"]


def test_cluster_mode_on_a_local_master_is_refused_beforehand(
    fake_spark: Path, connection: Callable[[str, str], None]
) -> None:
    connection("lacking", json.dumps({"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "cluster"}}))
    with pytest.raises(InputError, match=r"'cluster' cannot be combined with master .* Use deploy mode 'client'"):
        _submit("lacking")
    assert not fake_spark.exists(), "nothing was started"


@pytest.mark.parametrize("packaging", ["installed", "archive"])
def test_cluster_mode_on_a_standalone_cluster_is_a_jar_that_python_runs(
    fake_spark: Path,
    connection: Callable[[str, str], None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    packaging: str,
) -> None:
    monkeypatch.setenv("A_TOKEN_OF_THE_WORKER", SECRET)
    monkeypatch.setitem(OPTIONS, "endpoint", "http://127.0.0.1:9")
    (tmp_path / "shared").mkdir()
    connection("standalone", json.dumps({"conn_type": "spark", "host": "spark://127.0.0.1:7077"}))
    with suppress(AirflowException):
        folder = str(tmp_path / "shared")
        _submit("standalone", packaging=packaging, arguments={"deploy_mode": "cluster", "options_folder": folder})
    called = json.loads(fake_spark.read_text())
    argv = called["argv"]
    assert argv[argv.index("--class") + 1] == "org.apache.spark.deploy.PythonRunner"
    assert Path(argv[-4]).name == argv[-3] == "lance_job.jar"
    assert argv[-2] == ""
    assert json.loads(decode_argument(argv[-1]))["kind"] == "append"
    assert ("lance_job.zip" in called["jar"], "__main__.py" in called["jar"]) == (packaging == "archive", True)
    assert not Path(argv[-4]).exists()
    # Spark's master keeps the environment of such a submit and gives it to the driver.
    assert set(called["env"]) <= {*PASSED_ON, "PWD", "SHLVL", "_"}
    assert SECRET not in json.dumps([called["env"], argv])
    ((path, (text, mode)),) = called["files"].items()
    assert Path(path).is_relative_to(tmp_path / "shared")
    assert (mode, json.loads(text)) == ("0o600", {"o0": SECRET, "o1": "x"})
    assert not Path(path).parent.exists()
    options = json.loads(decode_argument(argv[-1]))["storage_options"]
    assert options == {
        "aws_secret_access_key": {"file": path, "key": "o0"},
        "dotted.name": {"file": path, "key": "o1"},
        "endpoint": "http://127.0.0.1:9",
        "region": {"env": "THE_REGION"},
    }


def test_a_standalone_cluster_may_have_the_jar_already(fake_spark: Path, connection: Callable[[str, str], None]) -> None:
    connection("standalone", json.dumps({"conn_type": "spark", "host": "127.0.0.1", "port": 7077}))
    place = "hdfs://lake/deploy/lance-1.jar"
    with suppress(AirflowException):
        _submit("standalone", arguments={"deploy_mode": "cluster", "application": place})
    argv = json.loads(fake_spark.read_text())["argv"]
    assert (argv[argv.index("--master") + 1], argv[-4], argv[-3]) == ("spark://127.0.0.1:7077", place, "lance-1.jar")
    assert SparkSettings("standalone", arguments={"deploy_mode": "cluster", "application": place}).can_detach
    assert not SparkSettings("standalone", arguments={"deploy_mode": "cluster"}).can_detach


def test_a_worker_lets_go_of_a_standalone_driver_only_without_a_file_of_secrets(
    fake_spark: Path, connection: Callable[[str, str], None]
) -> None:
    connection("standalone", json.dumps({"conn_type": "spark", "host": "spark://127.0.0.1:7077"}))
    arguments = {"deploy_mode": "cluster", "application": "hdfs://lake/deploy/lance-1.jar"}
    run = SparkSubmitRun(SparkSettings("standalone", arguments=arguments), task_id="append")
    assert run.detach(_spec(), options=OPTIONS, context={}) is None  # type: ignore[typeddict-item]
    assert not fake_spark.exists(), "nothing was started"


def test_a_file_of_secrets_that_is_another_users_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "options.json"
    path.write_bytes(b"\xff\xfe" + SECRET.encode())
    with pytest.raises(InputError, match="cannot read as text") as caught:
        reveal_all({"key": {"file": str(path)}})
    assert SECRET not in str(caught.value)

    def refuse(*_: object, **__: object) -> str:
        raise PermissionError(13, "denied")

    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(InputError, match="PermissionError"):
        reveal_all({"key": {"file": str(path)}})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"packaging": "/env.tar.gz"}, "packed environment '/env.tar.gz'"),
        ({"arguments": {"deploy_mode": "cluster", "application": "hdfs://lake/job.zip"}}, r"must end in \.jar"),
    ],
)
def test_what_a_standalone_cluster_does_not_take_is_refused(
    fake_spark: Path, connection: Callable[[str, str], None], settings: dict[str, Any], message: str
) -> None:
    connection("standalone", json.dumps({"conn_type": "spark", "host": "spark://127.0.0.1:7077"}))
    with pytest.raises(InputError, match=message):
        _submit("standalone", **{"arguments": {"deploy_mode": "cluster"}, **settings})
    assert not fake_spark.exists(), "nothing was started"


def test_cluster_mode_ships_a_private_file(fake_spark: Path, connection: Callable[[str, str], None]) -> None:
    connection("cluster", json.dumps({"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "cluster"}}))
    # The fake says nothing that a master would: what counts is how it was called.
    with suppress(AirflowException):
        _submit("cluster")
    called = json.loads(fake_spark.read_text())
    assert SECRET not in " ".join(called["argv"])
    assert VARIABLE not in called["env"]
    ((path, (text, mode)),) = called["files"].items()
    assert mode == "0o600"
    assert SECRET in text
    assert not Path(path).exists()
    assert (
        json.loads(decode_argument(called["argv"][-1]))["storage_options"]["aws_secret_access_key"]["file"]
        == Path(path).name
    )


def test_nothing_to_hide_hides_nothing() -> None:
    for hidden in (hide_in_environment({}), hide_in_file({"a": {"env": "A"}}, name="f")):
        assert hidden.text == ""
    assert hide_in_file({"a": {"env": "A"}}, name="f").references == {"a": {"env": "A"}}


def test_a_driver_that_fails_fails_the_task(
    fake_spark: Path, connection: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    connection("spark_here", json.dumps({"conn_type": "spark", "host": "local[2]"}))
    monkeypatch.setenv("FAKE_EXIT", "75")
    with pytest.raises(AirflowException, match="75"):
        _submit("spark_here")


def test_kill_ends_the_submit(
    fake_spark: Path, connection: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading
    import time

    connection("spark_here", json.dumps({"conn_type": "spark", "host": "local[2]"}))
    monkeypatch.setenv("FAKE_SLEEP", "600")
    run = SparkSubmitRun(SparkSettings("spark_here"), task_id="append")

    def kill() -> None:
        while not fake_spark.exists():
            time.sleep(0.05)
        run.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(AirflowException):
        run.run(_spec(), options={}, context={})  # type: ignore[typeddict-item]
    killer.join()


def test_kill_before_the_submit_does_nothing() -> None:
    SparkSubmitRun(SparkSettings("nowhere"), task_id="append").kill()


@pytest.mark.parametrize("mode", ["client", "cluster"])
@pytest.mark.parametrize("binary", ["{victim}", "../spark-submit", "spark-submit.sh", "sh", ["spark-submit"], {"a": 1}])
def test_a_connection_names_no_program_but_those_of_spark(
    fake_spark: Path, tmp_path: Path, connection: Callable[[str, str], None], binary: object, mode: str
) -> None:
    """The worker's file of that name was overwritten, before the Spark provider refused the name."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    victim.chmod(0o700)
    given = str(victim) if binary == "{victim}" else binary
    extra = {"spark-binary": given, "deploy-mode": mode}
    connection("evil", json.dumps({"conn_type": "spark", "host": "spark://127.0.0.1", "port": 7077, "extra": extra}))
    with pytest.raises(InputError, match="extra 'spark-binary': expected one of spark-submit"):
        _submit("evil")
    assert victim.read_text() == "mine"
    assert not fake_spark.exists(), "nothing was started"


def test_a_connection_names_no_other_deploy_mode(fake_spark: Path, connection: Callable[[str, str], None]) -> None:
    connection("odd", json.dumps({"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client --jars /x"}}))
    with pytest.raises(InputError, match="extra 'deploy-mode': expected one of client, cluster"):
        _submit("odd")
    assert not fake_spark.exists()


def test_a_path_of_the_dag_is_not_written_over(
    fake_spark: Path, tmp_path: Path, connection: Callable[[str, str], None]
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    victim.chmod(0o700)
    extra = {"deploy-mode": "cluster"}
    connection("far", json.dumps({"conn_type": "spark", "host": "spark://127.0.0.1", "port": 7077, "extra": extra}))
    with pytest.raises(InputError, match="must be a name"):
        _submit("far", arguments={"spark_binary": str(victim)})
    assert victim.read_text() == "mine"


def test_executors_are_told_which_callables_are_allowed(
    fake_spark: Path, connection: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__LANCE__ALLOWED_CALLABLES", "our.sources:*")
    connection("far", json.dumps({"conn_type": "spark", "host": "spark://127.0.0.1:7077"}))
    _submit("far")
    told = [text for text in json.loads(fake_spark.read_text())["argv"] if "executorEnv.LANCE_ALLOWED" in text]
    assert told and told[0].startswith("spark.executorEnv.LANCE_ALLOWED_CALLABLES=our.sources:*,")
