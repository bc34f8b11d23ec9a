"""Ask this library and the official one the same expression, and say in what the two answers differ."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

import lance_core
from lance_core.errors import LanceError
from tests.compatibility.plain_tables import PLAIN, plain
from tests.compatibility.plain_texts import PLAIN_TEXTS

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@dataclass(frozen=True)
class Difference:
    """`kind`: value, type, rows (of a filter), refused (here only) or broken (an error here that is not typed)."""

    kind: str
    expression: str
    types: str
    mine: str
    theirs: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.expression}  [{self.types}]\n    here       {self.mine}\n    officially {self.theirs}"


class Sweep:
    """One table, opened by both libraries."""

    def __init__(self, table: pa.Table, path: Path) -> None:
        lance.write_dataset(table, path, data_storage_version="2.2")
        self._table, self._path = table, path
        self._plain: dict[str, Sweep] = {}
        self._mine, self._theirs = lance_core.dataset(str(path)), lance.dataset(path)
        self._schema = table.schema
        self.asked = self.answered = 0

    def differences(self, expression: str) -> Iterator[Difference]:
        """What differs; nothing where the official library refuses."""
        self.asked += 1
        try:
            theirs = self._theirs.to_table(columns={"k": "k", "x": expression}).column("x").combine_chunks()
        except BaseException as error:
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            return
        self.answered += 1
        types = self._types(expression)
        try:
            mine = self._mine.to_table(columns={"k": "k", "x": expression}).column("x").combine_chunks()
        except (LanceError, NotImplementedError) as error:
            yield Difference("refused", expression, types, str(error)[:200], _shown(theirs))
            return
        except Exception as error:
            yield Difference("broken", expression, types, repr(error)[:200], _shown(theirs))
            return
        if not same(values_of(mine), values_of(theirs)):
            yield Difference("value", expression, types, _shown(mine, theirs), _shown(theirs, mine))
        elif str(mine.type).replace("_view", "") != str(theirs.type).replace("_view", ""):
            yield Difference("type", expression, types, _shown(mine), _shown(theirs))
        elif pa.types.is_boolean(theirs.type):
            yield from self._filtered(expression, types, theirs)

    def plain(self, name: str, expression: str) -> tuple[Sweep, str]:
        """A twin of the table and an expression without what a kept difference comes from."""
        change, rewrite = PLAIN.get(name), PLAIN_TEXTS.get(name)
        if change is not None and name not in self._plain:
            path = self._path.with_name(f"{self._path.name}-{name.replace(' ', '-')}")
            self._plain[name] = Sweep(plain(self._table, change), path)
        return self._plain.get(name, self), expression if rewrite is None else rewrite(expression)

    def _filtered(self, expression: str, types: str, truth: Any) -> Iterator[Difference]:
        expected = [row for row, holds in enumerate(truth.to_pylist()) if holds]
        try:
            mine = self._mine.to_table(filter=expression, columns=["k"]).column("k").to_pylist()
        except LanceError as error:
            yield Difference("refused", f"WHERE {expression}", types, str(error)[:200], str(expected))
            return
        if mine != expected:
            yield Difference("rows", expression, types, str(mine), str(expected))

    def _types(self, expression: str) -> str:
        names = [name for name in self._schema.names if name != "k"]
        words = set("".join(c if c.isalnum() or c == "_" else " " for c in expression).split())
        return ", ".join(f"{name}: {self._schema.field(name).type}" for name in names if name in words)


def values_of(array: Any) -> list[Any]:
    """Values that compare across types: numbers as they are, points in time in nanoseconds with their kind."""
    kind, types = array.type, pa.types
    if types.is_dictionary(kind):
        return values_of(array.dictionary_decode())
    if types.is_timestamp(kind) or types.is_duration(kind):
        factor = 10**9 // _PER_SECOND[kind.unit]
        name = ("zoned" if kind.tz else "stamp") if types.is_timestamp(kind) else "duration"
        return [None if item is None else (name, item * factor) for item in array.view(pa.int64()).to_pylist()]
    if types.is_date(kind):
        ticks = array.view(pa.int32() if types.is_date32(kind) else pa.int64()).to_pylist()
        return [
            None if tick is None else ("date", tick * (1 if types.is_date32(kind) else 1 / 86_400_000)) for tick in ticks
        ]
    if types.is_time(kind):
        factor = 10**9 // _PER_SECOND[kind.unit]
        ticks = array.view(pa.int32() if types.is_time32(kind) else pa.int64()).to_pylist()
        return [None if tick is None else ("time", tick * factor) for tick in ticks]
    if types.is_struct(kind):
        columns = [values_of(array.field(number)) for number in range(kind.num_fields)]
        valid = array.is_valid().to_pylist()
        return [tuple(row) if here else None for row, here in zip(zip(*columns, strict=True), valid, strict=True)]
    if types.is_map(kind):
        entries = pa.struct([("key", kind.key_type), ("value", kind.item_type)])
        return values_of(array.cast(pa.list_(entries)))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        valid = array.is_valid().to_pylist()
        return [values_of(array[row].values) if here else None for row, here in enumerate(valid)]
    return list(array.to_pylist())


def same(left: Any, right: Any) -> bool:
    """Equal; NaN equals NaN, and the last digits of functions of floats are not shared by two libraries."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, float) and isinstance(right, float):
        if left == right or (math.isnan(left) and math.isnan(right)):
            return left != 0 or math.copysign(1, left) == math.copysign(1, right)
        return math.isclose(left, right, rel_tol=1e-6 if abs(left) == abs(_single(left)) else 1e-14)
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, (int, float, Decimal)) and isinstance(right, (int, float, Decimal)):
        return left == right
    return type(left) is type(right) and bool(left == right)


