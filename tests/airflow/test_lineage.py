"""OpenLineage: names by its rules, versions as facets; without the provider nothing is said and nothing breaks."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_lance import lineage as room
from airflow_lance.assets import create_asset
from airflow_lance.execution.column_origins import origins_of
from airflow_lance.lineage import Touched, dataset_name, source_paths
from airflow_lance.operators.add_columns import LanceAddColumnsOperator
from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.commit import LanceCommitOperator
from airflow_lance.operators.merge import LanceMergeOperator
from airflow_lance.operators.tag import LanceTagOperator
from lance_core.jobs.specs.spec import SourceSpec
from tests.airflow.operator_support import execute


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("s3://lake/a/flights.lance", ("s3://lake", "a/flights.lance")),
        ("/data/flights.lance/", ("file", "/data/flights.lance")),
        ("file:///data/t.lance", ("file", "/data/t.lance")),
        ("abfss://box@account.dfs.core.windows.net/t", ("abfss://box@account.dfs.core.windows.net", "t")),
        ("gs://lake", ("gs://lake", "/")),
    ],
)
def test_names(uri: str, expected: tuple[str, str]) -> None:
    assert dataset_name(uri) == expected


def test_paths_of_sources() -> None:
    view = {"format": "csv", "paths": ["/b.csv"]}
    assert source_paths({"sql": "select 1", "views": {"b": view}}) == ["/b.csv"]
    assert source_paths(SourceSpec(format="csv", paths=("/a.csv",))) == ["/a.csv"]
    assert source_paths({"callable": "a:b"}) == []
    assert source_paths("/a.csv") == ["/a.csv"]
    assert source_paths([Path("/a.csv"), Path("/b.csv")]) == ["/a.csv", "/b.csv"]


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real provider where it is installed, else its vocabulary."""
    try:
        import airflow.providers.openlineage.extractors.base  # noqa: F401
        import openlineage.client.generated.base  # noqa: F401
    except ImportError:
        names = {
            "airflow.providers.openlineage.extractors.base": ["OperatorLineage"],
            "openlineage.client.generated.base": ["InputDataset", "OutputDataset"],
            "openlineage.client.generated.dataset_version_dataset": ["DatasetVersionDatasetFacet"],
            "openlineage.client.generated.schema_dataset": ["SchemaDatasetFacet", "SchemaDatasetFacetFields"],
            "openlineage.client.generated.output_statistics_output_dataset": ["OutputStatisticsOutputDatasetFacet"],
        }
        for name, classes in names.items():
            module = ModuleType(name)
            for item in classes:
                setattr(module, item, SimpleNamespace)
            monkeypatch.setitem(sys.modules, name, module)


def _tasks(tmp_path: Path) -> tuple[Any, Any, Any]:
    path = str(tmp_path / "rows.parquet")
    pq.write_table(pa.table({"id": [1, 2, 3]}), path)
    uri = str(tmp_path / "t.lance")
    append = LanceAppendOperator(task_id="a", uri=uri, source={"format": "parquet", "paths": [path]}, execution="local")
    commit = LanceCommitOperator(task_id="c", staged=[execute(append)])
    execute(commit)
    tag = LanceTagOperator(task_id="t", uri=uri, tag="gold")
    execute(tag)
    return append, commit, tag


def test_tasks_tell_what_they_touched(tmp_path: Path, provider: None) -> None:
    append, commit, tag = (task.get_openlineage_facets_on_complete(None) for task in _tasks(tmp_path))
    table = str(tmp_path / "t.lance")
    assert [(item.namespace, item.name) for item in append.inputs] == [("file", str(tmp_path / "rows.parquet"))]
    assert [(item.name, item.facets) for item in append.outputs] == [(table, {})]
    (output,) = commit.outputs
    assert (output.namespace, output.name) == ("file", table)
    assert output.facets["version"].datasetVersion == "1"
    assert output.outputFacets["outputStatistics"].rowCount == 3
    assert tag.outputs[0].facets["version"].datasetVersion == "1"
    assert LanceTagOperator(task_id="n", uri=table, tag="x").get_openlineage_facets_on_complete(None).outputs == []


