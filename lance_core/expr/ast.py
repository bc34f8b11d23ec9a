"""A filter as data: small frozen nodes, standard library only. Without SQL text, Arrow or files.

::

    a.b > 3 AND name LIKE 'x%'
    And((Compare(">", Column(("a", "b")), Literal(3)), Like(Column(("name",)), Literal("x%"))))

Columns are paths of exact names, already resolved against a schema. Nodes are values.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace


@dataclass(frozen=True, slots=True)
class Instant:
    """A point in time as nanoseconds since the epoch; `zone` only says whether the text named one."""

    nanoseconds: int
    zone: str | None = None


class Days(dt.timedelta):
    """An interval written in days or weeks: beside a point in time with a zone, days of its clocks, of 23 to 25 hours."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or a field inside one: `("a", "b")` is `a.b`."""

    path: tuple[str, ...]

    @property
    def name(self) -> str:
        """The dotted path."""
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant: None, bool, int, float, str, bytes, Decimal, date, time, timedelta, Days or Instant."""

    value: object


@dataclass(frozen=True, slots=True)
class Compare:
    """`left op right` with op one of = != < <= > >=; null when a side is null. NaN equals NaN and is above all numbers."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Distinct:
    """`left IS [NOT] DISTINCT FROM right`: a comparison in which nulls are equal."""

    left: Expr
    right: Expr
    negated: bool = False


@dataclass(frozen=True, slots=True)
class And:
    """All of the items."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Any of the items."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The contrary; null stays null."""

    item: Expr


@dataclass(frozen=True, slots=True)
class IsNull:
    """`item IS NULL`."""

    item: Expr


@dataclass(frozen=True, slots=True)
class IsBool:
    """`item IS TRUE` or `item IS FALSE`: never null."""

    item: Expr
    value: bool


@dataclass(frozen=True, slots=True)
class In:
    """`item IN (values...)`."""

    item: Expr
    values: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Like:
    """`item [I]LIKE pattern`: % any text, _ any character, `escape` takes the next character as it is."""

    item: Expr
    pattern: Expr
    ignore_case: bool = False
    escape: str = "\\"


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`left op right` with op one of + - * / % || << >>. With `bends` a constant takes the type of the column beside it."""

    op: str
    left: Expr
    right: Expr
    bends: bool = True


@dataclass(frozen=True, slots=True)
class Negate:
    """`-item`."""

    item: Expr


@dataclass(frozen=True, slots=True)
class Cast:
    """`CAST(item AS type)`; `type` is a name `casts` knows. `safe` gives null instead of an error."""

    item: Expr
    type: str
    parameters: tuple[int, ...] = ()
    safe: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A function by its lower-case name."""

    name: str
    arguments: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class ListOf:
    """`[a, b, c]`."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Element:
    """`item[index]` of a list, counted from 1; null beyond its ends."""

    item: Expr
    index: Expr


@dataclass(frozen=True, slots=True)
class ArrowExpression:
    """A pyarrow expression, evaluated by pyarrow itself; `columns` are the top-level columns it needs."""

    expression: object
    columns: tuple[str, ...]


Expr = (
    Column
    | Literal
    | Compare
    | Distinct
    | And
    | Or
    | Not
    | IsNull
    | IsBool
    | In
    | Like
    | Arithmetic
    | Negate
    | Cast
    | Call
    | ListOf
    | Element
    | ArrowExpression
)
NODES = Expr.__args__


def children(expr: Expr) -> Iterator[Expr]:
    """The nodes directly below a node."""
    if isinstance(expr, (Column, Literal)):
        return  # a list has hundreds of thousands of them
    for item in fields(expr):
        value = getattr(expr, item.name)
        if isinstance(value, NODES):
            yield value
        elif isinstance(value, tuple):
            yield from (entry for entry in value if isinstance(entry, NODES))


def walk(expr: Expr) -> Iterator[Expr]:
    """The node and everything below it, without recursion (filters may hold thousands of terms)."""
    pending = [expr]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(children(node))


def settled(expr: Expr, *, whole: bool = True) -> Expr:
    """The expression with its constants bound: they take the type of the column beside them only below AND and OR.

    `f32 * 0.1` is a float32, in `abs(f32 * 0.1)` and `f32 * 0.1 + 1` it is a double: so the official library reads them.
    """
    if isinstance(expr, (Column, Literal)):
        return expr
    below = whole and isinstance(expr, (And, Or))
    changed: dict[str, object] = {"bends": False} if isinstance(expr, Arithmetic) and not whole else {}
    for item in fields(expr):
        value = getattr(expr, item.name)
        if isinstance(value, NODES):
            one = settled(value, whole=below)
            if one is not value:
                changed[item.name] = one
        elif isinstance(value, tuple):
            entries = tuple(settled(entry, whole=below) if isinstance(entry, NODES) else entry for entry in value)
            if any(entry is not before for entry, before in zip(entries, value, strict=True)):
                changed[item.name] = entries
    return replace(expr, **changed) if changed else expr  # type: ignore[arg-type]


def columns_of(expr: Expr) -> tuple[str, ...]:
    """Dotted paths of the columns a filter reads, sorted, each once.

    >>> columns_of(Compare(">", Column(("a", "b")), Column(("c",))))
    ('a.b', 'c')
    """
    if isinstance(expr, Column):
        return (expr.name,)
    found: set[str] = set()
    pending: list[Expr] = [expr]
    while pending:
        node = pending.pop()
        if isinstance(node, Column):
            found.add(node.name)
        elif isinstance(node, ArrowExpression):
            found.update(node.columns)
        elif isinstance(node, In):
            # Hundreds of thousands of constants, maybe, in which no column is.
            pending += (node.item, *(value for value in node.values if type(value) is not Literal))
        else:
            pending.extend(children(node))
    return tuple(sorted(found))


def conjuncts(expr: Expr) -> tuple[Expr, ...]:
    """The parts that must all hold.

    >>> len(conjuncts(And((Column(("a",)), And((Column(("b",)), Column(("c",))))))))
    3
    """
    if not isinstance(expr, And):
        return (expr,)
    return tuple(part for item in expr.items for part in conjuncts(item))
