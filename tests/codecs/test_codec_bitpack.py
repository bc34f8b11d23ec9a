"""Bit packing: FastLanes order against a slow model, both kinds, damage."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_core.codecs import bitpack
from lance_core.codecs.blocks import FixedBlock, Pieces
from lance_core.codecs.encoded import EncodedChunks
from lance_core.codecs.registry import CODECS
from lance_core.errors import CorruptFileError
from lance_core.format.encoding import Flat, InlineBitpacking, OutOfLineBitpacking
from tests.codecs.codec_contract import assert_chunks_round_trip, assert_damage_is_reported, fixed_blocks, plain, spread

WORD = st.sampled_from([8, 16, 32, 64])
ORDER = [0, 4, 2, 6, 1, 5, 3, 7]


def model(values: list[int], bits: int, width: int) -> bytes:
    """One block as the specification words it, with Python integers."""
    lanes = 1024 // bits
    words = [0] * (width * lanes)
    for lane in range(lanes):
        packed = 0
        for row in range(bits):
            packed |= values[ORDER[row // 8] * 16 + (row % 8) * 128 + lane] << (row * width)
        for word in range(width):
            words[word * lanes + lane] = (packed >> (word * bits)) & ((1 << bits) - 1)
    return b"".join(word.to_bytes(bits // 8, "little") for word in words)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_order_against_the_model(bits):
    rng = np.random.default_rng(bits)
    for width in {0, 1, 3, bits // 2, bits - 1, bits}:
        values = rng.integers(0, 256, 1024 * bits // 8).astype(np.uint8).view(f"<u{bits // 8}")
        values = values >> values.dtype.type(bits - width) if width else values * values.dtype.type(0)
        data = width.to_bytes(bits // 8, "little") + model(values.tolist(), bits, width)
        pieces = Pieces.whole(np.frombuffer(data, np.uint8))
        got = CODECS.decode(InlineBitpacking(bits), (pieces,), np.array([1024]))
        assert got.data.tobytes() == values.tobytes()
        if width == bits - 1:
            packed = bitpack.encode_chunks(FixedBlock(bits, values.view(np.uint8), 1024))
            assert packed.buffers[0].data.tobytes() == data


@given(fixed_blocks(WORD), st.sampled_from([0, 1, 8]))
def test_chunks_round_trip(block, gap):
    assert_chunks_round_trip(block, bitpack.encode_chunks(block), gap=gap)


@given(fixed_blocks(WORD, max_count=3000))
def test_block_round_trip(block):
    encoding, data = bitpack.encode_block(block)
    got = CODECS.decode_block(encoding, Pieces.whole(np.frombuffer(data, np.uint8)), np.array([block.count]))
    assert plain(got) == plain(block)


@given(fixed_blocks(WORD), st.lists(st.integers(0, 2100), max_size=5), st.integers(0, 3))
def test_out_of_line_chunks_of_any_size(block, cuts, gap):
    values = bitpack.unsigned(block)
    counts = np.diff([0, *sorted(min(cut, block.count) for cut in cuts), block.count])
    encoding, pieces = bitpack.encode_out_of_line(values, counts)
    got = CODECS.decode_block(encoding, spread(pieces, gap), counts)
    assert plain(got) == plain(block)


def test_inline_block_form_walks_many_blocks():
    values = np.arange(5000, dtype=np.uint32)
    words, _, _, _ = bitpack._encode_inline(values, bitpack.block_widths(values))
    twice = np.concatenate([words, words]).view(np.uint8)
    half = len(twice) // 2
    pieces = Pieces(twice, np.array([0, half]), np.array([half, half]))
    got = CODECS.decode_block(InlineBitpacking(32), pieces, np.array([5000, 5000]))
    assert (got.data.view(np.uint32) == np.concatenate([values, values])).all()


@given(fixed_blocks(WORD, max_count=3000), st.integers(0, 2**32))
def test_damage(block, seed):
    rng = np.random.default_rng(seed)
    assert_damage_is_reported(bitpack.encode_chunks(block), rng, rounds=10)
    encoding, pieces = bitpack.encode_out_of_line(bitpack.unsigned(block), np.array([block.count]))
    assert_damage_is_reported(EncodedChunks(encoding, np.array([block.count]), (pieces,)), rng, rounds=10)


@pytest.mark.parametrize("encoding", [InlineBitpacking(24), OutOfLineBitpacking(16, Flat(17))])
def test_bad_descriptions(encoding):
    with pytest.raises(CorruptFileError):
        CODECS.decode_block(encoding, Pieces.whole(np.zeros(4096, np.uint8)), np.array([10]))


def test_absurd_width_and_count():
    data = np.full(8, 0xFF, np.uint8)
    with pytest.raises(CorruptFileError, match="width"):
        CODECS.decode(InlineBitpacking(64), (Pieces.whole(data),), np.array([5]))
    with pytest.raises(CorruptFileError, match=r"too small|too short|claims"):
        CODECS.decode_block(InlineBitpacking(8), Pieces.whole(np.zeros(3, np.uint8)), np.array([1 << 40]))


def test_widths():
    values = np.zeros(2049, np.uint64)
    values[[5, 1024, 2048]] = [1, 2**63, 7]
    assert bitpack.block_widths(values).tolist() == [1, 64, 3]
    assert bitpack.bit_lengths(np.array([0, 1, 2, 255, 256, 2**53, 2**64 - 1], np.uint64)).tolist() == [
        0,
        1,
        2,
        8,
        9,
        54,
        64,
    ]


def test_width_zero_needs_no_bytes_but_has_a_bound():
    nothing = Pieces.whole(np.empty(0, np.uint8))
    got = CODECS.decode_block(OutOfLineBitpacking(16, Flat(0)), nothing, np.array([3000]))
    assert got.count == 3000
    assert not got.data.any()
    for count in (1 << 32, 1 << 62):
        with pytest.raises(CorruptFileError, match="claims"):
            CODECS.decode_block(OutOfLineBitpacking(16, Flat(0)), nothing, np.array([count]))
