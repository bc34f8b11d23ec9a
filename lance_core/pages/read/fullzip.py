"""Reading full-zip pages: large values row by row, each behind a control word that holds its levels.

::

    entry       | word (0, 1, 2 or 4 bytes) | length? | value? |         word = rep << bits_def | def
    row index   rows + 1 byte offsets of 1, 2, 4 or 8 bytes; only with lists or variable widths
    list<binary> [["ab"], null]   04 02000000 6162 | 06       one bit of rep, two of def (2 = null list)

Fixed-width bytes follow every visible entry, even a null; a variable value (length and bytes) only def 0. Without lists,
rows of fixed width are found by arithmetic: one round. Otherwise a read asks for row index entries first: two rounds. Rows
of several pages are found and decoded as those of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from lance_core.arrays import Bytes, Ints, Levels
from lance_core.codecs.blocks import FixedBlock
from lance_core.codecs.dispatch import Codecs
from lance_core.codecs.gather import gather, words
from lance_core.errors import CorruptFileError
from lance_core.fetch import Fetch, fetch_nothing
from lance_core.format.layout import FullZipLayout, Page
from lance_core.pages.buffers import part, request, request_ranges, require_buffers
from lance_core.pages.leaf import Leaf, max_rep, max_visible_def
from lance_core.pages.rows import RowSelection
from lance_core.pages.select import whole_leaf
from lance_core.pages.value_slots import pick_bytes


@dataclass(frozen=True, slots=True)
class ZipFacts:
    """Sizes in bytes: control word, length word (0 when fixed), value (-1 when variable); and how rows are found."""

    word_size: int
    length_size: int
    value_size: int
    has_row_index: bool

    @property
    def stride(self) -> int:
        """Bytes of a row when all rows have the same."""
        return self.word_size + self.value_size


def load(layout: FullZipLayout, page: Page, codecs: Codecs) -> Fetch[ZipFacts]:
    """Nothing is fetched: row index entries are read with the rows."""
    return fetch_nothing(facts_of(layout, page))


def facts_of(layout: FullZipLayout, page: Page) -> ZipFacts:
    """Check the description and derive the sizes."""
    bits = layout.bits_rep + layout.bits_def
    if layout.bits_rep not in range(17) or layout.bits_def not in range(17):
        raise CorruptFileError(f"control words of {layout.bits_rep} + {layout.bits_def} bits are not supported")
    word_size = 0 if bits == 0 else 1 if bits <= 8 else 2 if bits <= 16 else 4
    if (layout.bits_per_value is None) == (layout.bits_per_offset is None):
        raise CorruptFileError("a full-zip page must have either a value width or an offset width")
    if layout.bits_rep == 0 and max_rep(layout.layers):
        raise CorruptFileError("a full-zip page with lists has no repetition levels")
    if layout.bits_per_offset is not None:
        if layout.bits_per_offset not in (32, 64):
            raise CorruptFileError(f"length words of {layout.bits_per_offset} bits, expected 32 or 64")
        facts = ZipFacts(word_size, layout.bits_per_offset // 8, -1, True)
    else:
        facts = ZipFacts(word_size, 0, ((layout.bits_per_value or 0) + 7) // 8, max_rep(layout.layers) > 0)
    require_buffers(page, 2 if facts.has_row_index else 1, "full-zip")
    return facts


def scan(layout: FullZipLayout, page: Page, codecs: Codecs) -> Fetch[Leaf]:
    """Every row in one round."""
    return read(layout, page, facts_of(layout, page), RowSelection.all(page.num_rows), codecs)


def read(layout: FullZipLayout, page: Page, index: ZipFacts, rows: RowSelection, codecs: Codecs) -> Fetch[Leaf]:
    """The rows; one round for all rows or plain fixed widths, else two."""
    if index.has_row_index and rows.covers(page.num_rows):
        stored, data = yield from request([part(page, 1), part(page, 0)])
        offsets = _row_offsets(page, stored, len(data))
        data = data[: int(offsets[-1])]
        return _decode([layout], index, offsets[:-1], offsets[1:], data, [rows.num_rows], codecs)
    return (yield from read_together([page], [rows], codecs))


def kind_of(page: Page, codecs: Codecs) -> tuple[object, ...] | None:
    """What zipped pages share whose rows may be read together; None for others, and for lists."""
    layout = page.layout
    if not isinstance(layout, FullZipLayout) or max_rep(layout.layers):
        return None
    width = 0 if layout.bits_per_offset is None or len(page.buffers) < 2 else page.buffers[1].size // (page.num_rows + 1)
    shape = codecs.shape(layout.value_compression)
    return replace(layout, num_items=0, num_visible_items=0, value_compression=shape), width


def read_together(pages: Sequence[Page], rows: Sequence[RowSelection], codecs: Codecs) -> Fetch[Leaf]:
    """Some rows of one page, or of several of one `kind_of`, in order."""
    layouts = [cast("FullZipLayout", page.layout) for page in pages]
    facts, *_ = [facts_of(layout, page) for layout, page in zip(layouts, pages, strict=True)]
    for page, item in zip(pages, rows, strict=True):
        item.check(page.num_rows)
    starts, ends = (_joined([getattr(item, name) for item in rows]) for name in ("starts", "ends"))
    owners = np.arange(len(pages)).repeat([len(item.starts) for item in rows])
    counts = [item.num_rows for item in rows]
    if not facts.has_row_index:
        return (yield from _read_even(pages, layouts, facts, (starts, ends, owners), counts, codecs))
    width = index_width(pages[0], pages[0].buffers[1].size)
    lengths, first = ends - starts, np.array([page.buffers[1].start for page in pages])[owners]
    stored, at = yield from request_ranges(first + starts * width, first + (ends + 1) * width)
    offsets = _words(gather(stored, at, (lengths + 1) * width), width)
    lasts = np.cumsum(lengths + 1) - 1
    firsts = lasts - lengths
    begins, stops = np.delete(offsets, lasts), np.delete(offsets, firsts)
    _check_rows(begins, stops, np.array([page.buffers[0].size for page in pages])[owners].repeat(lengths))
    first = np.array([page.buffers[0].start for page in pages])[owners]
    data, at = yield from request_ranges(first + offsets[firsts], first + offsets[lasts])
    if max_rep(layouts[0].layers):
        # Rows with lists are walked through, so nothing may be between them.
        data = gather(data, at, offsets[lasts] - offsets[firsts])
        stops = np.cumsum(stops - begins)
        return _decode(layouts, facts, np.append(0, stops[:-1]), stops, data, counts, codecs)
    shifts = np.repeat(at - offsets[firsts], lengths)
    return _decode(layouts, facts, begins + shifts, stops + shifts, data, counts, codecs)


def _read_even(
    pages: Sequence[Page],
    layouts: Sequence[FullZipLayout],
    facts: ZipFacts,
    ranges: tuple[Ints, Ints, Ints],
    counts: Sequence[int],
    codecs: Codecs,
) -> Fetch[Leaf]:
    """Rows of one width, found by arithmetic. `ranges`: where each begins and ends, and the page it is of."""
    stride, layout, num_rows = facts.stride, layouts[0], sum(counts)
    for page in pages:
        if page.num_rows * stride > page.buffers[0].size:
            raise CorruptFileError(f"{page.num_rows} rows of {stride} bytes do not match a buffer of {page.buffers[0].size}")
    starts, ends, owners = ranges
    first = np.array([page.buffers[0].start for page in pages], np.int64)[owners]
    found, at = yield from request_ranges(first + starts * stride, first + ends * stride)
    data = gather(found, at, (ends - starts) * stride)
    encodings = [item.value_compression for item in layouts]
    if facts.word_size == 0:
        payload = FixedBlock(facts.value_size * 8, data, num_rows)
        return whole_leaf(codecs.decode_group(encodings, counts, payload), None, None, layout.layers, num_rows)
    table = data.reshape(num_rows, stride)
    rep, def_ = _split_words(layout, np.ascontiguousarray(table[:, : facts.word_size]), facts.word_size)
    values = np.ascontiguousarray(table[:, facts.word_size :]).reshape(-1)
    block = codecs.decode_group(encodings, counts, FixedBlock(facts.value_size * 8, values, num_rows))
    if rep is not None and rep.any():
        raise CorruptFileError("a page without lists has repetition levels")
    return whole_leaf(block, None, def_, layout.layers, num_rows)


def _joined(arrays: Sequence[Ints]) -> Ints:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def index_width(page: Page, size: int) -> int:
    width = size // (page.num_rows + 1)
    if width not in (1, 2, 4, 8) or width * (page.num_rows + 1) != size:
        raise CorruptFileError(f"a row index of {size} bytes does not match {page.num_rows} rows")
    return width


def _words(data: Bytes, width: int) -> Ints:
    return words(data, f"u{width}").astype(np.int64)


def _row_offsets(page: Page, stored: Bytes, size: int) -> Ints:
    offsets = _words(stored, index_width(page, len(stored)))
    _check_rows(offsets[:-1], offsets[1:], size)
    rebased: Ints = offsets - offsets[0]
    return rebased


def _check_rows(begins: Ints, ends: Ints, size: int | Ints) -> None:
    if len(begins) and (int(begins.min()) < 0 or bool((ends > size).any()) or (ends < begins).any()):
        raise CorruptFileError(f"the row index is not ascending inside the {np.max(size)} bytes of rows")


def _decode(
    layouts: Sequence[FullZipLayout],
    facts: ZipFacts,
    begins: Ints,
    ends: Ints,
    data: Bytes,
    counts: Sequence[int],
    codecs: Codecs,
) -> Leaf:
    """`begins`, `ends`: where each row is in `data`; rows with lists are back to back, and of one page. `counts`: rows of
    each page."""
    rep: Levels | None = None
    def_: Levels | None
    layout, encodings = layouts[0], [item.value_compression for item in layouts]
    if max_rep(layout.layers):
        rep, def_, starts, sizes = _walk(layout, facts, data)
    else:
        def_, starts, sizes = _one_by_one(layout, facts, begins, ends, data)
    if layout.bits_per_offset is None:
        packed = gather(data, starts, sizes)
        block = codecs.decode_group(encodings, counts, FixedBlock(facts.value_size * 8, packed, len(starts)))
    else:
        block = codecs.decode_group(encodings, counts, pick_bytes(data, starts, sizes, layout.bits_per_offset))
    return whole_leaf(block, rep, def_ if layout.bits_def else None, layout.layers, sum(counts))


def _one_by_one(
    layout: FullZipLayout, facts: ZipFacts, rows: Ints, ends: Ints, data: Bytes
) -> tuple[Levels | None, Ints, Ints]:
    """Variable values without lists: each row is one entry, found through the row index."""
    _require(rows + facts.word_size, ends)
    def_: Levels | None = None
    if facts.word_size:
        rep, def_ = _split_words(layout, _pick(data, rows, facts.word_size), facts.word_size)
        if rep is not None and rep.any():
            raise CorruptFileError("a page without lists has repetition levels")
    present = np.arange(len(rows)) if def_ is None else np.flatnonzero(def_ == 0)
    at = rows[present] + facts.word_size
    _require(at + facts.length_size, ends[present])
    lengths = words(_pick(data, at, facts.length_size).reshape(-1), f"u{facts.length_size}").astype(np.int64)
    if (lengths < 0).any() or (lengths > ends[present] - at - facts.length_size).any():
        raise CorruptFileError("a value is longer than its row")
    starts, sizes = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    starts[present], sizes[present] = at + facts.length_size, lengths
    return def_, starts, sizes


def _require(positions: Ints, ends: Ints) -> None:
    if (positions > ends).any():
        raise CorruptFileError(f"row {int(np.argmax(positions > ends))} ends before its value begins")


def _pick(data: Bytes, starts: Ints, size: int) -> Bytes:
    """`size` bytes at each of the (checked) starts, shape (n, size)."""
    picked: Bytes = data[starts[:, None] + np.arange(size, dtype=np.int64)]
    return picked


def _split_words(layout: FullZipLayout, stored: Bytes, size: int) -> tuple[Levels | None, Levels | None]:
    """Rep and def of control words (n, size)."""
    plain = words(stored.reshape(-1), f"u{size}").astype(np.uint32)
    rep = (plain >> layout.bits_def).astype(np.uint16) if layout.bits_rep else None
    def_ = (plain & ((1 << layout.bits_def) - 1)).astype(np.uint16) if layout.bits_def else None
    return rep, def_


def _walk(layout: FullZipLayout, facts: ZipFacts, data: Bytes) -> tuple[Levels, Levels, Ints, Ints]:
    """Entries of unknown length: levels of all, start and size of the visible ones."""
    # Late: compiled kernels cost an import that pages without lists never pay.
    from lance_core.kernels.levels import walk_zipped

    room = min(len(data) // facts.word_size, max(layout.num_items, 0))
    rep, def_ = np.empty(room, np.uint16), np.empty(room, np.uint16)
    starts, sizes = np.empty(room, np.int64), np.empty(room, np.int64)
    visible = max_visible_def(layout.layers)
    numbers = np.array([facts.word_size, layout.bits_def, visible, facts.value_size, facts.length_size], np.int64)
    count = walk_zipped(np.ascontiguousarray(data), numbers, rep, def_, starts, sizes)
    if count < 0:
        what = "a value is outside its row" if count == -1 else f"there are more than {layout.num_items} entries"
        raise CorruptFileError(f"full-zip rows of {len(data)} bytes: {what}")
    owns = sizes[:count] >= 0
    return rep[:count], def_[:count], starts[:count][owns], sizes[:count][owns]
