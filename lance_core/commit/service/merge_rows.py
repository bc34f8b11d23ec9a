"""Combine concurrently staged appends, deletes and updates into one transaction on the newest version.

::

    Delete   fragment 3: {7}                     updated_fragments  3: {2, 7, 9}
    Delete   fragment 3: {2, 9}           ->     new_fragments      those of the update and of the append
    Update   fragment 5: {0} moved to new        one Update; one Delete when nothing is added
    Append   new

None of them saw another, so they may land in any order, provided no row is updated by one and taken by another: that is a
RetryableConflictError which names the later of the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from lance_core.commit.identities import published
from lance_core.commit.log.deletion_files import BITMAP, Offsets, deletion_file_path, read_deletions, write_deletions
from lance_core.commit.log.judgement import PartlyLandedError
from lance_core.commit.log.rebase import Rebased, affected_rows, deletion_store
from lance_core.commit.staging.drain import Loaded
from lance_core.errors import CorruptFileError, RetryableConflictError
from lance_core.format.fragment import DataFile, Fragment
from lance_core.format.fragments import FragmentList
from lance_core.format.manifest import Manifest
from lance_core.io.store import Store
from lance_core.table.operations import Append, Delete, Update
from lance_core.table.transaction import Transaction

Rebase = Callable[[Transaction], Rebased]
"""Brings one staged transaction up to the newest version, or raises a conflict."""


class MemberConflictError(RetryableConflictError):
    """One member of a fold has to be planned again; the others are fine. `member` is the position in the fold."""

    member: int = 0


def merge_rows(
    store: Store, members: Sequence[Loaded], newest: Manifest, *, uuid: str, attempt: str, rebase: Rebase
) -> Rebased:
    """One transaction on `newest` that does what all members do, and the deletion files written for it.

    Raises MemberConflictError for a member that meets a concurrent commit, or an earlier member, in a row.
    """
    merge = _Merge(store, newest, attempt)
    for number, item in enumerate(members):
        try:
            merge.add(item, rebase)
        except PartlyLandedError:
            merge.undo()
            raise
        except RetryableConflictError as error:
            merge.undo()
            raise _blame(error, number) from error
        except BaseException:
            merge.undo()
            raise
    properties = {name: text for item in members for name, text in published(item.transaction.properties).items()}
    transaction = Transaction(newest.version, uuid, merge.operation(), properties=properties)
    return Rebased(transaction, tuple(merge.files))


@dataclass
class _Touched:
    """What the members do to one fragment: rows taken, whether any of them was updated, the files that a member wrote
    again, and the only toucher's entry."""

    base: Fragment
    rows: Offsets
    updated: bool
    files: tuple[DataFile, ...]
    entry: Fragment | None


@dataclass
class _Gathered:
    new: list[Fragment] = field(default_factory=list)
    predicates: list[str] = field(default_factory=list)
    updates: list[Update] = field(default_factory=list)


class _Merge:
    def __init__(self, store: Store, newest: Manifest, attempt: str) -> None:
        self._store = store
        self._newest = newest
        self._attempt = attempt
        self._fragments = FragmentList.of(newest.fragments)
        self._touched: dict[int, _Touched] = {}
        self._gathered = _Gathered()
        self.files: list[str] = []

    def add(self, item: Loaded, rebase: Rebase) -> None:
        operation = item.transaction.operation
        if isinstance(operation, Append):
            rebase(item.transaction)
            self._gathered.new.extend(operation.fragments)
            return
        fitted = rebase(item.transaction)
        self.files.extend(fitted.files)
        operation = fitted.transaction.operation
        assert isinstance(operation, (Delete, Update))
        is_update = isinstance(operation, Update)
        for fragment in operation.updated_fragments:
            self._take(fragment.id, fragment, is_update=is_update)
        for number in operation.deleted_fragment_ids if isinstance(operation, Delete) else operation.removed_fragment_ids:
            self._take(number, None, is_update=is_update)
        if isinstance(operation, Update):
            self._gathered.updates.append(operation)
            self._gathered.new.extend(operation.new_fragments)
        else:
            self._gathered.predicates.append(operation.predicate)

    def operation(self) -> Delete | Update:
        updated, removed = self._result()
        gathered = self._gathered
        if not gathered.updates and not gathered.new:
            return Delete(updated, removed, " OR ".join(f"({text})" for text in gathered.predicates if text))
        return Update(
            removed_fragment_ids=removed,
            updated_fragments=updated,
            new_fragments=tuple(gathered.new),
            fields_modified=_distinct(field for item in gathered.updates for field in item.fields_modified),
            fields_for_preserving_frag_bitmap=_distinct(
                field for item in gathered.updates for field in item.fields_for_preserving_frag_bitmap
            ),
        )

    def undo(self) -> None:
        for path in self.files:
            self._store.delete(path)

    def _take(self, number: int, after: Fragment | None, *, is_update: bool) -> None:
        base = self._fragments.get(number)
        if base is None:
            raise CorruptFileError(
                f"{self._store.uri}: a staged transaction changes fragment {number}, which version {self._newest.version} "
                "does not have"
            )
        before = self._read(base)
        rows = affected_rows(before, None if after is None else self._read(after), physical_rows=base.physical_rows)
        is_update = is_update and len(rows) > 0
        files = base.files if after is None else after.files
        known = self._touched.get(number)
        if known is None:
            self._touched[number] = _Touched(base, rows, is_update, files, after)
            return
        if base.files not in (files, known.files):
            raise RetryableConflictError(
                f"{self._store.uri}: files of fragment {number} are replaced by two staged transactions of the same commit",
                uri=self._store.uri,
                cure="Plan one of them again after the other has been committed.",
            )
        files = known.files if files == base.files else files
        both = np.intersect1d(known.rows, rows, assume_unique=True)
        if len(both) and (is_update or known.updated):
            raise RetryableConflictError(
                f"{self._store.uri}: row {both[0]} of fragment {number} is updated by one staged transaction and changed by "
                "another of the same commit",
                uri=self._store.uri,
                cure="Plan one of them again after the other has been committed.",
            )
        self._touched[number] = _Touched(base, np.union1d(known.rows, rows), known.updated or is_update, files, None)

    def _result(self) -> tuple[tuple[Fragment, ...], tuple[int, ...]]:
        updated, removed = [], []
        for number in sorted(self._touched):
            touched = self._touched[number]
            base = touched.base
            merged = np.union1d(self._read(base), touched.rows)
            if len(merged) == base.physical_rows:
                removed.append(number)
            elif touched.entry is not None:
                updated.append(touched.entry)
            elif len(touched.rows) == 0:
                updated.append(replace(base, files=touched.files))
            else:
                file = write_deletions(
                    self._store, number, merged, read_version=self._newest.version, attempt=self._attempt, file_type=BITMAP
                )
                self.files.append(deletion_file_path(number, file))
                updated.append(replace(base, files=touched.files, deletion_file=file))
        return tuple(updated), tuple(removed)

    def _read(self, fragment: Fragment) -> Offsets:
        return read_deletions(deletion_store(self._store, self._newest, fragment), fragment)


def _blame(error: RetryableConflictError, number: int) -> MemberConflictError:
    blamed = MemberConflictError(str(error), uri=error.uri, version=error.version, other_version=error.other_version)
    blamed.member = number
    return blamed


def _distinct(values: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(set(values)))
