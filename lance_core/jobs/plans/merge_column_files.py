"""Merge column files: the small data files of fragments with too many, a few fragments per task, as one Update.

::

    plan on version 7     fragments 0..9 have 20 files each; the 13 smallest of each become one
    tasks 0 and 1         read the columns of those files, deleted rows too, and write one file per fragment
    staged                Update(fragments 0..9 with their other files and the new one), no field modified

Rows that others delete in the meantime are merged by the commit. When files of a fragment were exchanged in the meantime,
the commit plans and writes again. When there is nothing to do the identity is noted as committed at the version found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lance_core.dataset.maintain.column_merge import operation_of, plan_snapshot_merges, stage_column_merges
from lance_core.dataset.maintain.column_merge_plan import ColumnMergeOptions, ColumnMergePlan
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.write.retry import StagedEdit
from lance_core.io.resolve import resolve_store
from lance_core.jobs.plans.edit_fragments import edit_work, existing, group_fragments, operations_of
from lance_core.jobs.runtime.lifecycle import look_at
from lance_core.jobs.runtime.protocols import Plan, Report, Runner, Shape, StagedOperation, TableState, TaskResult
from lance_core.jobs.specs.edits import MergeColumnFilesSpec
from lance_core.table.operations.update import Update


@dataclass(frozen=True)
class StageColumnMerge:
    """The dataset's merging of column files, on one task's fragments."""

    options: ColumnMergeOptions

    def __call__(self, snapshot: Snapshot, attempt: str) -> StagedEdit:
        """Write the merged files under the attempt's id."""
        return stage_column_merges(snapshot, self.options, attempt=attempt)


def report(spec: MergeColumnFilesSpec, runner: Runner) -> Report | None:
    """What the merge would do now, where the spec asks for no more; nothing is written."""
    if not spec.dry_run:
        return None
    store = resolve_store(spec.uri, spec.resolved_options())
    snapshot = existing(look_at(store, spec), spec)
    return Report(spec.kind, merge_report(plan_snapshot_merges(snapshot, options_of(spec))))


def options_of(spec: MergeColumnFilesSpec) -> ColumnMergeOptions:
    """The spec's words for the dataset."""
    return ColumnMergeOptions(spec.max_files_per_fragment, spec.enough_files)


def plan_merge(spec: MergeColumnFilesSpec, table: TableState, runner: Runner) -> Plan | None:
    """Find the fragments that are due; None for none."""
    snapshot = existing(table, spec)
    options = options_of(spec)
    due = [merge.fragment for merge in plan_snapshot_merges(snapshot, options).merges]
    if not due:
        return None
    groups = group_fragments(due, rows=spec.rows_per_task)
    staging = StageColumnMerge(options)
    return Plan(
        table=table,
        source=runner.open_tasks(len(groups)),
        shape=Shape(tick_seconds=spec.progress_seconds, title=f"merge_column_files {spec.uri}"),
        make_work=lambda attempt: edit_work(spec, attempt, groups, staging, progress_seconds=spec.progress_seconds),
        conclude=conclude_merge,
        properties=spec.properties,
    )


def conclude_merge(results: Sequence[TaskResult]) -> StagedOperation:
    """The tasks' fragments as one Update, which brings and takes no row."""
    fragments = [item for part in operations_of(results, Update) for item in part.updated_fragments]
    return StagedOperation(operation_of(fragments), 0)


def merge_report(plan: ColumnMergePlan) -> dict[str, object]:
    """What a merge of this version would do, JSON-able; nothing is written."""
    return {
        "version": plan.read_version,
        "fragments": [
            {
                "fragment": merge.fragment.id,
                "files": len(merge.fragment.files),
                "merged": len(merge.files),
                "bytes": merge.num_bytes,
            }
            for merge in plan.merges
        ],
        "files": plan.num_files,
        "bytes": plan.num_bytes,
        "skipped": [{"fragment": number, "reason": reason} for number, reason in plan.skipped],
    }
