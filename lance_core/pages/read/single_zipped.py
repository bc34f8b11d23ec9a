"""A few rows of a full-zip page of values of different sizes, without lists: each is requested and cut by itself.

::

    row index   row 7: bytes 4,096 to 4,120        one question for the places of all rows, one for the rows
    row         00 | 14 00 00 00 | the value       control word, length, bytes
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from lance_core.codecs.dispatch import Codecs
from lance_core.errors import CorruptFileError
from lance_core.fetch import Buffer, ByteRange, Fetch
from lance_core.format.layout import FullZipLayout, Page
from lance_core.pages.buffers import part
from lance_core.pages.leaf import max_rep
from lance_core.pages.read.fullzip import ZipFacts, facts_of, index_width
from lance_core.pages.row_values import RowValues, nulls_of


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
