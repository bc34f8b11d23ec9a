"""Rows out of decoded levels and values: the entries and value slots of the requested rows.

::

    rep  1 0 1 1 0      rows 1..3 are entries 2..5; with def_ 0 0 2 0 0 (2 = null list, invisible) slots 2..4
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lance_core.arrays import Ints, Levels
from lance_core.errors import CorruptFileError
from lance_core.format.layout import RepDefLayer
from lance_core.pages.leaf import Leaf, LeafValues, max_rep, max_visible_def
from lance_core.pages.levels.unravel import check_levels
from lance_core.pages.rows import RowSelection, expand_ranges
from lance_core.pages.value_slots import slice_slots, take_ranges


def num_visible(def_: Levels | None, layers: tuple[RepDefLayer, ...], num_levels: int) -> int:
    """Entries that own a value slot."""
    if def_ is None or not max_rep(layers):
        return num_levels
    return int(np.count_nonzero(def_ <= max_visible_def(layers)))


def whole_leaf(
    values: LeafValues, rep: Levels | None, def_: Levels | None, layers: tuple[RepDefLayer, ...], num_rows: int
) -> Leaf:
    """All rows of a page, after checking that levels, values and rows agree (CorruptFileError)."""
    leaf = Leaf(values, rep, def_, layers, num_rows)
    check_slots(leaf)
    rows = leaf.num_levels if rep is None else int(np.count_nonzero(rep == max_rep(layers)))
    if rows != num_rows:
        raise CorruptFileError(f"the levels describe {rows} rows, the page has {num_rows}")
    if rep is not None and len(rep) and int(rep[0]) != max_rep(layers):
        raise CorruptFileError(f"the first repetition level is {int(rep[0])}, expected {max_rep(layers)}")
    return leaf


def check_slots(leaf: Leaf) -> None:
    """Refuse levels out of range, or as many visible entries as there are not values (CorruptFileError)."""
    check_levels(leaf.rep, leaf.def_, leaf.layers)
    visible = num_visible(leaf.def_, leaf.layers, leaf.num_levels)
    if visible != leaf.values.count:
        raise CorruptFileError(f"the levels describe {visible} values, the page has {leaf.values.count}")


def select_rows(leaf: Leaf, rows: RowSelection) -> Leaf:
    """Some rows of a checked leaf whose row 0 is its first."""
    if rows.covers(leaf.num_rows):
        return leaf
    if leaf.rep is None:
        return select_entries(leaf, rows.starts, rows.ends, rows.num_rows)
    starts = np.flatnonzero(leaf.rep == max_rep(leaf.layers))
    bounds = np.append(starts, np.int64(len(leaf.rep)))
    return select_entries(leaf, bounds[rows.starts], bounds[rows.ends], rows.num_rows)


def select_entries(leaf: Leaf, starts: Ints, ends: Ints, num_rows: int) -> Leaf:
    """Some ranges of entries (levels) of a leaf, which are `num_rows` rows."""
    if len(starts) == 0:
        starts = ends = np.zeros(1, np.int64)
    low, high = slots_of_entries(leaf, starts, ends)
    return Leaf(
        take_ranges(leaf.values, low, high),
        _take_levels(leaf.rep, starts, ends),
        _take_levels(leaf.def_, starts, ends),
        leaf.layers,
        num_rows,
    )


def cut_entries(leaf: Leaf, edges: Sequence[int], rows: Sequence[int]) -> list[Leaf]:
    """A leaf in parts: part i holds the entries `edges[i]` to `edges[i + 1]`, which are `rows[i]` rows."""
    visible = max_visible_def(leaf.layers)
    parts, slot = [], 0
    for start, end, count in zip(edges[:-1], edges[1:], rows, strict=True):
        rep, def_ = (None if levels is None else levels[start:end] for levels in (leaf.rep, leaf.def_))
        num_slots = end - start if def_ is None or rep is None else int(np.count_nonzero(def_ <= visible))
        parts.append(Leaf(slice_slots(leaf.values, slot, slot + num_slots), rep, def_, leaf.layers, count))
        slot += num_slots
    return parts


def slots_of_entries(leaf: Leaf, starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """The value slots that ranges of entries own, as ranges."""
    if leaf.def_ is None or not max_rep(leaf.layers):
        return starts, ends
    visible = np.zeros(len(leaf.def_) + 1, np.int64)
    np.cumsum(leaf.def_ <= max_visible_def(leaf.layers), out=visible[1:])
    return visible[starts], visible[ends]


def _take_levels(levels: Levels | None, starts: Ints, ends: Ints) -> Levels | None:
    if levels is None:
        return None
    if len(starts) == 1:
        return levels[int(starts[0]) : int(ends[0])]
    picked: Levels = levels[expand_ranges(starts, ends)]
    return picked
