"""The serial model: a table is a set of (id, value) rows, a piece of work a function on it, and what holds is some order.

::

    {append 100, delete id=1} on {(0,0), (1,0)}     -> {(0,0), (100,0)}, whatever the order
    {replace day by a, replace day by b}            -> a, or b; never both
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations, product

import pyarrow as pa

Row = tuple[int, int]
Rows = tuple[Row, ...]
Change = Callable[[Rows], Rows]
_IMPOSSIBLE: Rows = ((-1, -1),)


def rows_of_table(ids: Iterable[int], value: int = 0) -> pa.Table:
    """The source of the actors' writes: columns id and value."""
    numbers = list(ids)
    return pa.table({"id": pa.array(numbers, pa.int64()), "value": pa.array([value] * len(numbers), pa.int64())})


def rows_with_column(ids: Iterable[int], value: int = 0) -> pa.Table:
    """The same with a third column, which the table may not have yet."""
    table = rows_of_table(ids, value)
    return table.append_column("more", table["id"])


@dataclass(frozen=True, slots=True)
class IdentityWork:
    """What one identity asks for. `stage` does it (again); `changes` is what it may come to: one of them."""

    name: str
    identity: str
    changes: tuple[Change, ...]
    stage: Callable[[], object]
    actor: str = ""
    """The actor that does it by itself, where it is not for a commit task: it is done when that one ended well."""


def appended(ids: Sequence[int], value: int = 0) -> Change:
    """Rows added."""
    return lambda rows: tuple(sorted((*rows, *((item, value) for item in ids))))


def deleted(matches: Callable[[int], bool]) -> Change:
    """Rows gone by id."""
    return lambda rows: tuple(row for row in rows if not matches(row[0]))


def increased(matches: Callable[[int], bool]) -> Change:
    """One more in the value of rows."""
    return lambda rows: tuple(sorted((item, value + 1) if matches(item) else (item, value) for item, value in rows))


def replaced(matches: Callable[[int], bool], ids: Sequence[int], value: int) -> Change:
    """Rows gone by id, others in their place."""
    return lambda rows: appended(ids, value)(deleted(matches)(rows))


def merged(ids: Sequence[int], value: int) -> Change:
    """Upsert by id."""
    return lambda rows: replaced(lambda item: item in ids, ids, value)(rows)


def overwritten(ids: Sequence[int], value: int = 0) -> Change:
    """Nothing else is left."""
    return lambda rows: appended(ids, value)(())


def strictly(ids: Sequence[int], change: Change) -> Change:
    """A change of just these rows; on any others it has no place in an order."""
    return lambda rows: change(rows) if rows == appended(ids)(()) else _IMPOSSIBLE


def unchanged(rows: Rows) -> Rows:
    """Maintenance."""
    return rows


def serial_outcomes(start: Rows, works: Sequence[IdentityWork]) -> frozenset[Rows]:
    """What every order of the works leaves."""
    found = set()
    for chosen in product(*(work.changes for work in works)):
        for order in permutations(chosen):
            rows = start
            for change in order:
                rows = change(rows)
            found.add(rows)
    return frozenset(found)
