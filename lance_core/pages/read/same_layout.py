"""Pages of many small files with the same layout, decoded in one call: the work of one page instead of thousands.

::

    file 0   words 30 00   chunk of 100 values        one gather of all words, one of all headers,
    file 1   words 30 00   chunk of 100 values   ->   one call of the codec: 200 values, file after file
    …

Only pages that are nothing but chunks (no dictionary, no lists) or one constant can be joined so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lance_core.arrays import Bytes, Ints
from lance_core.codecs.dispatch import Codecs
from lance_core.codecs.gather import words as read_words
from lance_core.codecs.registry import CODECS
from lance_core.errors import CorruptFileError
from lance_core.format.layout import ConstantLayout, MiniBlockLayout
from lance_core.pages.chunks import read_headers
from lance_core.pages.leaf import Leaf, max_rep
from lance_core.pages.read.constant import inline_values
from lance_core.pages.read.miniblock import as_levels
from lance_core.pages.rows import expand_ranges
from lance_core.pages.select import whole_leaf


@dataclass(frozen=True, slots=True, eq=False)
class AlikePages:
    """Pages that share one layout but for their number of items, all in one buffer (int64, one entry per page).

    `words` and `chunks`: where the page's first and second buffer begin; `word_sizes` and `chunk_sizes` in bytes. A
    constant has neither. `num_rows`: rows of each page.
    """

    words: Ints
    word_sizes: Ints
    chunks: Ints
    chunk_sizes: Ints
    num_rows: Ints


def can_join(layout: object, num_buffers: int) -> bool:
    """Whether pages of this layout with so many buffers can be read by `scan_alike`."""
    if isinstance(layout, MiniBlockLayout):
        plain = layout.dictionary is None and not layout.repetition_index_depth and not max_rep(layout.layers)
        return plain and layout.rep_compression is None and num_buffers == 2
    return isinstance(layout, ConstantLayout) and num_buffers == 0 and not max_rep(layout.layers)


def scan_alike(layout: MiniBlockLayout | ConstantLayout, pages: AlikePages, data: Bytes, *, codecs: Codecs = CODECS) -> Leaf:
    """Every row of every page, page after page. CorruptFileError when the numbers of any page contradict each other."""
    total = int(pages.num_rows.sum())
    if isinstance(layout, ConstantLayout):
        return whole_leaf(inline_values(layout, total), None, None, layout.layers, total)
    starts, ends, counts = _chunks(layout, pages, data)
    parts = read_headers(layout, data, starts, ends)
    def_ = None
    if parts.def_ is not None and layout.def_compression is not None:
        if (parts.num_levels != counts).any():
            raise CorruptFileError("a chunk has unequal numbers of levels and values, but the page has no lists")
        def_ = as_levels(codecs.decode_block(layout.def_compression, parts.def_, counts))
    return whole_leaf(codecs.decode(layout.value_compression, parts.buffers, counts), None, def_, layout.layers, total)


def _chunks(layout: MiniBlockLayout, pages: AlikePages, data: Bytes) -> tuple[Ints, Ints, Ints]:
    """Start and end of every chunk of every page, and its number of values."""
    width = 4 if layout.has_large_chunk else 2
    if (pages.word_sizes % width).any() or not pages.word_sizes.all():
        raise CorruptFileError("the chunk words of a page are truncated or missing")
    gathered = data[expand_ranges(pages.words, pages.words + pages.word_sizes)]
    stored = read_words(gathered, np.uint32 if width == 4 else np.uint16).astype(np.int64)
    per_page = pages.word_sizes // width
    lasts = np.cumsum(per_page) - 1
    sizes = ((stored >> 4) + 1) * 8
    ends = _within(sizes, per_page)
    if (ends[lasts] > pages.chunk_sizes).any():
        raise CorruptFileError("the chunks of a page are longer than its buffer")
    counts = np.left_shift(np.int64(1), stored & 15)
    counts[lasts] = 0
    counts[lasts] = pages.num_rows - _within(counts, per_page)[lasts]
    if (counts[lasts] < 1).any() or (counts[lasts] > 1 << 16).any():
        raise CorruptFileError("the last chunk of a page would hold an impossible number of values")
    bases = np.repeat(pages.chunks, per_page)
    return bases + ends - sizes, bases + ends, counts


def _within(numbers: Ints, per_page: Ints) -> Ints:
    """Running sums that begin again with each page."""
    sums = np.cumsum(numbers)
    firsts = np.cumsum(per_page) - per_page
    within: Ints = sums - np.repeat(sums[firsts] - numbers[firsts], per_page)
    return within
