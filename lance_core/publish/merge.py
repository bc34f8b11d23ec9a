"""Combine concurrently staged appends, deletes and updates into one transaction on the newest version.

::

    Delete   fragment 3: {7}                     updated_fragments  3: {2, 7, 9}
    Delete   fragment 3: {2, 9}           ->     new_fragments      those of the update and of the append
    Update   fragment 5: {0} moved to new        one Update; one Delete when nothing is added
    Append   new

None of them saw another, so any order will do, provided no row is updated by one and taken by another: that is a
RetryableConflictError which names the later ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from lance_core.commit.conflicts import PartlyCommittedError
from lance_core.commit.deletion_files import BITMAP, Offsets, deletion_file_path, read_deletions, write_deletions
from lance_core.commit.identities import published
from lance_core.commit.rebase import Rebased, affected_rows, deletion_store
from lance_core.errors import CorruptFileError, RetryableConflictError
from lance_core.format.fragment import DataFile, Fragment
from lance_core.format.fragments import FragmentList
from lance_core.format.manifest import Manifest
from lance_core.io.store import Store
from lance_core.publish.members import Loaded
from lance_core.table.operations import Append, Delete, Update
from lance_core.table.transaction import Transaction

Rebase = Callable[[Transaction], Rebased]
"""Brings one staged transaction up to the newest version, or raises a conflict."""


class MemberConflictError(RetryableConflictError):
    """Some members of a fold have to be planned again; the others are fine. Positions name the members.

    `outdated` met a version of others. `behind` met another member of the fold, which is named by its position as well.
    """

    outdated: tuple[int, ...] = ()
    behind: Mapping[int, int] = MappingProxyType({})


def blame(
    error: RetryableConflictError, outdated: Sequence[int], behind: Mapping[int, int] | None = None
) -> MemberConflictError:
    """The same conflict, with the members that it concerns."""
    found = MemberConflictError(str(error), uri=error.uri, version=error.version, other_version=error.other_version)
    found.outdated, found.behind = tuple(outdated), dict(behind or {})
    return found


def merge_rows(
    store: Store, members: Sequence[Loaded], newest: Manifest, *, uuid: str, attempt: str, rebase: Rebase
) -> Rebased:
    """One transaction on `newest` that does what all members do, and the deletion files written for it.

    Raises MemberConflictError for all members that meet a concurrent commit, or an earlier member, in a row.
    """
    merge = _Merge(store, newest, attempt)
    try:
        merge.add_all(members, rebase)
    except BaseException:
        merge.undo()
        raise
    properties = {name: text for item in members for name, text in published(item.transaction.properties).items()}
    transaction = Transaction(newest.version, uuid, merge.operation(), properties=properties)
    return Rebased(transaction, tuple(merge.files))


class _MeetsError(RetryableConflictError):
    """One member meets another, which is `other`, in a row."""

    def __init__(self, other: int, message: str, *, uri: str, cure: str) -> None:
        super().__init__(message, uri=uri, cure=cure)
        self.other = other


@dataclass
class _Touched:
    """What the members do to one fragment: rows taken, whether any of them was updated, the files that a member wrote
    again, and the only toucher's entry; and the last of them, by its position."""

    member: int
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

    def add_all(self, members: Sequence[Loaded], rebase: Rebase) -> None:
        """What all members do. Every member is checked before any is complained about."""
        fitted, errors = [], dict[int, RetryableConflictError]()
        for number, item in enumerate(members):
            try:
                fitted.append(self._fitted(item, rebase))
            except PartlyCommittedError:
                raise
            except RetryableConflictError as error:
                errors[number] = error
        if errors:
            first = errors[min(errors)]
            raise blame(first, [*errors]) from first
        behind: dict[int, int] = {}
        for number, operation in enumerate(fitted):
            try:
                self._add(number, operation)
            except _MeetsError as error:
                errors[number], behind[number] = error, error.other
        if errors:
            first = errors[min(errors)]
            raise blame(first, (), behind) from first

    def _fitted(self, item: Loaded, rebase: Rebase) -> Append | Delete | Update:
        fitted = rebase(item.transaction)
        self.files.extend(fitted.files)
        operation = item.transaction.operation
        if isinstance(operation, Append):
            return operation
        operation = fitted.transaction.operation
        assert isinstance(operation, (Delete, Update))
        return operation

    def _add(self, number: int, operation: Append | Delete | Update) -> None:
        if isinstance(operation, Append):
            self._gathered.new.extend(operation.fragments)
            return
        is_update, taken = isinstance(operation, Update), {item.id: item for item in operation.updated_fragments}
        removed = operation.deleted_fragment_ids if isinstance(operation, Delete) else operation.removed_fragment_ids
        changes = dict[int, _Touched]()
        for fragment_id in (*taken, *removed):
            changes[fragment_id] = self._taken(number, fragment_id, taken.get(fragment_id), is_update=is_update)
        self._touched.update(changes)
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

    def _taken(self, member: int, number: int, after: Fragment | None, *, is_update: bool) -> _Touched:
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
            return _Touched(member, base, rows, is_update, files, after)
        if base.files not in (files, known.files):
            raise _MeetsError(
                known.member,
                f"{self._store.uri}: files of fragment {number} are replaced by two staged transactions of the same commit",
                uri=self._store.uri,
                cure="Plan one of them again after the other has been committed.",
            )
        files = known.files if files == base.files else files
        both = np.intersect1d(known.rows, rows, assume_unique=True)
        if len(both) and (is_update or known.updated):
            raise _MeetsError(
                known.member,
                f"{self._store.uri}: row {both[0]} of fragment {number} is updated by one staged transaction and changed by "
                "another of the same commit",
                uri=self._store.uri,
                cure="Plan one of them again after the other has been committed.",
            )
        return _Touched(member, base, np.union1d(known.rows, rows), known.updated or is_update, files, None)

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


def _distinct(values: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(set(values)))
