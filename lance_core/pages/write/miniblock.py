"""Writing mini-block pages: values in chunks, each with its share of the levels. The bytes are drawn in `chunks`.

A chunk's levels are those from its first value to just before the next chunk's; entries that own no slot go with what
follows them, and what trails the last value belongs to the last chunk.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lance_core.arrays import Bytes, Ints, Levels
from lance_core.codecs.blocks import Block, DictionaryBlock, Pieces
from lance_core.codecs.choose import choose_block, choose_chunks, choose_levels
from lance_core.codecs.encoded import EncodedChunks
from lance_core.codecs.options import EncodingOptions
from lance_core.fetch import Buffer
from lance_core.format.encoding import CompressiveEncoding
from lance_core.format.layout import MiniBlockLayout
from lance_core.pages.leaf import EncodedPage, Leaf, as_buffer, max_rep, max_visible_def

_PAD = 0xFE
_U16 = 0xFFFF
_MAX_WORDS = {False: 1 << 12, True: 1 << 28}
"""Chunk size in 8-byte words, by has_large_chunk."""


def encode_mini_block(leaf: Leaf, values: Block, options: EncodingOptions) -> EncodedPage | None:
    """A mini-block page, with smaller chunks where the usual ones are too large for their words; None if none fit."""
    num_values = options.max_chunk_values
    while num_values > 1:
        page = _encode(leaf, values, replace(options, max_chunk_values=num_values))
        if page is not None:
            return page
        num_values //= 8
    return None


def _encode(leaf: Leaf, values: Block, options: EncodingOptions) -> EncodedPage | None:
    items: list[Buffer] = []
    dictionary = None
    plain = values
    if isinstance(values, DictionaryBlock):
        plain = values.indices
        block = choose_block(values.items, options)
        dictionary, items = block.encoding, [block.data]
    chunks = choose_chunks(plain, options)
    bounds = _level_bounds(leaf, chunks.counts)
    parts = _level_parts(leaf, bounds, options)
    table = _lay_out(chunks, parts, options.has_large_chunk)
    if table is None:
        return None
    words, data = table
    rep_index: list[Buffer] = [] if leaf.rep is None else [_rep_index(leaf.rep, max_rep(leaf.layers), bounds)]
    layout = MiniBlockLayout(
        value_compression=chunks.encoding,
        layers=leaf.layers,
        num_items=plain.count,
        num_buffers=len(chunks.buffers),
        rep_compression=parts.rep_encoding,
        def_compression=parts.def_encoding,
        dictionary=dictionary,
        num_dictionary_items=values.items.count if isinstance(values, DictionaryBlock) else 0,
        repetition_index_depth=len(rep_index),
        has_large_chunk=options.has_large_chunk,
    )
    return EncodedPage(layout, (as_buffer(words), as_buffer(data), *items, *rep_index), leaf.num_rows)


@dataclass(frozen=True, slots=True, eq=False)
class _LevelParts:
    counts: Ints
    pieces: tuple[Pieces, ...]
    rep_encoding: CompressiveEncoding | None = None
    def_encoding: CompressiveEncoding | None = None


def _level_bounds(leaf: Leaf, counts: Ints) -> Ints:
    """The first level of each chunk, and the end."""
    ends = np.cumsum(counts)
    if leaf.rep is not None and leaf.def_ is not None:
        # Entries without a slot sit between values: a chunk ends right after its last value.
        owners = np.flatnonzero(leaf.def_ <= max_visible_def(leaf.layers))
        ends = owners[ends - 1] + 1
        ends[-1] = leaf.num_levels
    return np.append(np.int64(0), ends)


def _level_parts(leaf: Leaf, bounds: Ints, options: EncodingOptions) -> _LevelParts:
    counts = np.diff(bounds)
    if leaf.rep is None and leaf.def_ is None:
        return _LevelParts(np.zeros(len(counts), np.int64), ())
    rep = None if leaf.rep is None else choose_levels(leaf.rep, counts, options)
    def_ = None if leaf.def_ is None else choose_levels(leaf.def_, counts, options)
    return _LevelParts(
        counts,
        tuple(item.pieces for item in (rep, def_) if item is not None),
        None if rep is None else rep.encoding,
        None if def_ is None else def_.encoding,
    )


def _lay_out(chunks: EncodedChunks, levels: _LevelParts, large: bool) -> tuple[Bytes, Bytes] | None:
    """Chunk words and chunks; None when a count or size does not fit its word.

    A chunk of one value has the word of a last chunk, which readers refuse in any other place.
    """
    if (chunks.counts[:-1] < 2).any():
        return None
    pieces = (*levels.pieces, *chunks.buffers)
    small = [levels.counts, *(item.sizes for item in levels.pieces)]
    sizes = [item.sizes for item in chunks.buffers]
    limit = np.iinfo(np.uint32).max if large else _U16
    if _largest(small) > _U16 or _largest(sizes) > limit:
        return None
    num_chunks = len(chunks.counts)
    headers = _headers(small, sizes, num_chunks, large)
    at = headers.shape[1] + np.zeros(num_chunks, np.int64)
    places = []
    for item in pieces:
        places.append(at)
        at = at + (item.sizes + 7 & -8)
    num_words = at >> 3
    if num_chunks and int(num_words.max()) > _MAX_WORDS[large]:
        return None
    starts = np.cumsum(at) - at
    out = np.full(int(at.sum()), _PAD, np.uint8)
    _place(
        out,
        starts,
        Pieces(headers.reshape(-1), np.arange(num_chunks) * headers.shape[1], np.full(num_chunks, headers.shape[1])),
    )
    for item, place in zip(pieces, places, strict=True):
        _place(out, starts + place, item)
    return _words(num_words, chunks.counts, large), out


def _largest(arrays: list[Ints]) -> int:
    return max((int(item.max(initial=0)) for item in arrays), default=0)


def _headers(small: list[Ints], sizes: list[Ints], num_chunks: int, large: bool) -> Bytes:
    """The header of each chunk, shape (chunks, bytes), padded to 8."""
    size_type = "<u4" if large else "<u2"
    columns = [item.astype("<u2").view(np.uint8).reshape(num_chunks, -1) for item in small]
    columns += [item.astype(size_type).view(np.uint8).reshape(num_chunks, -1) for item in sizes]
    used = sum(item.shape[1] for item in columns)
    columns.append(np.full((num_chunks, -used % 8), _PAD, np.uint8))
    return np.ascontiguousarray(np.concatenate(columns, axis=1))


def _words(num_words: Ints, counts: Ints, large: bool) -> Bytes:
    logs = np.log2(np.maximum(counts, 1)).astype(np.int64)
    if len(logs):
        logs[-1] = 0
    return ((num_words - 1) << 4 | logs).astype("<u4" if large else "<u2").view(np.uint8)


def _place(out: Bytes, targets: Ints, pieces: Pieces) -> None:
    """Copy each piece to its target; pieces of one size at one distance in one strided copy."""
    even = _num_even(targets, pieces)
    if even:
        size = int(pieces.sizes[0])
        shape = (even, size)
        steps = (int(targets[1] - targets[0]), int(pieces.starts[1] - pieces.starts[0]))
        target = np.lib.stride_tricks.as_strided(out[int(targets[0]) :], shape, (steps[0], 1))
        target[:] = np.lib.stride_tricks.as_strided(pieces.data[int(pieces.starts[0]) :], shape, (steps[1], 1))
    to, data = out.data, pieces.data.data
    rest = zip(targets[even:].tolist(), pieces.starts[even:].tolist(), pieces.sizes[even:].tolist(), strict=True)
    for target_at, start, size in rest:
        to[target_at : target_at + size] = data[start : start + size]


def _num_even(targets: Ints, pieces: Pieces) -> int:
    """How many leading pieces, all but the last at most, have one size and one distance on both sides."""
    if len(targets) < 3:
        return 0
    steps, sources = np.diff(targets[:-1]), np.diff(pieces.starts[:-1])
    even = (steps == steps[0]) & (sources == sources[0]) & (pieces.sizes[1:-1] == pieces.sizes[0])
    num_even = len(targets) - 1 if even.all() else int(np.argmin(even)) + 1
    return num_even if num_even > 1 else 0


def _rep_index(rep: Levels, row_level: int, bounds: Ints) -> Buffer:
    """Per chunk: rows that end in it, levels of a row that goes on in the next."""
    starts = np.flatnonzero(rep == row_level)
    ends_at, last = bounds[1:], len(starts)
    # A row ends where the next one starts, so one that starts right behind the chunk counts.
    ended = np.searchsorted(starts, ends_at, "right").astype(np.int64) - 1
    ended[-1] = last
    open_row = starts[np.searchsorted(starts, ends_at - 1, "right") - 1]
    partial = ends_at - np.maximum(open_row, bounds[:-1])
    goes_on = np.append(rep[ends_at[:-1]] != row_level, False)
    table = np.stack((np.diff(ended, prepend=0), np.where(goes_on, partial, 0)), axis=1)
    return as_buffer(np.ascontiguousarray(table.astype("<u8")).view(np.uint8).reshape(-1))
