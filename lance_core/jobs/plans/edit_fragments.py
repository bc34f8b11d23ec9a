"""Shared by jobs that edit rows of a table: tasks over neighbouring fragments, and one operation out of many.

::

    fragments 0..9, rows_per_task 1000      task 0: fragments 0 1 2    task 1: 3 4 ...
    a task        -> the dataset's own `stage_delete` on a snapshot that has these fragments only
                  -> TaskResult whose `fragments` holds the transaction it staged, on the wire
    the driver    -> one Delete with the updated and removed fragments of all of them

A task's files carry the attempt's id, so a task that ran twice leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import pyarrow as pa

from lance_core.arrow.buffers import numbers_of
from lance_core.commit.naming import data_path, is_of_attempt
from lance_core.dataset.snapshot.snapshot import Snapshot, snapshot_of
from lance_core.dataset.write.retry import StagedEdit
from lance_core.errors import NotFoundError
from lance_core.format.fragment import Fragment
from lance_core.format.fragments import FragmentList
from lance_core.format.manifest import Manifest
from lance_core.io.resolve import resolve_store
from lance_core.jobs.plans.write_fragments import size_of
from lance_core.jobs.runtime.progress import ProgressReport
from lance_core.jobs.runtime.protocols import TableState, TaskResult
from lance_core.jobs.specs.spec import JobSpec
from lance_core.publish.model import Attempt
from lance_core.table.carried import added_fragments, rewritten_fragments
from lance_core.table.operations.base import Operation
from lance_core.table.operations.update import Update
from lance_core.wire.transaction import decode_transaction, encode_transaction

T = TypeVar("T")
StageEdit = Callable[[Snapshot, str], StagedEdit]
"""Stages the edit on a snapshot under an attempt's id; pickles."""


@dataclass(frozen=True)
class EditWork:
    """Stages an edit on the fragments of each task number. Pickles."""

    uri: str
    storage_options: Mapping[str, str] = field(repr=False)
    attempt: str
    version: int
    groups: tuple[tuple[int, ...], ...]
    stage: StageEdit
    progress_seconds: float
    first_partition: int = 0
    stages: tuple[StageEdit, ...] = ()

    def __call__(self, partition: int, task_attempt: str, batches: Iterator[pa.RecordBatch]) -> TaskResult:
        """Every group whose number comes in; a partition without a number does nothing."""
        partition = self.first_partition + partition
        numbers = [number for batch in batches for number in numbers_of(batch.column("id"))]
        if not numbers:
            return TaskResult(partition, task_attempt)
        store = resolve_store(self.uri, self.storage_options)
        report = ProgressReport(
            store, self.attempt, partition=partition, task_attempt=task_attempt, seconds=self.progress_seconds
        )
        snapshot = snapshot_of(store, version=self.version, storage_options=self.storage_options)
        edits = [self._of_group(number)(part_of(snapshot, self.groups[number]), self.attempt) for number in numbers]
        new = [fragment for edit in edits for fragment in _new_fragments(edit.transaction.operation)]
        rows = sum(fragment.physical_rows for fragment in new)
        size = sum(map(size_of, new)) + sum(_size_of_added(edit.transaction.operation, self.attempt) for edit in edits)
        report.finish(rows, len(new), size)
        return TaskResult(
            partition=partition,
            task_attempt=task_attempt,
            rows_read=rows,
            rows=rows,
            size=size,
            fragments=tuple(encode_transaction(edit.transaction) for edit in edits),
        )

    def _of_group(self, number: int) -> StageEdit:
        return self.stages[number] if self.stages else self.stage


def edit_work(
    spec: JobSpec,
    attempt: Attempt,
    groups: tuple[tuple[int, ...], ...],
    stage: StageEdit,
    *,
    progress_seconds: float,
    first_partition: int = 0,
    stages: tuple[StageEdit, ...] = (),
) -> EditWork:
    """The work of a spec; storage options are revealed here, on the driver, and travel inside the pickled work only.

    `stages`: one for each group, where groups are not treated alike.
    """
    return EditWork(
        uri=spec.uri,
        storage_options=spec.resolved_options(),
        attempt=attempt.attempt,
        version=attempt.read_version,
        groups=groups,
        stage=stage,
        progress_seconds=progress_seconds,
        first_partition=first_partition,
        stages=stages,
    )


def part_of(snapshot: Snapshot, numbers: Iterable[int]) -> Snapshot:
    """The version as if it had these fragments only."""
    chosen = frozenset(numbers)
    fragments = tuple(fragment for fragment in snapshot.manifest.fragments if fragment.id in chosen)
    return Snapshot(snapshot.store, replace(snapshot.manifest, fragments=fragments), snapshot.storage_options)


def group_fragments(fragments: Sequence[Fragment], *, rows: int) -> tuple[tuple[int, ...], ...]:
    """Ids of neighbours that hold at least `rows` rows together (the last group may hold fewer).

    >>> group_fragments([Fragment(0, (), 6), Fragment(1, (), 5), Fragment(2, (), 1)], rows=10)
    ((0, 1), (2,))
    """
    groups: list[tuple[int, ...]] = []
    current: list[int] = []
    held = 0
    for fragment in fragments:
        current.append(fragment.id)
        held += fragment.physical_rows
        if held >= rows:
            groups.append(tuple(current))
            current, held = [], 0
    return (*groups, tuple(current)) if current else tuple(groups)


def _new_fragments(operation: Operation) -> tuple[Fragment, ...]:
    return (*added_fragments(operation), *rewritten_fragments(operation))


def _size_of_added(operation: Operation, attempt: str) -> int:
    """Bytes of data files that the attempt put into fragments that stay."""
    updated = operation.updated_fragments if isinstance(operation, Update) else ()
    files = [file for fragment in updated for file in fragment.files]
    return sum(file.file_size_bytes or 0 for file in files if is_of_attempt(data_path(file.path), attempt))


def existing(table: TableState, spec: JobSpec) -> Snapshot:
    """The snapshot a job plans on. NotFoundError when there is no table."""
    if table.manifest is None:
        raise NotFoundError(f"there is no Lance table at {spec.uri}", uri=spec.uri, cure="Check the uri.")
    return Snapshot(table.store, table.manifest, spec.resolved_options())


def operations_of(results: Iterable[TaskResult], kind: type[T]) -> list[T]:
    """What the tasks staged, in the order of partitions."""
    found = [decode_transaction(data).operation for result in results for data in result.fragments]
    return [operation for operation in found if isinstance(operation, kind)]


def count_taken(manifest: Manifest, updated: Iterable[Fragment], removed: Iterable[int]) -> int:
    """Living rows of `manifest` that new deletion files and removed fragments take away."""
    changed = {fragment.id: fragment for fragment in updated}
    gone = [*removed]
    before = FragmentList.of(manifest.fragments).pick({*changed, *gone})
    taken = sum(fragment.num_deleted_rows - before[number].num_deleted_rows for number, fragment in changed.items())
    return taken + sum(before[number].num_rows for number in gone)
