"""Fixed-size lists and packed structs: known bytes, round trips in each form, damage."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_core.codecs import choose, fixed_size_list, flat, packed
from lance_core.codecs.blocks import FixedBlock, ListBlock, Pieces, StructBlock, VariableBlock
from lance_core.codecs.choose import EncodingOptions
from lance_core.codecs.registry import CODECS
from lance_core.errors import CorruptFileError, FormatError, UnsupportedEncodingError
from lance_core.format.encoding import FixedSizeList, Flat, PackedField, PackedStruct, Variable, VariablePackedStruct
from lance_core.format.version import FileVersion
from tests.codecs.codec_contract import (
    assert_chunks_round_trip,
    assert_damage_is_reported,
    fixed_blocks,
    plain,
    variable_blocks,
)


@st.composite
def list_blocks(draw: st.DrawFn) -> ListBlock:
    """Lists nested one to three deep, validity or not at each depth."""
    dimensions = draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
    count = draw(st.one_of(st.integers(0, 9), st.integers(0, 700)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    bits = draw(st.sampled_from([1, 8, 16, 64]))
    total = count * int(np.prod(dimensions))
    raw = rng.integers(0, 256, (total * bits + 7) // 8).astype(np.uint8)
    block = FixedBlock(bits, raw, total)
    for depth in range(len(dimensions) - 1, -1, -1):
        items = count * int(np.prod(dimensions[: depth + 1]))
        validity = (
            np.packbits(rng.integers(0, 2, items).astype(np.uint8), bitorder="little") if draw(st.booleans()) else None
        )
        block = ListBlock(dimensions[depth], block, items // dimensions[depth], validity)
    return block


@given(list_blocks(), st.integers(0, 5), st.sampled_from([1, 16, 4096]), st.integers(0, 2**32))
@settings(max_examples=60)
def test_lists_in_chunks(block, gap, max_values, seed):
    encoded = fixed_size_list.encode_chunks(block, max_values=max_values)
    assert_chunks_round_trip(block, encoded, gap=gap)
    assert_damage_is_reported(encoded, np.random.default_rng(seed), rounds=4)


@given(list_blocks())
@settings(max_examples=60)
def test_lists_by_value(block):
    encoded = fixed_size_list.encode_values(block)
    assert encoded.payload.bits == fixed_size_list.row_bits(block)
    assert plain(CODECS.decode_values(encoded.encoding, encoded.payload)) == plain(block)


def test_known_row():
    items = FixedBlock(8, np.array([0xA0, 0xB0, 0xA1, 0, 0xA2, 0xB2], np.uint8), 6)
    encoded = fixed_size_list.encode_values(ListBlock(2, items, 3, np.array([0b110111], np.uint8)))
    assert encoded.payload.data.tobytes().hex() == "03a0b0" + "01a100" + "03a2b2"


@pytest.mark.parametrize("dimension", [0, -1, 1 << 50])
def test_impossible_dimensions(dimension):
    encoding = FixedSizeList(dimension, False, Flat(8))
    with pytest.raises(CorruptFileError, match="FixedSizeList"):
        CODECS.decode(encoding, (Pieces.whole(np.zeros(8, np.uint8)),), np.array([8]))
    with pytest.raises(CorruptFileError, match="FixedSizeList"):
        CODECS.decode_values(encoding, FixedBlock(8, np.zeros(8, np.uint8), 8))


@st.composite
def struct_blocks(draw: st.DrawFn, variable: bool) -> StructBlock:
    count = draw(st.integers(0, 300))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    children = []
    for _ in range(draw(st.integers(1, 4))):
        if variable and draw(st.booleans()):
            offsets = np.append(0, np.cumsum(rng.integers(0, 20, count))).astype(draw(st.sampled_from([np.int32, np.int64])))
            children.append(VariableBlock(offsets, rng.integers(97, 100, int(offsets[-1])).astype(np.uint8)))
        else:
            size = draw(st.sampled_from([1, 2, 3, 8, 16]))
            children.append(FixedBlock(size * 8, rng.integers(0, 256, count * size).astype(np.uint8), count))
    return StructBlock(tuple(children), count)


@given(struct_blocks(variable=False), st.integers(0, 5), st.integers(0, 2**32))
def test_fixed_structs(block, gap, seed):
    rows, bits = packed.join_rows(block)
    encoded = packed.encode_chunks(flat.encode_chunks(rows), bits)
    assert_chunks_round_trip(block, encoded, gap=gap)
    assert_damage_is_reported(encoded, np.random.default_rng(seed), rounds=4)
    by_value = choose.choose_values(block, EncodingOptions(version=FileVersion.V2_1))
    assert isinstance(by_value.encoding, PackedStruct)
    assert plain(CODECS.decode_values(by_value.encoding, by_value.payload)) == plain(block)


@given(struct_blocks(variable=True), st.integers(0, 2**32))
def test_variable_structs(block, seed):
    encoded = choose.choose_values(block, EncodingOptions())
    assert isinstance(encoded.encoding, VariablePackedStruct)
    assert plain(CODECS.decode_values(encoded.encoding, encoded.payload)) == plain(block)
    rng, payload = np.random.default_rng(seed), encoded.payload
    for _ in range(6):
        data = payload.data.copy()
        if len(data):
            data[rng.integers(0, len(data), 3)] = rng.integers(0, 256, 3)
        try:
            plain(CODECS.decode_values(encoded.encoding, VariableBlock(payload.offsets, data)))
        except FormatError:
            continue


def test_rows_without_payload_are_zeros_and_empty():
    encoding = VariablePackedStruct(
        (PackedField(Flat(16), bits_per_value=16), PackedField(Variable(Flat(32)), bits_per_length=32))
    )
    row = bytes.fromhex("0100" + "02000000" + "6162")
    payload = VariableBlock(np.array([0, 0, 8, 8], np.int32), np.frombuffer(row, np.uint8))
    got = CODECS.decode_values(encoding, payload)
    assert plain(got) == [(b"\0\0", b""), (b"\1\0", b"ab"), (b"\0\0", b"")]


def test_rows_that_do_not_fit_their_fields():
    encoding = VariablePackedStruct((PackedField(Variable(Flat(32)), bits_per_length=32),))
    for text in ("0200000061", "02000000616263", "ffffffff61", "0200"):
        data = np.frombuffer(bytes.fromhex(text), np.uint8)
        with pytest.raises(CorruptFileError, match="VariablePackedStruct"):
            CODECS.decode_values(encoding, VariableBlock(np.array([0, len(data)], np.int32), data))


def test_variable_structs_have_no_chunks_and_need_22():
    block = StructBlock((VariableBlock(np.array([0, 1], np.int32), np.ones(1, np.uint8)),), 1)
    with pytest.raises(UnsupportedEncodingError):
        choose.choose_chunks(block, EncodingOptions())
    with pytest.raises(UnsupportedEncodingError, match=r"2\.2"):
        choose.choose_values(block, EncodingOptions(version=FileVersion.V2_1))


@given(variable_blocks(max_count=40), fixed_blocks(max_count=40))
def test_flatten_rejects_indices_outside(strings, numbers):
    from lance_core.codecs import dictionary
    from lance_core.codecs.blocks import DictionaryBlock

    for items in (strings, numbers):
        indices = FixedBlock(32, np.array([items.count], np.uint32).view(np.uint8), 1)
        with pytest.raises(CorruptFileError, match="index"):
            dictionary.flatten(DictionaryBlock(indices, items))
        picked = np.random.default_rng(0).integers(0, items.count, 50 if items.count else 0).astype(np.uint8)
        block = DictionaryBlock(FixedBlock(8, picked, len(picked)), items)
        assert plain(dictionary.flatten(block)) == plain(block)
