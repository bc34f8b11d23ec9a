"""Few values of many chunks: `decode_picks` gives what `decode` and then a pick give, and refuses what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from lance_core.codecs import bitpack, flat, fsst, variable
from lance_core.codecs.blocks import Block, FixedBlock, Picks, Pieces, VariableBlock
from lance_core.codecs.encoded import EncodedChunks
from lance_core.codecs.registry import CODECS
from lance_core.errors import CorruptFileError
from lance_core.format.encoding import Flat, Fsst, OutOfLineBitpacking
from lance_core.pages.value_slots import take_slots

RNG = np.random.default_rng(11)


def numbers(bits: int, width: int, count: int) -> FixedBlock:
    values = RNG.integers(0, 2**width - 1, count, dtype=np.uint64, endpoint=True).astype(f"<u{bits // 8}")
    return FixedBlock(bits, values.view(np.uint8), count)


def strings(count: int) -> VariableBlock:
    texts = [b"".join(RNG.choice([b"ab", b"cde", b"f", b""], 5)) for _ in range(count)]
    offsets = np.append(0, np.cumsum([len(text) for text in texts])).astype(np.int32)
    return VariableBlock(offsets, np.frombuffer(b"".join(texts), np.uint8))


def out_of_line(block: FixedBlock, counts: list[int]) -> EncodedChunks:
    encoding, pieces = bitpack.encode_out_of_line(bitpack.unsigned(block), np.array(counts, np.int64))
    return EncodedChunks(encoding, np.array(counts, np.int64), (pieces,))


def bitmap(count: int) -> FixedBlock:
    return FixedBlock(1, np.packbits(RNG.integers(0, 2, count), bitorder="little"), count)


def with_symbols(block: VariableBlock) -> EncodedChunks:
    found = fsst.encode(block)
    assert found is not None
    inner = variable.encode_chunks(found[1])
    return EncodedChunks(Fsst(found[0], inner.encoding), inner.counts, inner.buffers)


CASES = {
    **{f"flat {bits}": flat.encode_chunks(numbers(bits, bits, 3000), max_values=512) for bits in (8, 16, 32, 64)},
    "flat 1": flat.encode_chunks(bitmap(3001), max_values=512),
    "flat 96": flat.encode_chunks(FixedBlock(96, RNG.integers(0, 256, 12 * 900).astype(np.uint8), 900), max_values=256),
    **{
        f"inline {bits} to {width}": bitpack.encode_chunks(numbers(bits, width, 5000))
        for bits in (8, 16, 32, 64)
        for width in (0, 1, 3, bits // 2 + 1, bits - 1, bits)
    },
    **{
        f"out of line {bits} to {width}, {rest}": out_of_line(numbers(bits, width, 3072 + rest), [1024, 2048, rest])
        for bits in (16, 64)
        for width in (1, 5, bits - 1)
        for rest in (7, 1000)
    },
    "variable": variable.encode_chunks(strings(3000)),
    "fsst": with_symbols(strings(9000)),
}


def same(found: Block, expected: object) -> None:
    if isinstance(found, VariableBlock):
        assert isinstance(expected, VariableBlock)
        np.testing.assert_array_equal(found.offsets, expected.offsets)
        np.testing.assert_array_equal(found.data, expected.data)
        return
    assert isinstance(found, FixedBlock)
    assert isinstance(expected, FixedBlock)
    assert (found.bits, found.count) == (expected.bits, expected.count)
    np.testing.assert_array_equal(found.data, expected.data)


def picks_of(counts: np.ndarray, number: int) -> tuple[Picks, np.ndarray]:
    before = np.cumsum(counts) - counts
    wanted = np.unique(np.append(RNG.integers(0, int(counts.sum()), number), [0, int(counts.sum()) - 1]))
    chunks = np.searchsorted(before, wanted, "right") - 1
    return Picks(chunks, wanted - before[chunks]), wanted


@pytest.mark.parametrize("name", CASES)
def test_picks_are_what_decoding_all_gives(name: str) -> None:
    case = CASES[name]
    picks, wanted = picks_of(case.counts, 60)
    found = CODECS.decode_picks(case.encoding, case.buffers, case.counts, picks)
    assert found is not None
    same(found, take_slots(CODECS.decode(case.encoding, case.buffers, case.counts), wanted))


@pytest.mark.parametrize("name", CASES)
def test_pieces_may_lie_anywhere_even_unaligned(name: str) -> None:
    case = CASES[name]
    picks, wanted = picks_of(case.counts, 20)
    moved = []
    for pieces in case.buffers:
        gaps = np.cumsum(RNG.integers(1, 9, len(pieces)))
        data = np.zeros(int(pieces.sizes.sum() + gaps[-1]) + 3, np.uint8)
        starts = np.cumsum(pieces.sizes) - pieces.sizes + gaps
        for start, old, size in zip(starts.tolist(), pieces.starts.tolist(), pieces.sizes.tolist(), strict=True):
            data[start : start + size] = pieces.data[old : old + size]
        moved.append(Pieces(data, starts, pieces.sizes))
    found = CODECS.decode_picks(case.encoding, tuple(moved), case.counts, picks)
    assert found is not None
    same(found, take_slots(CODECS.decode(case.encoding, case.buffers, case.counts), wanted))


@pytest.mark.parametrize("name", [name for name in CASES if "to 0" not in name])
def test_chunks_that_are_too_small_are_refused(name: str) -> None:
    case = CASES[name]
    picks, _ = picks_of(case.counts, 5)
    cut = tuple(Pieces(item.data, item.starts, np.minimum(item.sizes, 1)) for item in case.buffers)
    if (
        isinstance(case.encoding, OutOfLineBitpacking)
        or not isinstance(case.encoding, Flat)
        or case.encoding.bits_per_value > 1
    ):
        with pytest.raises(CorruptFileError):
            CODECS.decode_picks(case.encoding, cut, case.counts, picks)


def test_damaged_words_never_leave_the_buffers() -> None:
    for case in CASES.values():
        picks, _ = picks_of(case.counts, 20)
        for _ in range(8):
            broken = []
            for item in case.buffers:
                data = item.data.copy()
                data[RNG.integers(0, len(data), 40)] = RNG.integers(0, 256, 40)
                broken.append(Pieces(data, item.starts, item.sizes))
            try:
                found = CODECS.decode_picks(case.encoding, tuple(broken), case.counts, picks)
            except CorruptFileError:
                continue
            assert found is None or found.count == len(picks)
