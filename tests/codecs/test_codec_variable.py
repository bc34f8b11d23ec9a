"""Variable: known bytes, round trips, damage."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_core.codecs import variable
from lance_core.codecs.blocks import Pieces, VariableBlock
from lance_core.codecs.registry import CODECS
from lance_core.errors import CorruptFileError
from lance_core.format.encoding import Flat, Variable
from tests.codecs.codec_contract import assert_chunks_round_trip, assert_damage_is_reported, plain, variable_blocks


@given(variable_blocks(), st.integers(0, 9), st.sampled_from([1, 16, 4096]))
def test_chunks_round_trip(block, gap, max_values):
    encoded = variable.encode_chunks(block, max_values=max_values)
    assert_chunks_round_trip(block, encoded, gap=gap)
    assert (encoded.buffers[0].sizes % block.offsets.dtype.itemsize == 0).all()
    assert CODECS.decode(encoded.encoding, encoded.buffers, encoded.counts).offsets.dtype == block.offsets.dtype


@given(variable_blocks(max_count=300), st.integers(0, 2**32))
def test_damage(block, seed):
    assert_damage_is_reported(variable.encode_chunks(block), np.random.default_rng(seed), rounds=10)


@given(st.lists(variable_blocks(max_count=50), min_size=1, max_size=4))
def test_block_round_trip(blocks):
    blocks = [b for b in blocks if b.offsets.dtype == blocks[0].offsets.dtype]
    encoding = variable.encode_block(blocks[0])[0]
    parts = [np.frombuffer(variable.encode_block(block)[1], np.uint8) for block in blocks]
    sizes = np.array([len(part) for part in parts])
    pieces = Pieces(np.concatenate(parts), np.cumsum(sizes) - sizes, sizes)
    got = CODECS.decode_block(encoding, pieces, np.array([block.count for block in blocks]))
    assert plain(got) == [value for block in blocks for value in plain(block)]


def test_known_chunk_bytes():
    block = VariableBlock(np.array([0, 2, 3], np.int32), np.frombuffer(b"abc", np.uint8))
    encoded = variable.encode_chunks(block)
    assert encoded.buffers[0].data.tobytes().hex() == "0c0000000e0000000f00000061626348"
    assert variable.encode_block(block)[1].hex() == "200000001400000000000000" + "0200000003000000" + "616263"


def test_chunks_of_different_counts():
    one = bytes.fromhex("0c0000000e0000000f00000061626348")
    two = bytes.fromhex("080000000a0000006465")
    pieces = Pieces(np.frombuffer(one + two + one, np.uint8), np.array([0, 16, 26]), np.array([16, 10, 16]))
    got = CODECS.decode(Variable(Flat(32)), (pieces,), np.array([2, 1, 2]))
    assert plain(got) == [b"ab", b"c", b"de", b"ab", b"c"]


@pytest.mark.parametrize(
    "text",
    ["0c0000000e0000000d000000616263", "0c0000000e000000ff000000616263", "0c000000" + "ffffffff" + "0f000000616263"],
)
def test_bad_offsets(text):
    data = np.frombuffer(bytes.fromhex(text), np.uint8)
    with pytest.raises(CorruptFileError, match="offsets"):
        CODECS.decode(Variable(Flat(32)), (Pieces.whole(data),), np.array([2]))


def test_block_header_must_match():
    data = np.frombuffer(bytes.fromhex("40000000140000000000000002000000030000006162"), np.uint8)
    with pytest.raises(CorruptFileError, match="header"):
        CODECS.decode_block(Variable(Flat(32)), Pieces.whole(data), np.array([2]))