def _single(value: float) -> float:
    import numpy as np

    with np.errstate(over="ignore"):
        return float(np.float32(value))


def _shown(array: Any, other: Any = None) -> str:
    values = values_of(array)
    if other is not None:
        others = values_of(other)
        pairs = zip(values, others, strict=False)
        values = [(row, value) for row, (value, beside) in enumerate(pairs) if not same(value, beside)]
    return f"{array.type} {str(values)[:300]}"


def smallest(sweep: Sweep, found: Difference, *, most: int = 60) -> Difference:
    """Where a difference begins: the shortest part of its expression that differs by itself, the whole where none does."""
    for part in sorted(parts_of(found.expression), key=len)[:most]:
        for difference in sweep.differences(part):
            if difference.kind != "refused":
                return difference
    return found


def parts_of(expression: str) -> set[str]:
    """What stands in parentheses, every argument and operand, every call: some of it may be no expression.

    >>> sorted(parts_of("f(a, (b + 1))"))
    ['(b + 1)', 'b + 1']
    """
    found: set[str] = set()
    opened: list[list[int]] = []
    quoted = False
    for at, letter in enumerate(expression):
        quoted ^= letter == "'"
        if quoted:
            continue
        if letter in "([":
            opened.append([at + 1])
        elif letter in ",)]" and opened:
            inner = expression[opened[-1][-1] : at].strip()
            found |= {inner, *_operands(inner)}
            opened[-1].append(at + 1)
            if letter != ",":
                begin = opened.pop()[0] - 1
                name = begin
                while name and (expression[name - 1].isalnum() or expression[name - 1] == "_"):
                    name -= 1
                found |= {expression[name : at + 1], expression[begin + 1 : at].strip()}
    found |= {*_operands(expression)}
    return {
        part for part in found if len(part) > 3 and part != expression and not part.isalnum() and part.count("'") % 2 == 0
    }


_OPERATOR = re.compile(r" (?:\+|-|\*|/|%|=|!=|<|<=|>|>=|\|\||AND|OR|LIKE|ILIKE|IS|IN|BETWEEN|FROM|NOT|<<|>>) ")


def _operands(text: str) -> Iterator[str]:
    """The texts between operators outside of parentheses and quotes."""
    depth, quoted, begin = 0, False, 0
    for at, letter in enumerate(text):
        quoted ^= letter == "'"
        depth += 0 if quoted else (letter in "([") - (letter in ")]")
        operator = None if depth or quoted else _OPERATOR.match(text, at)
        if operator:
            yield text[begin:at].strip()
            begin = operator.end() - 1
    if begin:
        yield text[begin:].strip()
