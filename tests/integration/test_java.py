"""Finding a Java for Spark, with stand-ins for the real ones."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import java
import pytest


def _fake_java(place: Path, version: str) -> Path:
    binary = place / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(f'#!/bin/sh\necho \'openjdk version "{version}"\' >&2\nfor a do echo "[$a]"; done\n')
    binary.chmod(binary.stat().st_mode | stat.S_IXUSR)
    return binary


@pytest.mark.parametrize(("text", "version"), [("17.0.15", 17), ("1.8.0_402", 8), ("21", 21)])
def test_versions(tmp_path: Path, text: str, version: int) -> None:
    assert java.java_version(str(_fake_java(tmp_path, text))) == version
    assert java.java_version(str(tmp_path / "nothing")) == 0


def test_an_old_java_home_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake_java(tmp_path / "old", "11.0.2")
    _fake_java(tmp_path / "new", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'new' / 'bin'}:/usr/bin:/bin")
    assert java.system_java() == tmp_path / "new"


def test_the_wheels_runtime_is_asked_without_the_flag_it_does_not_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / java.WHEEL
    _fake_java(package / "java-runtime", "25.0.1")
    (package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    home = java.wheel_java(tmp_path / "home")
    assert home == tmp_path / "home"
    said = subprocess.run(
        [str(home / "bin" / "java"), "-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", ""],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert said.splitlines() == ["[-Xmx1g]", "[a b]", "[]"]


def test_without_any_java_it_explains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java, "WHEEL", "no_such_wheel_of_java")
    monkeypatch.setattr(java.subprocess, "run", lambda *_, **__: None)
    with pytest.raises(SystemExit, match="openjdk-17-jre-headless"):
        java.ensure_java()


def test_the_command_prints_a_java_home() -> None:
    shown = subprocess.run([sys.executable, java.__file__], capture_output=True, text=True, check=True).stdout.strip()
    assert os.access(Path(shown) / "bin" / "java", os.X_OK) or shown.startswith("no Java")
