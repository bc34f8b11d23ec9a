"""OpenLineage: which table, at which version, a task read or wrote. Needs Airflow's openlineage provider, imported late.

::

    s3://lake/flights.lance      -> namespace "s3://lake", name "flights.lance"
    /data/flights.lance          -> namespace "file",      name "/data/flights.lance"
    outputs[0].facets["version"].datasetVersion == "7";  outputFacets["outputStatistics"].rowCount == 27004
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from airflow_lance.assets import table_uri


@dataclass(frozen=True)
class Touched:
    """A table or a path of files, as far as a task knows it."""

    uri: str
    version: int | None = None
    rows: int | None = None
    bytes: int | None = None


def dataset_name(uri: str) -> tuple[str, str]:
    """(namespace, name) by OpenLineage's naming rules for object stores and files."""
    parts = urlsplit(uri)
    if not parts.scheme or parts.scheme == "file":
        return "file", parts.path.rstrip("/") or "/"
    return f"{parts.scheme}://{parts.netloc}", parts.path.strip("/") or "/"


def lineage(*, inputs: Iterable[Touched] = (), outputs: Iterable[Touched] = ()) -> Any:
    """An `OperatorLineage`; None when the openlineage provider is not installed."""
    try:
        base = import_module("airflow.providers.openlineage.extractors.base")
        client = import_module("openlineage.client.generated.base")
    except ImportError:
        return None
    return base.OperatorLineage(
        inputs=[_dataset(client.InputDataset, item) for item in inputs],
        outputs=[_output(client.OutputDataset, item) for item in outputs],
    )


def convert_asset_to_openlineage(asset: Any, lineage_context: Any) -> Any:
    """Airflow's hook for `lance://` assets among the inlets and outlets of any task: the table, by OpenLineage's names."""
    namespace, name = dataset_name(table_uri(asset.uri))
    return import_module("openlineage.client.generated.base").Dataset(namespace=namespace, name=name)


def source_paths(source: object) -> list[str]:
    """Paths of a source's files, those of its views included."""
    if not isinstance(source, Mapping):
        views, paths = getattr(source, "views", {}), getattr(source, "paths", ())
    else:
        views, paths = source.get("views") or {}, source.get("paths") or ()
    return [*paths, *(path for view in views.values() for path in source_paths(view))]


def _dataset(kind: Any, item: Touched) -> Any:
    namespace, name = dataset_name(item.uri)
    return kind(namespace=namespace, name=name, facets=_facets(item))


def _output(kind: Any, item: Touched) -> Any:
    namespace, name = dataset_name(item.uri)
    told: dict[str, Any] = {}
    if item.rows is not None:
        module = import_module("openlineage.client.generated.output_statistics_output_dataset")
        told["outputStatistics"] = module.OutputStatisticsOutputDatasetFacet(rowCount=item.rows, size=item.bytes)
    return kind(namespace=namespace, name=name, facets=_facets(item), outputFacets=told)


def _facets(item: Touched) -> dict[str, Any]:
    if item.version is None:
        return {}
    module = import_module("openlineage.client.generated.dataset_version_dataset")
    return {"version": module.DatasetVersionDatasetFacet(datasetVersion=str(item.version))}
