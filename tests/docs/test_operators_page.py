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


def test_the_page_has_the_parameters_that_each_kind_of_index_takes(tmp_path: Path) -> None:
    """By what the error for an unknown one says."""
    told = _told_parameters(tmp_path)
    rows = re.findall(r"^\| (`[A-Z_`, ]+`) \| (.*) \|$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    written: dict[str, set[str]] = {}
    for kinds, text in rows:
        names = {name for name in re.findall(r"`(\w+)`", text) if name.islower()} - WORDS
        for kind in re.findall(r"`(\w+)`", kinds):
            written[kind] = names
    for kinds, text in rows:
        for kind in re.findall(r"`(\w+)`", kinds):
            for base in re.findall(r"those of `(\w+)`", text):
                written[kind] = written[kind] | written[base]
            if text.startswith("the same"):
                written[kind] = written[kind] | written["IVF_FLAT"]
    assert {kind: names for kind, names in written.items() if kind in told} == told


WORDS = {"simple", "whitespace", "raw", "ngram", "l2", "cosine", "dot"}
"""Values, not names."""


def _told_parameters(folder: Path) -> dict[str, set[str]]:
    import pyarrow as pa

    import lance_core
    from lance_core.errors import InputError
    from lance_core.index.registry import KINDS
    from lance_core.index.vector.parameters import KINDS as VECTOR_KINDS
    from lance_core.jobs.run import run_job
    from lance_core.jobs.specs.indices import BuildIndexSpec

    columns = {"LABEL_LIST": "tags", "NGRAM": "s", "INVERTED": "s", "JSON": "doc", **dict.fromkeys(VECTOR_KINDS, "v")}
    table = pa.table(
        {
            "id": [1, 2],
            "s": ["a", "b"],
            "tags": [["a"], ["b"]],
            "doc": pa.array(["{}", "{}"], pa.json_()),
            "v": pa.array([[1.0] * 8] * 2, pa.list_(pa.float32(), 8)),
        }
    )
    uri = str(folder / "t.lance")
    lance_core.write_dataset(table, uri)
    told = {}
    for kind in [*(item.name for item in KINDS), *VECTOR_KINDS]:
        with pytest.raises(InputError) as caught:
            run_job(BuildIndexSpec(uri=uri, column=columns.get(kind, "id"), index_type=kind, parameters={"nope": 1}))
        taken = re.search(rf"{kind} takes ([\w, ]+)\.", str(caught.value))
        assert taken is not None, str(caught.value)
        told[kind] = set() if taken[1] == "no parameters" else set(taken[1].split(", "))
    return told
