"""The chunk table of a mini-block page: where each chunk is, how many values it has, which rows end in it.

::

    word      bytes/8 - 1 in the high bits, log2(values) in the low 4 (0 for the last); u32 with large chunks, else u16
              three int64 in one 2.2 chunk: 30 00 00 00 = (3 + 1) * 8 = 32 bytes
    chunk     u16 levels | u16 rep size? | u16 def size? | u16 or u32 per value buffer | pad to 8 (0xFE)
              rep | def | value buffers, each padded to 8
    rep index per chunk (depth + 1) u64: rows that end in the chunk, levels of a row that goes on in the next
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lance_core.arrays import Bytes, Ints
from lance_core.codecs.blocks import Block, Pieces
from lance_core.codecs.gather import words as read_words
from lance_core.errors import CorruptFileError
from lance_core.format.layout import MiniBlockLayout, Page
from lance_core.pages.leaf import max_rep
from lance_core.pages.rows import RowSelection, expand_ranges

MAX_BUFFERS = 64
"""More value buffers per chunk than any encoding has."""

_FEW_RANGES, _FEW_CHUNKS = 8, 4


@dataclass(frozen=True, slots=True, eq=False)
class ChunkTable:
    """Chunks of one page (int64, one entry per chunk unless said otherwise).

    `bounds` and `values`: byte offset and number of the first value of each chunk, one more for the end. `row_ends`: rows
    that have ended by the end of the chunk, `carries`: 1 where a row goes on into the next; None without a repetition
    index. `dictionary`: the items, if the page has them.
    """

    bounds: Ints
    values: Ints
    row_ends: Ints | None = None
    carries: Ints | None = None
    dictionary: Block | None = None

    @property
    def num_chunks(self) -> int:
        """Chunks in the page."""
        return len(self.bounds) - 1

    def rows_before(self, chunks: Ints) -> Ints:
        """Rows that start before each of the chunks (needs the repetition index)."""
        assert self.row_ends is not None
        assert self.carries is not None
        started = self.row_ends + self.carries
        return np.where(chunks > 0, started[chunks - 1], 0)

    def started(self, chunk: int) -> int:
        """The same of one chunk."""
        assert self.row_ends is not None
        assert self.carries is not None
        return self.row_ends.item(chunk - 1) + self.carries.item(chunk - 1) if chunk else 0


def read_table(
    layout: MiniBlockLayout, page: Page, words: Bytes, rep_index: Bytes | None, dictionary: Block | None
) -> ChunkTable:
    """The table from its buffers; CorruptFileError when the numbers contradict each other or the page."""
    if layout.num_items < 0 or len(words) % (4 if layout.has_large_chunk else 2):
        raise CorruptFileError(f"chunk words of {len(words)} bytes do not match {layout.num_items} values")
    stored = read_words(words, np.uint32 if layout.has_large_chunk else np.uint16).astype(np.int64)
    bounds = np.zeros(len(stored) + 1, np.int64)
    np.cumsum(((stored >> 4) + 1) * 8, out=bounds[1:])
    counts = np.left_shift(np.int64(1), stored & 15)
    if len(counts):
        counts[-1] = layout.num_items - int(counts[:-1].sum())
        if not 0 < counts[-1] <= 1 << 16:
            raise CorruptFileError(
                f"the last chunk would hold {int(counts[-1])} of {layout.num_items} values, which is impossible"
            )
    elif layout.num_items:
        raise CorruptFileError(f"there are no chunks for {layout.num_items} values")
    if bounds[-1] > page.buffers[1].size:
        raise CorruptFileError(f"chunks of {int(bounds[-1])} bytes exceed their buffer of {page.buffers[1].size}")
    values = np.append(0, np.cumsum(counts))
    if rep_index is None:
        return ChunkTable(bounds, values, dictionary=dictionary)
    row_ends, carries = _read_rep_index(layout, page, rep_index, len(stored))
    return ChunkTable(bounds, values, row_ends, carries, dictionary)


def _read_rep_index(layout: MiniBlockLayout, page: Page, data: Bytes, num_chunks: int) -> tuple[Ints, Ints]:
    stride = layout.repetition_index_depth + 1
    if not 1 < stride < 100 or len(data) != num_chunks * stride * 8:
        raise CorruptFileError(
            f"a repetition index of {len(data)} bytes does not match {num_chunks} chunks at depth {stride - 1}"
        )
    table = read_words(data, np.uint64).reshape(num_chunks, stride)
    if num_chunks and int(table[:, :2].max()) > 1 << 40:
        raise CorruptFileError("the repetition index counts more rows than a page can hold")
    row_ends = np.cumsum(table[:, 0].astype(np.int64))
    if (int(row_ends[-1]) if num_chunks else 0) != page.num_rows:
        raise CorruptFileError(f"the repetition index does not add up to the page's {page.num_rows} rows")
    return row_ends, (table[:, 1] > 0).astype(np.int64)


def chunks_of_rows(layout: MiniBlockLayout, table: ChunkTable, rows: RowSelection) -> Ints:
    """The chunks that hold the rows, sorted and unique."""
    if table.row_ends is None or table.carries is None:
        if max_rep(layout.layers):
            return np.arange(table.num_chunks, dtype=np.int64)
        first = np.searchsorted(table.values, rows.starts, "right") - 1
        last = np.searchsorted(table.values, rows.ends - 1, "right")
    else:
        # Row r starts where row r - 1 ends; when that chunk ends with it, in the next one.
        first = np.searchsorted(table.row_ends, rows.starts, "left")
        ends_there = (table.row_ends[first] == rows.starts) & (table.carries[first] == 0) & (rows.starts > 0)
        first = first + ends_there
        last = np.searchsorted(table.row_ends, rows.ends, "left") + 1
    first, last = first.astype(np.int64), last.astype(np.int64)
    # Neighbouring ranges may share a chunk.
    first[1:] = np.maximum(first[1:], last[:-1])
    return expand_ranges(first, np.maximum(last, first))


def chunks_of_few(table: ChunkTable, rows: RowSelection) -> list[int] | None:
    """`chunks_of_rows` of a few rows of a page with a repetition index, without arrays; None where that is not worth it."""
    if len(rows.starts) > _FEW_RANGES or table.row_ends is None or table.carries is None:
        return None
    found: list[int] = []
    last = 0
    for start, end in zip(rows.starts.tolist(), rows.ends.tolist(), strict=True):
        first = int(table.row_ends.searchsorted(start, "left"))
        if start > 0 and table.row_ends.item(first) == start and table.carries.item(first) == 0:
            first += 1
        first = max(first, last)
        last = max(first, int(table.row_ends.searchsorted(end, "left")) + 1)
        if last - first > _FEW_CHUNKS:
            return None
        found += range(first, last)
    return found


def only_chunk(table: ChunkTable, rows: RowSelection) -> int | None:
    """The chunk that holds all of the rows, if they are neighbours, and one chunk does."""
    if len(rows.starts) != 1:
        return None
    found = chunks_of_few(table, rows)
    return found[0] if found is not None and len(found) == 1 else None


@dataclass(frozen=True, slots=True, eq=False)
class ChunkParts:
    """Where the parts of some chunks are in one buffer: levels per chunk, rep, def, value buffers."""

    num_levels: Ints
    rep: Pieces | None
    def_: Pieces | None
    buffers: tuple[Pieces, ...]


def read_headers(layout: MiniBlockLayout, data: Bytes, starts: Ints, ends: Ints) -> ChunkParts:
    """Parse the headers of chunks that are at `starts`..`ends` (inside `data`)."""
    has_levels = [layout.rep_compression is not None, layout.def_compression is not None]
    num_small = 1 + sum(has_levels)
    size_type = np.dtype("<u4" if layout.has_large_chunk else "<u2")
    if not 0 < layout.num_buffers <= MAX_BUFFERS:
        raise CorruptFileError(f"a chunk declares {layout.num_buffers} value buffers, which is impossible")
    header_size = num_small * 2 + layout.num_buffers * size_type.itemsize
    if (ends - starts < header_size).any():
        raise CorruptFileError(f"a chunk is smaller than its header of {header_size} bytes")
    headers = data[starts[:, None] + np.arange(header_size, dtype=np.int64)]
    small = _columns(headers[:, : num_small * 2], np.dtype("<u2"))
    sizes = [*small[1:], *_columns(headers[:, num_small * 2 :], size_type)]
    at = starts + (header_size + 7 & -8)
    pieces: list[Pieces] = []
    for size in sizes:
        pieces.append(Pieces(data, at, size))
        at = at + (size + 7 & -8)
    if (at > ends).any():
        chunk = int(np.argmax(at > ends))
        raise CorruptFileError(
            f"the parts of a chunk take {int((at - starts)[chunk])} bytes, the chunk has {int((ends - starts)[chunk])}"
        )
    rep = pieces.pop(0) if has_levels[0] else None
    def_ = pieces.pop(0) if has_levels[1] else None
    return ChunkParts(small[0], rep, def_, tuple(pieces))


def _columns(rows: npt.NDArray[np.uint8], dtype: np.dtype[np.unsignedinteger]) -> list[Ints]:
    table = np.ascontiguousarray(rows).view(dtype).astype(np.int64)
    return list(table.T)
