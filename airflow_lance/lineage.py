"""OpenLineage: which table, at which version, a task read or wrote. Needs Airflow's openlineage provider, imported late.

::

    s3://lake/flights.lance      -> namespace "s3://lake", name "flights.lance"
    /data/flights.lance          -> namespace "file",      name "/data/flights.lance"
    outputs[0].facets["version"].datasetVersion == "7";  outputFacets["outputStatistics"].rowCount == 27004
    outputs[0].outputFacets["lance_refresh"].failedRows == 2     of a refresh of declared columns
    outputs[0].facets["schema"].fields                   the columns of that version
    outputs[0].facets["columnLineage"].fields["twice"]   where they come from, for columns that are added and for merges
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow_lance.assets import table_uri

if TYPE_CHECKING:
    from airflow_lance.execution.column_origins import Origin


@dataclass(frozen=True)
class Touched:
    """A table or a path of files, as far as a task knows it. `failed_rows`: for which a column's function failed."""

    uri: str
    version: int | None = None
    rows: int | None = None
    bytes: int | None = None
    failed_rows: int | None = None
    schema: Any = None
    origins: Mapping[str, tuple[Origin, ...]] = field(default_factory=dict)
    joined_by: tuple[Origin, ...] = ()


def is_wanted() -> bool:
    """Whether Airflow's openlineage provider is installed."""
    try:
        import_module("airflow.providers.openlineage.extractors.base")
    except ImportError:
        return False
    return True


def described(item: Touched, *, options: Mapping[str, Any], task: Any = None) -> Touched:
    """The table with the columns of its version, and where the task's arguments say that they come from.

    Lineage never fails a task: unknown facts are omitted and logged.
    """
    if not is_wanted():
        return item
    from airflow_lance.execution.column_origins import origins_of

    try:
        origins, joined_by = ({}, ()) if task is None else origins_of(task, uri=item.uri)
        schema = None if item.version is None else _schema_of(item, options)
    except Exception:
        logging.getLogger(__name__).warning("The columns of %s are not in its lineage", item.uri, exc_info=True)
        return item
    return replace(item, schema=schema, origins=origins, joined_by=joined_by)


def _schema_of(item: Touched, options: Mapping[str, Any]) -> Any:
    from lance_core.jobs import api

    return api.open_table(item.uri, options=options, version=item.version).schema


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
    from airflow_lance.execution.sources import plain_source

    if source and not isinstance(source, Mapping) and not hasattr(source, "views"):
        source = plain_source(source)
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
    if item.failed_rows is not None:
        facet = import_module("openlineage.client.generated.base").OutputDatasetFacet()
        told["lance_refresh"] = facet.with_additional_properties(failedRows=item.failed_rows)
    return kind(namespace=namespace, name=name, facets=_facets(item), outputFacets=told)


def _facets(item: Touched) -> dict[str, Any]:
    told: dict[str, Any] = {}
    if item.version is not None:
        module = import_module("openlineage.client.generated.dataset_version_dataset")
        told["version"] = module.DatasetVersionDatasetFacet(datasetVersion=str(item.version))
    if item.schema is not None:
        module = import_module("openlineage.client.generated.schema_dataset")
        told["schema"] = module.SchemaDatasetFacet(fields=[_field(module, each) for each in item.schema])
    if item.origins or item.joined_by:
        told["columnLineage"] = _column_lineage(item)
    return told


def _field(module: Any, arrow: Any) -> Any:
    """A field in OpenLineage's words; a struct has fields of its own."""
    kind = arrow.type
    is_struct = str(kind).startswith("struct<")
    inner = [_field(module, kind.field(index)) for index in range(kind.num_fields)] if is_struct else []
    return module.SchemaDatasetFacetFields(name=arrow.name, type="struct" if is_struct else str(kind), fields=inner)


def _column_lineage(item: Touched) -> Any:
    module = import_module("openlineage.client.generated.column_lineage_dataset")

    def one(origin: Origin) -> Any:
        namespace, name = dataset_name(origin.uri)
        kind = "INDIRECT" if origin.how == "JOIN" else "DIRECT"
        way = module.Transformation(type=kind, subtype=origin.how)
        return module.InputField(namespace=namespace, name=name, field=origin.column, transformations=[way])

    fields = {name: module.Fields(inputFields=[one(each) for each in origins]) for name, origins in item.origins.items()}
    return module.ColumnLineageDatasetFacet(fields=fields, dataset=[one(each) for each in item.joined_by])
