"""A spec arrives at the driver byte for byte, on every way of submitting, through what each master does to arguments.

The masters' rules are applied as they are written down: YARN's container launch (and a real bash after it), Kubernetes'
expansion of `$(NAME)`, the placeholders of standalone workers. Each of them changes a spec that is sent as JSON.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException

from airflow_lance.execution.spark_submit import SparkSettings, SparkSubmitRun
from lance_core.errors import InputError
from lance_core.io.resolve import resolve_store
from lance_core.jobs.runtime.failure_record import read_failure
from lance_core.jobs.specs.edits import DeleteSpec
from lance_core.jobs.specs.spec import AppendSpec, JobSpec, SourceSpec
from lance_core.spark import submit
from lance_core.spark.argument import encode_text

SECRET = "hush-hush-hush"
TEXTS = [
    "{{x}}", "}}", "{{", "{{JAVA_HOME}}", "{{USER_JAR}}", "<LOG_DIR><CPS>", "$(HOSTNAME)", "$$(X)", "$HOME", "${HOME}",
    "`id`", "'", '"', "it''s \"quoted\"", "\\", "\\n", "a\nb\r\n\tc", "*", "~", "%TEMP%", "a;b&c|d>e", "#", "!", "-", "--x",
    "Zürich 東京 \u2028 \U0001f600", "\u0000", "\ud800",
]  # fmt: skip

FAKE = """#!{python}
import json, os, sys
taken, files = [], {{}}
for path in sys.argv[sys.argv.index("--files") + 1].split(",") if "--files" in sys.argv else []:
    files[os.path.basename(path)] = [open(path).read(), os.stat(path).st_mode & 0o777]
for root, _, names in os.walk({tmp!r}):
    for name in names:
        if name.startswith("lance-spec"):
            path = os.path.join(root, name)
            files[path] = [open(path).read(), os.stat(path).st_mode & 0o777]
open({record!r}, "w").write(json.dumps({{"argv": sys.argv[1:], "files": files}}))
"""


def _as_yarn(argument: str) -> str:
    """Spark quotes (`YarnSparkHadoopUtil.escapeForShell`), YARN expands (`ContainerLaunch`), bash runs the script's line."""
    escaped = "".join({"$": "\\$", '"': '\\"', "'": "'\\''"}.get(letter, letter) for letter in argument)
    command = f"printf '%s' '{escaped}'".replace("<LOG_DIR>", "/logs").replace("<CPS>", ":")
    command = command.replace("{{", "$").replace("}}", "")
    done = subprocess.run(["bash", "-c", f'exec /bin/bash -c "{command}"'], capture_output=True, timeout=60, check=False)
    return done.stdout.decode("utf-8", "replace")


def _as_kubernetes(argument: str) -> str:
    known = {"HOSTNAME": "pod-1", "X": "y"}
    return re.sub(
        r"\$\$|\$\((\w+)\)", lambda found: known.get(found[1], found[0]) if found[1] else "$", argument
    )  # `$$(X)` is an escaped `$(X)`


def _as_standalone(argument: str) -> str:
    return argument.replace("{{WORKER_URL}}", "spark://worker").replace("{{USER_JAR}}", "/opt/app.jar")


ROUTES: dict[str, tuple[str, str, Callable[[str], str]]] = {
    "local": ("local[2]", "client", str),
    "far": ("spark://127.0.0.1:7077", "client", str),
    "standalone": ("spark://127.0.0.1:7077", "cluster", _as_standalone),
    "yarn": ("yarn", "cluster", _as_yarn),
    "kubernetes": ("k8s://https://127.0.0.1:1", "cluster", _as_kubernetes),
}


@pytest.fixture
def submitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connection: Callable[[str, str], None]) -> Any:
    """Submit a spec by a route; what came of it: the arguments, and the files that the driver finds."""
    place = tmp_path / "bin"
    place.mkdir()
    (tmp_path / "tmp").mkdir()
    record = tmp_path / "record.json"
    (place / "spark-submit").write_text(FAKE.format(python=sys.executable, record=str(record), tmp=str(tmp_path / "tmp")))
    (place / "spark-submit").chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))

    client = SimpleNamespace(get_kube_client=lambda: None)  # of a package that need not be here
    monkeypatch.setattr("airflow.providers.apache.spark.hooks.spark_submit.kube_client", client, raising=False)

    def send(route: str, spec: JobSpec) -> dict[str, Any]:
        master, mode, _ = ROUTES[route]
        extra = {"deploy-mode": mode, "namespace": "default"}
        connection(route, json.dumps({"conn_type": "spark", "host": master, "extra": extra}))
        with suppress(AirflowException):  # the fake says nothing of what a master would
            run = SparkSubmitRun(SparkSettings(route), task_id="t")
            run.run(spec, options={"aws_secret_access_key": SECRET}, context={})  # type: ignore[typeddict-item]
        found = json.loads(record.read_text())
        assert isinstance(found, dict)
        return found

    return send


