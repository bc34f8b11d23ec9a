"""RLE: known bytes, round trips, damage."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_core.codecs import bitpack, rle
from lance_core.codecs.blocks import Pieces
from lance_core.codecs.registry import CODECS
from lance_core.errors import CorruptFileError
from lance_core.format.encoding import Flat, Rle
from tests.codecs.codec_contract import assert_chunks_round_trip, assert_damage_is_reported, fixed_blocks, plain, spread

WORD = st.sampled_from([8, 16, 32, 64])


def test_known_bytes():
    values = np.array([7, 7, 7, 9], np.uint16)
    runs, lengths, per_chunk = rle.find_runs(values, np.array([4]))
    assert (runs.tolist(), lengths.tolist(), per_chunk.tolist()) == ([7, 9], [3, 1], [2])
    _, pieces = rle.encode_pieces(values, np.array([4]))
    assert pieces.data.tobytes().hex() == "0400000000000000" + "07000900" + "0301"


@given(fixed_blocks(WORD), st.integers(0, 5), st.sampled_from([1, 256, 4096]))
def test_chunks_round_trip(block, gap, max_values):
    assert_chunks_round_trip(block, rle.encode_chunks(block, max_values=max_values), gap=gap)


@given(fixed_blocks(WORD), st.lists(st.integers(0, 2100), max_size=5), st.integers(0, 5))
def test_pieces_of_any_size(block, cuts, gap):
    counts = np.diff([0, *sorted(min(cut, block.count) for cut in cuts), block.count])
    encoding, pieces = rle.encode_pieces(bitpack.unsigned(block), counts)
    assert plain(CODECS.decode_block(encoding, spread(pieces, gap), counts)) == plain(block)


@given(fixed_blocks(WORD, max_count=2000), st.integers(0, 2**32))
def test_damage(block, seed):
    assert_damage_is_reported(rle.encode_chunks(block), np.random.default_rng(seed), rounds=10)


@pytest.mark.parametrize("count", [3, 5, 1 << 40])
def test_lengths_must_add_up(count):
    values, lengths = Pieces.whole(np.array([7, 9], np.uint8)), Pieces.whole(np.array([3, 1], np.uint8))
    with pytest.raises(CorruptFileError, match=r"expected|claims"):
        CODECS.decode(Rle(Flat(8), Flat(8)), (values, lengths), np.array([count]))


def test_sixteen_bit_lengths():
    values = Pieces.whole(np.array([7, 9], np.uint8))
    lengths = Pieces.whole(np.array([300, 2], "<u2").view(np.uint8))
    got = CODECS.decode(Rle(Flat(8), Flat(16)), (values, lengths), np.array([302]))
    assert plain(got) == [b"\x07"] * 300 + [b"\x09"] * 2


def test_block_prefix_is_checked():
    with pytest.raises(CorruptFileError, match="larger"):
        CODECS.decode_block(Rle(Flat(8), Flat(8)), Pieces.whole(np.full(12, 0xFF, np.uint8)), np.array([4]))
