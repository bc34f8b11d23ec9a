"""`make demo`, the README's one command: what it says, and the whole of it, twice."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import lance
import pytest
from airflow_stack import REPOSITORY
from run_demo import MONTHS, ROWS, summary

from lance_core.publish.model import Outcome


def test_the_summary_knows_the_outcomes_of_commits() -> None:
    now, before = ([{"identities": {"a": outcome}, "rows_added": 7}] for outcome in get_args(Outcome))
    assert summary(now) == "1 months were committed now with 7 rows; 0 had been before."
    assert "all 1 months" in summary(before)


@pytest.mark.slow
@pytest.mark.airflow
@pytest.mark.spark
def test_twelve_months_and_none_twice(tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "demo", tmp_path / "demo")
    for folder in ("dags_examples", "lance_core", "airflow_lance"):
        (tmp_path / folder).symlink_to(REPOSITORY / folder)
    for turn in ("were committed now", "Nothing was added"):
        command = [sys.executable, str(tmp_path / "demo" / "run_demo.py")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        assert turn in done.stdout
        table = lance.dataset(tmp_path / ".demo" / "flights.lance")
        table.validate()
        assert (table.count_rows(), table.version) == (ROWS, MONTHS)
