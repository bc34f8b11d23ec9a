"""New contents for a table: a schema taken from the source and all of its rows, as one Overwrite.

What an overwrite stages, and an append to a table that is not there yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lance_core.arrow import schema_from_arrow, schema_to_arrow
from lance_core.errors import SchemaMismatchError
from lance_core.format.schema import Schema
from lance_core.format.version import DEFAULT_VERSION, FileVersion, parse_storage_version
from lance_core.jobs.plans.write_fragments import fragments_of, make_work, shape_of
from lance_core.jobs.runtime.protocols import JobSource, Plan, StagedOperation, TableState, TaskResult
from lance_core.jobs.sources.conform import check_schema, created_schema
from lance_core.jobs.specs.spec import WriteSpec
from lance_core.table.operations.overwrite import Overwrite


@dataclass(frozen=True)
class Replaces:
    """Results become one Overwrite with this schema."""

    schema: Schema

    def __call__(self, results: Sequence[TaskResult]) -> StagedOperation:
        fragments = fragments_of(results)
        return StagedOperation(
            Overwrite(fragments, self.schema), sum(item.physical_rows for item in fragments), len(fragments)
        )


def plan_new_contents(spec: WriteSpec, table: TableState, source: JobSource, *, properties: Mapping[str, str]) -> Plan:
    """An Overwrite by the source's rows. A source whose engine marks nullability by accident gives nullable columns.

    Raises InputError or SchemaMismatchError for columns that the format cannot hold.
    """
    found = source.schema
    if not found.names:
        raise SchemaMismatchError("the source has no columns", uri=spec.uri)
    version = storage_version(spec, table)
    schema = schema_from_arrow(found if source.strict_nullability else created_schema(found), version=version)
    target = schema_to_arrow(schema)
    check_schema(found, target, drift="fail", uri=spec.uri, is_new=True)

    return Plan(
        table=table,
        source=source,
        shape=shape_of(spec),
        make_work=lambda attempt: make_work(spec, attempt, schema=schema, target=target, version=version),
        conclude=Replaces(schema),
        properties=properties,
    )


def storage_version(spec: WriteSpec, table: TableState) -> FileVersion:
    """The file version that new contents are written in."""
    if spec.data_storage_version:
        return parse_storage_version(spec.data_storage_version)
    return DEFAULT_VERSION if table.manifest is None else table.manifest.file_version
