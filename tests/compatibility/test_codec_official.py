"""Both ways against the official library: its pages through our decoders, our encodings through its reader."""

import numpy as np
import pyarrow as pa
import pytest

from lance_core.codecs import bitpack, choose, dictionary, rle
from lance_core.codecs.blocks import DictionaryBlock, FixedBlock, ListBlock, StructBlock, VariableBlock
from lance_core.codecs.choose import EncodingOptions
from lance_core.codecs.registry import CODECS
from lance_core.format.encoding import (
    ByteStreamSplit,
    FixedSizeList,
    Flat,
    Fsst,
    General,
    InlineBitpacking,
    OutOfLineBitpacking,
    PackedStruct,
    Rle,
    Variable,
    VariablePackedStruct,
)
from lance_core.format.layout import FullZipLayout, MiniBlockLayout
from lance_core.format.version import parse_storage_version
from tests.codecs.codec_contract import plain
from tests.codecs.official_pages import cut_mini_block, decode_full_zip, decode_mini_block, write_official
from tests.codecs.official_reader import full_zip, mini_block, read_officially

P = "lance-encoding:"
N = 5000
RNG = np.random.default_rng(7)
WORDS = ["".join(map(chr, RNG.integers(97, 123, 12))) for _ in range(2500)]


def strings(count: int, values: int, **kind) -> pa.Array:
    return pa.array([WORDS[i] for i in RNG.integers(0, values, count)], **kind)


def keys(count: int, **kind) -> pa.Array:
    """Strings that are all different, about 20 bytes each."""
    return pa.array([f"{WORDS[i % 2500]}-{i}" for i in range(count)], **kind)


def lists(array: pa.Array, *dimensions: int) -> pa.Array:
    for dimension in reversed(dimensions):
        array = pa.FixedSizeListArray.from_arrays(array, dimension)
    return array


