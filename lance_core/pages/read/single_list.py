"""Neighbouring rows of a mini-block page with lists that are in one chunk: no arrays of chunks, one chunk of levels.

::

    row 1,500 of the page     chunk 3 holds rows 1,410 to 1,604        90 rows begin before it in the chunk
    rep  1 0 0 1 0 1 ...      the 91st entry that begins a row, up to the 92nd; as many slots as entries that are visible

What the repetition index says of the chunk is compared with its levels, as in `lists.read_lists`.
"""

from __future__ import annotations

import numpy as np

from lance_core.codecs.blocks import Block, DictionaryBlock, FixedBlock, Pieces
from lance_core.codecs.dispatch import Codecs
from lance_core.codecs.gather import words
from lance_core.codecs.one_chunk import decode_levels, decode_span
from lance_core.errors import CorruptFileError
from lance_core.fetch import Fetch
from lance_core.format.layout import MiniBlockLayout, Page
from lance_core.pages.buffers import part
from lance_core.pages.chunks import ChunkTable
from lance_core.pages.leaf import Leaf, LeafValues, max_rep, max_visible_def
from lance_core.pages.read.single_row import cut_chunk
from lance_core.pages.select import check_slots
from lance_core.pages.value_slots import slice_slots


def read_list_rows(
    layout: MiniBlockLayout, page: Page, table: ChunkTable, chunk: int, rows: tuple[int, int], codecs: Codecs
) -> Fetch[Leaf]:
    """The rows `rows[0]` to `rows[1]`, all of which the chunk holds as a whole. The page has a repetition index."""
    wanted = part(page, 1, table.bounds.item(chunk), table.bounds.item(chunk + 1))
    (data,) = yield [wanted]
    view = memoryview(data)
    if len(view) != wanted.size:
        raise CorruptFileError(f"got {len(view)} bytes at {wanted.start}, expected {wanted.size}")
    return _decode(layout, table, chunk, view, rows, codecs)


def _decode(
    layout: MiniBlockLayout, table: ChunkTable, chunk: int, data: memoryview, rows: tuple[int, int], codecs: Codecs
) -> Leaf:
    num_levels, reps, defs, buffers = cut_chunk(layout, data)
    if layout.rep_compression is None or reps is None:
        raise CorruptFileError("a page with lists has no repetition levels")
    rep = decode_levels(layout.rep_compression, reps, num_levels, codecs)
    begins = (rep == max_rep(layout.layers)).nonzero()[0]
    count = table.values.item(chunk + 1) - table.values.item(chunk)
    first, last = (row - table.started(chunk) for row in rows)
    ends_early = table.started(chunk) + len(begins) != table.started(chunk + 1)
    if ends_early or not 0 <= first <= last <= len(begins) or first == len(begins):
        raise CorruptFileError(f"the repetition index does not match the levels of chunk {chunk}")
    start, end = begins.item(first), begins.item(last) if last < len(begins) else num_levels
    low, high, total, def_ = start, end, num_levels, None
    if layout.def_compression is not None and defs is not None:
        def_ = decode_levels(layout.def_compression, defs, num_levels, codecs)
        visible = def_ <= max_visible_def(layout.layers)
        low, total = (int(np.count_nonzero(item)) for item in (visible[:start], visible))
        high, def_ = low + int(np.count_nonzero(visible[start:end])), def_[start:end]
    if total != count:
        raise CorruptFileError(f"chunk {chunk} has {count} values, its levels describe {total}")
    values = _values(layout, buffers, count, low, high, codecs)
    found = values if layout.dictionary is None else _numbers(values, table.dictionary)
    leaf = Leaf(found, rep[start:end], def_, layout.layers, rows[1] - rows[0])
    check_slots(leaf)
    return leaf


def _values(
    layout: MiniBlockLayout, buffers: tuple[memoryview, ...], count: int, low: int, high: int, codecs: Codecs
) -> LeafValues:
    found = decode_span(layout.value_compression, buffers, count, low, high, codecs)
    if found is not None:
        return found
    pieces = tuple(Pieces.whole(np.frombuffer(buffer, np.uint8)) for buffer in buffers)
    whole = codecs.decode(layout.value_compression, pieces, np.array([count], np.int64))
    if whole.count != count:
        raise CorruptFileError(f"found {whole.count} values in a chunk of {count}")
    return slice_slots(whole, low, high)


def _numbers(indices: LeafValues, items: Block | None) -> DictionaryBlock:
    if items is None:
        raise CorruptFileError("a page with a dictionary has no items")
    if not isinstance(indices, FixedBlock) or indices.bits not in (8, 16, 32, 64):
        raise CorruptFileError("dictionary indices are not integers")
    numbers = words(indices.data, f"u{indices.bits // 8}")[: indices.count]
    if len(numbers) and int(numbers.max()) >= items.count:
        raise CorruptFileError(f"dictionary index {int(numbers.max())} is out of range, the dictionary has {items.count}")
    return DictionaryBlock(indices, items)
