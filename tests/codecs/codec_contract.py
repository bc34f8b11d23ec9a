"""The suite every codec inherits: round trips in each form, many chunks, damaged bytes.

A damaged input may decode to something else or raise FormatError; it never raises anything else.
"""

from __future__ import annotations

import contextlib
import itertools

import numpy as np
from hypothesis import strategies as st

from lance_core.codecs.blocks import Block, DictionaryBlock, FixedBlock, ListBlock, Pieces, StructBlock, VariableBlock
from lance_core.codecs.encoded import EncodedChunks
from lance_core.codecs.registry import CODECS
from lance_core.errors import FormatError


def plain(block: Block) -> list:
    """The values as Python objects: ints, bytes, lists, tuples."""
    if isinstance(block, FixedBlock):
        if block.bits == 1:
            return np.unpackbits(block.data, bitorder="little", count=block.count).tolist()
        size = block.bits // 8
        raw = block.data.tobytes()
        return [raw[i * size : (i + 1) * size] for i in range(block.count)]
    if isinstance(block, VariableBlock):
        raw, ends = block.data.tobytes(), block.offsets.tolist()
        return [raw[a:b] for a, b in itertools.pairwise(ends)]
    if isinstance(block, ListBlock):
        items = plain(block.items)
        if block.validity is not None:
            valid = np.unpackbits(block.validity, bitorder="little", count=block.count * block.dimension)
            items = [item if ok else None for item, ok in zip(items, valid, strict=True)]
        return [items[i * block.dimension : (i + 1) * block.dimension] for i in range(block.count)]
    if isinstance(block, StructBlock):
        return list(zip(*(plain(child) for child in block.children), strict=True))
    assert isinstance(block, DictionaryBlock)
    items = plain(block.items)
    size = block.indices.bits // 8
    return [items[i] for i in block.indices.data.view(f"<u{size}").tolist()]


def spread(pieces: Pieces, gap: int) -> Pieces:
    """The same pieces laid out with `gap` bytes of rubbish before each, as chunks are in a page."""
    parts, starts, at = [], [], 0
    for start, size in zip(pieces.starts.tolist(), pieces.sizes.tolist(), strict=True):
        parts += [np.full(gap, 0xFE, np.uint8), pieces.data[start : start + size]]
        starts.append(at + gap)
        at += gap + size
    data = np.concatenate(parts) if parts else np.empty(0, np.uint8)
    return Pieces(data, np.array(starts, np.int64), pieces.sizes)


def assert_chunks_round_trip(block: Block, encoded: EncodedChunks, *, gap: int = 0) -> None:
    """Chunks decode to the block, all at once and each alone."""
    want = plain(block)
    assert int(encoded.counts.sum()) == len(want)
    body = encoded.counts[:-1]
    assert (body & (body - 1) == 0).all()
    assert (encoded.counts <= 4096).all()
    assert CODECS.num_buffers(encoded.encoding) == len(encoded.buffers)
    buffers = tuple(spread(pieces, gap) if gap else pieces for pieces in encoded.buffers)
    got = CODECS.decode(encoded.encoding, buffers, encoded.counts)
    assert plain(got) == want
    if len(encoded.counts) > 1:
        mid = len(encoded.counts) // 2
        alone = tuple(Pieces(p.data, p.starts[mid : mid + 1], p.sizes[mid : mid + 1]) for p in buffers)
        start = int(encoded.counts[:mid].sum())
        part = CODECS.decode(encoded.encoding, alone, encoded.counts[mid : mid + 1])
        assert plain(part) == want[start : start + int(encoded.counts[mid])]


def assert_damage_is_reported(encoded: EncodedChunks, rng: np.random.Generator, *, rounds: int = 40) -> None:
    """Flipped bytes, cut pieces and wrong counts: decoded differently or FormatError, never a crash."""
    for _ in range(rounds):
        buffers, counts = _damaged(encoded, rng)
        with contextlib.suppress(FormatError):
            plain(CODECS.decode(encoded.encoding, buffers, counts))


def _damaged(encoded: EncodedChunks, rng: np.random.Generator) -> tuple[tuple[Pieces, ...], np.ndarray]:
    buffers, counts = [], encoded.counts.copy()
    for pieces in encoded.buffers:
        data, starts, sizes = pieces.data.copy(), pieces.starts.copy(), pieces.sizes.copy()
        kind = rng.integers(4)
        if kind == 0 and len(data):
            at = rng.integers(0, len(data), rng.integers(1, 5))
            data[at] = rng.integers(0, 256, len(at))
        elif kind == 1 and len(sizes):
            sizes[rng.integers(len(sizes))] //= rng.integers(2, 9)
        elif kind == 2 and len(data):
            data = data[: rng.integers(len(data))]
        elif kind == 3 and len(counts):
            counts[rng.integers(len(counts))] = rng.integers(-2, 5000)
        buffers.append(Pieces(data, starts, sizes))
    return tuple(buffers), counts


fixed_bits = st.sampled_from([1, 8, 16, 24, 32, 64, 128])


@st.composite
def fixed_blocks(draw: st.DrawFn, bits: st.SearchStrategy[int] = fixed_bits, max_count: int = 9000) -> FixedBlock:
    """Blocks of one width: random, small, constant or run-like values."""
    width = draw(bits)
    count = draw(st.one_of(st.integers(0, 40), st.integers(0, max_count)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if width == 1:
        return FixedBlock(1, np.packbits(rng.integers(0, 2, count).astype(np.uint8), bitorder="little"), count)
    size = width // 8
    values = rng.integers(0, 256, (count, size)).astype(np.uint8)
    shape = draw(st.sampled_from(["random", "small", "constant", "runs", "low"]))
    if shape == "small":
        values[:, (size + 1) // 2 :] = 0
    elif shape == "constant" and count:
        values[:] = values[0]
    elif shape == "runs" and count:
        values = values[np.sort(rng.integers(0, max(count // 50, 1), count))]
    elif shape == "low" and count:
        values = values[rng.integers(0, min(count, 7), count)]
    return FixedBlock(width, np.ascontiguousarray(values).reshape(-1), count)


@st.composite
def variable_blocks(draw: st.DrawFn, max_count: int = 3000, max_size: int = 300) -> VariableBlock:
    """Blocks of byte strings, 32- or 64-bit offsets."""
    count = draw(st.one_of(st.integers(0, 20), st.integers(0, max_count)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    lengths = rng.integers(0, draw(st.integers(1, max_size)), count)
    offsets = np.append(0, np.cumsum(lengths)).astype(draw(st.sampled_from([np.int32, np.int64])))
    letters = draw(st.sampled_from([2, 26, 256]))
    return VariableBlock(offsets, rng.integers(0, letters, int(offsets[-1])).astype(np.uint8))
