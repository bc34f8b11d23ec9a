"""Build index: segments of one index, each over some fragments, as one CreateIndex.

::

    rows_per_segment None      one task, one segment over everything
    rows_per_segment 1000000   fragments 0 1 2 -> segment a, fragments 3 4 -> segment b     built side by side

Rows that came meanwhile stay unindexed; a compaction of indexed fragments makes the commit build the index again.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from lance_core.commit.model import StagedTransaction
from lance_core.dataset.build_index import IndexRequest, build_segment, parse_index_request, paths_of
from lance_core.dataset.edit import Edit
from lance_core.dataset.snapshot import Snapshot
from lance_core.errors import InputError
from lance_core.format.index import IndexMetadata
from lance_core.jobs.base import Outcome, Plan, Runner, Shape, TableState, TaskResult
from lance_core.jobs.edit import edit_work, existing, group_fragments, operations_of
from lance_core.jobs.index_specs import BuildIndexSpec
from lance_core.jobs.stage import stage
from lance_core.table.operations.create_index import CreateIndex
from lance_core.table.transaction import Transaction


@dataclass(frozen=True)
class StageSegment:
    """One segment over one task's fragments. The kind is named, for it does not pickle."""

    spec: BuildIndexSpec

    def __call__(self, snapshot: Snapshot, attempt: str) -> Edit:
        """Write the segment's files under the attempt's id."""
        built = build_segment(snapshot, request_of(self.spec, snapshot), snapshot.manifest.fragments, attempt=attempt)
        transaction = Transaction(snapshot.version, str(uuids.uuid4()), CreateIndex(new_indices=(built,)))
        return Edit(transaction, paths_of(built))


@dataclass(frozen=True)
class Segments:
    """Results become one CreateIndex that takes the place of `removed`."""

    removed: tuple[IndexMetadata, ...]

    def __call__(self, results: Sequence[TaskResult]) -> Outcome:
        """The operation; it brings no rows."""
        built = tuple(index for part in operations_of(results, CreateIndex) for index in part.new_indices)
        return Outcome(CreateIndex(new_indices=built, removed_indices=self.removed), 0, 0)


class BuildIndexJob:
    """Carries out a `BuildIndexSpec`."""

    kind: ClassVar[str] = "build_index"
    needs_runner: ClassVar[bool] = True

    def run(self, spec: BuildIndexSpec, runner: Runner) -> StagedTransaction:
        """Stage the index once."""
        return stage(spec, runner, plan_build)


def plan_build(spec: BuildIndexSpec, table: TableState, runner: Runner) -> Plan:
    """Check column and kind, and cut the table into segments. InputError before anything is written."""
    snapshot = existing(table, spec)
    manifest = snapshot.manifest
    request = request_of(spec, snapshot)
    old = tuple(index for index in manifest.indices if index.name == request.name)
    if old and not spec.replace:
        raise InputError(f"there is an index named {request.name!r}", cure="Run with replace=True, or give another name.")
    field_id = manifest.schema.find(request.column).id
    if any(index.fields != (field_id,) for index in old):
        raise InputError(f"the index {request.name!r} is on another column", cure="Give another name.")
    if spec.rows_per_segment is None:
        groups: tuple[tuple[int, ...], ...] = (tuple(fragment.id for fragment in manifest.fragments),)
    else:
        groups = group_fragments(manifest.fragments, rows=spec.rows_per_segment) or ((),)
    return Plan(
        table=table,
        source=runner.open_tasks(len(groups)),
        shape=Shape(tick_seconds=spec.progress_seconds, title=f"build_index {spec.uri} {spec.column}"),
        make_work=lambda attempt: edit_work(
            spec, attempt, groups, StageSegment(spec), progress_seconds=spec.progress_seconds
        ),
        conclude=Segments(old),
        properties=spec.properties,
    )


def request_of(spec: BuildIndexSpec, snapshot: Snapshot) -> IndexRequest:
    """What is to be built, checked against the schema. InputError names what is wrong."""
    try:
        return parse_index_request(snapshot.manifest.schema, spec.column, spec.index_type, spec.name, spec.parameters)
    except TypeError as error:
        raise InputError(f"build_index: parameters of {spec.index_type}: {error}") from None
