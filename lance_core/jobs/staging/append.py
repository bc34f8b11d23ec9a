"""Append: the source's rows as new fragments of the table's own schema, or of a schema taken from the source when the
first append that lands creates the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from lance_core.arrow import schema_to_arrow
from lance_core.commit.model import CREATES_PROPERTY, StagedTransaction
from lance_core.errors import InputError, NotFoundError
from lance_core.format.version import parse_storage_version
from lance_core.jobs.runtime.lifecycle import stage
from lance_core.jobs.runtime.protocols import JobSource, Plan, Runner, StagedOperation, TableState, TaskResult
from lance_core.jobs.sources.conform import check_schema
from lance_core.jobs.specs.spec import AppendSpec
from lance_core.jobs.staging.new_table import plan_new_contents
from lance_core.jobs.staging.write_fragments import fragments_of, make_work, shape_of
from lance_core.table.operations.append import Append


@dataclass(frozen=True)
class Adds:
    """Results become one Append."""

    def __call__(self, results: Sequence[TaskResult]) -> StagedOperation:
        fragments = fragments_of(results)
        return StagedOperation(Append(fragments), sum(item.physical_rows for item in fragments), len(fragments))


class AppendJob:
    """Carries out an `AppendSpec`."""

    kind: ClassVar[str] = "append"
    needs_runner: ClassVar[bool] = True

    def run(self, spec: AppendSpec, runner: Runner) -> StagedTransaction:
        """Stage the rows once."""
        return stage(spec, runner, plan_append)


def plan_append(spec: AppendSpec, table: TableState, runner: Runner) -> Plan:
    """Check the source against the table. InputError or SchemaMismatchError before anything is written."""
    if table.manifest is None and not spec.create:
        raise NotFoundError(
            f"there is no Lance table at {spec.uri}", uri=spec.uri, cure="Create it, or append with create=True."
        )
    source = runner.open_source(spec.source)
    return _plan_create(spec, table, source) if table.manifest is None else _plan_add(spec, table, source)


def _plan_add(spec: AppendSpec, table: TableState, source: JobSource) -> Plan:
    manifest = table.manifest
    assert manifest is not None
    version = manifest.file_version
    if spec.data_storage_version and parse_storage_version(spec.data_storage_version) != version:
        raise InputError(
            f"the table has storage version {manifest.data_storage_version}, not {spec.data_storage_version}",
            uri=spec.uri,
            cure="Omit data_storage_version, or overwrite the table.",
        )
    target = schema_to_arrow(manifest.schema)
    check_schema(source.schema, target, drift=spec.schema_drift, uri=spec.uri)

    return Plan(
        table=table,
        source=source,
        shape=shape_of(spec),
        make_work=lambda attempt: make_work(
            spec, attempt, schema=manifest.schema, target=target, version=version, bases=manifest.base_paths
        ),
        conclude=Adds(),
        properties=spec.properties,
    )


def _plan_create(spec: AppendSpec, table: TableState, source: JobSource) -> Plan:
    # Two first appends may be staged at once; the property tells the commit to turn the later one into an append.
    return plan_new_contents(spec, table, source, properties={**spec.properties, CREATES_PROPERTY: "append"})
