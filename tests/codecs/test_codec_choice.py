"""The writer's rules: what is chosen for which data, that it decodes, and the options from field metadata."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_core.codecs import choose
from lance_core.codecs.blocks import FixedBlock, Pieces, VariableBlock
from lance_core.codecs.choose import EncodingOptions, has_many_distinct
from lance_core.codecs.registry import CODECS
from lance_core.errors import InputError, UnsupportedEncodingError
from lance_core.format.encoding import (
    Constant,
    Delta,
    Dictionary,
    Flat,
    Fsst,
    General,
    InlineBitpacking,
    Rle,
    Variable,
)
from lance_core.format.version import FileVersion
from tests.codecs.codec_contract import assert_chunks_round_trip, fixed_blocks, plain, spread, variable_blocks

RNG = np.random.default_rng(3)
OPTIONS = st.builds(
    EncodingOptions,
    version=st.sampled_from([FileVersion.V2_1, FileVersion.V2_2]),
    compression=st.sampled_from([None, "none", "zstd", "lz4", "fsst"]),
    bss=st.sampled_from(["on", "off", "auto"]),
    max_chunk_values=st.sampled_from([64, 1024, 4096]),
)


def numbers(values: np.ndarray) -> FixedBlock:
    return FixedBlock(values.itemsize * 8, np.ascontiguousarray(values).view(np.uint8), len(values))


def strings(values: list[bytes]) -> VariableBlock:
    return VariableBlock(np.cumsum([0, *map(len, values)]).astype(np.int32), np.frombuffer(b"".join(values), np.uint8))


@pytest.mark.parametrize(
    ("block", "options", "kind"),
    [
        (numbers(RNG.integers(0, 99, 5000)), {}, InlineBitpacking),
        (numbers(RNG.integers(-99, 99, 5000)), {}, Flat),
        (numbers(np.repeat(np.arange(50), 100)), {}, Rle),
        (numbers(np.repeat(np.arange(50), 100)), {"rle_threshold": 0.001}, InlineBitpacking),
        (numbers(RNG.integers(0, 99, 5000)), {"compression": "none"}, Flat),
        (numbers(RNG.random(5000)), {}, Flat),
        (numbers(np.sin(np.arange(5000) / 100)), {"compression": "zstd"}, General),
        (numbers(np.array([1, 2, 3])), {}, Flat),
        (strings([b"key%06d" % i for i in range(5000)]), {}, Fsst),
        (strings([b"key%06d" % i for i in range(5000)]), {"compression": "none"}, Variable),
        (strings([b"key%06d" % i for i in range(5000)]), {"compression": "zstd"}, General),
        (strings([b"k%d" % i for i in range(1000)]), {}, Variable),
        (strings([b"ab%d" % (i % 100) for i in range(1000)]), {"compression": "fsst"}, Fsst),
        (strings([RNG.bytes(12) for i in range(5000)]), {}, Variable),
    ],
)
def test_kinds(block, options, kind):
    encoded = choose.choose_chunks(block, EncodingOptions(**options))
    assert isinstance(encoded.encoding, kind)
    assert_chunks_round_trip(block, encoded)


@given(st.one_of(fixed_blocks(), variable_blocks()), OPTIONS)
@settings(max_examples=80)
def test_every_choice_decodes(block, options):
    encoded = choose.choose_chunks(block, options)
    assert_chunks_round_trip(block, encoded, gap=3)
    assert all((pieces.sizes < 32_768 - 64).all() for pieces in encoded.buffers)
    if len(encoded.counts) > 1:
        assert (encoded.counts <= options.max_chunk_values).all()
    by_value = choose.choose_values(block, options)
    assert plain(CODECS.decode_values(by_value.encoding, by_value.payload)) == plain(block)
    stored = choose.choose_block(block, options)
    piece = Pieces.whole(np.frombuffer(stored.data, np.uint8))
    assert plain(CODECS.decode_block(stored.encoding, piece, np.array([block.count]))) == plain(block)
    split = choose.choose_dictionary(block, options)
    assert split is None or plain(split) == plain(block)


@given(
    st.lists(st.integers(0, 3000), min_size=1, max_size=6),
    st.integers(0, 5),
    st.sampled_from([1, 2, 50]),
    OPTIONS,
    st.integers(0, 99),
)
def test_levels(counts, largest, run, options, seed):
    rng = np.random.default_rng(seed)
    total = sum(counts)
    levels = np.repeat(rng.integers(0, largest + 1, total // run + 1), run)[:total].astype(np.uint16)
    chosen = choose.choose_levels(levels, np.array(counts), options)
    assert options.version >= FileVersion.V2_2 or not isinstance(chosen.encoding, Rle)
    got = CODECS.decode_block(chosen.encoding, spread(chosen.pieces, 2), np.array(counts))
    assert (got.data.view(np.uint16) == levels).all()


@pytest.mark.parametrize(
    ("block", "value"),
    [
        (numbers(np.full(5000, 7)), (7).to_bytes(8, "little")),
        (numbers(np.append(np.full(5000, 7), 8)), None),
        (numbers(np.array([7, 8, 7])), None),
        (numbers(np.array([], np.int64)), None),
        (numbers(np.array([5], np.uint8)), b"\5"),
        (FixedBlock(1, np.array([0xFF], np.uint8), 3), b"\1"),
        (FixedBlock(1, np.array([0xF8], np.uint8), 3), b"\0"),
        (FixedBlock(1, np.array([0xFA], np.uint8), 3), None),
        (strings([b"ab"] * 100), b"ab"),
        (strings([b""] * 100), b""),
        (strings([b"ab", b"ab", b"aa", b"ab"]), None),
        (strings([b"ab", b"a", b"bab"]), None),
        (strings([]), None),
    ],
)
def test_constants(block, value):
    assert choose.is_constant(block) == value


def test_dictionaries_of_chance_collisions():
    values = [b"%d" % (i * i % 997) for i in range(3000)] + [b"", b"\0", b"\0\0"] * 50
    split = choose.choose_dictionary(strings(values), EncodingOptions(dict_size_ratio=2.0))
    assert split is not None
    assert plain(split) == values
    assert len(set(plain(split.items))) == split.items.count


@pytest.mark.parametrize(
    ("block", "options"),
    [
        (strings([b"a"] * 50), {}),
        (strings([b"%d" % i for i in range(1000)]), {}),
        (numbers(np.arange(1000)), {}),
        (numbers(RNG.integers(0, 9, 1000)), {"version": FileVersion.V2_1}),
        (numbers(RNG.integers(0, 9, 1000).astype(np.int32)), {}),
        (strings([b"a", b"b"] * 500), {"compression": "none"}),
        (strings([b"aaaaaaaaaaaaaaaa%d" % (i % 30) for i in range(100)]), {"dict_divisor": 5}),
    ],
)
def test_no_dictionary(block, options):
    assert choose.choose_dictionary(block, EncodingOptions(**options)) is None


def test_options_from_metadata():
    metadata = {
        "lance-encoding:compression": b"ZSTD",
        "lance-encoding:compression-level": "7",
        "lance-encoding:rle-threshold": "0.25",
        "lance-encoding:bss": "on",
        "lance-encoding:dict-divisor": "4",
        "lance-encoding:minichunk-size": "1000000",
        "lance-encoding:structural-encoding": "fullzip",
        "lance-encoding:packed": "true",
        "lance-encoding:unheard-of": "x",
        "comment": "y",
    }
    assert EncodingOptions.parse(metadata, FileVersion.V2_1) == EncodingOptions(
        version=FileVersion.V2_1, compression="zstd", compression_level=7, rle_threshold=0.25, bss="on", dict_divisor=4,
        chunk_bytes=16_384, structural="fullzip", packed=True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("key", "value"), [("compression", "brotli"), ("compression-level", "x"), ("bss", "yes"), ("dict-divisor", "0")]
)
def test_bad_metadata_is_the_callers_error(key, value):
    with pytest.raises(InputError, match=key):
        EncodingOptions.parse({f"lance-encoding:{key}": value})


@pytest.mark.parametrize("encoding", [Constant(b"x"), Dictionary(Flat(8), Flat(8), 1), Delta(64, 0, Flat(8))])
def test_encodings_without_codec_are_refused_by_name(encoding):
    with pytest.raises(UnsupportedEncodingError, match=type(encoding).__name__):
        CODECS.decode_block(encoding, Pieces.whole(np.zeros(8, np.uint8)), np.array([1]))


@pytest.mark.parametrize("make", [lambda i: numbers(i), lambda i: strings([b"value %d" % j for j in i.tolist()])])
def test_samples_only_end_the_search_when_it_is_hopeless(make):
    count, rng = 40_000, np.random.default_rng(5)
    assert has_many_distinct(make(np.arange(count)), 1000)
    assert has_many_distinct(make(rng.integers(0, 10**9, count)), 20_000)
    assert not has_many_distinct(make(rng.integers(0, 500, count)), 1000)
    assert not has_many_distinct(make(np.repeat(np.arange(count // 8), 8)), 10_000)
    assert not has_many_distinct(make(np.arange(count) % 5000), 10_000)
    assert not has_many_distinct(make(np.arange(100)), 1)
