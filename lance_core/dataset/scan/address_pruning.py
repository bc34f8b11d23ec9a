"""Prune fragments by tests on row addresses, because an address contains its fragment.

::

    _rowaddr = 4294967299                   only fragment 1
    _rowaddr >= 8589934592 AND a > 3        fragments from 2 on

The filter is still evaluated on what is left, so leaving too much over costs time and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lance_core.expr import Expr, ast
from lance_core.format.address import split_address
from lance_core.format.fragment import Fragment
from lance_core.format.fragments import FragmentList
from lance_core.format.manifest import Manifest

_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class _Bound:
    """Ids of fragments from `low` to `high`, and of those only `among` (None: all)."""

    low: int = 0
    high: int = 1 << 32
    among: frozenset[int] | None = None

    def allows(self, fragment_id: int) -> bool:
        return self.low <= fragment_id <= self.high and (self.among is None or fragment_id in self.among)


def nearby(manifest: Manifest, fragments: Sequence[Fragment], filter: Expr | None) -> Sequence[Fragment]:
    """The fragments that can hold a row the filter selects, as far as its tests on addresses tell; in the same order."""
    if filter is None:
        return fragments
    names = {"_rowaddr"} if manifest.uses_stable_row_ids else {"_rowaddr", "_rowid"}
    names -= {field.name for field in manifest.schema.top_level}
    bounds = [bound for part in ast.conjuncts(filter) for bound in _bounds(part, names)]
    if not bounds:
        return fragments
    listed = FragmentList.of(fragments)
    kept = [number for number, found in enumerate(listed.ids) if all(bound.allows(found) for bound in bounds)]
    return fragments if len(kept) == len(listed) else [listed[number] for number in kept]


def _bounds(part: Expr, names: set[str]) -> list[_Bound]:
    if isinstance(part, ast.In) and _is_address(part.item, names):
        values = [_number(value) for value in part.values]
        known = [value for value in values if value is not None]
        return [_Bound(among=frozenset(split_address(value)[0] for value in known))] if len(known) == len(values) else []
    if not isinstance(part, ast.Compare) or part.op not in _MIRRORED:
        return []
    if _is_address(part.left, names):
        return _compared(part.op, _number(part.right))
    return _compared(_MIRRORED[part.op], _number(part.left)) if _is_address(part.right, names) else []


def _compared(op: str, number: int | None) -> list[_Bound]:
    if number is None:
        return []
    fragment, _ = split_address(number)
    if op == "=":
        return [_Bound(among=frozenset((fragment,)))]
    return [_Bound(low=fragment)] if op in (">", ">=") else [_Bound(high=fragment)]


def _is_address(item: Expr, names: set[str]) -> bool:
    return isinstance(item, ast.Column) and len(item.path) == 1 and item.path[0] in names


def _number(item: Expr) -> int | None:
    """An address that is written down; None for what is none (negative, a fraction, an expression)."""
    value = item.value if isinstance(item, ast.Literal) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
