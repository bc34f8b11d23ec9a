"""Rows of a source as new fragments of a table that exists, in its own schema and storage version.

What an append stages, and the first pass of a replacement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from lance_core.arrow import schema_to_arrow
from lance_core.errors import InputError
from lance_core.format.manifest import Manifest
from lance_core.format.version import parse_storage_version
from lance_core.jobs.plans.new_columns import plan_columns
from lance_core.jobs.plans.write_fragments import make_work, shape_of
from lance_core.jobs.runtime.protocols import JobSource, Pass, Plan, StagedOperation, TableState, TaskResult
from lance_core.jobs.sources.conform import check_schema
from lance_core.jobs.specs.edits import ReplaceWhereSpec
from lance_core.jobs.specs.spec import AppendSpec


def plan_new_rows(
    spec: AppendSpec | ReplaceWhereSpec,
    table: TableState,
    source: JobSource,
    manifest: Manifest,
    *,
    conclude: Callable[[Sequence[TaskResult]], StagedOperation],
    properties: Mapping[str, str],
    then: tuple[Pass, ...] = (),
) -> Plan:
    """Plan to write the source's rows. InputError or SchemaMismatchError when they do not fit the table of `manifest`."""
    version = manifest.file_version
    if spec.data_storage_version and parse_storage_version(spec.data_storage_version) != version:
        raise InputError(
            f"the table has storage version {manifest.data_storage_version}, not {spec.data_storage_version}",
            uri=spec.uri,
            cure="Omit data_storage_version; only an overwrite of the table changes it.",
        )
    operation = "update" if isinstance(spec, ReplaceWhereSpec) else "append"
    columns = plan_columns(manifest, source.schema, drift=spec.schema_drift, operation=operation, uri=spec.uri)
    schema, target = columns.schema, schema_to_arrow(columns.schema)
    check_schema(source.schema, target, drift=spec.schema_drift, uri=spec.uri)
    return Plan(
        table=table,
        source=source,
        shape=shape_of(spec),
        make_work=lambda attempt: make_work(
            spec, attempt, schema=schema, target=target, version=version, bases=manifest.base_paths
        ),
        conclude=columns.conclude(conclude),
        properties={**properties, **columns.properties()},
        then=then,
    )
