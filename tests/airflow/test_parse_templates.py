"""A template in any templated argument is no reason to refuse a DAG when it is parsed."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_lance.execution.parse_checks import check_arguments
from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.immediate import LanceImmediateOperator
from airflow_lance.operators.stage import LanceStageOperator
from lance_core.errors import InputError

MATRIX = Path(__file__).resolve().parents[1] / "matrix" / "dags"
RUN_TIME = "{{ params.given }}"


@pytest.mark.parametrize(
    "source",
    [
        "/raw/orders-{{ ds }}.csv",
        Path("/raw/{{ ds }}/orders.parquet"),
        ["/raw/{{ ds }}/a.csv", "/raw/{{ ds }}/b.csv"],
        "/raw/{% if params.x %}a{% else %}b{% endif %}.csv",
        "{{ var.value.path }}",
        {"format": "csv", "paths": ["/raw/{{ ds }}"]},
        {
            "sql": "SELECT * FROM t WHERE day = '{{ ds }}'",
            "views": {"t": {"format": "csv", "paths": ["{{ var.value.path }}"]}},
        },
    ],
    ids=["text", "path", "list", "block", "whole", "mapping", "sql"],
)
def test_a_template_in_a_source_is_checked_when_it_runs(source: Any) -> None:
    check_arguments(LanceAppendOperator(task_id="append", uri="/t.lance", source=source))


@pytest.mark.parametrize("source", ["/raw/orders-{{ ds }}", "/raw/{{ ds }}.xls"])
def test_a_format_that_the_path_does_not_show_is_refused_all_the_same(source: str) -> None:
    with pytest.raises(InputError, match="does not show its format"):
        check_arguments(LanceAppendOperator(task_id="append", uri="/t.lance", source=source))


def test_every_templated_text_of_every_operator_may_be_a_template(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, connection: Callable[[str, str], None]
) -> None:
    """The tasks of the DAG that has every operator, one argument after the other replaced by a template."""
    connection("lance_default", json.dumps({"conn_type": "lance", "extra": {"base_uri": str(tmp_path)}}))
    monkeypatch.setenv("LANCE_MATRIX_PLACE", str(tmp_path))
    monkeypatch.syspath_prepend(str(MATRIX))
    spec = importlib.util.spec_from_file_location("lance_matrix_parsed", MATRIX / "lance_matrix.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    (dag,) = (value for value in vars(module).values() if type(value).__name__ == "DAG" and value.dag_id == "lance_matrix")
    tried = set()
    for task in dag.task_dict.values():
        if not isinstance(task, (LanceStageOperator, LanceImmediateOperator)):
            continue
        for name in task.template_fields:
            given = getattr(task, name, None)
            if not isinstance(given, str) or not given:
                continue
            object.__setattr__(task, name, RUN_TIME)
            try:
                check_arguments(task)
            finally:
                object.__setattr__(task, name, given)
            tried.add((type(task).__name__, name))
    assert len(tried) > 40, tried
