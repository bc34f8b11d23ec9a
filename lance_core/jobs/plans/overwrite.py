"""Overwrite: all rows and the schema replaced by the source's; the commit is strict about a table that moved in the
meantime."""

from __future__ import annotations

from dataclasses import replace

from lance_core.jobs.plans.write_fragments import RefusesNoRows, plan_new_contents
from lance_core.jobs.runtime.protocols import Plan, Runner, TableState
from lance_core.jobs.specs.spec import OverwriteSpec


def plan_overwrite(spec: OverwriteSpec, table: TableState, runner: Runner) -> Plan:
    """The source's schema becomes the table's. InputError before anything is written, or for a source without rows."""
    source = runner.open_source(spec.source)
    plan = plan_new_contents(spec, table, source, properties=spec.properties)
    if table.manifest is None or spec.allow_empty:
        return plan
    return replace(plan, conclude=RefusesNoRows(plan.conclude, spec.kind, spec.uri))
