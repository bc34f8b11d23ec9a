"""Fold many staged transactions into as few versions as the format allows.

::

    Append a, Append b, …, Append z              -> one Append of all their fragments, one property per identity
    creating Append a, b (no table yet)          -> one Overwrite on version 0: the table is born with both
    creating Append a (the table is there now)   -> an Append, its field ids translated into the table's
    Delete, Update of rows, Append               -> one Update (one Delete when there are only deletes); see `merge_rows`
    appends that bring columns, other appends    -> one Merge (one Append when the columns are there by then); see `grow`
    DataReplacement f0, DataReplacement f1       -> one DataReplacement, when they replace the same fields
    anything else                                -> a version of its own, in order

The uuid of a folded transaction follows from its members, so that two commits of the same set know each other. What rows and
columns of several members come to is found out on the newest version::

    Delete   fragment 3: {7}                     updated_fragments  3: {2, 7, 9}
    Delete   fragment 3: {2, 9}           ->     new_fragments      those of the update and of the append
    Update   fragment 5: {0} moved to new        one Update; one Delete when nothing is added
    Append   new

    newest   fields 0 "a", 1 "c"; fragments 0 to 8        staged  Merge of "a", "b"   Merge of "a", "b"   Append of "a"
    ->       one Merge: fields 0 "a", 1 "c", 2 "b"; fragments 0 to 8 as they are, and 9, 10, 11 with the new rows

    staged for a table to be     id 0 "a" int64, id 1 "b" string
    the table there is           id 0 "b" string, id 4 "a" int64
    DataFile.fields (0, 1)       -> (4, 0); the file itself is not touched: readers go by the manifest's mapping

None of them saw another, so any order will do, provided no row is updated by one and taken by another: that is a
RetryableConflictError which names the later ones. A column that is there by now, with the same type, is used as it is; if
all are, rows that bring columns are one Append. Rows without the column read as null.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import numpy as np

from lance_core.commit import identities
from lance_core.commit.conflicts import PartlyCommittedError
from lance_core.commit.deletion_files import BITMAP, Offsets, deletion_file_path, read_deletions, write_deletions
from lance_core.commit.identities import CREATES_PROPERTY, GROWS_PROPERTY, published
from lance_core.commit.rebase import Rebased, affected_rows, deletion_store, removed_by
from lance_core.errors import CorruptFileError, LanceError, RetryableConflictError, SchemaMismatchError
from lance_core.format.fragment import DataFile, Fragment
from lance_core.format.fragments import FragmentList
from lance_core.format.manifest import Manifest
from lance_core.format.schema import NO_PARENT, Field, Schema
from lance_core.io.store import Store
from lance_core.publish.members import Loaded, MemberConflictError, NotWholeError, blame
from lance_core.publish.model import StagedTransaction
from lance_core.publish.staged_properties import Growth, growth_of, may_follow, new_rows, next_fragment_id, numbered
from lance_core.table.field_ids import next_field_id
from lance_core.table.operations import Append, DataReplacement, Delete, Merge, Overwrite, Restore, Update, UpdateMode
from lance_core.table.transaction import Transaction

T = TypeVar("T")
Rebase = Callable[[Transaction], Rebased]
"""Brings one staged transaction up to the newest version, or raises a conflict."""
_NAMESPACE = uuids.UUID("0f6ab1f3-5c0e-5e7e-9d51-6f3d1f0b6a52")


@dataclass(frozen=True, slots=True)
class Fold:
    """One version to be: the transaction and whose it is.

    `strict`: not on a table that moved. `late`: what the transaction does is found out on the newest
    version, by `merge_rows` or by `grow`, and again in the next round; until then it is the first member's.
    """

    transaction: Transaction
    members: tuple[Loaded, ...]
    strict: bool = False
    late: Literal["", "merge_rows", "grow"] = ""


def plan_folds(items: Sequence[Loaded], *, newest: Manifest | None, if_moved: str) -> list[Fold]:
    """The versions to commit, in order. `newest` is the table now, None when there is none.

    Raises SchemaMismatchError when a creating append does not fit the table that was created since.
    """
    groups = _groups([_settle_creation(item, newest) for item in items])
    return [_fold(kind, group, if_moved=if_moved) for kind, group in groups]


def creates(transaction: Transaction) -> bool:
    """Whether a staged Overwrite is an append that found no table."""
    return bool(identities.creates(transaction.properties))


def fold_uuid(members: Iterable[StagedTransaction]) -> str:
    """The uuid of the transaction that carries these members: their own when there is one, else made of all of theirs."""
    keys = sorted(f"{ref.identity}:{ref.attempt}" for ref in members)
    return keys[0].rpartition(":")[0] if len(keys) == 1 else str(uuids.uuid5(_NAMESPACE, "\n".join(keys)))


def _settle_creation(item: Loaded, newest: Manifest | None) -> Loaded:
    operation = item.transaction.operation
    if newest is None or not creates(item.transaction) or not isinstance(operation, Overwrite):
        return item
    properties = {name: text for name, text in item.transaction.properties.items() if name != CREATES_PROPERTY}
    # Judged from here on: the schema was checked against this very version.
    settled = Transaction(newest.version, item.transaction.uuid, operation, properties=properties)
    if may_follow(item.transaction):
        return Loaded(item.ref, replace(settled, operation=Merge(tuple(operation.fragments), operation.schema)))
    fragments = adopt_fragments(operation.fragments, staged=operation.schema, table=newest.schema)
    return Loaded(item.ref, replace(settled, operation=Append(fragments)))


def _groups(items: Sequence[Loaded]) -> list[tuple[object, list[Loaded]]]:
    """Members of one version each. What folds joins the first group of its kind; the others keep their places."""
    groups: list[tuple[object, list[Loaded]]] = []
    open_groups: dict[object, list[Loaded]] = {}
    takes_rows = any(_takes_rows(item.transaction) for item in items)
    grows = any(_grows(item.transaction) for item in items)
    for item in items:
        key = _fold_key(item.transaction, takes_rows=takes_rows, grows=grows)
        if key in open_groups:
            open_groups[key].append(item)
            continue
        groups.append((key, [item]))
        if key is not None:
            open_groups[key] = groups[-1][1]
    return groups


def _takes_rows(transaction: Transaction) -> bool:
    """Whether it deletes or moves rows in a way that merges with others of its kind."""
    operation = transaction.operation
    if isinstance(operation, Update):
        plain = operation.inserted_rows is None and not operation.compacted_sstables
        return plain and operation.update_mode is UpdateMode.REWRITE_ROWS
    return isinstance(operation, Delete)


def _grows(transaction: Transaction) -> bool:
    """Whether it appends rows together with their columns."""
    return isinstance(transaction.operation, Merge) and may_follow(transaction)


def _fold_key(transaction: Transaction, *, takes_rows: bool, grows: bool) -> object | None:
    operation = transaction.operation
    if _takes_rows(transaction) or (isinstance(operation, Append) and takes_rows):
        return Update
    if isinstance(operation, Append):
        return Merge if grows else Append
    if _grows(transaction):
        return Merge
    if isinstance(operation, Overwrite) and creates(transaction):
        # Tables to be with other columns are not joined here: the first one creates the table, the others add to it.
        return (Overwrite, _columns(operation.schema)) if may_follow(transaction) else Overwrite
    if isinstance(operation, DataReplacement):
        return (DataReplacement, operation.touches().fields)
    return None


def _fold(kind: object, members: Sequence[Loaded], *, if_moved: str) -> Fold:
    first = members[0].transaction
    operation = first.operation
    # A creation must never erase a table that was created since, whatever the caller says about moved tables.
    strict = isinstance(operation, (Overwrite, Restore)) and (if_moved == "fail" or creates(first))
    if kind is Merge:
        return Fold(_joined(members, operation), tuple(members), late="grow")
    if len(members) == 1:
        return Fold(replace(first, properties=_published(first)), tuple(members), strict)
    if kind is Update:
        return Fold(_joined(members, operation), tuple(members), late="merge_rows")
    if isinstance(operation, Append):
        fragments = tuple(part for item in members for part in item.transaction.operation.fragments)  # type: ignore[attr-defined]
        operation = Append(fragments)
    elif isinstance(operation, Overwrite):
        every = [*operation.fragments]
        for item in members[1:]:
            other = item.transaction.operation
            assert isinstance(other, Overwrite)
            every += adopt_fragments(other.fragments, staged=other.schema, table=operation.schema)
        operation = replace(operation, fragments=tuple(every))
    else:
        replacements = [entry for item in members for entry in item.transaction.operation.replacements]  # type: ignore[attr-defined]
        operation = DataReplacement(tuple(replacements))
    return Fold(_joined(members, operation), tuple(members), strict)


def _columns(schema: Schema) -> tuple[tuple[str, str], ...]:
    return tuple((schema.path_of(item.id), item.logical_type) for item in schema.fields)


def _published(transaction: Transaction) -> dict[str, str]:
    properties = published(transaction.properties)
    if not isinstance(transaction.operation, Merge):
        properties.pop(GROWS_PROPERTY, None)
    return properties


def _joined(members: Sequence[Loaded], operation: object) -> Transaction:
    properties: dict[str, str] = {}
    for item in members:
        properties.update(_published(item.transaction))
    # Whatever happened since the oldest of them was planned concerns the fold.
    read_version = min(item.transaction.read_version for item in members)
    return Transaction(read_version, fold_uuid(item.ref for item in members), operation, properties=properties)  # type: ignore[arg-type]


def merge_rows(
    store: Store, members: Sequence[Loaded], newest: Manifest, planned: Transaction, *, attempt: str, rebase: Rebase
) -> Rebased:
    """`planned`, the fold of the members, on `newest` with what they all do, and the deletion files written for it.

    Raises MemberConflictError for all members that meet a concurrent commit, or an earlier member, in a row.
    """
    merge = _Merge(store, newest, attempt)
    try:
        merge.add_all(members, rebase)
    except BaseException:
        for path in merge.files:
            store.delete(path)
        raise
    transaction = replace(planned, read_version=newest.version, operation=merge.operation())
    return Rebased(transaction, tuple(merge.files))


def _checked(members: Sequence[Loaded], check: Callable[[Loaded], T]) -> list[T]:
    """What `check` finds of each. Every member is checked before any is complained about."""
    found, errors = list[T](), dict[int, RetryableConflictError]()
    for number, item in enumerate(members):
        try:
            found.append(check(item))
        except PartlyCommittedError:
            raise
        except RetryableConflictError as error:
            errors[number] = error
    if errors:
        first = errors[min(errors)]
        raise blame(first, [*errors]) from first
    return found


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


class _Merge:
    def __init__(self, store: Store, newest: Manifest, attempt: str) -> None:
        self._store = store
        self._newest = newest
        self._attempt = attempt
        self._fragments = FragmentList.of(newest.fragments)
        self._touched: dict[int, _Touched] = {}
        self._new: list[Fragment] = []
        self._predicates: list[str] = []
        self._updates: list[Update] = []
        self.files: list[str] = []

    def add_all(self, members: Sequence[Loaded], rebase: Rebase) -> None:
        """What all members do."""
        errors = list[MemberConflictError]()
        for number, operation in enumerate(_checked(members, lambda item: self._fitted(item, rebase))):
            try:
                self._add(number, operation)
            except MemberConflictError as error:
                errors.append(error)
        if errors:
            raise blame(errors[0], (), {one: other for error in errors for one, other in error.behind.items()})

    def _fitted(self, item: Loaded, rebase: Rebase) -> Append | Delete | Update:
        fitted, planned = rebase(item.transaction), item.transaction.operation
        self.files.extend(fitted.files)
        operation = planned if isinstance(planned, Append) else fitted.transaction.operation
        assert isinstance(operation, (Append, Delete, Update))
        return operation

    def _add(self, number: int, operation: Append | Delete | Update) -> None:
        if isinstance(operation, Append):
            self._new.extend(operation.fragments)
            return
        is_update, taken = isinstance(operation, Update), {item.id: item for item in operation.updated_fragments}
        removed = removed_by(operation)
        changes = dict[int, _Touched]()
        for fragment_id in (*taken, *removed):
            changes[fragment_id] = self._taken(number, fragment_id, taken.get(fragment_id), is_update=is_update)
        self._touched.update(changes)
        if isinstance(operation, Update):
            self._updates.append(operation)
            self._new.extend(operation.new_fragments)
        else:
            self._predicates.append(operation.predicate)

    def operation(self) -> Delete | Update:
        updated, removed = self._result()
        if not self._updates and not self._new:
            return Delete(updated, removed, " OR ".join(f"({text})" for text in self._predicates if text))
        return Update(
            removed_fragment_ids=removed,
            updated_fragments=updated,
            new_fragments=tuple(self._new),
            fields_modified=_distinct(field for item in self._updates for field in item.fields_modified),
            fields_for_preserving_frag_bitmap=_distinct(
                field for item in self._updates for field in item.fields_for_preserving_frag_bitmap
            ),
        )

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
            what = f"files of fragment {number} are replaced by two staged transactions"
            raise self._meets(member, known.member, what)
        files = known.files if files == base.files else files
        both = np.intersect1d(known.rows, rows, assume_unique=True)
        if len(both) and (is_update or known.updated):
            what = f"row {both[0]} of fragment {number} is updated by one staged transaction and changed by another"
            raise self._meets(member, known.member, what)
        return _Touched(member, base, np.union1d(known.rows, rows), known.updated or is_update, files, None)

    def _meets(self, member: int, other: int, what: str) -> MemberConflictError:
        cure = "Plan one of them again after the other has been committed."
        error = RetryableConflictError(f"{self._store.uri}: {what} of the same commit", uri=self._store.uri, cure=cure)
        return blame(error, (), {member: other})

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


def grow(members: Sequence[Loaded], newest: Manifest, planned: Transaction, *, rebase: Rebase) -> Transaction:
    """`planned`, the fold of the members, on `newest` with the rows and columns of all.

    Raises MemberConflictError for members that a concurrent commit made invalid, NotWholeError with a SchemaMismatchError
    for those whose columns do not fit the table, or another member's.
    """
    schema, first = newest.schema, next_field_id(newest)
    new: list[Fragment] = []
    unfit = dict[str, LanceError]()
    _checked(members, lambda item: rebase(replace(item.transaction, operation=Append(new_rows(item.transaction)))))
    for item in members:
        try:
            rows, first_id = new_rows(item.transaction), max(first, schema.max_field_id + 1)
            schema, fitted = fit_rows(item.transaction, rows, schema, first_id=first_id)
            new += fitted
        except SchemaMismatchError as error:
            unfit[item.ref.identity] = error
    if unfit:
        raise NotWholeError(unfit)
    properties = {name: text for name, text in planned.properties.items() if name != GROWS_PROPERTY}
    if schema is newest.schema:
        fragments = tuple(replace(item, id=0) for item in new)
        return Transaction(newest.version, planned.uuid, Append(fragments), properties=properties)
    first = next_fragment_id(newest)
    columns = tuple(field.name for field in schema.top_level if not newest.schema.has_column(field.name))
    operation = Merge((*newest.fragments, *numbered(new, first=first)), schema, preserves_nullability=True)
    properties.update(Growth(columns, first, "append").properties())
    return Transaction(newest.version, planned.uuid, operation, properties=properties)


def fit_rows(
    transaction: Transaction, rows: Sequence[Fragment], schema: Schema, *, first_id: int
) -> tuple[Schema, Sequence[Fragment]]:
    """The schema with the columns of a member, and its rows with the ids of that schema."""
    operation, growth = transaction.operation, growth_of(transaction.properties)
    if not isinstance(operation, Merge) or growth is None:
        return schema, rows
    lacking = [name for name in growth.columns if operation.schema.has_column(name) and not schema.has_column(name)]
    grown = with_columns(schema, operation.schema, lacking, first_id=first_id)
    return grown, adopt_fragments(rows, staged=operation.schema, table=grown, happened="changed the columns of the table")


def with_columns(schema: Schema, source: Schema, names: Sequence[str], *, first_id: int) -> Schema:
    """The schema with columns of another one at its end, under new ids; rows that are there have nulls in them."""
    added = [field for name in names for field in source.descend(source.find(name).id)]
    ids = {field.id: first_id + number for number, field in enumerate(added)}
    ids[NO_PARENT] = NO_PARENT
    fields = tuple(
        replace(item, id=ids[item.id], parent_id=ids[item.parent_id], nullable=item.nullable or item.parent_id == NO_PARENT)
        for item in added
    )
    return replace(schema, fields=schema.fields + fields) if fields else schema


def adopt_fragments(
    fragments: Sequence[Fragment], *, staged: Schema, table: Schema, happened: str = "created the table"
) -> tuple[Fragment, ...]:
    """The fragments with their files' field ids translated from `staged` to `table`, matched by path.

    `happened`: what another writer did since they were staged, for the message.

    Raises SchemaMismatchError when a staged column is not in the table, has another type, may hold nulls where the table
    may not, or when a column of the table that may not be null is missing.
    """
    by_path = {table.path_of(item.id): item for item in table.fields}
    columns = [(staged.path_of(item.id), item) for item in staged.fields]
    ids = {item.id: by_path[path].id for path, item in columns if path in by_path}
    reasons = [reason for path, item in columns if (reason := _misfit(path, item, by_path.get(path)))]
    missing = [item.name for item in table.top_level if not item.nullable and item.id not in ids.values()]
    if reasons or missing:
        reason = reasons[0] if reasons else f"the staged data has no column {missing}, which is not nullable"
        cure = "Abort this staged transaction and stage it again with the table's schema."
        raise SchemaMismatchError(f"another writer {happened} in the meantime, and {reason}", cure=cure)
    if all(old == new for old, new in ids.items()):
        return tuple(fragments)
    return tuple(_translated(fragment, ids) for fragment in fragments)


def _misfit(path: str, field: Field, found: Field | None) -> str:
    """Why a staged column does not fit the table; "" when it does."""
    if found is None:
        return f"the staged column {path!r} is not in the table"
    if found.logical_type != field.logical_type:
        return f"column {path!r} is {found.logical_type} in the table and {field.logical_type} in the staged data"
    if field.nullable and not found.nullable:
        return f"column {path!r} is not nullable in the table, but nullable in the staged data"
    return ""


def _translated(fragment: Fragment, ids: dict[int, int]) -> Fragment:
    files = tuple(replace(file, fields=tuple(ids.get(item, item) for item in file.fields)) for file in fragment.files)
    return replace(fragment, files=files)
