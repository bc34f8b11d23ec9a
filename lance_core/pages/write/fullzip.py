"""Writing full-zip pages: each value behind its control word and, if its width varies, its length. Drawn in `fullzip`."""

from __future__ import annotations

import numpy as np

from lance_core.arrays import Bools, Bytes, Ints, Levels
from lance_core.codecs.blocks import Block, DictionaryBlock, FixedBlock, VariableBlock
from lance_core.codecs.choose import choose_values
from lance_core.codecs.dictionary import flatten
from lance_core.codecs.options import EncodingOptions
from lance_core.fetch import Buffer
from lance_core.format.layout import FullZipLayout
from lance_core.pages.leaf import EncodedPage, Leaf, as_buffer, max_rep, max_visible_def


def encode_full_zip(leaf: Leaf, values: Block, options: EncodingOptions) -> EncodedPage:
    """A full-zip page of any values."""
    plain = _whole_bytes(flatten(values) if isinstance(values, DictionaryBlock) else values)
    encoded = choose_values(plain, options)
    bits = (_bit_length(leaf.rep), _bit_length(leaf.def_))
    words = _control_words(leaf, bits)
    payload = encoded.payload
    if isinstance(payload, FixedBlock):
        data, offsets = _zip_fixed(leaf, words, payload)
    else:
        data, offsets = _zip_variable(leaf, words, payload)
    buffers: list[Buffer] = [data]
    if leaf.rep is not None or isinstance(payload, VariableBlock):
        buffers.append(_row_index(leaf, offsets))
    layout = FullZipLayout(
        value_compression=encoded.encoding,
        layers=leaf.layers,
        num_items=leaf.num_levels,
        num_visible_items=plain.count,
        bits_rep=bits[0],
        bits_def=bits[1],
        bits_per_value=payload.bits if isinstance(payload, FixedBlock) else None,
        bits_per_offset=payload.offsets.dtype.itemsize * 8 if isinstance(payload, VariableBlock) else None,
    )
    return EncodedPage(layout, tuple(buffers), leaf.num_rows)


def _whole_bytes(values: Block) -> Block:
    """Booleans as a byte each: values of these pages begin at bytes."""
    if not isinstance(values, FixedBlock) or values.bits != 1:
        return values
    return FixedBlock(8, np.unpackbits(values.data, count=values.count, bitorder="little"), values.count)


def _bit_length(levels: Levels | None) -> int:
    return int(levels.max(initial=0)).bit_length() if levels is not None else 0


def _control_words(leaf: Leaf, bits: tuple[int, int]) -> Bytes:
    """One word per entry, shape (entries, 0 | 1 | 2 | 4)."""
    total = sum(bits)
    if total == 0:
        return np.empty((leaf.num_levels, 0), np.uint8)
    size = 1 if total <= 8 else 2 if total <= 16 else 4
    word = np.zeros(leaf.num_levels, np.uint32)
    if leaf.rep is not None:
        word |= leaf.rep.astype(np.uint32) << np.uint32(bits[1])
    if leaf.def_ is not None:
        word |= leaf.def_
    return word.astype(f"<u{size}").view(np.uint8).reshape(-1, size)


def _visible(leaf: Leaf) -> Bools | None:
    """Which entries own a slot; None for all."""
    if leaf.def_ is None or leaf.rep is None:
        return None
    visible: Bools = leaf.def_ <= max_visible_def(leaf.layers)
    return None if visible.all() else visible


def _zip_fixed(leaf: Leaf, words: Bytes, payload: FixedBlock) -> tuple[Buffer, Ints]:
    """Zipped bytes and where each entry begins, one more for the end."""
    width = payload.bits // 8
    values = payload.data[: payload.count * width]
    visible = _visible(leaf)
    entries, word_size = words.shape
    if visible is None:
        offsets = np.arange(entries + 1, dtype=np.int64) * (word_size + width)
        if word_size == 0:
            return as_buffer(values), offsets
        rows = np.concatenate((words, values.reshape(entries, width)), axis=1)
        return as_buffer(rows.reshape(-1)), offsets
    sizes = visible.astype(np.int64) * width
    starts: Ints = np.cumsum(sizes) - sizes
    offsets = np.append(0, np.cumsum(word_size + sizes))
    return _join(words, starts, sizes, values), offsets


def _zip_variable(leaf: Leaf, words: Bytes, payload: VariableBlock) -> tuple[Buffer, Ints]:
    """The same for variable widths: only valid items have a length and bytes."""
    length_type = f"<u{payload.offsets.dtype.itemsize}"
    starts = payload.offsets[:-1].astype(np.int64)
    lengths: Ints = payload.offsets[1:] - starts
    visible = _visible(leaf)
    if visible is not None:
        slot = np.cumsum(visible) - 1
        starts, lengths = starts[slot], lengths[slot]
    valid = np.ones(len(words), np.bool_) if leaf.def_ is None else leaf.def_ == 0
    lengths = lengths * valid
    heads = np.concatenate((words, lengths.astype(length_type).view(np.uint8).reshape(len(words), -1)), axis=1)
    head_sizes = words.shape[1] + valid.astype(np.int64) * payload.offsets.dtype.itemsize
    data = _join(heads, starts, lengths, payload.data, head_sizes)
    return data, np.append(0, np.cumsum(head_sizes + lengths))


def _join(heads: Bytes, starts: Ints, sizes: Ints, data: Bytes, head_sizes: Ints | None = None) -> bytes:
    """Entry by entry: the first `head_sizes` bytes of its head, then its value."""
    width = heads.shape[1]
    head, body = np.ascontiguousarray(heads).reshape(-1).data, np.ascontiguousarray(data).data
    cuts = [width] * len(heads) if head_sizes is None else head_sizes.tolist()
    parts: list[memoryview] = []
    for entry, (cut, start, size) in enumerate(zip(cuts, starts.tolist(), sizes.tolist(), strict=True)):
        parts.append(head[entry * width : entry * width + cut])
        if size:
            parts.append(body[start : start + size])
    return b"".join(parts)


def _row_index(leaf: Leaf, offsets: Ints) -> Buffer:
    """Where each row begins, and the end, in the smallest words that hold the largest."""
    if leaf.rep is not None:
        rows = np.flatnonzero(leaf.rep == max_rep(leaf.layers))
        offsets = np.append(offsets[rows], offsets[-1])
    last = int(offsets[-1])
    size = next(size for size in (1, 2, 4, 8) if last < 1 << (8 * size))
    return as_buffer(offsets.astype(f"<u{size}").view(np.uint8))
