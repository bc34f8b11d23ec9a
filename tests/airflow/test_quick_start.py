"""The quick starts of the README and of the first page: their DAG and their `lance` commands, in this process."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pytest
from airflow.sdk import DAG
from click.testing import CliRunner

from lance_core.cli.main import cli

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_quick_start_as_it_is_written(
    page: str, tmp_path: Path, run_dag: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = re.findall(r"```(\w+)\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    code = next(text for kind, text in blocks if kind == "python" and "first_table" in text)
    script = next(text for kind, text in blocks if kind == "sh" and "dags test first_table" in text)
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / "first_table.py"
    file.write_text(code)
    # A DAG file need not keep its DAG in a variable.
    made: list[DAG] = []
    leave = DAG.__exit__
    monkeypatch.setattr(DAG, "__exit__", lambda dag, *error: (made.append(dag), leave(dag, *error))[1])
    exec(compile(code, str(file), "exec"), {"__name__": "first_table"})
    (dag,) = made
    assert str(run_dag(dag).state) == "success"
    assert lance.dataset(tmp_path / "first.lance").to_table()["id"].to_pylist() == [1, 2]
    commands = [line.split()[1:] for line in script.splitlines() if line.startswith("lance ")]
    assert commands, "the page shows how to look at the table"
    for words in commands:
        done = CliRunner().invoke(cli, [word.replace("~", str(tmp_path)) for word in words])
        assert done.exit_code == 0, done.output
        assert "Berlin" in done.output
