"""A few rows of a column without lists, each value by itself: what one page gives, and those of several as one.

::

    layers (NULLABLE_ITEM, NULLABLE_ITEM)     a struct x of y;  levels 0 1 2: a value, y is null, x is null
    nulls  2 1 0                              how deep the null is, from the outermost layer; 2 layers: no null

Pages of one column may differ in their layers, and so in what a level means; how deep a null is means the same in all.

A few rows of a mini-block page without lists: their chunks, one value at a time, and none of the machinery for many.

::

    row 1,500, chunks of 1,024 values    chunk 1, value 476
    chunk    04 00 | def bytes | value bytes | pad | def | values          -> the bytes of one value, its level

What is in the chunk is checked as in `chunks.read_headers`; what other rows of it say is not checked.

A few rows of a full-zip page of values of different sizes, without lists: each is requested and cut by itself.

::

    row index   row 7: bytes 4,096 to 4,120        one question for the places of all rows, one for the rows
    row         00 | 14 00 00 00 | the value       control word, length, bytes
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import numpy as np

from lance_core.codecs.blocks import Block, DictionaryBlock, FixedBlock, VariableBlock, block_of
from lance_core.codecs.dispatch import Codecs
from lance_core.errors import CorruptFileError
from lance_core.fetch import Buffer, ByteRange, Fetch
from lance_core.format.encoding import Flat, InlineBitpacking, OutOfLineBitpacking
from lance_core.format.layout import FullZipLayout, MiniBlockLayout, Page, RepDefLayer
from lance_core.pages.buffers import part
from lance_core.pages.chunks import MAX_BUFFERS, ChunkTable
from lance_core.pages.leaf import Leaf, max_def, max_rep
from lance_core.pages.read.fullzip import ZipFacts, facts_of, index_width


@dataclass(frozen=True, slots=True, eq=False)
class RowValues:
    """`items`: the bytes of each row's value; under a null anything of the same width.

    `bits`: their width, 0 where widths differ; a single bit is a byte, 0 or 1. `nulls`: for each row the number of layers
    around the one that is null, the number of all layers where there is a value; None when no row is null.
    """

    items: Sequence[bytes]
    nulls: Sequence[int] | None
    bits: int
    num_layers: int

    def block(self) -> Block:
        """The values as a decoded block."""
        if self.bits == 0:
            return block_of(self.items)
        data = np.frombuffer(b"".join(self.items), np.uint8)
        return FixedBlock(self.bits, np.packbits(data, bitorder="little") if self.bits == 1 else data, len(self.items))


def join_values(parts: Sequence[RowValues]) -> RowValues:
    """The rows of all parts, of which there is at least one. CorruptFileError when they are not of one kind."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    if any(part.bits != first.bits or part.num_layers != first.num_layers for part in parts):
        raise CorruptFileError("pages of one column hold values of different widths or nesting")
    items = [item for part in parts for item in part.items]
    if all(part.nulls is None for part in parts):
        return RowValues(items, None, first.bits, first.num_layers)
    nulls: list[int] = []
    for one in parts:
        nulls += [one.num_layers] * len(one.items) if one.nulls is None else one.nulls
    return RowValues(items, nulls, first.bits, first.num_layers)


def nulls_of(levels: Sequence[int], layers: tuple[RepDefLayer, ...]) -> list[int]:
    """How deep each row's null is. CorruptFileError for levels that the layers do not have."""
    depths = _depths(layers)
    try:
        return [depths[level] for level in levels]
    except IndexError:
        raise CorruptFileError(f"definition level {max(levels)}, the page's layers allow {len(depths) - 1}") from None


@lru_cache(maxsize=64)
def _depths(layers: tuple[RepDefLayer, ...]) -> tuple[int, ...]:
    """By definition level; `layers` runs from the innermost outwards and has no lists."""
    number = len(layers)
    return number, *(number - 1 - at for at, layer in enumerate(layers) if layer.num_def_levels)


def packed_bits(flags: Sequence[Any]) -> bytes:
    """Truth values as a bitmap, least significant bit first."""
    bits = 0
    for number, flag in enumerate(flags):
        if flag:
            bits |= 1 << number
    return bits.to_bytes(len(flags) + 7 >> 3, "little")


LEVEL_CODECS = (Flat, InlineBitpacking, OutOfLineBitpacking)
"""Encodings whose block form, in which levels are kept, is that of their chunks."""

