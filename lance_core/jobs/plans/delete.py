"""Delete: the rows a filter selects, as one Delete; the fragments are searched in parallel.

A commit in between that touched other rows is merged by the commit of this; one that touched the same rows, or moved them,
makes the commit stage this again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lance_core.dataset.edit.delete import stage_delete
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.write.retry import StagedEdit
from lance_core.format.manifest import Manifest
from lance_core.jobs.plans.edit_fragments import count_taken, edit_work, existing, group_fragments, operations_of, part_of
from lance_core.jobs.runtime.protocols import Plan, Runner, Shape, StagedOperation, TableState, TaskResult
from lance_core.jobs.specs.edits import DeleteSpec
from lance_core.table.operations.delete import Delete


@dataclass(frozen=True)
class StageDelete:
    """The dataset's delete, on one task's fragments."""

    predicate: str

    def __call__(self, snapshot: Snapshot, attempt: str | None) -> StagedEdit:
        """Write deletion files under the attempt's id."""
        return stage_delete(snapshot, self.predicate, attempt=attempt)


@dataclass(frozen=True)
class Deletes:
    """Results become one Delete; with no row selected it is empty, and is committed all the same."""

    manifest: Manifest
    predicate: str

    def __call__(self, results: Sequence[TaskResult]) -> StagedOperation:
        """The operation and how many rows it takes."""
        parts = operations_of(results, Delete)
        updated = tuple(fragment for part in parts for fragment in part.updated_fragments)
        removed = tuple(number for part in parts for number in part.deleted_fragment_ids)
        taken = count_taken(self.manifest, updated, removed)
        return StagedOperation(Delete(updated, removed, self.predicate), 0, num_deleted=taken)


def plan_delete(spec: DeleteSpec, table: TableState, runner: Runner) -> Plan:
    """Check the filter and cut the table into tasks. FilterError before anything is written."""
    snapshot = existing(table, spec)
    manifest = snapshot.manifest
    staging = StageDelete(spec.predicate)
    staging(part_of(snapshot, ()), None)  # on no fragments: the filter is checked, nothing is written
    groups = group_fragments(manifest.fragments, rows=spec.rows_per_task)
    return Plan(
        table=table,
        source=runner.open_tasks(len(groups)),
        shape=Shape(tick_seconds=spec.progress_seconds, title=f"delete {spec.uri}"),
        make_work=lambda attempt: edit_work(spec, attempt, groups, staging, progress_seconds=spec.progress_seconds),
        conclude=Deletes(manifest, spec.predicate),
        properties=spec.properties,
    )
