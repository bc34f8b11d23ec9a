"""The page about operators: every example builds, and nothing is left out."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from airflow_lance.get_provider_info import get_provider_info

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operators.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("number", range(1, len(EXAMPLES)))
def test_an_example_builds(number: int) -> None:
    names: dict[str, object] = {}
    exec(EXAMPLES[0], names)
    with DAG("example", schedule=None, start_date=datetime(2013, 1, 1, tzinfo=timezone.utc)) as dag:
        exec(EXAMPLES[number], names)
    assert dag.tasks
    for task in dag.tasks:
        if hasattr(task, "make_spec"):
            _render(task)
            task.make_spec(uri="/t.lance", identity="i")


def _render(task: Any) -> None:
    """Values that are nothing but a template stand for numbers on this page."""
    for name in task.template_fields:
        value = getattr(task, name)
        if isinstance(value, str) and re.fullmatch(r"\{\{.*\}\}", value):
            setattr(task, name, "7")


@pytest.mark.parametrize("room", ["operators", "sensors"])
def test_every_operator_and_sensor_is_on_the_page(room: str) -> None:
    used = "\n".join(EXAMPLES)
    modules = [module for group in get_provider_info()[room] for module in group["python-modules"]]
    assert [module for module in modules if f"from {module} import" not in used] == []