Found = tuple[list[bytes], list[int] | None]


def can_read_row(layout: MiniBlockLayout, codecs: Codecs) -> bool:
    """Whether this file knows the way: no lists, and codecs that decode a single value."""
    levels = layout.def_compression
    if layout.rep_compression is not None or layout.repetition_index_depth:
        return False
    if not (levels is None or isinstance(levels, LEVEL_CODECS)):
        return False
    return codecs.can_decode_at(layout.value_compression)


def read_rows(layout: MiniBlockLayout, page: Page, table: ChunkTable, rows: Sequence[int], codecs: Codecs) -> Fetch[Leaf]:
    """Ascending rows: each chunk that holds some of them is read once, and each row decoded by itself."""
    items, levels = yield from _read(layout, page, table, rows, codecs)
    def_ = None if levels is None else np.array(levels, np.uint16)
    if levels is not None and max(levels) > max_def(layout.layers):
        raise CorruptFileError(f"definition level {max(levels)}, the page's layers allow {max_def(layout.layers)}")
    values = RowValues(items, None, codecs.bits_at(layout.value_compression), len(layout.layers)).block()
    if table.dictionary is not None:
        _numbers(items, table.dictionary.count)
        assert isinstance(values, FixedBlock)
        values = DictionaryBlock(values, table.dictionary)
    return Leaf(values, None, def_, layout.layers, len(rows))


def read_row_values(
    layout: MiniBlockLayout, page: Page, table: ChunkTable, rows: Sequence[int], codecs: Codecs
) -> Fetch[RowValues]:
    """The same, each value by itself; those of a dictionary are spelled out."""
    items, levels = yield from _read(layout, page, table, rows, codecs)
    nulls = None if levels is None else nulls_of(levels, layout.layers)
    if table.dictionary is None:
        return RowValues(items, nulls, codecs.bits_at(layout.value_compression), len(layout.layers))
    spelled, bits = _spelled(_numbers(items, table.dictionary.count), table.dictionary)
    return RowValues(spelled, nulls, bits, len(layout.layers))


def _read(layout: MiniBlockLayout, page: Page, table: ChunkTable, rows: Sequence[int], codecs: Codecs) -> Fetch[Found]:
    # Views give plain numbers, and a search in them none of numpy's.
    firsts, bounds = memoryview(cast("Any", table.values)), memoryview(cast("Any", table.bounds))
    owners: list[int] = []
    wanted: list[ByteRange] = []
    last = -1
    for row in rows:
        chunk = bisect_right(firsts, row) - 1
        if chunk != last:
            wanted.append(part(page, 1, bounds[chunk], bounds[chunk + 1]))
            last = chunk
        owners.append(chunk)
    buffers = iter((yield wanted))
    items: list[bytes] = []
    levels: list[int] | None = None if layout.def_compression is None else []
    last = -1
    for chunk, row in zip(owners, rows, strict=True):
        if chunk != last:
            data = memoryview(next(buffers))
            if len(data) != bounds[chunk + 1] - bounds[chunk]:
                raise CorruptFileError(f"got {len(data)} bytes of a chunk of {bounds[chunk + 1] - bounds[chunk]}")
            num_levels, _, stored, pieces = cut_chunk(layout, data)
            first, last = firsts[chunk], chunk
            count = firsts[chunk + 1] - first
            if stored is not None and num_levels != count:
                raise CorruptFileError(f"a chunk has {count} values and {num_levels} levels, but the page has no lists")
        items.append(codecs.decode_at(layout.value_compression, pieces, count, row - first))
        if levels is not None and stored is not None and layout.def_compression is not None:
            level = codecs.decode_at(layout.def_compression, (stored,), count, row - first)
            if len(level) != 2:
                raise CorruptFileError("levels are not 16-bit numbers")
            levels.append(level[0] | level[1] << 8)
    return items, levels


def cut_chunk(
    layout: MiniBlockLayout, data: memoryview
) -> tuple[int, memoryview | None, memoryview | None, tuple[memoryview, ...]]:
    """Number of levels, the repetition and the definition levels and the value buffers of a chunk."""
    has_rep, has_def = layout.rep_compression is not None, layout.def_compression is not None
    head = _head(1 + has_rep + has_def, layout.num_buffers, layout.has_large_chunk)
    if len(data) < head.size:
        raise CorruptFileError(f"a chunk is smaller than its header of {head.size} bytes")
    num_levels, *sizes = head.unpack_from(data)
    at = head.size + 7 & -8
    pieces = []
    for size in sizes:
        pieces.append(data[at : at + size])
        at = at + (size + 7 & -8)
    if at > len(data):
        raise CorruptFileError(f"the parts of a chunk take {at} bytes, the chunk has {len(data)}")
    rep = pieces[0] if has_rep else None
    return num_levels, rep, pieces[has_rep] if has_def else None, tuple(pieces[has_rep + has_def :])


