"""Flat: known bytes, round trips, damage."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_core.codecs import flat
from lance_core.codecs.blocks import FixedBlock, Pieces
from lance_core.codecs.registry import CODECS
from lance_core.errors import CorruptFileError
from lance_core.format.encoding import Flat
from tests.codecs.codec_contract import assert_chunks_round_trip, assert_damage_is_reported, fixed_blocks, plain


@given(fixed_blocks(), st.integers(0, 9), st.sampled_from([1, 4, 64, 4096]))
def test_chunks_round_trip(block, gap, max_values):
    encoded = flat.encode_chunks(block, max_values=max_values)
    assert_chunks_round_trip(block, encoded, gap=gap)


@given(fixed_blocks(max_count=500), st.integers(0, 2**32))
def test_damage(block, seed):
    assert_damage_is_reported(flat.encode_chunks(block), np.random.default_rng(seed), rounds=10)


@given(fixed_blocks(max_count=500))
def test_block_round_trip(block):
    encoding, data = flat.encode_block(block)
    got = CODECS.decode_block(encoding, Pieces.whole(np.frombuffer(data, np.uint8)), np.array([block.count]))
    assert plain(got) == plain(block)


def test_bitmaps_of_odd_chunks_join_bit_by_bit():
    data = np.array([0b101, 0b11, 0b1], np.uint8)
    pieces = Pieces(data, np.arange(3), np.ones(3, np.int64))
    got = CODECS.decode(Flat(1), (pieces,), np.array([3, 2, 1]))
    assert plain(got) == [1, 0, 1, 1, 1, 1]


def test_even_chunks_with_headers_between_are_joined():
    data = np.arange(30, dtype=np.uint8)
    pieces = Pieces(data, np.array([2, 12, 22]), np.array([8, 8, 8]))
    got = CODECS.decode(Flat(16), (pieces,), np.array([4, 4, 2]))
    assert got.data.tolist() == [*range(2, 10), *range(12, 20), *range(22, 26)]


@pytest.mark.parametrize("bits", [0, 3, 12, -8, 1 << 40])
def test_odd_widths_are_refused(bits):
    with pytest.raises(CorruptFileError, match="bits per value"):
        CODECS.decode(Flat(bits), (Pieces.whole(np.zeros(8, np.uint8)),), np.array([1]))


def test_absurd_count_is_refused_before_allocation():
    with pytest.raises(CorruptFileError, match=r"expected at least|claims"):
        CODECS.decode(Flat(64), (Pieces.whole(np.zeros(8, np.uint8)),), np.array([1 << 40]))


def test_values_form_is_the_payload():
    block = FixedBlock(16, np.arange(6, dtype=np.uint8), 3)
    assert CODECS.decode_values(Flat(16), block) == block
