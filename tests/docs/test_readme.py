"""The front page runs as it is written: its DAG, its commands, the first committed row."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import lance
import pytest
from airflow.sdk import DAG

from tests.matrix.stranger import loud_lines, page_of, prepare, wheel_in

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def _code(word: str) -> str:
    return next(code for kind, code in BLOCKS if kind == "python" and word in code)


def test_the_install_line_comes_first() -> None:
    assert BLOCKS[0] == ("sh", 'pip install "airflow-provider-lance[airflow]"\n')


def test_the_dag_of_the_readme_has_a_staging_and_a_commit_task() -> None:
    names: dict[str, object] = {}
    exec(compile(_code("flights_ingest"), "README.md", "exec"), names)
    dag = names["dag"]
    assert isinstance(dag, DAG)
    assert sorted(dag.task_ids) == ["month.append", "month.commit"]
    assert dag.get_task("month.commit").upstream_task_ids == {"month.append"}


def follow(script: str, env: dict[str, str], *, home: Path) -> None:
    done = subprocess.run(["bash", "-euc", script], env=env, cwd=home, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "Berlin" in done.stdout
    assert loud_lines(done.stdout + done.stderr) == []
    assert lance.dataset(home / "first.lance").to_table()["id"].to_pylist() == [1, 2]


def test_a_loud_line_is_found() -> None:
    text = (
        "12:00 [\x1b[31merror    \x1b[0m] Could not load\nTraceback (most recent call last):\nValueError: no\n[info ] ok\n"
    )
    assert len(loud_lines(text)) == 2
    assert (
        loud_lines(
            "[warning] Could not import DAGs in example_local_kubernetes_executor.py\nTraceback (most recent call last):"
        )
        == []
    )


def _patience() -> float:
    """Three minutes of a machine's whole attention; a loaded one gets more."""
    return 180 * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


@pytest.mark.slow
@pytest.mark.airflow
@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_quick_start_commits_its_rows_in_three_minutes(tmp_path: Path, page: str) -> None:
    _, dag, script = page_of(page)
    env = {**prepare(tmp_path, dag, path=Path(sys.executable).parent), "PYTHONPATH": str(ROOT)}
    began = time.monotonic()
    follow(script, env, home=tmp_path)
    assert time.monotonic() - began < _patience()


@pytest.mark.slow
@pytest.mark.airflow
def test_a_strangers_first_row_from_nothing_but_the_readme(tmp_path: Path) -> None:
    """A fresh environment, the install line as it is written, the DAG, the commands: three minutes after the downloads."""
    install, dag, script = page_of("README.md")
    wheels = tmp_path / "wheels"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    wheel_in(wheels)
    wanted = install.split("pip install", 1)[1].strip().strip('"')
    # Releases that are known to go together, so that a bad release of somebody else fails nothing here; `make matrix` takes
    # the newest. What an index has as a source only is built here: that is part of the downloads.
    chosen = ["--constraint", str(ROOT / "constraints.txt"), "--find-links", str(wheels)]
    download = [*pip, "wheel", *chosen, "--wheel-dir", str(wheels), wanted]
    got = subprocess.run(download, capture_output=True, text=True, timeout=1800)
    if "No matching distribution" in got.stderr or "Could not find a version" in got.stderr:
        pytest.skip("no index of packages can be reached from here")
    assert got.returncode == 0, got.stderr[-2000:]
    fresh = tmp_path / "fresh"
    subprocess.run([sys.executable, "-m", "venv", str(fresh)], check=True, timeout=300)
    env = prepare(tmp_path, dag, path=fresh / "bin")
    # The index is out of reach from here on: what is installed is what was downloaded.
    env |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    began = time.monotonic()
    subprocess.run(["bash", "-euc", install], env=env, check=True, cwd=tmp_path, capture_output=True, timeout=900)
    follow(script, env, home=tmp_path)
    taken = time.monotonic() - began
    print(f"{taken:.0f} s from the install line to the first row")
    assert taken < _patience()
