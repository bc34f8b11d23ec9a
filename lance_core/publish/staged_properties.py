"""What a staged transaction says in its properties, for its commit; the log does not repeat it. Pure.

::

    properties["lance_core.staged"] = '{"base":"4-77ab….txn","planned_at":1764270000.0,"table_id":"c0ff…"}'

Rows whose source has columns that the table lacks: both are committed in one Merge.

::

    table at version 4    field 0 "a", fragments 0 to 6            a source with "a" and "b" is appended
    staged Merge          fields 0 "a", 1 "b"; the fragments 0 to 6 as they were, the new ones from id 7 on
                          properties["lance_core.grows"] = '{"columns":["b"],"first_fragment":7,"operation":"append"}'

The property says what a Merge alone does not: which of its fragments hold new rows, and what the work was. A reader that
does not know it sees a Merge that is whole.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TypeVar

from lance_core.commit.identities import ASSUMES_PROPERTY, GROWS_PROPERTY, STAGED_PROPERTY, identities_of, writers_of
from lance_core.format.fragment import Fragment
from lance_core.format.manifest import Manifest
from lance_core.publish.records import RULES
from lance_core.table.carried import added_fragments, rewritten_fragments
from lance_core.table.operations.merge import Merge
from lance_core.table.transaction import Transaction
from lance_core.typed import from_plain

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StagedFacts:
    """`base`: the transaction file of the version that it was planned on, which tells that one from others of its number.
    `table_id`: on which table ("" when nobody knows): one that is made again at the uri is another. `planned_at`: when
    (seconds since the epoch, by the clock of the staging task). `has_more`: the attempt wrote or adopted files that the
    transaction does not name.
    """

    base: str = ""
    table_id: str = ""
    planned_at: float = 0.0
    has_more: bool = False

    def properties(self) -> dict[str, str]:
        """The property of a staged transaction that says so."""
        known = {name: value for name, value in asdict(self).items() if value}
        return {STAGED_PROPERTY: json.dumps(known, separators=(",", ":"), sort_keys=True)}


def facts_of(transaction: Transaction) -> StagedFacts:
    """What a staged transaction says about itself; nothing where that cannot be read: then its commit looks at more."""
    return _said(StagedFacts, transaction.properties, STAGED_PROPERTY) or StagedFacts()


def staged_writers(transaction: Transaction, attempt: str) -> tuple[str, ...]:
    """The attempts that wrote its files: its own, and those that it adopted."""
    return (attempt, *writers_of(identities_of(transaction).get(transaction.uuid, {}))[1:])


def num_new_fragments(transaction: Transaction) -> int:
    """How many fragments it adds or writes again."""
    return len(new_rows(transaction)) + len(rewritten_fragments(transaction.operation))


@dataclass(frozen=True, slots=True)
class Growth:
    """Names of the new columns, the id of the first fragment with new rows, and the operation without new columns."""

    columns: tuple[str, ...]
    first_fragment: int
    operation: str = ""

    def properties(self) -> dict[str, str]:
        """The property of a transaction that says so."""
        return {GROWS_PROPERTY: json.dumps(asdict(self), separators=(",", ":"))}


def growth_of(properties: Mapping[str, str]) -> Growth | None:
    """What the properties say about new columns; None when nothing, or nothing that can be read."""
    return _said(Growth, properties, GROWS_PROPERTY)


def _said(cls: type[T], properties: Mapping[str, str], name: str) -> T | None:
    try:
        return from_plain(cls, json.loads(properties.get(name, "null")), RULES)
    except (ValueError, RecursionError):
        return None


def may_follow(transaction: Transaction) -> bool:
    """Whether its new rows may be added to any later version, because it assumes nothing about the rows of the table."""
    return growth_of(transaction.properties) is not None and ASSUMES_PROPERTY not in transaction.properties


def new_rows(transaction: Transaction) -> Sequence[Fragment]:
    """Fragments with rows that were not in the table before."""
    operation, growth = transaction.operation, growth_of(transaction.properties)
    if growth is None or not isinstance(operation, Merge):
        return added_fragments(operation)
    return tuple(item for item in operation.fragments if item.id >= growth.first_fragment)


def next_fragment_id(manifest: Manifest) -> int:
    """The first id that no fragment of the table has had."""
    mark = manifest.max_fragment_id
    return 1 + (max((item.id for item in manifest.fragments), default=-1) if mark is None else mark)


def numbered(fragments: Sequence[Fragment], *, first: int) -> tuple[Fragment, ...]:
    """New fragments with ids of their own: in a Merge, an id that the table has would stand for the fragment that has it."""
    return tuple(replace(item, id=first + number) for number, item in enumerate(fragments))
