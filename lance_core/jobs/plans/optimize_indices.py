"""Optimize indices: cover unindexed rows, one index per task, as one CreateIndex.

When every index covers every fragment nothing is written: the identity is noted as committed at the version that was found.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Sequence
from dataclasses import dataclass

from lance_core.dataset.indexing.folder import paths_of
from lance_core.dataset.indexing.maintain import outdated_indices, rebuild, tiered_indices
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.write.retry import StagedEdit
from lance_core.format.index import IndexMetadata
from lance_core.jobs.plans.edit_fragments import edit_work, existing, operations_of
from lance_core.jobs.runtime.protocols import Plan, Runner, Shape, StagedOperation, TableState, TaskResult
from lance_core.jobs.specs.indices import OptimizeIndicesSpec
from lance_core.table.operations.create_index import CreateIndex
from lance_core.table.transaction import Transaction


@dataclass(frozen=True)
class StageAgain:
    """A new segment like `index`, over one task's fragments."""

    index: IndexMetadata

    def __call__(self, snapshot: Snapshot, attempt: str) -> StagedEdit:
        """Write the segment's files under the attempt's id."""
        built = rebuild(snapshot, self.index, [item.id for item in snapshot.manifest.fragments], attempt)
        return StagedEdit(
            Transaction(snapshot.version, str(uuids.uuid4()), CreateIndex(new_indices=(built,))), paths_of(built)
        )


@dataclass(frozen=True)
class Extended:
    """Results become one CreateIndex; `removed` are the segments that went into new ones."""

    removed: tuple[IndexMetadata, ...]

    def __call__(self, results: Sequence[TaskResult]) -> StagedOperation:
        """The operation; it brings no rows."""
        built = tuple(index for part in operations_of(results, CreateIndex) for index in part.new_indices)
        return StagedOperation(CreateIndex(new_indices=built, removed_indices=self.removed), 0)


@dataclass(frozen=True)
class _Extension:
    """An index's new segment: like which old one, over which fragments, instead of which segments."""

    like: IndexMetadata
    coverage: tuple[int, ...]
    removed: tuple[IndexMetadata, ...]


def plan_optimize(spec: OptimizeIndicesSpec, table: TableState, runner: Runner) -> Plan | None:
    """Find the indices that lag behind; None for none. InputError for an index that is not there, before any write."""
    found = plan_extensions(existing(table, spec), spec)
    if not found:
        return None
    groups, stages = tuple(item.coverage for item in found), tuple(StageAgain(item.like) for item in found)
    removed = tuple(index for item in found for index in item.removed)

    return Plan(
        table=table,
        source=runner.open_tasks(len(groups)),
        shape=Shape(tick_seconds=spec.progress_seconds, title=f"optimize_indices {spec.uri}"),
        make_work=lambda attempt: edit_work(
            spec, attempt, groups, stages[0], progress_seconds=spec.progress_seconds, stages=stages
        ),
        conclude=Extended(removed),
        properties=spec.properties,
    )


def plan_extensions(snapshot: Snapshot, spec: OptimizeIndicesSpec) -> list[_Extension]:
    """The new segments that are worth building."""
    if spec.strategy == "tiered":
        tiered = tiered_indices(snapshot, spec.index_names or None, spec.tier_fanout)
        return [_Extension(like, tuple(sorted(coverage)), tuple(removed)) for like, coverage, removed in tiered]
    most = None if spec.retrain else spec.num_indices_to_merge
    extensions = []
    for segments, coverage in outdated_indices(snapshot, spec.index_names or None, most, spec.retrain):
        removed = segments if most is None else segments[len(segments) - min(most, len(segments)) :]
        extensions.append(_Extension(segments[-1], tuple(sorted(coverage)), tuple(removed)))
    return extensions
