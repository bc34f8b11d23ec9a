"""Update: new values for the rows a filter selects, which move into new fragments, as one Update.

A commit in between that touched other rows is merged by the commit of this; one that touched the same rows, or moved them,
makes the commit stage this again on what is there then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lance_core.dataset.edit.update import stage_update
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.write.retry import StagedEdit
from lance_core.format.manifest import Manifest
from lance_core.jobs.plans.edit_fragments import count_taken, edit_work, existing, group_fragments, operations_of, part_of
from lance_core.jobs.runtime.protocols import Plan, Runner, Shape, StagedOperation, TableState, TaskResult
from lance_core.jobs.specs.edits import UpdateSpec
from lance_core.table.operations.update import Update


@dataclass(frozen=True)
class StageUpdate:
    """The dataset's update, on one task's fragments."""

    updates: Mapping[str, str]
    where: str | None

    def __call__(self, snapshot: Snapshot, attempt: str | None) -> StagedEdit:
        """Write moved rows and deletion files under the attempt's id."""
        return stage_update(snapshot, self.updates, where=self.where, attempt=attempt)


@dataclass(frozen=True)
class Updates:
    """Results become one Update; with no row selected it is empty, and is committed all the same."""

    manifest: Manifest

    def __call__(self, results: Sequence[TaskResult]) -> StagedOperation:
        """The operation, the rows it writes and the rows it takes (as many)."""
        parts = operations_of(results, Update)
        operation = join_updates(parts)
        new = operation.new_fragments
        taken = count_taken(self.manifest, operation.updated_fragments, operation.removed_fragment_ids)
        return StagedOperation(operation, sum(item.physical_rows for item in new), num_deleted=taken)


def join_updates(parts: Sequence[Update]) -> Update:
    """One Update out of those of different fragments."""
    kept = {number for part in parts for number in part.fields_for_preserving_frag_bitmap}
    return Update(
        removed_fragment_ids=tuple(number for part in parts for number in part.removed_fragment_ids),
        updated_fragments=tuple(fragment for part in parts for fragment in part.updated_fragments),
        new_fragments=tuple(fragment for part in parts for fragment in part.new_fragments),
        fields_for_preserving_frag_bitmap=tuple(sorted(kept)),
    )


def plan_update(spec: UpdateSpec, table: TableState, runner: Runner) -> Plan:
    """Check filter and expressions and cut the table into tasks. InputError, FilterError before anything is written."""
    snapshot = existing(table, spec)
    staging = StageUpdate(dict(spec.updates), spec.where)
    staging(part_of(snapshot, ()), None)  # on no fragments: everything is checked, nothing is written
    groups = group_fragments(snapshot.manifest.fragments, rows=spec.rows_per_task)
    return Plan(
        table=table,
        source=runner.open_tasks(len(groups)),
        shape=Shape(tick_seconds=spec.progress_seconds, title=f"update {spec.uri}"),
        make_work=lambda attempt: edit_work(spec, attempt, groups, staging, progress_seconds=spec.progress_seconds),
        conclude=Updates(snapshot.manifest),
        properties=spec.properties,
    )
