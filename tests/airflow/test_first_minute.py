"""The first days of a stranger: from the wheel, under Airflow's own defaults, no error that they did not cause."""

from __future__ import annotations

import subprocess
from pathlib import Path

import lance
import pytest

from tests.matrix.stranger import environment_of, for_release, page_of, rows_problems, walk, wheel_in


def test_a_stranger_from_the_wheel_to_the_third_day(tmp_path: Path) -> None:
    commands = environment_of(wheel_in(tmp_path / "wheels"), tmp_path / "fresh")
    home = tmp_path / "home"
    home.mkdir()
    # Alone: without the paths that other tests of this process have set.
    where = [str(commands / "python"), "-I", "-c", "import airflow_lance; print(airflow_lance.__file__)"]
    shown = subprocess.run(where, cwd=home, capture_output=True, text=True, check=True, timeout=60)
    assert shown.stdout.startswith(str(tmp_path)), "the wheel's package, not the clone's"
    walked = walk(commands, home, airflow="3.3.2")
    assert walked.problems == []
    assert lance.dataset(home / "first.lance").to_table()["id"].to_pylist() == [1, 2]
    assert rows_problems(walked.table) == []


def test_the_first_page_begins_as_the_readme_does() -> None:
    """So one of the two is enough for a walk."""
    assert page_of("docs/index.md") == page_of("README.md")


def test_a_page_without_a_word_of_other_imports_is_an_error() -> None:
    code = page_of("README.md")[1]
    assert "airflow.sdk" not in for_release(code, "2.11.2")
    assert for_release(code, "3.1.8") == code
    with pytest.raises(KeyError):
        for_release("from airflow.sdk import DAG, Asset\n", "2.11.2")
