"""FSST: a symbol table by hand, training, round trips, damage."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_core.codecs import fsst, variable
from lance_core.codecs.blocks import VariableBlock
from lance_core.codecs.encoded import EncodedChunks
from lance_core.codecs.registry import CODECS
from lance_core.errors import CorruptFileError
from lance_core.format.encoding import Flat, Fsst, Variable
from lance_core.kernels import fsst as kernels
from tests.codecs.codec_contract import assert_chunks_round_trip, assert_damage_is_reported, plain, variable_blocks

PLAIN = Variable(Flat(32))


def block_of(values: list[bytes]) -> VariableBlock:
    return VariableBlock(np.cumsum([0, *map(len, values)]).astype(np.int32), np.frombuffer(b"".join(values), np.uint8))


def table_of(symbols: list[bytes]) -> bytes:
    numbers = np.array([int.from_bytes(symbol, "little") for symbol in symbols], np.uint64)
    return fsst.write_table(numbers, np.array([len(symbol) for symbol in symbols]))


def test_decodes_a_table_by_hand():
    table = table_of([b"http://", b"www.", b".com"])
    assert len(table) == 2312
    got = CODECS.decode_values(Fsst(table, PLAIN), block_of([b"\x00\x01\xffx\x02", b"", b"\x02\x02"]))
    assert plain(got) == [b"http://www.x.com", b"", b".com.com"]


def test_switched_off_table_means_plain_bytes():
    table = bytearray(table_of([b"ab"]))
    table[3] = 0
    assert plain(CODECS.decode_values(Fsst(bytes(table), PLAIN), block_of([b"\x00"]))) == [b"\x00"]


@pytest.mark.parametrize(
    ("table", "codes"),
    [
        (b"", b"\x00"),
        (b"\0" * 2312, b"\x00"),
        (table_of([b"ab"]), b"\x01"),
        (table_of([b"ab"]), b"\x00\xff"),
        (table_of([b"ab"])[:12], b"\x00"),
        (table_of([b"ab"])[:16] + b"\x09" + b"\0" * 2295, b"\x00"),
        (table_of([b"ab"])[:16] + b"\0" * 2296, b"\x00"),
    ],
)
def test_damaged_tables_and_codes(table, codes):
    with pytest.raises(CorruptFileError, match="FSST"):
        CODECS.decode_values(Fsst(table, PLAIN), block_of([codes]))


@given(st.lists(st.text(st.sampled_from("abcdeé \0"), max_size=40), min_size=1, max_size=400), st.integers(0, 9))
def test_round_trip_of_text(values, gap):
    block = block_of([value.encode() for value in values] * 5)
    found = fsst.encode(block)
    if found is None:
        return
    table, codes = found
    inner = variable.encode_chunks(codes)
    encoded = EncodedChunks(Fsst(table, inner.encoding), inner.counts, inner.buffers)
    assert_chunks_round_trip(block, encoded, gap=gap)
    assert_damage_is_reported(encoded, np.random.default_rng(gap), rounds=4)


@given(variable_blocks(max_count=300))
@settings(max_examples=30)
def test_any_bytes_survive_a_table_trained_on_them(block):
    padded = np.append(block.data, np.zeros(8, np.uint8))
    symbols, lengths, tables = kernels.train(padded, block.offsets.astype(np.int64))
    assert len(symbols) <= 255
    codes = fsst._run(padded, block.offsets, tables)
    got = CODECS.decode_values(Fsst(fsst.write_table(symbols, lengths), Variable(codes_width(block))), codes)
    assert plain(got) == plain(block)
    assert got.offsets.dtype == block.offsets.dtype


def codes_width(block: VariableBlock) -> Flat:
    return Flat(block.offsets.dtype.itemsize * 8)


def test_urls_shrink_and_noise_is_left_alone():
    urls = block_of([b"https://www.example.com/index%d.html?user=%d" % (i % 100, i) for i in range(5000)])
    _, codes = fsst.encode(urls)
    assert len(codes.data) < len(urls.data) / 3
    rng = np.random.default_rng(0)
    assert fsst.encode(block_of([rng.bytes(20) for _ in range(5000)])) is None
    assert fsst.encode(block_of([b""] * 10)) is None


def test_sample_of_few_long_values_is_bounded():
    block = block_of([b"0123456789abcdef" * 10_000] * 8)
    data, offsets = fsst._sample(block)
    assert len(data) <= 3 * fsst.SAMPLE_BYTES
    assert int(offsets[-1]) == len(data)
    _, codes = fsst.encode(block)
    assert len(codes.data) < len(block.data) / 4


@pytest.mark.parametrize("escapes", [False, True])
@pytest.mark.parametrize("damaged", [False, True])
def test_every_way_of_spelling_gives_the_same(escapes: bool, damaged: bool) -> None:
    """Short ones by plain Python, more by Arrow, those with escapes by numpy: the same strings, or a refusal."""
    rng = np.random.default_rng(31)
    words = [bytes(rng.integers(97, 110, int(size)).astype(np.uint8)) for size in rng.integers(1, 9, 60)]
    symbols = np.array([int.from_bytes(word, "little") for word in words], np.uint64)
    table = fsst.write_table(symbols, np.array([len(word) for word in words], np.int64))
    encoding = Fsst(table, Variable(Flat(32)))
    for count in (1, 3, 40, 400):
        strings = [bytes(rng.integers(0, 60, int(size)).astype(np.uint8)) for size in rng.integers(0, 60, count)]
        if escapes:
            strings = [text[:4] + b"\xff\xff" + text[4:] + b"\xff\x07" for text in strings]
        if damaged:
            strings[count // 2] += bytes([60 + int(rng.integers(0, 196))])
        expected = [_spelled(text, words) for text in strings]
        block = block_of(strings)
        whole = VariableBlock(block.offsets + 5, np.append(np.zeros(5, np.uint8), block.data))
        ways = [
            lambda strings=strings: CODECS.decode_payloads([encoding], [len(strings)], strings),
            lambda strings=strings: [CODECS.decode_payloads([encoding], [1], [text])[0] for text in strings],
            lambda block=block: plain(CODECS.decode_values(encoding, block)),
            lambda whole=whole: plain(CODECS.decode_values(encoding, whole)),
        ]
        for way in ways:
            if None in expected:
                with pytest.raises(CorruptFileError):
                    way()
            else:
                assert way() == expected


def _spelled(codes: bytes, words: list[bytes]) -> bytes | None:
    out, at = b"", 0
    while at < len(codes):
        if codes[at] == 255:
            if at + 1 == len(codes):
                return None
            out += codes[at + 1 : at + 2]
            at += 2
        elif codes[at] < len(words):
            out += words[codes[at]]
            at += 1
        else:
            return None
    return out
