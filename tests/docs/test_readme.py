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


@pytest.mark.slow
@pytest.mark.airflow
@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_quick_start_commits_its_rows_in_three_minutes(tmp_path: Path, page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"```(\w+)\n(.*?)```", text, re.DOTALL)
    home = tmp_path / "airflow"
    (home / "dags").mkdir(parents=True)
    dag = next(code for kind, code in blocks if kind == "python" and "first_table" in code)
    (home / "dags" / "first_table.py").write_text(dag)
    script = next(code for kind, code in blocks if kind == "sh" and "dags test first_table" in code)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    env = {
        **kept,
        "HOME": str(tmp_path),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": str(ROOT),
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    }
    if "db migrate" not in script:  # the page is for an Airflow that is there
        subprocess.run(["airflow", "db", "migrate"], env=env, check=True, capture_output=True, timeout=300)
    began = time.monotonic()
    done = subprocess.run(["bash", "-euc", script], env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "Berlin" in done.stdout
    assert lance.dataset(tmp_path / "first.lance").to_table()["id"].to_pylist() == [1, 2]
    # Processor time of all children would be fairer, but this is what a person waits; a loaded machine gets some more.
    assert time.monotonic() - began < 180 * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
