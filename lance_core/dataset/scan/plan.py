"""Plan a scan without IO: which rows of which fragments, which columns first, which later.

::

    limit 3, offset 8 over fragments of 5, 5, 5 rows  ->  fragment 1 rows 3..5, fragment 2 rows 0..1
    filter a > 1, columns [b]                         ->  read a, then b of the rows that were selected

Prune fragments by tests on row addresses, because an address contains its fragment.

::

    _rowaddr = 4294967299                   only fragment 1
    _rowaddr >= 8589934592 AND a > 3        fragments from 2 on

The filter is still evaluated on what is left, so leaving too much over costs time and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.dataset.scan.projection import Needs, Projection, needs_of
from lance_core.errors import InputError
from lance_core.expr import Expr, ast, columns_of
from lance_core.file.projection import MAX_WINDOWS, WINDOW_BYTES
from lance_core.format.address import split_address
from lance_core.format.fragment import Fragment
from lance_core.format.fragments import FragmentList
from lance_core.format.manifest import Manifest
from lance_core.format.schema import NO_PARENT, Schema

_MIN_EXPECTED = 64 << 10
DEFAULT_BATCH_ROWS = 8192
LARGE_BATCH_ROWS = 1 << 16
"""For results that are wanted whole."""


@dataclass(frozen=True, slots=True)
class FragmentTask:
    """Living rows `start` to `end` (excluded) of one fragment."""

    fragment: Fragment
    start: int
    end: int
    picked: Picked | None = None
    ready: pa.RecordBatch | None = None
    """Its rows, where they have been read with those of other fragments."""

    @property
    def num_rows(self) -> int:
        """Living rows of the task."""
        return self.end - self.start


@dataclass(frozen=True)
class ScanPlan:
    """What to do. `first` is read of all rows in question, `rest` (None: nothing) only of rows the filter selects.

    With a filter, `limit` and `offset` are applied to what it selects, while scanning; without one they are in the tasks.
    """

    tasks: tuple[FragmentTask, ...]
    projection: Projection
    filter: Expr | None
    first: Schema
    first_system: frozenset[str]
    rest: Schema | None
    limit: int | None
    offset: int


def plain_outputs(plan: ScanPlan) -> bool:
    """Whether the outputs are exactly the stored columns that are read, so that nothing is left to compute."""
    names = [output.field.name for output in plan.projection.outputs]
    stored = [item.name for item in plan.first.top_level]
    whole = all(is_itself(output.expr, output.field.name) for output in plan.projection.outputs)
    return whole and bool(names) and sorted(names) == sorted(stored) and not plan.first_system


def is_itself(expr: Expr, name: str) -> bool:
    """Whether an expression is nothing but a column of that name."""
    return isinstance(expr, ast.Column) and expr.path == (name,)


@dataclass(frozen=True, eq=False)
class Picked:
    """What indices know of a fragment: sorted physical offsets of rows that may match, and what is left to do with them."""

    offsets: npt.NDArray[np.int64]
    plan: ScanPlan


def plan_scan(
    schema: Schema,
    fragments: Sequence[Fragment],
    projection: Projection,
    *,
    filter: Expr | None = None,
    limit: int | None = None,
    offset: int | None = None,
) -> ScanPlan:
    """The plan of a scan over fragments, in the order given. Raises InputError for a negative limit or offset."""
    most, skip = check_bounds(limit, offset)
    output = Needs(projection.field_ids, projection.system)
    if filter is None:
        tasks = _slice(fragments, skip, most)
        return ScanPlan(tasks, projection, None, schema.project(output.field_ids), output.system, None, None, 0)
    tested = needs_of(schema, columns_of(filter))
    first, rest = _two_steps(schema, tested, output)
    tasks = () if most == 0 else tuple(FragmentTask(fragment, 0, fragment.num_rows) for fragment in fragments)
    return ScanPlan(tasks, projection, filter, first, tested.system | output.system, rest, most, skip)


def check_bounds(limit: int | None, offset: int | None) -> tuple[int | None, int]:
    """(limit, offset with 0 for None). Raises InputError for what is no number of rows."""
    return _at_least_zero(limit, "limit"), _at_least_zero(offset, "offset") or 0


def _at_least_zero(value: int | None, name: str) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise InputError(f"{name} must be a non-negative integer, got {value!r}")
    return value


def _two_steps(schema: Schema, tested: Needs, output: Needs) -> tuple[Schema, Schema | None]:
    """Whole columns go to one step: what the output needs of a column the filter tests is read with it."""
    in_filter = {_column_of(schema, field_id) for field_id in tested.field_ids}
    together = {field_id for field_id in output.field_ids if _column_of(schema, field_id) in in_filter}
    later = output.field_ids - together
    return schema.project(tested.field_ids | together), schema.project(later) if later else None


def _column_of(schema: Schema, field_id: int) -> int:
    parent = schema.by_id[field_id].parent_id
    return field_id if parent == NO_PARENT else _column_of(schema, parent)


def _slice(fragments: Sequence[Fragment], offset: int, limit: int | None) -> tuple[FragmentTask, ...]:
    tasks: list[FragmentTask] = []
    skip, left = offset, limit
    for fragment in fragments:
        if left == 0:
            break
        start = min(skip, fragment.num_rows)
        skip -= start
        end = fragment.num_rows if left is None else min(fragment.num_rows, start + left)
        if end > start:
            tasks.append(FragmentTask(fragment, start, end))
            left = None if left is None else left - (end - start)
    return tuple(tasks)


def expected_bytes(plan: ScanPlan, task: FragmentTask) -> int:
    """About how many bytes a task holds while it is read: its share of its files, and no more than its reader's windows."""
    share = task.num_rows / max(1, task.fragment.num_rows)
    wanted = plan.first.ids if plan.rest is None else (*plan.first.ids, *plan.rest.ids)
    size = 0.0
    for file in task.fragment.files:
        held = set(file.fields)
        columns = sum(field_id in held for field_id in wanted)
        size += (file.file_size_bytes or WINDOW_BYTES) * columns / max(1, len(held))
    return int(min(size * share, MAX_WINDOWS * WINDOW_BYTES)) + _MIN_EXPECTED


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
