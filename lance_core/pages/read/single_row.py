"""One row of a mini-block page without lists: one chunk, one value of it, and none of the machinery for many.

::

    row 1,500, chunks of 1,024 values    chunk 1, value 476
    chunk    04 00 | def bytes | value bytes | pad | def | values          -> Leaf of one row

What is in the chunk is checked as in `chunks.read_headers`; what other rows of it say is not checked.
"""

from __future__ import annotations

import struct

import numpy as np

from lance_core.codecs.blocks import Block, FixedBlock
from lance_core.codecs.dispatch import Codecs
from lance_core.errors import CorruptFileError
from lance_core.fetch import Fetch
from lance_core.format.encoding import Flat, InlineBitpacking, OutOfLineBitpacking
from lance_core.format.layout import MiniBlockLayout, Page
from lance_core.pages.buffers import part
from lance_core.pages.chunks import MAX_BUFFERS, ChunkTable
from lance_core.pages.leaf import Leaf, LeafValues, max_def
from lance_core.pages.value_slots import slice_slots

LEVEL_CODECS = (Flat, InlineBitpacking, OutOfLineBitpacking)
"""Encodings whose block form, in which levels are kept, is that of their chunks."""


def can_read_row(layout: MiniBlockLayout, codecs: Codecs) -> bool:
    """Whether this file knows the way: no lists, and codecs that decode a single value."""
    levels = layout.def_compression
    if layout.rep_compression is not None or not (levels is None or isinstance(levels, LEVEL_CODECS)):
        return False
    return codecs.can_decode_at(layout.value_compression)


def read_row(layout: MiniBlockLayout, page: Page, table: ChunkTable, row: int, codecs: Codecs) -> Fetch[Leaf]:
    """The row, from the one chunk that holds it."""
    chunk = int(table.values.searchsorted(row, "right")) - 1
    wanted = part(page, 1, int(table.bounds[chunk]), int(table.bounds[chunk + 1]))
    (data,) = yield [wanted]
    view = memoryview(data)
    if len(view) != wanted.size:
        raise CorruptFileError(f"got {len(view)} bytes at {wanted.start}, expected {wanted.size}")
    return _decode(layout, table, chunk, view, row, codecs)


def _decode(layout: MiniBlockLayout, table: ChunkTable, chunk: int, data: memoryview, row: int, codecs: Codecs) -> Leaf:
    first = int(table.values[chunk])
    count, position = int(table.values[chunk + 1]) - first, row - first
    num_levels, _, levels, buffers = cut_chunk(layout, data)
    if levels is not None and num_levels != count:
        raise CorruptFileError(f"a chunk has {count} values and {num_levels} levels, but the page has no lists")
    values = codecs.decode_at(layout.value_compression, buffers, count, position)
    def_ = None
    if layout.def_compression is not None and levels is not None:
        level = codecs.decode_at(layout.def_compression, (levels,), count, position)
        if not isinstance(level, FixedBlock) or level.bits != 16:
            raise CorruptFileError("levels are not 16-bit numbers")
        def_ = level.data.view("<u2")
        if int(def_[0]) > max_def(layout.layers):
            raise CorruptFileError(f"definition level {int(def_[0])}, the page's layers allow {max_def(layout.layers)}")
    return Leaf(values if table.dictionary is None else _item(values, table.dictionary), None, def_, layout.layers, 1)


def cut_chunk(
    layout: MiniBlockLayout, data: memoryview
) -> tuple[int, memoryview | None, memoryview | None, tuple[memoryview, ...]]:
    """Number of levels, the repetition and the definition levels and the value buffers of a chunk."""
    if not 0 < layout.num_buffers <= MAX_BUFFERS:
        raise CorruptFileError(f"a chunk declares {layout.num_buffers} value buffers, which is impossible")
    has_rep, has_def = layout.rep_compression is not None, layout.def_compression is not None
    head = "<H" + "H" * (has_rep + has_def) + ("I" if layout.has_large_chunk else "H") * layout.num_buffers
    header_size = struct.calcsize(head)
    if len(data) < header_size:
        raise CorruptFileError(f"a chunk is smaller than its header of {header_size} bytes")
    num_levels, *sizes = struct.unpack_from(head, data)
    at = header_size + 7 & -8
    pieces = []
    for size in sizes:
        pieces.append(data[at : at + size])
        at = at + (size + 7 & -8)
    if at > len(data):
        raise CorruptFileError(f"the parts of a chunk take {at} bytes, the chunk has {len(data)}")
    rep = pieces[0] if has_rep else None
    return num_levels, rep, pieces[has_rep] if has_def else None, tuple(pieces[has_rep + has_def :])


def _item(index: Block, items: Block) -> LeafValues:
    """The dictionary's item, spelled out."""
    if not isinstance(index, FixedBlock) or index.bits not in (8, 16, 32, 64):
        raise CorruptFileError("dictionary indices are not integers")
    number = int(np.frombuffer(index.data, f"<u{index.bits // 8}", 1)[0])
    if number >= items.count:
        raise CorruptFileError(f"dictionary index {number}, the dictionary has {items.count} items")
    return slice_slots(items, number, number + 1)
