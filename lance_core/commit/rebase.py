"""Rebase a planned transaction onto newer versions. Only this module does IO for it.

::

    planned on version 4      fragment 3: rows {7} deleted            deletion file {7}
    version 5, by others      fragment 3: rows {2, 9} deleted         deletion file {2, 9}
    rebased onto version 5    fragment 3: rows {2, 7, 9} deleted      a new file, written under the commit's name

Two writers that deleted (or updated) the same row cannot both be right: RetryableConflictError. (Spec: FORMAT D.4.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from lance_core.commit.base_paths import open_base
from lance_core.commit.conflicts import PLAN_AGAIN, refusal
from lance_core.commit.deletion_files import BITMAP, Offsets, deletion_file_path, read_deletions, write_deletions
from lance_core.errors import CorruptFileError, NotFoundError, RetryableConflictError
from lance_core.format.fragment import Fragment
from lance_core.format.fragments import FragmentList
from lance_core.format.manifest import Manifest
from lance_core.io.store import Store
from lance_core.table.coverage import depends_on
from lance_core.table.operations import CreateIndex, Delete, Update
from lance_core.table.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Rebased:
    """The transaction as it is to be published, and the files that were written for it."""

    transaction: Transaction
    files: tuple[str, ...] = ()


def rebase(
    store: Store,
    planned: Transaction,
    newest: Manifest,
    *,
    theirs: Sequence[Transaction],
    original: Manifest | None,
    attempt: str | None = None,
) -> Rebased:
    """The planned transaction on top of `newest`, given the transactions in between that require it.

    `original` is the manifest of `planned.read_version`. Raises RetryableConflictError when the two sides meet in a row.
    """
    operation = planned.operation
    if isinstance(operation, CreateIndex):
        return Rebased(replace(planned, operation=_without_updated(operation, theirs)))
    if isinstance(operation, (Delete, Update)) and original is not None:
        others = frozenset(number for item in theirs for number in item.operation.touches().fragments)
        contested = operation.touches().fragments & others
        return _Merge(store, planned, newest, original, attempt).run(operation, sorted(contested))
    raise _unreadable(store, planned)


def _unreadable(store: Store, planned: Transaction) -> RetryableConflictError:
    text = f"was planned on version {planned.read_version}, which can no longer be read"
    return refusal(RetryableConflictError, store, planned, text, cure=PLAN_AGAIN)


def affected_rows(before: Offsets, after: Offsets | None, *, physical_rows: int) -> Offsets:
    """Rows that an edit takes away: `after` minus `before`, or all that were left when the fragment goes (`after` None)."""
    gone = np.arange(physical_rows, dtype=np.int64) if after is None else after
    return np.setdiff1d(gone, before, assume_unique=True)


def deletion_store(store: Store, manifest: Manifest, fragment: Fragment) -> Store:
    """Where the deletion file of a fragment is: here, or below a base path of the table."""
    base_id = None if fragment.deletion_file is None else fragment.deletion_file.base_id
    if base_id is None:
        return store
    base = next((item for item in manifest.base_paths if item.id == base_id), None)
    if base is None:
        raise CorruptFileError(f"{store.uri}: fragment {fragment.id} refers to base path {base_id}, which is not defined")
    return open_base(base, table_uri=store.uri, storage_options=None)


@dataclass(frozen=True, slots=True)
class _Merge:
    """Deletions of the planned operation, merged into those of the newest version."""

    store: Store
    planned: Transaction
    newest: Manifest
    original: Manifest
    attempt: str | None
    files: list[str] = field(default_factory=list)

    def run(self, operation: Delete | Update, contested: Sequence[int]) -> Rebased:
        now = FragmentList.of(self.newest.fragments).pick(frozenset(contested))
        read = FragmentList.of(self.original.fragments).pick(frozenset(contested))
        mine = {item.id: item for item in operation.updated_fragments}
        removed = set(removed_by(operation))
        for number in contested:
            if number not in now or number not in read:
                raise self._conflict(number, "it was removed")
            if now[number].files != read[number].files:
                raise self._conflict(number, "its files were changed")
            merged = self._merged(mine.get(number), read[number], now[number])
            if merged is None:
                mine.pop(number, None)
                removed.add(number)
            else:
                mine[number] = merged
                removed.discard(number)
        fitted = _with(operation, tuple(mine[key] for key in sorted(mine)), tuple(sorted(removed)))
        return Rebased(replace(self.planned, read_version=self.newest.version, operation=fitted), tuple(self.files))

    def _merged(self, mine: Fragment | None, read: Fragment, now: Fragment) -> Fragment | None:
        try:
            before = self._read(self.original, read)
        except NotFoundError as error:
            raise _unreadable(self.store, self.planned) from error
        after = None if mine is None else self._read(self.newest, mine)
        rows = affected_rows(before, after, physical_rows=read.physical_rows)
        theirs = self._read(self.newest, now)
        both = np.intersect1d(rows, theirs, assume_unique=True)
        if len(both):
            raise self._conflict(now.id, f"{len(both)} of the same rows were changed, for example row {both[0]}")
        merged = np.union1d(rows, theirs)
        if len(merged) == now.physical_rows:
            return None
        # Columns that the planned operation rewrote stay rewritten: only the deletions are theirs and ours together.
        target = now if mine is None else mine
        if len(merged) == 0:
            return target
        version, attempt = self.newest.version, self.attempt
        file = write_deletions(self.store, now.id, merged, read_version=version, attempt=attempt, file_type=BITMAP)
        self.files.append(deletion_file_path(now.id, file))
        return replace(target, deletion_file=file)

    def _read(self, manifest: Manifest, fragment: Fragment) -> Offsets:
        return read_deletions(deletion_store(self.store, manifest, fragment), fragment)

    def _conflict(self, number: int, why: str) -> RetryableConflictError:
        newest = self.newest.version
        text = f"planned on version {self.planned.read_version} changes fragment {number}, but by version {newest} {why}"
        return refusal(RetryableConflictError, self.store, self.planned, text, other=newest, cure=PLAN_AGAIN)


def removed_by(operation: Delete | Update) -> tuple[int, ...]:
    """Fragments that go whole."""
    return operation.deleted_fragment_ids if isinstance(operation, Delete) else operation.removed_fragment_ids


def _with(operation: Delete | Update, updated: tuple[Fragment, ...], removed: tuple[int, ...]) -> Delete | Update:
    if isinstance(operation, Delete):
        return replace(operation, updated_fragments=updated, deleted_fragment_ids=removed)
    return replace(operation, updated_fragments=updated, removed_fragment_ids=removed)


def _without_updated(operation: CreateIndex, theirs: Sequence[Transaction]) -> CreateIndex:
    indices = list(operation.new_indices)
    for item in theirs:
        touched = item.operation.touches()
        for position, index in enumerate(indices):
            if index.fragment_bitmap is not None and depends_on(index, touched.fields):
                indices[position] = replace(index, fragment_bitmap=index.fragment_bitmap - touched.modified)
    return replace(operation, new_indices=tuple(indices))