@lru_cache(maxsize=64)
def _head(num_small: int, num_buffers: int, has_large_chunk: bool) -> struct.Struct:
    """The numbers in front of a chunk."""
    if not 0 < num_buffers <= MAX_BUFFERS:
        raise CorruptFileError(f"a chunk declares {num_buffers} value buffers, which is impossible")
    return struct.Struct("<" + "H" * num_small + ("I" if has_large_chunk else "H") * num_buffers)


def _numbers(items: Sequence[bytes], num_items: int) -> list[int]:
    """Numbers of items of a dictionary."""
    if any(len(item) not in (1, 2, 4, 8) for item in items):
        raise CorruptFileError("dictionary indices are not integers")
    numbers = [int.from_bytes(item, "little") for item in items]
    if max(numbers) >= num_items:
        raise CorruptFileError(f"dictionary index {max(numbers)}, the dictionary has {num_items} items")
    return numbers


def _spelled(numbers: Sequence[int], items: Block) -> tuple[list[bytes], int]:
    """The dictionary's items, and their width."""
    if isinstance(items, VariableBlock):
        offsets = memoryview(cast("Any", items.offsets))
        return [items.data[offsets[number] : offsets[number + 1]].tobytes() for number in numbers], 0
    if not isinstance(items, FixedBlock) or items.bits % 8:
        raise CorruptFileError(f"a dictionary of {type(items).__name__} for single values")
    size = items.bits // 8
    return [items.data[number * size : (number + 1) * size].tobytes() for number in numbers], items.bits


def can_read_zipped(layout: FullZipLayout) -> bool:
    """Whether this file knows the way."""
    return layout.bits_per_offset is not None and layout.bits_rep == 0 and not max_rep(layout.layers)


def read_zipped_values(pages: Sequence[Page], rows: Sequence[Sequence[int]], codecs: Codecs) -> Fetch[RowValues]:
    """Ascending rows of one page, or of several of one `fullzip.kind_of`, each value by itself."""
    layouts = [cast("FullZipLayout", page.layout) for page in pages]
    facts, *_ = [facts_of(layout, page) for layout, page in zip(layouts, pages, strict=True)]
    places: list[ByteRange] = []
    owners: list[Page] = []
    for page, own in zip(pages, rows, strict=True):
        width = index_width(page, page.buffers[1].size)
        places += [part(page, 1, row * width, (row + 2) * width) for row in own]
        owners += [page] * len(own)
    wanted: list[ByteRange] = []
    for pair, place, page in zip((yield places), places, owners, strict=True):
        width, size = place.size // 2, page.buffers[0].size
        start, end = int.from_bytes(pair[:width], "little"), int.from_bytes(pair[width:], "little")
        if not start + facts.word_size <= end <= size or start == end or len(pair) != 2 * width:
            raise CorruptFileError(f"the row index has a row at bytes {start} to {end} of {size}")
        wanted.append(part(page, 0, start, end))
    payloads: list[bytes] = []
    levels: list[int] = []
    mask = (1 << layouts[0].bits_def) - 1
    for data, asked in zip((yield wanted), wanted, strict=True):
        if len(data) != asked.size:
            raise CorruptFileError(f"got {len(data)} bytes at {asked.start}, expected {asked.size}")
        level = int.from_bytes(data[: facts.word_size], "little") & mask
        levels.append(level)
        payloads.append(b"" if level else _payload(facts, data))
    items = codecs.decode_payloads([layout.value_compression for layout in layouts], [*map(len, rows)], payloads)
    layers = layouts[0].layers
    return RowValues(items, nulls_of(levels, layers) if mask else None, 0, len(layers))


def _payload(facts: ZipFacts, data: Buffer) -> bytes:
    start = facts.word_size + facts.length_size
    length = int.from_bytes(data[facts.word_size : start], "little")
    if start + length > len(data):
        raise CorruptFileError("a value is longer than its row")
    return bytes(data[start : start + length])
