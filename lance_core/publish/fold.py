"""Fold many staged transactions into as few versions as the format allows. Pure.

::

    Append a, Append b, …, Append z              -> one Append of all their fragments, one property per identity
    creating Append a, b (no table yet)          -> one Overwrite on version 0: the table is born with both
    creating Append a (the table is there now)   -> an Append, its field ids translated into the table's
    Delete, Update of rows, Append               -> one Update (one Delete when there are only deletes); see `merge_rows`
    appends that bring columns, other appends    -> one Merge (one Append when the columns are there by then); see `grow`
    DataReplacement f0, DataReplacement f1       -> one DataReplacement, when they replace the same fields
    anything else                                -> a version of its own, in order

The uuid of a folded transaction follows from its members, so that two commits of the same set know each other.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from lance_core.commit import identities
from lance_core.commit.identities import CREATES_PROPERTY, GROWS_PROPERTY, published
from lance_core.format.manifest import Manifest
from lance_core.format.schema import Schema
from lance_core.publish.members import Loaded
from lance_core.publish.merge import adopt_fragments
from lance_core.publish.model import StagedTransaction
from lance_core.publish.staged_properties import may_follow
from lance_core.table.operations import Append, DataReplacement, Delete, Merge, Overwrite, Restore, Update, UpdateMode
from lance_core.table.transaction import Transaction

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