def _received(argument: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any] | None:
    """The spec that the driver would carry out; None where it refuses."""
    seen: list[JobSpec] = []

    class Done:
        def to_dict(self) -> dict[str, Any]:
            return {}

    def carry_out(spec: JobSpec, sessions: list[Any]) -> Done:
        seen.append(spec)
        return Done()

    monkeypatch.setattr(submit, "_carry_out", carry_out)
    monkeypatch.setattr(submit.signal, "signal", lambda *_: None)
    monkeypatch.chdir(folder)
    assert submit.run([argument]) == (0 if seen else 65)
    return seen[0].to_plain() if seen else None


def _spec(uri: str, *, large: bool) -> AppendSpec:
    source = SourceSpec(callable="m:f", kwargs={f"k{index}": text for index, text in enumerate(TEXTS)})
    more = {"filler": "".join(TEXTS[:-2]) * 400} if large else {}
    return AppendSpec(
        uri=uri, identity="5d2c", source=SourceSpec(callable=source.callable, kwargs={**source.kwargs, **more})
    )


@pytest.mark.parametrize("large", [False, True], ids=["argument", "file"])
@pytest.mark.parametrize("route", ROUTES)
def test_a_spec_arrives_as_it_was_sent(
    submitted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, route: str, large: bool
) -> None:
    spec = _spec("/data/t.lance", large=large)
    called = submitted(route, spec)
    argument = called["argv"][-1]
    assert ROUTES[route][2](argument) == argument
    assert len(argument) <= 40_000
    assert not [*(tmp_path / "tmp").rglob("lance-*")], "removed after the submit"
    specs = {name: content for name, content in called["files"].items() if "lance-spec" in name}
    assert bool(specs) == large
    folder = tmp_path / "container"
    folder.mkdir()
    for name, (text, mode) in specs.items():
        assert mode == 0o600
        assert SECRET not in text
        path = folder / name  # a whole path stays what it is
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
    got = _received(argument, folder, monkeypatch)
    assert got is not None
    got.pop("storage_options")
    assert got == spec.to_plain()


@pytest.mark.parametrize(("rule", "texts"), [(_as_yarn, ["x"]), (_as_kubernetes, TEXTS), (_as_standalone, TEXTS)])
def test_the_masters_rules_change_json(rule: Callable[[str], str], texts: list[str]) -> None:
    """Else the sweep above would show nothing."""
    spec = AppendSpec(uri="/t", source=SourceSpec(callable="m:f", kwargs=dict.fromkeys(texts, 1)))
    assert rule(spec.to_json()) != spec.to_json()


def _refused(argument: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _received(argument, folder, monkeypatch) is None


def test_a_refused_spec_is_told_in_the_registry(
    submitted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An older library on the cluster does not know a newer key: that is what the task says, and it is not repeated."""
    uri = str(tmp_path / "t.lance")
    plain = DeleteSpec(uri=uri, identity="5d2c", predicate="id < 3").to_plain()
    newer = encode_text(json.dumps({**plain, "from_the_future": 1}).encode())
    _refused(newer, tmp_path, monkeypatch)
    failure = read_failure(resolve_store(uri), "5d2c")
    assert isinstance(failure, InputError)
    assert "unknown key 'from_the_future'" in str(failure)
    assert "unknown key 'from_the_future'" in caplog.text


@pytest.mark.parametrize("change", ["absent", "changed"])
def test_a_spec_file_that_does_not_arrive_is_told_in_the_registry(
    submitted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    uri = str(tmp_path / "t.lance")
    called = submitted("yarn", _spec(uri, large=True))
    name, text = "lance-spec-5d2c.json", called["files"]["lance-spec-5d2c.json"][0]
    (tmp_path / "lance-options-5d2c.json").write_text(called["files"]["lance-options-5d2c.json"][0])
    if change == "changed":
        (tmp_path / name).write_text(text + " ")
    _refused(called["argv"][-1], tmp_path, monkeypatch)
    failure = read_failure(resolve_store(uri), "5d2c")
    assert isinstance(failure, InputError)
    assert {"absent": "cannot be read", "changed": "SHA-256"}[change] in str(failure)


def test_a_damaged_argument_is_told_in_the_drivers_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _refused(encode_text(b"{}")[:-1] + "$", tmp_path, monkeypatch)
    assert "arrived damaged" in caplog.text
