"""Reading mini-block pages: small values in chunks, each chunk with its own levels.

::

    buffers   [0] chunk words   [1] chunks   [2] dictionary, if any   [last] repetition index, if any
    load      everything but the chunks                    one round
    read      the chunks that hold the rows, joined        one round; all of them are decoded in one call
    scan      every buffer                                 one round
"""

from __future__ import annotations

import numpy as np

from lance_core.arrays import Bytes, Ints, Levels
from lance_core.codecs.blocks import Block, DictionaryBlock, FixedBlock, Picks, Pieces
from lance_core.codecs.dispatch import Codecs
from lance_core.codecs.gather import words
from lance_core.errors import CorruptFileError
from lance_core.fetch import ByteRange, Fetch
from lance_core.format.encoding import CompressiveEncoding
from lance_core.format.layout import MiniBlockLayout, Page
from lance_core.pages.buffers import part, request, request_many, require_buffers
from lance_core.pages.chunks import ChunkParts, ChunkTable, chunks_of_rows, only_chunk, read_headers, read_table
from lance_core.pages.leaf import Leaf, max_rep
from lance_core.pages.read.few_lists import read_list_rows
from lance_core.pages.read.few_values import LEVEL_CODECS, can_read_row, read_rows
from lance_core.pages.read.lists import PageRows, read_lists
from lance_core.pages.rows import RowSelection
from lance_core.pages.select import check_slots, select_entries, select_rows, whole_leaf

_FEW_ROWS = 16
"""So many rows of a page without lists are decoded one by one."""
_FEW = 16
"""One row among this many values of the chunks it is in is looked up; of more, all values are decoded."""


def load(layout: MiniBlockLayout, page: Page, codecs: Codecs) -> Fetch[ChunkTable]:
    """Chunk words, dictionary, repetition index."""
    ranges = index_ranges(layout, page)
    parts = yield from request(ranges)
    return table_of(layout, page, parts, codecs)


def scan(layout: MiniBlockLayout, page: Page, codecs: Codecs) -> Fetch[Leaf]:
    """Every row in one round."""
    ranges = index_ranges(layout, page)
    *parts, data = yield from request([*ranges, part(page, 1)])
    table = table_of(layout, page, parts, codecs)
    return _decode_all(layout, page, table, data, codecs)


def read(layout: MiniBlockLayout, page: Page, index: ChunkTable, rows: RowSelection, codecs: Codecs) -> Fetch[Leaf]:
    """The rows, from the chunks that hold them."""
    if rows.covers(page.num_rows):
        (data,) = yield from request([part(page, 1)])
        return _decode_all(layout, page, index, data, codecs)
    if 0 < rows.num_rows <= _FEW_ROWS and can_read_row(layout, codecs):
        return (yield from read_rows(layout, page, index, rows.to_indices().tolist(), codecs))
    if rows.num_rows and index.row_ends is not None and layout.rep_compression is not None:
        chunk = only_chunk(index, rows)
        if chunk is not None:
            span = int(rows.starts[0]), int(rows.ends[-1])
            return (yield from read_list_rows(layout, page, index, chunk, span, codecs))
        return (yield from read_lists(layout, [PageRows(page, index, rows)], codecs))
    chunks = chunks_of_rows(layout, index, rows) if rows.num_rows else np.empty(0, np.int64)
    firsts, lasts = _runs(chunks)
    data, positions = yield from request_many(page, 1, index.bounds[firsts], index.bounds[lasts + 1])
    shifts = np.repeat(positions - index.bounds[firsts], lasts - firsts + 1)
    return _decode_some(layout, page, index, chunks, data, index.bounds[chunks] + shifts, rows, codecs)


def index_ranges(layout: MiniBlockLayout, page: Page) -> list[ByteRange]:
    """Every buffer but the chunks."""
    has_dictionary, has_rep_index = layout.dictionary is not None, layout.repetition_index_depth > 0
    require_buffers(page, 2 + has_dictionary + has_rep_index, "mini-block")
    ranges = [part(page, 0)]
    if has_dictionary:
        ranges.append(part(page, 2))
    if has_rep_index:
        ranges.append(part(page, 2 + has_dictionary))
    return ranges


def table_of(layout: MiniBlockLayout, page: Page, parts: list[Bytes], codecs: Codecs) -> ChunkTable:
    """The chunks of the page from what `index_ranges` asks for."""
    dictionary = None if layout.dictionary is None else _dictionary(layout, layout.dictionary, parts[1], codecs)
    rep_index = parts[-1] if layout.repetition_index_depth > 0 else None
    if not max_rep(layout.layers) and layout.num_items != page.num_rows:
        raise CorruptFileError(f"{layout.num_items} values do not match the page's {page.num_rows} rows")
    return read_table(layout, page, parts[0], rep_index, dictionary)


def _dictionary(layout: MiniBlockLayout, encoding: CompressiveEncoding, data: Bytes, codecs: Codecs) -> Block:
    count = layout.num_dictionary_items
    # A width of zero bits claims items without bytes: cap what a damaged count may allocate.
    if not 0 <= count <= max(layout.num_items, (len(data) + 1) * 8192):
        raise CorruptFileError(f"a dictionary of {count} items does not match {len(data)} bytes")
    return codecs.decode_block(encoding, Pieces.whole(data), np.array([count], np.int64))


def _runs(chunks: Ints) -> tuple[Ints, Ints]:
    """First and last of each run of neighbouring chunks."""
    if len(chunks) == 0:
        return chunks, chunks
    breaks = np.flatnonzero(np.diff(chunks) != 1)
    return chunks[np.append(0, breaks + 1)], chunks[np.append(breaks, len(chunks) - 1)]


