"""What a DAG may write as a source, and what is refused when the DAG is parsed instead of at night."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from airflow.sdk import DAG, ObjectStoragePath

from airflow_lance.execution.sources import LOCAL_FORMATS, plain_source
from airflow_lance.operators.add_columns import LanceAddColumnsOperator
from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.delete import LanceDeleteOperator
from airflow_lance.operators.merge import LanceMergeOperator
from airflow_lance.operators.restore import LanceRestoreOperator
from lance_core.errors import InputError
from lance_core.jobs.sources.open_source import _FORMATS, LANCE
from lance_core.jobs.specs.spec import SourceSpec
from tests.airflow.operator_support import execute, ids

PARQUET = {"format": "parquet", "paths": ["/raw/a.parquet"]}


@pytest.mark.parametrize(
    ("source", "plain"),
    [
        ("/raw/a.parquet", PARQUET),
        (Path("/raw/a.parquet"), PARQUET),
        ([Path("/raw/a.parquet")], PARQUET),
        ({"format": "parquet", "paths": Path("/raw/a.parquet")}, PARQUET),
        (ObjectStoragePath("file:///raw/a.parquet"), PARQUET),
        ("s3://raw/a.jsonl", {"format": "json", "paths": ["s3://raw/a.jsonl"]}),
        ("/raw/*.csv", {"format": "csv", "paths": ["/raw/*.csv"], "options": {"header": "true", "inferSchema": "true"}}),
        (SourceSpec(format="orc", paths=("/a",)), {"format": "orc", "paths": ["/a"]}),
    ],
)
def test_paths_of_every_kind_are_sources(source: Any, plain: dict[str, Any]) -> None:
    assert plain_source(source) == plain


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (pd.DataFrame({"id": [1]}), "pandas's DataFrame.*@task.lance"),
        (pa.table({"id": [1]}), "pyarrow's Table.*@task.lance"),
        ("raw", "name of raw does not show its format.*parquet"),
        (["/raw/a.csv", "/raw/b.parquet"], "does not show its format"),
        (17, "int 17"),
        ([], r"list \[\]"),
    ],
)
def test_what_is_no_source_is_named_with_the_way_to_do_it(source: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        plain_source(source)


def test_a_path_is_read_with_its_header(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,name\n1,x\n2,y\n")
    pq.write_table(pa.table({"id": [3]}), tmp_path / "b.parquet")
    uri = str(tmp_path / "t.lance")
    first = LanceAppendOperator(task_id="a", uri=uri, execution="local", source=tmp_path / "a.csv")
    more = {"execution": "local", "schema_drift": "fill_missing", "source": str(tmp_path / "b.parquet")}
    for operator in (first, LanceAppendOperator(task_id="b", uri=uri, **more)):
        execute(operator, publishes=True)
    assert ids(uri) == [1, 2, 3]


def test_formats_without_spark_are_those_of_the_reader() -> None:
    assert {*LOCAL_FORMATS} == {*_FORMATS, LANCE}


LOCAL: dict[str, Any] = {"task_id": "t", "uri": "/t.lance", "execution": "local"}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: LanceAppendOperator(source={"format": "avro", "paths": ["/a"]}, **LOCAL), "avro.*without Spark"),
        (lambda: LanceAppendOperator(source={"fromat": "csv"}, **LOCAL), "fromat"),
        (lambda: LanceAppendOperator(source=pd.DataFrame({"id": [1]}), **LOCAL), "@task.lance"),
        (lambda: LanceAppendOperator(source=PARQUET, schema_drift="sometimes", **LOCAL), "schema_drift"),
        (lambda: LanceAppendOperator(source=PARQUET, max_rows_per_file=0, **LOCAL), "at least 1"),
        (lambda: LanceMergeOperator(source=PARQUET, on="id", when_matched="upsert", **LOCAL), "when_matched"),
        (lambda: LanceDeleteOperator(predicate="id = {{ ds }}", rows_per_task="many", **LOCAL), "rows_per_task"),
        (lambda: LanceAddColumnsOperator(columns={"a": "1"}, function="m:f", **LOCAL), "columns"),
        (lambda: LanceRestoreOperator(task_id="t", uri="/t.lance", version=1, tag="a"), "exactly one"),
    ],
)
def test_wrong_arguments_are_refused_when_the_dag_is_parsed(make: Any, words: str) -> None:
    with DAG("parsed", schedule=None, start_date=datetime(2013, 1, 1, tzinfo=timezone.utc)):
        operator = make()
    with pytest.raises(InputError, match=words):
        operator.resolve_template_files()


def test_templates_are_left_for_the_run() -> None:
    with DAG("later", schedule=None, start_date=datetime(2013, 1, 1, tzinfo=timezone.utc)):
        first = LanceAppendOperator(
            source={"callable": "{{ params.function }}", "kwargs": {"day": "{{ ds }}"}},
            max_rows_per_file="{{ params.rows }}",
            **LOCAL,
        )
        second = LanceAppendOperator(source=first.output, **{**LOCAL, "task_id": "second"})
    for operator in (first, second):
        operator.resolve_template_files()
