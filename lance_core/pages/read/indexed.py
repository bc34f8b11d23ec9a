"""Reading values that are stored once and referenced by index (2.3, unstable): for sparse pages of few long values.

::

    values "aaa…", "bbb…", "aaa…"        indices 0 1 0 in block form       items "aaa…" "bbb…", zipped, without levels
    buffers                              indices | zipped rows | row index (variable widths)

Null slots have an index too. The indices are read as a whole, of the items those that are needed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lance_core.arrays import Ints
from lance_core.codecs.blocks import FixedBlock, Pieces
from lance_core.codecs.dispatch import Codecs
from lance_core.codecs.gather import words
from lance_core.errors import CorruptFileError
from lance_core.fetch import Fetch
from lance_core.format.layout import IndexedLayout, Page
from lance_core.pages.buffers import part, request
from lance_core.pages.leaf import Leaf
from lance_core.pages.read import fullzip
from lance_core.pages.rows import RowSelection
from lance_core.pages.value_slots import take_slots


@dataclass(frozen=True, slots=True, eq=False)
class ItemIndex:
    """Which item each slot holds, and how to get at the items."""

    indices: Ints
    items_page: Page
    items_index: fullzip.ZipFacts


def load(layout: IndexedLayout, page: Page, codecs: Codecs) -> Fetch[ItemIndex]:
    """All indices; nothing of the items."""
    if not page.buffers:
        raise CorruptFileError("indexed values have no buffer of indices")
    (data,) = yield from request([part(page, 0)])
    counts = np.array([page.num_rows], np.int64)
    whole = Pieces(data, np.zeros(1, np.int64), np.array([len(data)], np.int64))
    block = codecs.decode_block(layout.indices, whole, counts)
    if not isinstance(block, FixedBlock) or block.bits not in (8, 16, 32, 64):
        raise CorruptFileError("indices are not integers")
    indices = words(block.data, f"u{block.bits // 8}")[: block.count].astype(np.int64)
    num_items = layout.items.num_items
    if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < num_items:
        raise CorruptFileError(f"index {int(indices.max())} is outside {num_items} values")
    items = Page(replace(layout.items, layers=layout.layers), page.buffers[1:], num_items)
    facts = yield from fullzip.load(layout.items, items, codecs)
    return ItemIndex(indices, items, facts)


def scan(layout: IndexedLayout, page: Page, codecs: Codecs) -> Fetch[Leaf]:
    """Every slot."""
    index = yield from load(layout, page, codecs)
    return (yield from read(layout, page, index, RowSelection.all(page.num_rows), codecs))


def read(layout: IndexedLayout, page: Page, index: ItemIndex, rows: RowSelection, codecs: Codecs) -> Fetch[Leaf]:
    """The slots: each item that one of them points at is fetched once."""
    wanted, places = np.unique(index.indices[rows.to_indices()], return_inverse=True)
    items = index.items_page
    found = yield from fullzip.read(layout.items, items, index.items_index, RowSelection.indices(wanted), codecs)
    return Leaf(take_slots(found.values, places.astype(np.int64)), None, None, layout.layers, len(places))
