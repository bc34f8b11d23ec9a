"""Plan, commit, and plan again when somebody else was faster: what delete, update and merge share.

::

    plan(snapshot of version 4) -> Edit     commit -> RetryableConflictError     plan(snapshot of version 6) -> Edit   …

What a lost try wrote is removed before the next one.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_core.commit.commit import commit_transaction
from lance_core.commit.deletions import deletion_file_path, write_deletions
from lance_core.dataset.auto_cleanup import after_commit
from lance_core.dataset.deletions import read_deleted
from lance_core.dataset.places import Place
from lance_core.dataset.rows import Ints
from lance_core.dataset.snapshot import Snapshot, snapshot_of
from lance_core.dataset.write import discard_fragments
from lance_core.errors import (
    CommitError,
    CommitStateUnknownError,
    IncompatibleConflictError,
    LanceError,
    RetryableConflictError,
)
from lance_core.expr import Expr
from lance_core.format.fragment import Fragment
from lance_core.format.fragments import FragmentList
from lance_core.io.pool import in_io_pool, io_pool
from lance_core.table.transaction import Transaction

DEFAULT_RETRIES = 10
DEFAULT_RETRY_TIMEOUT = dt.timedelta(seconds=30)


@dataclass(frozen=True)
class Edit:
    """A planned edit: its transaction, the files written for it (paths below the table), and what to tell the user.

    `elsewhere` are fragments whose files lie in other places (base paths).
    """

    transaction: Transaction
    files: tuple[str, ...] = ()
    result: Mapping[str, Any] = field(default_factory=dict)
    elsewhere: tuple[Fragment, ...] = ()
    places: tuple[Place, ...] = ()


def run_edit(
    snapshot: Snapshot,
    plan: Callable[[Snapshot], Edit],
    *,
    retries: int = DEFAULT_RETRIES,
    timeout: dt.timedelta = DEFAULT_RETRY_TIMEOUT,
    strict: bool = False,
) -> tuple[Snapshot, Edit]:
    """Commit what `plan` makes of a snapshot; on a retryable conflict plan again on the newest version.

    `strict` plans again whenever the table moved, for edits that new rows of others would change.
    Gives up with the last RetryableConflictError after `retries` more tries or when `timeout` is over.
    """
    deadline = time.monotonic() + timeout.total_seconds()
    current = snapshot
    again = (RetryableConflictError, IncompatibleConflictError) if strict else (RetryableConflictError,)
    for left in range(retries, -1, -1):
        edit = plan(current)
        try:
            manifest = commit_transaction(current.store, edit.transaction, strict=strict)
        except CommitStateUnknownError:
            raise
        except again as error:
            undo(current, edit)
            if left == 0 or time.monotonic() >= deadline:
                if isinstance(error, RetryableConflictError):
                    raise
                raise _moved(error) from error
        except BaseException:
            undo(current, edit)
            raise
        else:
            return after_commit(Snapshot(current.store, manifest, current.storage_options)), edit
        current = snapshot_of(current.store, storage_options=current.storage_options)
    raise AssertionError("unreachable")


def _moved(error: CommitError) -> RetryableConflictError:
    return RetryableConflictError(
        f"the table moved each time this was planned; at last: {error}",
        uri=error.uri,
        version=error.version,
        other_version=error.other_version,
        operation=error.operation,
    )


def undo(snapshot: Snapshot, edit: Edit) -> None:
    """Remove what an edit wrote, wherever it lies. Never fails: what stays is garbage."""
    remove_files(snapshot, edit.files)
    discard_fragments(snapshot.store, edit.elsewhere, edit.places)


def remove_files(snapshot: Snapshot, paths: Sequence[str]) -> None:
    """Remove what was written for an edit that did not land. Never fails: what stays is garbage."""
    for path in paths:
        with suppress(LanceError, OSError):
            snapshot.store.delete(path)


def matching_offsets(
    snapshot: Snapshot, expr: Expr | None, *, progress: Callable[[int, int], None] = lambda done, total: None
) -> dict[int, Ints]:
    """Sorted physical offsets of the living rows a filter selects (None: all), by fragment id.

    `progress(rows looked at, rows to look at)` is called while they are looked for.
    """
    # Late: what serves filters from indices knows how indices are built, which is an edit.
    from lance_core.dataset.matching import select_offsets

    if expr is not None:
        return select_offsets(snapshot, expr, progress=progress)
    everything = {fragment.id: living_offsets(snapshot, fragment) for fragment in snapshot.manifest.fragments}
    return {number: offsets for number, offsets in everything.items() if len(offsets)}


def by_fragment(addresses: npt.NDArray[np.uint64]) -> dict[int, Ints]:
    """Sorted physical offsets by fragment id; an address is fragment id << 32 | offset.

    >>> by_fragment(np.array([1 << 32 | 5, 3], np.uint64))
    {0: array([3]), 1: array([5])}
    """
    ordered = np.sort(addresses)
    owners = (ordered >> np.uint64(32)).astype(np.int64)
    offsets = (ordered & np.uint64(0xFFFFFFFF)).astype(np.int64)
    numbers, starts = np.unique(owners, return_index=True)
    # Splitting nothing gives one empty part, which no number claims.
    return dict(zip(numbers.tolist(), np.split(offsets, starts[1:]), strict=False))


def living_offsets(snapshot: Snapshot, fragment: Fragment) -> Ints:
    """Physical offsets of all living rows of a fragment."""
    every = np.arange(fragment.physical_rows, dtype=np.int64)
    return np.setdiff1d(every, read_deleted(snapshot, fragment), assume_unique=True)


@dataclass(frozen=True)
class Deletions:
    """Fragments with new deletion files, ids of those that lose their last row, files written, rows deleted."""

    updated: tuple[Fragment, ...]
    removed: tuple[int, ...]
    files: tuple[str, ...]
    num_rows: int


def stage_deletions(snapshot: Snapshot, gone: Mapping[int, Ints], *, attempt: str | None = None) -> Deletions:
    """Write the deletion files that take away `gone` (physical offsets of living rows, by fragment id)."""
    touched = FragmentList.of(snapshot.manifest.fragments).pick({number for number, found in gone.items() if len(found)})
    merged = {number: _joined(read_deleted(snapshot, item), gone[number]) for number, item in touched.items()}
    emptied = tuple(number for number, item in touched.items() if len(merged[number]) == item.physical_rows)
    left = [item for number, item in touched.items() if number not in emptied]

    def write(fragment: Fragment) -> Fragment:
        rows = merged[fragment.id]
        file = write_deletions(snapshot.store, fragment.id, rows, read_version=snapshot.version, attempt=attempt)
        return replace(fragment, deletion_file=file)

    updated = _at_once(write, left)
    files = tuple(deletion_file_path(item.id, item.deletion_file) for item in updated if item.deletion_file is not None)
    return Deletions(tuple(updated), emptied, files, sum(len(offsets) for offsets in gone.values()))


def stage_both(
    snapshot: Snapshot,
    gone: Mapping[int, Ints],
    write: Callable[[], list[Fragment]],
    *,
    attempt: str | None = None,
    places: Sequence[Place] = (),
) -> tuple[Deletions, list[Fragment]]:
    """`stage_deletions` while `write` writes new fragments: both mostly wait. When one fails, both are undone."""
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="lance-delete") as beside:
        marking = beside.submit(stage_deletions, snapshot, gone, attempt=attempt)
        try:
            fragments = write()
        except BaseException:
            with suppress(LanceError, OSError):
                remove_files(snapshot, marking.result().files)
            raise
        try:
            return marking.result(), fragments
        except BaseException:
            discard_fragments(snapshot.store, fragments, places)
            raise


def _at_once(write: Callable[[Fragment], Fragment], fragments: Sequence[Fragment]) -> list[Fragment]:
    """`write` of each, at once: making a file durable is waiting. None is being written any more when this returns."""
    if len(fragments) < 2 or in_io_pool():
        return [write(fragment) for fragment in fragments]
    futures = [io_pool().submit(write, fragment) for fragment in fragments]
    wait(futures)
    return [future.result() for future in futures]


def _joined(deleted: Ints, offsets: Ints) -> Ints:
    """Both, sorted; rows that were deleted are not deleted again, so nothing is in both."""
    if len(deleted) == 0:
        return offsets
    return np.sort(np.concatenate([deleted, offsets]), kind="stable")