def _decode_all(layout: MiniBlockLayout, page: Page, table: ChunkTable, data: Bytes, codecs: Codecs) -> Leaf:
    parts = read_headers(layout, data, table.bounds[:-1], table.bounds[1:])
    leaf = decode_chunks(layout, table.dictionary, parts, np.diff(table.values), codecs)
    return whole_leaf(leaf.values, leaf.rep, leaf.def_, layout.layers, page.num_rows)


def _decode_some(
    layout: MiniBlockLayout,
    page: Page,
    table: ChunkTable,
    chunks: Ints,
    data: Bytes,
    positions: Ints,
    rows: RowSelection,
    codecs: Codecs,
) -> Leaf:
    """`positions`: where each of the chunks begins in `data`."""
    counts = table.values[chunks + 1] - table.values[chunks]
    parts = read_headers(layout, data, positions, positions + (table.bounds[chunks + 1] - table.bounds[chunks]))
    if parts.rep is None and rows.num_rows * _FEW <= int(counts.sum()):
        numbers = rows.to_indices()
        owners = np.searchsorted(table.values[chunks], numbers, "right") - 1
        picks = Picks(owners, numbers - table.values[chunks[owners]])
        picked = decode_picks(layout, table.dictionary, parts, counts, picks, codecs)
        if picked is not None:
            return picked
    leaf = decode_chunks(layout, table.dictionary, parts, counts, codecs)
    check_slots(leaf)
    if leaf.rep is None:
        starts = _entries(table, chunks, counts, rows.starts)
        return select_entries(leaf, starts, starts + (rows.ends - rows.starts), rows.num_rows)
    if not len(chunks):
        return select_entries(leaf, rows.starts, rows.ends, 0)
    return select_rows(whole_leaf(leaf.values, leaf.rep, leaf.def_, layout.layers, page.num_rows), rows)


def decode_chunks(
    layout: MiniBlockLayout, dictionary: Block | None, parts: ChunkParts, counts: Ints, codecs: Codecs
) -> Leaf:
    """Levels and values of some chunks. Nothing is checked yet that needs all rows."""
    values: Block = codecs.decode(layout.value_compression, parts.buffers, counts)
    if dictionary is not None:
        values = with_dictionary(values, dictionary)
    has_levels = parts.rep is not None or parts.def_ is not None
    num_levels = parts.num_levels if has_levels else counts
    if parts.rep is None and (num_levels != counts).any():
        raise CorruptFileError("a chunk has more levels than values, but the page has no lists")
    if (num_levels < counts).any():
        raise CorruptFileError("a chunk has fewer levels than values")
    rep = None if parts.rep is None else _levels(layout.rep_compression, parts.rep, num_levels, codecs)
    def_ = None if parts.def_ is None else _levels(layout.def_compression, parts.def_, num_levels, codecs)
    return Leaf(values, rep, def_, layout.layers, 0)


def decode_picks(
    layout: MiniBlockLayout,
    dictionary: Block | None,
    parts: ChunkParts,
    counts: Ints,
    picks: Picks,
    codecs: Codecs,
) -> Leaf | None:
    """Few rows of many chunks without lists, each decoded alone; None where all values must be, or may as well be."""
    if len(picks) * _FEW > int(counts.sum()):
        return None
    if (parts.def_ is not None and (parts.num_levels != counts).any()) or (parts.num_levels > counts).any():
        raise CorruptFileError("a chunk has unequal numbers of levels and values, but the page has no lists")
    values = codecs.decode_picks(layout.value_compression, parts.buffers, counts, picks)
    if values is None:
        return None
    def_ = None
    if parts.def_ is not None and isinstance(layout.def_compression, LEVEL_CODECS):
        levels = codecs.decode_picks(layout.def_compression, (parts.def_,), counts, picks)
        if levels is None:
            return None
        def_ = as_levels(levels)
    elif parts.def_ is not None:
        return None
    if dictionary is not None:
        values = with_dictionary(values, dictionary)
    leaf = Leaf(values, None, def_, layout.layers, len(picks))
    check_slots(leaf)
    return leaf


def _levels(encoding: CompressiveEncoding | None, pieces: Pieces, counts: Ints, codecs: Codecs) -> Levels:
    assert encoding is not None
    return as_levels(codecs.decode_block(encoding, pieces, counts))


def as_levels(block: Block) -> Levels:
    """A decoded block of levels as u16."""
    if not isinstance(block, FixedBlock) or block.bits != 16:
        raise CorruptFileError("levels are not 16-bit numbers")
    return words(block.data, np.uint16)


def with_dictionary(indices: object, items: Block) -> Block:
    """Numbers and the items they mean; CorruptFileError for numbers outside the items."""
    if not isinstance(indices, FixedBlock) or indices.bits not in (8, 16, 32, 64):
        raise CorruptFileError("dictionary indices are not integers")
    numbers = np.frombuffer(indices.data, f"<u{indices.bits // 8}", indices.count)
    if len(numbers) and int(numbers.max()) >= items.count:
        raise CorruptFileError(f"dictionary index {int(numbers.max())}, the dictionary has {items.count} items")
    return DictionaryBlock(indices, items)


def _entries(table: ChunkTable, chunks: Ints, counts: Ints, rows: Ints) -> Ints:
    """Where rows are among the decoded entries, for pages without lists."""
    if len(rows) == 0:
        return rows
    first_values = table.values[chunks]
    decoded_before = np.cumsum(counts) - counts
    position = np.searchsorted(first_values, rows, "right") - 1
    entries: Ints = rows - first_values[position] + decoded_before[position]
    return entries
