"""A few rows of a mini-block page without lists: their chunks, one value at a time, and none of the machinery for many.

::

    row 1,500, chunks of 1,024 values    chunk 1, value 476
    chunk    04 00 | def bytes | value bytes | pad | def | values          -> Leaf of one row

What is in the chunk is checked as in `chunks.read_headers`; what other rows of it say is not checked.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from lance_core.arrays import Levels
from lance_core.codecs.blocks import Block, DictionaryBlock, FixedBlock, VariableBlock
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


def read_rows(layout: MiniBlockLayout, page: Page, table: ChunkTable, rows: Sequence[int], codecs: Codecs) -> Fetch[Leaf]:
    """Ascending rows: each chunk that holds some of them is read once, and each row decoded by itself."""
    owners = [int(table.values.searchsorted(row, "right")) - 1 for row in rows]
    chunks = list(dict.fromkeys(owners))
    wanted = [part(page, 1, table.bounds.item(chunk), table.bounds.item(chunk + 1)) for chunk in chunks]
    views = [memoryview(data) for data in (yield wanted)]
    for item, view in zip(wanted, views, strict=True):
        if len(view) != item.size:
            raise CorruptFileError(f"got {len(view)} bytes at {item.start}, expected {item.size}")
    at = dict(zip(chunks, views, strict=True))
    found = [_value(layout, table, chunk, at[chunk], row, codecs) for chunk, row in zip(owners, rows, strict=True)]
    values = _joined([value for value, _ in found])
    levels = [level for _, level in found if level is not None]
    def_ = np.concatenate(levels) if levels else None
    return Leaf(_numbered(values, table.dictionary), None, def_, layout.layers, len(rows))


def _decode(layout: MiniBlockLayout, table: ChunkTable, chunk: int, data: memoryview, row: int, codecs: Codecs) -> Leaf:
    values, def_ = _value(layout, table, chunk, data, row, codecs)
    return Leaf(values if table.dictionary is None else _item(values, table.dictionary), None, def_, layout.layers, 1)


def _value(
    layout: MiniBlockLayout, table: ChunkTable, chunk: int, data: memoryview, row: int, codecs: Codecs
) -> tuple[Block, Levels | None]:
    """The value, or its number in the dictionary, and its definition level."""
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
    return values, def_


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


def _numbered(values: Block, items: Block | None) -> LeafValues:
    """The values, or what numbers mean in the dictionary."""
    if items is None:
        return values
    if not isinstance(values, FixedBlock) or values.bits not in (8, 16, 32, 64):
        raise CorruptFileError("dictionary indices are not integers")
    largest = int(np.frombuffer(values.data, f"<u{values.bits // 8}", values.count).max())
    if largest >= items.count:
        raise CorruptFileError(f"dictionary index {largest}, the dictionary has {items.count} items")
    return DictionaryBlock(values, items)


def _joined(blocks: Sequence[Block]) -> Block:
    """Blocks of one value, all of a kind, as one."""
    fixed = [block for block in blocks if isinstance(block, FixedBlock)]
    if len(fixed) == len(blocks):
        data = np.concatenate([block.data for block in fixed])
        is_bits = fixed[0].bits == 1
        return FixedBlock(fixed[0].bits, np.packbits(data, bitorder="little") if is_bits else data, len(blocks))
    texts = [block for block in blocks if isinstance(block, VariableBlock)]
    if len(texts) < len(blocks):
        raise CorruptFileError("the values of one page are of different kinds")
    ends: Any = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(block.data) for block in texts], out=ends[1:])
    is_small = texts[0].offsets.dtype.itemsize == 4 and int(ends[-1]) < 1 << 31
    return VariableBlock(ends.astype(np.int32) if is_small else ends, np.concatenate([block.data for block in texts]))
