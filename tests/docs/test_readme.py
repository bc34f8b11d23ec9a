"""The DAG of the README is a real one: it is imported as it stands."""

from __future__ import annotations

import re
from pathlib import Path

from airflow.sdk import DAG

README = Path(__file__).resolve().parents[2] / "README.md"


def test_the_dag_of_the_readme_has_a_staging_and_a_commit_task() -> None:
    code = next(block for block in re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL) if "DAG(" in block)
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)
    dag = names["dag"]
    assert isinstance(dag, DAG)
    assert sorted(dag.task_ids) == ["month.append", "month.commit"]
    assert dag.get_task("month.commit").upstream_task_ids == {"month.append"}
