"""What a page holds once decoded: the visible values, the levels, and what the levels mean.

A *leaf* is some rows of one column. `rep` and `def_` have one entry per level (u16); `values` has one slot per *visible*
entry, null leaf items included, so for list<int32> rows `[1, null], null, [2]`::

    layers  (NULLABLE_ITEM, NULLABLE_LIST)          innermost first
    rep     1  0  1  1
    def_    0  1  2  0                              1 = null item, 2 = null list (invisible: owns no slot)
    values  1  ?  2                                 "?": a slot under a null, any value

A constant or all-null page is never expanded here: it stays a count and one scalar.

What the page writers give back: a description and buffers. The file aligns the buffers and says where they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lance_core.arrays import Bytes, Levels
from lance_core.codecs.blocks import Block
from lance_core.fetch import Buffer
from lance_core.format.encoding20 import ArrayEncoding
from lance_core.format.layout import PageLayout, RepDefLayer, SparseLayout


@dataclass(frozen=True, slots=True)
class ConstantValues:
    """`count` visible slots that all hold one value.

    `scalar` is None when there is no value at all (every leaf is null). Otherwise it holds the arrow value buffers of a
    scalar as the file keeps them: one buffer of plain bytes for fixed widths (a bool is one byte, 0 or 1), two for
    variable widths (offsets `[0, length]` as int32 or int64, then the bytes). `pages.constant.expand` repeats it.
    """

    count: int
    scalar: tuple[Bytes, ...] | None = None


LeafValues = Block | ConstantValues


@dataclass(frozen=True, slots=True)
class Leaf:
    """Decoded rows of one column.

    `values`: one slot per visible entry (see `num_visible`); slots under a null leaf hold arbitrary bytes, and a zero
    length if variable. `rep` is None when no layer is a list; `def_` is None when nothing is null or empty. `layers` runs
    innermost first. `num_rows` counts the rows as the page counts them (items for fixed-size lists of structs).
    """

    values: LeafValues
    rep: Levels | None
    def_: Levels | None
    layers: tuple[RepDefLayer, ...]
    num_rows: int

    @property
    def is_all_null(self) -> bool:
        """Whether the page says "no value at all" without spelling out levels: every leaf item is null.

        Items that cannot be null are structs without fields, which are all there is of them.
        """
        nothing = isinstance(self.values, ConstantValues) and self.values.scalar is None
        return nothing and self.def_ is None and self.layers[:1] != (RepDefLayer.ALL_VALID_ITEM,)

    @property
    def num_levels(self) -> int:
        """Entries of the level arrays, visible or not."""
        for levels in (self.rep, self.def_):
            if levels is not None:
                return len(levels)
        return self.values.count


@lru_cache(maxsize=256)
def max_visible_def(layers: tuple[RepDefLayer, ...]) -> int:
    """Largest definition level of an entry that still owns a value slot (FORMAT A.5): all below the first list layer.

    >>> max_visible_def((RepDefLayer.NULLABLE_ITEM, RepDefLayer.NULL_AND_EMPTY_LIST))
    1
    """
    total = 0
    for layer in layers:
        if layer.is_list:
            break
        total += layer.num_def_levels
    return total


@lru_cache(maxsize=256)
def max_def(layers: tuple[RepDefLayer, ...]) -> int:
    """Largest definition level the layers allow."""
    return sum(layer.num_def_levels for layer in layers)


@lru_cache(maxsize=256)
def max_rep(layers: tuple[RepDefLayer, ...]) -> int:
    """Number of list layers, which is the repetition level that begins a row."""
    return sum(layer.is_list for layer in layers)


@dataclass(frozen=True, slots=True, eq=False)
class EncodedPage:
    """One page, ready for a file: `buffers` in the order the layout wants them, `num_rows` for `Page.num_rows`.

    `layout` is an array encoding in 2.0 files, a page layout in newer ones.
    """

    layout: PageLayout | SparseLayout | ArrayEncoding
    buffers: tuple[Buffer, ...]
    num_rows: int


def as_buffer(data: Bytes) -> Buffer:
    """An array's bytes without a copy."""
    return np.ascontiguousarray(data).data
