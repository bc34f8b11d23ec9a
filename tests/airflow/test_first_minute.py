"""The quick starts as a stranger follows them: from the wheel, under Airflow's own defaults, without a line of an error."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.docs.test_readme import environment_of, follow, page_of, prepare, wheel_in


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_quick_start_from_a_wheel_prints_no_error_under_airflows_defaults(tmp_path: Path, page: str) -> None:
    _, dag, script = page_of(page)
    commands = environment_of(wheel_in(tmp_path / "wheels"), tmp_path / "fresh")
    env = prepare(tmp_path, dag, path=commands)
    where = [str(commands / "python"), "-c", "import airflow_lance; print(airflow_lance.__file__)"]
    shown = subprocess.run(where, env=env, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
    assert shown.stdout.startswith(str(tmp_path)), "the wheel's package, not the clone's"
    follow(script, env, home=tmp_path)