@pytest.fixture
def published(tmp_path: Path) -> Any:
    """`published(operator_class, **arguments)` runs one that publishes by itself on a table of id, place{x}; its output."""
    pytest.importorskip("airflow.providers.openlineage.extractors.base")
    uri = str(tmp_path / "t.lance")
    rows = pa.table({"id": [1, 2], "place": [{"x": 1}, {"x": 2}]})
    lance.write_dataset(rows, uri)
    pq.write_table(pa.table({"id": [1], "name": ["a"]}), tmp_path / "names.parquet")
    pq.write_table(rows, tmp_path / "rows.parquet")

    def run(kind: Any, **arguments: Any) -> Any:
        task = kind(task_id="t", uri=uri, execution="local", **arguments)
        execute(task, publishes=True)
        (output,) = task.get_openlineage_facets_on_complete(None).outputs
        return output

    return run


def _origins(output: Any) -> dict[str, list[tuple[str, str, str]]]:
    """Output column -> (last part of the dataset's name, column, how)."""
    return {
        name: [(Path(one.name).name, one.field, one.transformations[0].subtype) for one in item.inputFields]
        for name, item in output.facets["columnLineage"].fields.items()
    }


def test_the_schema_of_the_new_version_is_told(tmp_path: Path, published: Any) -> None:
    output = published(LanceAppendOperator, source=str(tmp_path / "rows.parquet"))
    told = [(item.name, item.type, [inner.name for inner in item.fields]) for item in output.facets["schema"].fields]
    assert told == [("id", "int64", []), ("place", "struct", ["x"])]
    assert "columnLineage" not in output.facets


def test_columns_that_are_added_say_what_they_were_made_of(tmp_path: Path, published: Any) -> None:
    output = published(LanceAddColumnsOperator, columns={"twice": "id * 2", "x": "place.x", "same": "id", "one": "1"})
    assert _origins(output) == {
        "twice": [("t.lance", "id", "TRANSFORMATION")],
        "x": [("t.lance", "place", "TRANSFORMATION")],
        "same": [("t.lance", "id", "IDENTITY")],
    }
    assert [item.name for item in output.facets["schema"].fields][2:] == ["twice", "x", "same", "one"]


def test_columns_that_are_joined_say_from_which_file(tmp_path: Path, published: Any) -> None:
    output = published(LanceAddColumnsOperator, source=str(tmp_path / "names.parquet"), on="id")
    assert _origins(output) == {"name": [("names.parquet", "name", "IDENTITY")]}
    joined = [(Path(one.name).name, one.field) for one in output.facets["columnLineage"].dataset]
    assert joined == [("t.lance", "id"), ("names.parquet", "id")]


def test_a_merge_says_where_its_columns_come_from(tmp_path: Path, published: Any) -> None:
    output = published(LanceMergeOperator, source=str(tmp_path / "rows.parquet"), on="id")
    assert _origins(output) == {
        "id": [("rows.parquet", "id", "IDENTITY")],
        "place": [("rows.parquet", "place", "IDENTITY")],
    }
    (own, theirs) = output.facets["columnLineage"].dataset
    assert (own.transformations[0].type, theirs.transformations[0].subtype) == ("INDIRECT", "JOIN")


def test_columns_of_a_declared_schema_are_taken_from_it() -> None:
    source = {
        "format": "csv",
        "paths": ["s3://raw/a.csv"],
        "schema": "id BIGINT, `a b` STRUCT<x: INT, y: INT>, c: DECIMAL(3,1)",
    }
    task = LanceMergeOperator(task_id="t", uri="/t.lance", source=source, on="id")
    columns, _ = origins_of(task, uri="/t.lance")
    assert list(columns) == ["id", "a b", "c"]
    by_function = LanceMergeOperator(task_id="f", uri="/t.lance", source={"callable": "a:b"}, on="id")
    assert origins_of(by_function, uri="/t.lance") == ({}, ())


def test_lineage_that_cannot_be_had_fails_no_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("airflow.providers.openlineage.extractors.base")
    gone = Touched(str(tmp_path / "gone.lance"), version=1)
    assert room.described(gone, options={}) == gone


def test_an_asset_of_any_task_is_its_table() -> None:
    openlineage = pytest.importorskip("airflow.providers.openlineage.utils.utils")
    for uri, expected in {
        "s3://lake/a/t.lance": ("s3://lake", "a/t.lance"),
        "/data/t.lance": ("file", "/data/t.lance"),
    }.items():
        dataset = openlineage.translate_airflow_asset(create_asset(uri=uri), None)
        assert (dataset.namespace, dataset.name) == expected


def test_without_the_provider_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(room, "import_module", absent)
    assert [task.get_openlineage_facets_on_complete(None) for task in _tasks(tmp_path)] == [None, None, None]
