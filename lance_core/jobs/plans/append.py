"""Append: the source's rows as new fragments of the table's own schema, or of a schema taken from the source when the
first append that is committed creates the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lance_core.arrow import schema_to_arrow
from lance_core.commit.identities import CREATES_PROPERTY
from lance_core.errors import NotFoundError
from lance_core.jobs.plans.write_fragments import (
    NothingWithoutRows,
    fragments_of,
    grows_on_creation,
    plan_new_contents,
    plan_new_rows,
)
from lance_core.jobs.runtime.protocols import JobSource, Plan, Runner, StagedOperation, TableState, TaskResult
from lance_core.jobs.specs.spec import AppendSpec
from lance_core.table.operations.append import Append


@dataclass(frozen=True)
class Adds:
    """Results become one Append."""

    def __call__(self, results: Sequence[TaskResult]) -> StagedOperation:
        fragments = fragments_of(results)
        return StagedOperation(Append(fragments), sum(item.physical_rows for item in fragments))


def plan_append(spec: AppendSpec, table: TableState, runner: Runner) -> Plan:
    """Check the source against the table; one without rows leaves the table as it is.

    InputError or SchemaMismatchError before anything is written.
    """
    if table.manifest is None and not spec.create:
        raise NotFoundError(
            f"there is no Lance table at {spec.uri}", uri=spec.uri, cure="Create it, or append with create=True."
        )
    types = None if table.manifest is None else schema_to_arrow(table.manifest.schema)
    source = runner.open_source(spec.source, table=types)
    if table.manifest is None:
        return _plan_create(spec, table, source)
    brings_columns = spec.schema_drift in ("add_extra", "fill_and_add")
    conclude = Adds() if brings_columns else NothingWithoutRows(Adds(), spec.uri)
    return plan_new_rows(spec, table, source, table.manifest, conclude=conclude, properties=spec.properties)


def _plan_create(spec: AppendSpec, table: TableState, source: JobSource) -> Plan:
    # Two first appends may be staged at once; the property tells the commit to turn the later one into an append.
    grows = grows_on_creation(source.schema, drift=spec.schema_drift)
    return plan_new_contents(spec, table, source, properties={**spec.properties, **grows, CREATES_PROPERTY: "append"})
