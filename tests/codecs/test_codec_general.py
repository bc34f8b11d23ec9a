"""General: both compressors in each form, damage, sizes that are."""

import lz4.block
import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_core.codecs import byte_stream_split, flat, general, variable
from lance_core.codecs.blocks import FixedBlock, Pieces, VariableBlock
from lance_core.codecs.choose import choose_values
from lance_core.codecs.options import EncodingOptions
from lance_core.codecs.registry import CODECS
from lance_core.errors import CorruptFileError, UnsupportedEncodingError
from lance_core.format.encoding import BufferCompression, CompressionScheme, Flat, General, Variable
from tests.codecs.codec_contract import (
    assert_chunks_round_trip,
    assert_damage_is_reported,
    fixed_blocks,
    plain,
    variable_blocks,
)

SCHEMES = st.sampled_from([BufferCompression(CompressionScheme.LZ4), BufferCompression(CompressionScheme.ZSTD, 1)])
ZSTD = BufferCompression(CompressionScheme.ZSTD)
LZ4 = BufferCompression(CompressionScheme.LZ4)


def whole(data: bytes) -> Pieces:
    return Pieces.whole(np.frombuffer(data, np.uint8))


@given(fixed_blocks(st.sampled_from([8, 32, 64])), SCHEMES, st.integers(0, 5), st.integers(0, 2**32))
@settings(max_examples=40)
def test_flat_chunks(block, compression, gap, seed):
    encoded = general.encode_chunks(flat.encode_chunks(block), compression)
    assert_chunks_round_trip(block, encoded, gap=gap)
    assert_damage_is_reported(encoded, np.random.default_rng(seed), rounds=6)


@given(variable_blocks(), SCHEMES, st.integers(0, 2**32))
@settings(max_examples=40)
def test_variable_chunks(block, compression, seed):
    encoded = general.encode_chunks(variable.encode_chunks(block, target_bytes=16_384), compression)
    assert_chunks_round_trip(block, encoded)
    assert_damage_is_reported(encoded, np.random.default_rng(seed), rounds=6)


@given(fixed_blocks(st.sampled_from([32, 64])), st.booleans(), st.integers(0, 5), st.integers(0, 2**32))
@settings(max_examples=40)
def test_byte_planes(block, compressed, gap, seed):
    encoded = byte_stream_split.encode_chunks(flat.encode_chunks(block), block.bits // 8)
    if compressed:
        encoded = general.encode_chunks(encoded, ZSTD)
    assert_chunks_round_trip(block, encoded, gap=gap)
    assert_damage_is_reported(encoded, np.random.default_rng(seed), rounds=4)


def test_known_planes():
    block = FixedBlock(16, np.array([0x0102, 0x0304, 0x0506], "<u2").view(np.uint8), 3)
    encoded = byte_stream_split.encode_chunks(flat.encode_chunks(block), 2)
    assert encoded.buffers[0].data.tobytes().hex() == "020406010305"


@given(variable_blocks(max_count=50), SCHEMES)
def test_values_alone(block, compression):
    encoding, payload = general.encode_values(Variable(Flat(32)), block, compression)
    assert plain(CODECS.decode_values(encoding, payload)) == plain(block)


def test_no_payload_is_an_empty_value():
    _, payload = general.encode_values(
        Variable(Flat(32)), VariableBlock(np.array([0, 2], np.int32), np.ones(2, np.uint8)), ZSTD
    )
    size = int(payload.offsets[-1])
    block = VariableBlock(np.array([0, 0, size, size], np.int32), payload.data)
    assert plain(CODECS.decode_values(General(ZSTD, Variable(Flat(32))), block)) == [b"", b"\1\1", b""]


def test_bare_zstd_frames_are_accepted():
    frame = zstandard.ZstdCompressor().compress(b"\1\0\2\0")
    assert plain(CODECS.decode_block(General(ZSTD, Flat(16)), whole(frame), np.array([2]))) == [b"\1\0", b"\2\0"]


def test_block_form():
    encoding, data = general.encode_block(Flat(16), b"\1\0\2\0", LZ4)
    assert plain(CODECS.decode_block(encoding, whole(data), np.array([2]))) == [b"\1\0", b"\2\0"]


@pytest.mark.parametrize("size", [3, 5, 1 << 30, 1 << 62, (1 << 64) - 1])
@pytest.mark.parametrize("compression", [ZSTD, LZ4])
def test_sizes_that_lie(compression, size):
    if compression is ZSTD:
        data = size.to_bytes(8, "little") + zstandard.ZstdCompressor().compress(b"abcd")
    else:
        data = (size & 0xFFFFFFFF).to_bytes(4, "little") + lz4.block.compress(b"abcd", store_size=False)
    with pytest.raises(CorruptFileError):
        CODECS.decode_block(General(compression, Flat(8)), whole(data), np.array([4]))


@pytest.mark.parametrize("data", [b"", b"\1", b"\0" * 9, b"\x28\xb5\x2f\xfd"])
@pytest.mark.parametrize("compression", [ZSTD, LZ4])
def test_truncated(compression, data):
    with pytest.raises(CorruptFileError):
        CODECS.decode_block(General(compression, Flat(8)), whole(data), np.array([4]))


def test_unknown_scheme():
    with pytest.raises(UnsupportedEncodingError, match="scheme"):
        CODECS.decode_block(General(BufferCompression(CompressionScheme.UNSPECIFIED), Flat(8)), whole(b"abc"), np.array([1]))


def test_values_asked_for_as_lz4_become_zstd() -> None:
    """The official reader fails on nulls between values that were packed one by one with lz4."""
    values = VariableBlock(np.arange(0, 5001, 500, dtype=np.int32), np.zeros(5000, np.uint8))
    encoded = choose_values(values, EncodingOptions(compression="lz4"))
    assert isinstance(encoded.encoding, General)
    assert encoded.encoding.compression == BufferCompression(CompressionScheme.ZSTD, 0)
