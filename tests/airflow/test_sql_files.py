"""SQL may stand in a file beside the DAG, wherever an argument is SQL."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from airflow_lance.operators.add_columns import LanceAddColumnsOperator
from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.delete import LanceDeleteOperator
from airflow_lance.operators.query import LanceQueryOperator
from airflow_lance.operators.replace_where import LanceReplaceWhereOperator
from airflow_lance.operators.update import LanceUpdateOperator
from lance_core.errors import InputError
from tests.airflow.operator_support import execute, ids, make_table

VIEWS = {"raw": {"format": "parquet", "paths": ["/raw/dump.sql"]}}


@pytest.fixture
def dag(tmp_path: Path) -> DAG:
    (tmp_path / "few.sql").write_text("id < 5")
    (tmp_path / "day.sql").write_text("day = {{ params.day }}")
    (tmp_path / "load.sql").write_text("SELECT id FROM raw")
    (tmp_path / "next.sql").write_text("id + 1")
    start = datetime(2013, 1, 1, tzinfo=timezone.utc)
    return DAG("filed", schedule=None, start_date=start, template_searchpath=[str(tmp_path)], params={"day": 7})


@pytest.mark.parametrize(
    ("kind", "arguments", "name", "read"),
    [
        (LanceDeleteOperator, {"predicate": "few.sql"}, "predicate", "id < 5"),
        (LanceUpdateOperator, {"updates": {"id": "next.sql"}, "where": "few.sql"}, "updates", {"id": "id + 1"}),
        (LanceUpdateOperator, {"updates": {"id": "1"}, "where": "few.sql"}, "where", "id < 5"),
        (LanceAddColumnsOperator, {"columns": {"n": "next.sql", "m": "1"}}, "columns", {"n": "id + 1", "m": "1"}),
        (
            LanceReplaceWhereOperator,
            {"predicate": "day.sql", "source": "/raw/a.parquet"},
            "predicate",
            "day = {{ params.day }}",
        ),
        (
            LanceAppendOperator,
            {"source": {"sql": "load.sql", "views": VIEWS}, "execution": "spark-submit"},
            "source",
            {"sql": "SELECT id FROM raw", "views": VIEWS},
        ),
        (
            LanceAppendOperator,
            {"source": "/raw/a.parquet", "gates": [{"name": "g", "no_rows": "few.sql"}]},
            "gates",
            [{"name": "g", "no_rows": "id < 5"}],
        ),
        (LanceQueryOperator, {"filter": "few.sql"}, "filter", "id < 5"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else None,
)
def test_a_path_of_a_file_stands_for_its_sql(dag: DAG, kind: Any, arguments: dict[str, Any], name: str, read: Any) -> None:
    with dag:
        given = arguments if kind is LanceQueryOperator else {"execution": "local", **arguments}
        task = kind(task_id="t", uri="/t.lance", **given)
    task.resolve_template_files()
    assert getattr(task, name) == read


def test_paths_of_data_are_left_alone(dag: DAG) -> None:
    with dag:
        source = {"format": "text", "paths": ["/raw/dump.sql"]}
        task = LanceAppendOperator(task_id="t", uri="/t.sql", source=source, execution="spark-submit")
    task.resolve_template_files()
    task.render_template_fields({"params": {}})  # type: ignore[typeddict-item]
    assert (task.uri, task.source) == ("/t.sql", source)


def test_a_file_that_is_not_there_is_an_error_of_the_dag(dag: DAG) -> None:
    with dag:
        task = LanceDeleteOperator(task_id="t", uri="/t.lance", predicate="nowhere.sql", execution="local")
    with pytest.raises(InputError, match=r"no SQL file 'nowhere.sql'"):
        task.resolve_template_files()


def test_a_files_templates_are_rendered_and_its_sql_is_carried_out(tmp_path: Path, dag: DAG) -> None:
    uri = make_table(tmp_path / "t.lance", 0)
    (tmp_path / "first.sql").write_text("id < {{ params.day }}")
    with dag:
        task = LanceDeleteOperator(task_id="t", uri=uri, predicate="first.sql", execution="local")
    task.resolve_template_files()
    task.render_template_fields({"params": {"day": 7}})  # type: ignore[typeddict-item]
    execute(task, publishes=True)
    assert ids(uri) == [7, 8, 9]
