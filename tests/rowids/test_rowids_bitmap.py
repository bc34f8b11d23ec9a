"""Roaring bytes: round trips, the forms the official library writes, and damage of every kind."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_core.errors import CorruptFileError
from lance_core.rowids.bitmap import (
    BitMap,
    bitmap_array,
    bitmap_of,
    decode_address_map,
    decode_bitmap,
    decode_treemap,
    encode_address_map,
    encode_bitmap,
    encode_treemap,
)

EMPTY = bytes.fromhex("3a30000000000000")
RUNS = BitMap(range(100, 70_000)) | BitMap([80_000, 80_002]) | BitMap(range(1 << 20, (1 << 20) + 60_000, 2))
SETS = st.one_of(
    st.sets(st.integers(0, 2**32 - 1), max_size=60),
    st.tuples(st.integers(0, 2**20), st.integers(1, 9000)).map(lambda r: set(range(r[0], r[0] + r[1]))),
)


@given(SETS, st.booleans())
def test_bitmap_round_trip(values: set[int], runs: bool) -> None:
    data = encode_bitmap(values, runs=runs)
    assert set(decode_bitmap(data)) == values
    assert runs or not values or data[:2] == b"\x3a\x30"


def test_empty_bitmap() -> None:
    assert encode_bitmap([]) == EMPTY
    assert len(decode_bitmap(EMPTY)) == 0


def test_run_containers_are_undone() -> None:
    plain = encode_bitmap(RUNS)
    assert plain[:2] == b"\x3a\x30"
    assert decode_bitmap(plain) == RUNS == decode_bitmap(encode_bitmap(RUNS, runs=True))
    assert len(encode_bitmap(RUNS, runs=True)) < len(plain)


def test_array_conversions() -> None:
    values = np.array([5, 1, 70_000], dtype=np.int64)
    assert bitmap_array(bitmap_of(values)).tolist() == [1, 5, 70_000]
    assert bitmap_array(BitMap()).dtype == np.uint32


@given(st.dictionaries(st.integers(0, 2**32 - 1), st.sets(st.integers(0, 2**32 - 1), min_size=1, max_size=20), max_size=5))
def test_treemap_round_trip(parts: dict[int, set[int]]) -> None:
    found = decode_treemap(encode_treemap({key: BitMap(part) for key, part in parts.items()}))
    assert {key: set(part) for key, part in found.items()} == parts


@given(st.dictionaries(st.integers(0, 2**32 - 1), st.none() | st.sets(st.integers(0, 2**32 - 1), min_size=1), max_size=5))
def test_address_map_round_trip(parts: dict[int, set[int] | None]) -> None:
    data = encode_address_map({key: None if part is None else BitMap(part) for key, part in parts.items()})
    found = decode_address_map(data)
    assert {key: None if part is None else set(part) for key, part in found.items()} == parts


@pytest.mark.parametrize("runs", [False, True])
def test_every_truncation_is_damage(runs: bool) -> None:
    data = encode_bitmap(BitMap(range(0, 3000, 2)) | BitMap(range(70_000, 70_500)), runs=runs)
    for size in range(len(data)):
        with pytest.raises(CorruptFileError):
            decode_bitmap(data[:size])
    with pytest.raises(CorruptFileError):
        decode_bitmap(data + b"\0")


@settings(max_examples=400)
@given(st.data(), st.booleans())
def test_flipped_bytes_never_crash(data: st.DataObject, runs: bool) -> None:
    damaged = bytearray(encode_bitmap(RUNS, runs=runs))
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, min(len(damaged), 120) - 1))] = data.draw(st.integers(0, 255))
    try:
        values = decode_bitmap(bytes(damaged))
    except CorruptFileError:
        return
    assert len(values) == len(list(values))


@given(st.binary(max_size=200))
def test_noise_is_refused_or_read(noise: bytes) -> None:
    for decode in (decode_bitmap, decode_treemap, decode_address_map):
        try:
            decode(noise)
        except CorruptFileError:
            continue


@pytest.mark.parametrize("decode", [decode_treemap, decode_address_map])
def test_absurd_counts_are_refused_before_anything_is_made(decode) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(CorruptFileError):
        decode(b"\xff" * 8)