SINE = pa.array(np.sin(np.arange(N) / 100))
RUNS = np.repeat(RNG.integers(0, 1000, N // 50), 50)
LONG = pa.array([WORDS[i % 2500] * (i % 30) for i in range(1000)])
FLOATS = pa.array(RNG.random(768 * 20).astype(np.float32))
GAPS = pa.array([None if i % 3 == 0 else i for i in range(6000)], pa.int16())

# name: (array, field metadata, the encodings expected on the way down, from 2.2 on only)
CHUNKED = {
    "bool": (pa.array(RNG.integers(0, 2, N).astype(bool)), None, [Flat]),
    "int8 packed": (pa.array(RNG.integers(0, 99, N).astype(np.int8)), None, [InlineBitpacking]),
    "int16 packed": (pa.array(RNG.integers(0, 999, N).astype(np.int16)), None, [InlineBitpacking]),
    "int32 packed": (pa.array(RNG.integers(0, 10**6, N).astype(np.int32)), None, [InlineBitpacking]),
    "int64 packed": (pa.array(RNG.integers(0, 10**9, N)), None, [InlineBitpacking]),
    "int64 flat": (pa.array(RNG.integers(-(2**62), 2**62, N)), None, [Flat]),
    "binary16": (pa.array([RNG.bytes(16) for _ in range(N)], pa.binary(16)), None, [Flat]),
    "runs": (pa.array(RUNS.astype(np.int32)), None, [Rle]),
    "strings": (keys(N), None, [Fsst, Variable]),
    "large strings": (keys(N, type=pa.large_utf8()), None, [Fsst, Variable]),
    "few strings": (pa.array([f"k{i}" for i in range(1000)]), None, [Variable]),
    "binary": (pa.array([RNG.bytes(int(k)) for k in RNG.integers(0, 60, 2000)]), None, [Variable]),
    "zstd doubles": (SINE, {P + "compression": "zstd"}, [General, Flat]),
    "zstd planes": (SINE, {P + "compression": "zstd", P + "bss": "on"}, [General, ByteStreamSplit, Flat]),
    "zstd strings": (keys(N), {P + "compression": "zstd"}, [General, Variable]),
    "lz4 strings": (keys(N), {P + "compression": "lz4"}, [General, Variable]),
    "lists": (lists(FLOATS, 3), None, [FixedSizeList, Flat]),
    "bool lists": (lists(pa.array(RNG.integers(0, 2, 6000).astype(bool)), 3), None, [FixedSizeList, Flat]),
    "lists with nulls": (lists(GAPS, 3), None, [FixedSizeList, Flat]),
    "nested lists": (lists(GAPS, 3, 2), None, [FixedSizeList, FixedSizeList, Flat]),
}
ZIPPED = {
    "long strings": (LONG, None, [Fsst, Variable]),
    "long plain": (LONG, {P + "compression": "none"}, [Variable]),
    "long zstd": (LONG, {P + "compression": "zstd"}, [General, Variable]),
    "huge": (pa.array(["x" * 40_000, *WORDS[:50]]), None, [General, Variable]),
    "embeddings": (lists(FLOATS, 768), None, [FixedSizeList, Flat]),
    "embeddings with nulls": (lists(GAPS, 200), None, [FixedSizeList, Flat]),
    "nested": (lists(GAPS, 150, 2), None, [FixedSizeList, FixedSizeList, Flat]),
    "wide binary": (pa.array([RNG.bytes(300) for _ in range(50)], pa.binary(300)), None, [Flat]),
}


def is_variable(kind: pa.DataType) -> bool:
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(test(kind) for test in tests)


def expected(array: pa.Array) -> list:
    """The array's values as the contract suite's `plain` shows them; None for nulls."""
    kind = array.type
    if pa.types.is_fixed_size_list(kind):
        items = expected(array.flatten())
        return [items[i * kind.list_size : (i + 1) * kind.list_size] for i in range(len(array))]
    if pa.types.is_boolean(kind) or is_variable(kind):
        return [value.encode() if isinstance(value, str) else value for value in array.to_pylist()]
    if pa.types.is_fixed_size_binary(kind):
        return array.to_pylist()
    raw, size = array.buffers()[1].to_pybytes(), kind.bit_width // 8
    valid = array.is_valid().to_pylist()
    return [
        raw[i * size : (i + 1) * size] if valid[i - array.offset] else None
        for i in range(array.offset, array.offset + len(array))
    ]


def path_of(encoding: object) -> list[type]:
    """Types of an encoding and of what is inside it."""
    found = [type(encoding)]
    while not isinstance(encoding, Variable | Rle) and hasattr(encoding, "values"):
        encoding = encoding.values
        found.append(type(encoding))
    return found


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("name", CHUNKED)
def test_decodes_official_chunks(tmp_path, name, version):
    array, metadata, path = CHUNKED[name]
    (page,) = write_official(tmp_path / "t", array, version=version, metadata=metadata)
    assert isinstance(page.layout, MiniBlockLayout)
    assert path_of(page.layout.value_compression) == path
    values, rep, def_ = decode_mini_block(page)
    assert rep is None
    assert def_ is None
    assert plain(values) == expected(array)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("name", ZIPPED)
def test_decodes_official_values(tmp_path, name, version):
    array, metadata, path = ZIPPED[name]
    (page,) = write_official(tmp_path / "t", array, version=version, metadata=metadata)
    assert isinstance(page.layout, FullZipLayout)
    assert path_of(page.layout.value_compression) == path
    assert plain(decode_full_zip(page)[0]) == expected(array)


@pytest.mark.parametrize(
    ("array", "items"),
    [
        (strings(N, 5), [General, Variable]),
        (strings(N, 5).dictionary_encode(), [General, Variable]),
        (pa.array(np.repeat(np.arange(1000), 50)), [InlineBitpacking]),
        (pa.array(RNG.integers(-25, 25, N)), [General, Flat]),
        (pa.array(np.tile(np.arange(2000, dtype=np.int64) * 1000, 10)), [OutOfLineBitpacking, Flat]),
    ],
)
def test_decodes_official_dictionaries(tmp_path, array, items):
    (page,) = write_official(tmp_path / "t", array)
    assert path_of(page.layout.dictionary) == items
    values, _, _ = decode_mini_block(page)
    want = expected(array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array)
    assert plain(values) == want
    assert plain(dictionary.flatten(values)) == want


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("gaps", ["even", "runs", "tiny"])
def test_decodes_official_levels(tmp_path, version, gaps):
    null = {"even": lambda i: i % 7 == 0, "runs": lambda i: 2000 < i < 3000, "tiny": lambda i: i == 1}[gaps]
    array = pa.array([None if null(i) else i for i in range(5 if gaps == "tiny" else N)], pa.int32())
    (page,) = write_official(tmp_path / "t", array, version=version)
    values, _, def_ = decode_mini_block(page)
    assert (def_ == array.is_null().to_numpy(zero_copy_only=False)).all()
    got = [value if level == 0 else None for value, level in zip(plain(values), def_.tolist())]
    assert got == expected(array)


def test_decodes_official_list_levels(tmp_path):
    rows = [None if i % 9 == 0 else list(range(i % 5)) for i in range(N)]
    (page,) = write_official(tmp_path / "t", pa.array(rows, pa.list_(pa.int32())))
    _, rep, def_ = decode_mini_block(page)
    assert int((rep == 1).sum()) == N
    assert (def_ == 2).sum() + (def_ == 1).sum() == sum(not row for row in rows)


def test_decodes_official_packed_structs(tmp_path):
    fields = [pa.field("x", pa.int16()), pa.field("y", pa.float64()), pa.field("z", pa.binary(3))]
    columns = [
        pa.array(np.arange(N, dtype=np.int16)),
        pa.array(RNG.random(N)),
        pa.array([b"%03d" % (i % 999) for i in range(N)], pa.binary(3)),
    ]
    (page,) = write_official(tmp_path / "t", pa.StructArray.from_arrays(columns, fields=fields), metadata={"packed": "true"})
    assert path_of(page.layout.value_compression) == [PackedStruct, Flat]
    values, _, _ = decode_mini_block(page)
    assert plain(values) == list(zip(*map(expected, columns)))


def test_decodes_official_variable_packed_structs(tmp_path):
    fields = [pa.field("x", pa.int32()), pa.field("s", pa.utf8()), pa.field("l", pa.large_binary())]
    columns = [
        pa.array(np.arange(N, dtype=np.int32)),
        strings(N, 2500),
        pa.array([b"%d" % i for i in range(N)], pa.large_binary()),
    ]
    (page,) = write_official(tmp_path / "t", pa.StructArray.from_arrays(columns, fields=fields), metadata={"packed": "true"})
    assert path_of(page.layout.value_compression) == [VariablePackedStruct]
    values, _ = decode_full_zip(page)
    assert plain(values) == list(zip(*map(expected, columns)))


def test_decodes_official_blob_descriptors(tmp_path):
    array = pa.array([b"x" * (i * 100_000) for i in range(4)], pa.large_binary())
    (page,) = write_official(tmp_path / "t", array, metadata={P + "blob": "true"})
    values, _ = decode_full_zip(page)
    assert isinstance(values, StructBlock)
    assert len(values.children) == 5


def block_of(array: pa.Array) -> FixedBlock | VariableBlock | ListBlock:
    """An array without top-level nulls as a block."""
    kind = array.type
    if pa.types.is_fixed_size_list(kind):
        items = array.flatten()
        validity = None
        if items.null_count:
            validity = np.packbits(items.is_valid().to_numpy(zero_copy_only=False), bitorder="little")
        return ListBlock(kind.list_size, block_of(items), len(array), validity)
    buffers = array.buffers()
    if not is_variable(kind):
        return FixedBlock(kind.bit_width, np.frombuffer(buffers[1], np.uint8), len(array))
    wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    offsets = np.frombuffer(buffers[1], np.int64 if wide else np.int32)[: len(array) + 1]
    return VariableBlock(offsets, np.frombuffer(buffers[2], np.uint8)[: int(offsets[-1])])


def options_of(metadata: dict | None, version: str) -> EncodingOptions:
    return EncodingOptions.parse(metadata or {}, parse_storage_version(version))


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("name", CHUNKED)
def test_our_chunks_are_read(tmp_path, name, version):
    array, metadata, _ = CHUNKED[name]
    encoded = choose.choose_chunks(block_of(array), options_of(metadata, version))
    field = pa.field("c", array.type)
    got = read_officially(tmp_path / "f.lance", field, mini_block(encoded, version=version), len(array), version=version)
    assert got.equals(array)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("name", ZIPPED)
def test_our_values_are_read(tmp_path, name, version):
    array, metadata, path = ZIPPED[name]
    encoded = choose.choose_values(block_of(array), options_of(metadata, version))
    assert path_of(encoded.encoding) == path
    got = read_officially(tmp_path / "f.lance", pa.field("c", array.type), full_zip(encoded), len(array), version=version)
    assert got.equals(array)


@pytest.mark.parametrize("kind", ["bitpack", "rle", "flat"])
@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_our_levels_are_read(tmp_path, kind, version):
    null = np.arange(N) % 7 == 0 if kind != "rle" else (np.arange(N) > 2000) & (np.arange(N) < 3000)
    array = pa.array(np.arange(N, dtype=np.int32), mask=null)
    encoded = choose.choose_chunks(block_of(array), options_of(None, version))
    levels = null.astype(np.uint16)
    chosen = choose.choose_levels(levels, encoded.counts, options_of(None, version))
    want = {"bitpack": OutOfLineBitpacking, "rle": Rle if version == "2.2" else OutOfLineBitpacking, "flat": Flat}[kind]
    if kind == "flat":
        from lance_core.codecs.choose import encode_plain

        chosen = encode_plain(levels, encoded.counts)
    assert isinstance(chosen.encoding, want)
    page = mini_block(encoded, version=version, levels=chosen)
    assert read_officially(tmp_path / "f.lance", pa.field("c", array.type), page, N, version=version).equals(array)


@pytest.mark.parametrize(
    ("array", "items"),
    [
        (strings(N, 5), Variable),
        (pa.array([f"a common prefix {i % 500}" for i in range(N)]), General),
        (pa.array([f"a common prefix {i % 500}" for i in range(N)], pa.large_utf8()), General),
        (pa.array(RNG.permutation(np.arange(20_000) % 1000) * 10**6), InlineBitpacking),
        (pa.array(RNG.integers(0, 1200, 20_000) * 10**6), OutOfLineBitpacking),
        (pa.array(RNG.choice(RNG.normal(size=300), N)), Flat),
        (pa.array(RNG.choice(np.round(RNG.normal(size=300)), N) * 1024), Flat),
    ],
)
@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_our_dictionaries_are_read(tmp_path, array, items, version):
    options = options_of(None, version)
    split = choose.choose_dictionary(block_of(array), options)
    if version == "2.1" and not isinstance(block_of(array), VariableBlock):
        assert split is None
        return
    assert isinstance(split, DictionaryBlock)
    assert plain(split) == expected(array)
    stored = choose.choose_block(split.items, options)
    if version == "2.2":
        assert isinstance(stored.encoding, items)
    page = mini_block(
        choose.choose_chunks(split.indices, options),
        version=version,
        dictionary=stored,
        num_dictionary_items=split.items.count,
    )
    got = read_officially(tmp_path / "f.lance", pa.field("c", array.type), page, len(array), version=version)
    assert got.equals(array)


def test_our_packed_structs_are_read(tmp_path):
    fields = [pa.field("x", pa.int16(), False), pa.field("y", pa.float64(), False)]
    columns = [pa.array(np.arange(N, dtype=np.int16)), pa.array(RNG.random(N))]
    array = pa.StructArray.from_arrays(columns, fields=fields)
    block = StructBlock(tuple(map(block_of, columns)), N)
    encoded = choose.choose_chunks(block, options_of(None, "2.2"))
    assert CODECS.num_buffers(encoded.encoding) == 1
    field = pa.field("c", array.type, metadata={"packed": "true"})
    got = read_officially(tmp_path / "f.lance", field, mini_block(encoded, version="2.2"), N, version="2.2")
    assert got.to_pylist() == array.to_pylist()


def test_our_variable_packed_structs_are_read(tmp_path):
    fields = [pa.field("x", pa.int32(), False), pa.field("s", pa.utf8(), False)]
    columns = [pa.array(np.arange(N, dtype=np.int32)), strings(N, 2500)]
    array = pa.StructArray.from_arrays(columns, fields=fields)
    encoded = choose.choose_values(StructBlock(tuple(map(block_of, columns)), N), options_of(None, "2.2"))
    assert isinstance(encoded.encoding, VariablePackedStruct)
    assert plain(CODECS.decode_values(encoded.encoding, encoded.payload)) == list(zip(*map(expected, columns)))
    field = pa.field("c", array.type, metadata={"packed": "true"})
    got = read_officially(tmp_path / "f.lance", field, full_zip(encoded), N, version="2.2")
    assert got.to_pylist() == array.to_pylist()


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("codec", [bitpack, rle])
def test_each_width_is_read(tmp_path, bits, codec):
    array = pa.array(np.repeat(RNG.integers(0, 100, N // 10), 10).astype(f"u{bits // 8}"))
    encoded = codec.encode_chunks(block_of(array))
    got = read_officially(
        tmp_path / "f.lance", pa.field("c", array.type), mini_block(encoded, version="2.2"), N, version="2.2"
    )
    assert got.equals(array)


def test_counts_are_those_of_the_official_writer(tmp_path):
    array = pa.array(RNG.integers(-(2**62), 2**62, N))
    (page,) = write_official(tmp_path / "t", array)
    ours = choose.choose_chunks(block_of(array), options_of(None, "2.2"))
    assert cut_mini_block(page).counts.tolist() == ours.counts.tolist()
