"""The handbook of failures has a section for every error class, and tells of each whether Airflow retries it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lance_core import errors

HANDBOOK = (Path(__file__).resolve().parents[2] / "docs" / "failures.md").read_text(encoding="utf-8")
CLASSES = sorted(
    name for name, item in vars(errors).items() if isinstance(item, type) and issubclass(item, errors.LanceError)
)
SECTIONS = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", HANDBOOK, re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("name", CLASSES)
def test_every_error_class_has_its_section(name: str) -> None:
    assert name in SECTIONS
    assert re.search(r"\*\*Means\.\*\* \S.*\*\*Do\.\*\* \S", SECTIONS[name], re.DOTALL)


@pytest.mark.parametrize("name", CLASSES)
def test_the_table_tells_of_retries_what_the_class_says(name: str) -> None:
    (row,) = re.findall(rf"^\|[^|]*\[`{name}`\].*$", HANDBOOK, re.MULTILINE)
    expected = "retries the task" if getattr(errors, name).retryable else "fails, no retry"
    assert row.rstrip(" |").endswith(expected)


def test_commands_that_it_names_exist() -> None:
    from lance_core.cli.main import cli

    groups = {name: set(getattr(command, "commands", {})) for name, command in cli.commands.items()}
    for first, second in re.findall(r"`lance (\w+) ([\w]+)", HANDBOOK):
        assert first in groups, first
        if groups[first]:
            assert second in groups[first], f"lance {first} {second}"
