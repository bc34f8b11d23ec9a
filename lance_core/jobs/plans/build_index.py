"""Build index: segments of one index, each over some fragments, as one CreateIndex.

::

    rows_per_segment None      one task, one segment over everything
    rows_per_segment 1000000   fragments 0 1 2 -> segment a, fragments 3 4 -> segment b     built side by side

Rows that came in the meantime stay unindexed; a compaction of indexed fragments makes the commit build the index again.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lance_core.dataset.indexing.build import IndexRequest, build_segment, parse_index_request
from lance_core.dataset.indexing.folder import paths_of
from lance_core.dataset.indexing.vector_build import VectorRequest, build_vector_segment, parse_vector_request, train_index
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.write.retry import StagedEdit
from lance_core.errors import InputError
from lance_core.format.index import IndexMetadata
from lance_core.index.vector.model import model_from_bytes
from lance_core.jobs.plans.edit_fragments import StageEdit, edit_work, existing, group_fragments, operations_of
from lance_core.jobs.runtime.protocols import Plan, Runner, Shape, StagedOperation, TableState, TaskResult
from lance_core.jobs.specs.indices import BuildIndexSpec
from lance_core.table.operations.create_index import CreateIndex
from lance_core.table.transaction import Transaction


@dataclass(frozen=True)
class StageSegment:
    """One segment over one task's fragments. The kind is named, because it does not pickle."""

    spec: BuildIndexSpec

    def __call__(self, snapshot: Snapshot, attempt: str) -> StagedEdit:
        """Write the segment's files under the attempt's id."""
        built = build_segment(snapshot, request_of(self.spec, snapshot), snapshot.manifest.fragments, attempt=attempt)
        transaction = Transaction(snapshot.version, str(uuids.uuid4()), CreateIndex(new_indices=(built,)))
        return StagedEdit(transaction, paths_of(built))


@dataclass(frozen=True)
class StageVectorSegment:
    """The same for a vector index: every segment is built with one model, which the driver trained on a sample."""

    spec: BuildIndexSpec
    model: bytes

    def __call__(self, snapshot: Snapshot, attempt: str) -> StagedEdit:
        """Write the segment's files under the attempt's id."""
        model = model_from_bytes(self.model)
        request = VectorRequest(self.spec.column, name_of(self.spec), model.parameters, model.element)
        built = build_vector_segment(snapshot, request, model, snapshot.manifest.fragments, attempt=attempt)
        transaction = Transaction(snapshot.version, str(uuids.uuid4()), CreateIndex(new_indices=(built,)))
        return StagedEdit(transaction, paths_of(built))


@dataclass(frozen=True)
class Segments:
    """Results become one CreateIndex that takes the place of `removed`."""

    removed: tuple[IndexMetadata, ...]
    first_partition: int = 0

    def __call__(self, results: Sequence[TaskResult]) -> StagedOperation:
        """The operation; it brings no rows."""
        built_by = [result for result in results if result.partition >= self.first_partition]
        built = tuple(index for part in operations_of(built_by, CreateIndex) for index in part.new_indices)
        return StagedOperation(CreateIndex(new_indices=built, removed_indices=self.removed), 0)


def plan_build(spec: BuildIndexSpec, table: TableState, runner: Runner) -> Plan:
    """Check column and kind, and cut the table into segments. InputError before anything is written."""
    snapshot = existing(table, spec)
    manifest = snapshot.manifest
    make_stage = _vector_stage(spec, snapshot) if is_vector(spec) else _scalar_stage(spec, snapshot)
    name = name_of(spec)
    old = tuple(index for index in manifest.indices if index.name == name)
    if old and not spec.replace:
        raise InputError(f"there is already an index named {name!r}", cure="Pass replace=True, or another name.")
    field_id = manifest.schema.find(spec.column).id
    if any(index.fields != (field_id,) for index in old):
        raise InputError(f"the index {name!r} is on another column", cure="Pass another name.")
    if spec.rows_per_segment is None:
        groups: tuple[tuple[int, ...], ...] = (tuple(fragment.id for fragment in manifest.fragments),)
    else:
        groups = group_fragments(manifest.fragments, rows=spec.rows_per_segment) or ((),)
    return Plan(
        table=table,
        source=runner.open_tasks(len(groups)),
        shape=Shape(tick_seconds=spec.progress_seconds, title=f"build_index {spec.uri} {spec.column}"),
        make_work=lambda attempt: edit_work(spec, attempt, groups, make_stage(), progress_seconds=spec.progress_seconds),
        conclude=Segments(old),
        properties=spec.properties,
    )


def is_vector(spec: BuildIndexSpec) -> bool:
    """Whether the kind is one of vectors: IVF_FLAT, IVF_PQ, ..."""
    return spec.index_type.upper().startswith("IVF_")


def name_of(spec: BuildIndexSpec) -> str:
    """The index's name, given or not."""
    return spec.name or f"{spec.column}_idx"


def _scalar_stage(spec: BuildIndexSpec, snapshot: Snapshot) -> Callable[[], StageEdit]:
    request_of(spec, snapshot)
    return lambda: StageSegment(spec)


def _vector_stage(spec: BuildIndexSpec, snapshot: Snapshot) -> Callable[[], StageEdit]:
    """Checked now; trained when the attempt is on record, because that takes its time."""
    try:
        request = parse_vector_request(snapshot, spec.column, spec.index_type, spec.name, **spec.parameters)
    except TypeError as error:
        raise InputError(f"build_index: parameters of {spec.index_type}: {error}") from None
    return lambda: StageVectorSegment(spec, train_index(snapshot, request).to_bytes())


def request_of(spec: BuildIndexSpec, snapshot: Snapshot) -> IndexRequest:
    """What is to be built, checked against the schema. InputError names what is wrong."""
    try:
        return parse_index_request(snapshot.manifest.schema, spec.column, spec.index_type, spec.name, spec.parameters)
    except TypeError as error:
        raise InputError(f"build_index: parameters of {spec.index_type}: {error}") from None
