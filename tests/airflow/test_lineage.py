"""OpenLineage: names by its rules, versions as facets; without the provider nothing is said and nothing breaks."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_lance import lineage as room
from airflow_lance.assets import create_asset
from airflow_lance.lineage import dataset_name, source_paths
from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.commit import LanceCommitOperator
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
