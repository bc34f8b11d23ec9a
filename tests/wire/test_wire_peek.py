"""Numbers taken out of many fragments at once are those of each fragment decoded."""

from __future__ import annotations

import random

import pytest

from lance_core.errors import CorruptFileError
from lance_core.format.fragment import DataFile, DeletionFile, ExternalFile, Fragment
from lance_core.format.fragments import FragmentList
from lance_core.rowids.walk import encode_field
from lance_core.wire.fragments import WireFragments, encode_fragment


def _fragment(number: int, rng: random.Random) -> Fragment:
    file = DataFile("a" * rng.choice([5, 60, 300]), (0, 1), (0, 1), 2, 2, rng.randrange(1 << 50), rng.choice([None, 3]))
    rows = rng.choice([1, 127, 128, 20_000, 1 << 31, (1 << 32) - 1])
    gone = DeletionFile("bitmap", 300, 1 << 60, rng.randrange(1, min(rows, 200) + 1)) if rng.random() < 0.4 else None
    ids = rng.choice([None, b"abc", ExternalFile("x", 1, 2)])
    return Fragment(
        number, (file,) * rng.randrange(1, 4), rows, gone, row_ids=ids, unknown=rng.choice([b"", b"\xf8\x7f\x01"])
    )


@pytest.mark.parametrize("count", [3, 500])
def test_rows_of_many_fragments(count: int) -> None:
    rng = random.Random(count)
    for _ in range(10):
        fragments = [_fragment(number, rng) for number in range(count)]
        listed = FragmentList.of_bytes([encode_fragment(item) for item in fragments], WireFragments())
        expected = sum(item.num_rows for item in fragments)
        assert list(listed.ids) == [item.id for item in fragments]
        assert listed.num_rows == expected
        assert list(listed.row_counts) == [item.num_rows for item in fragments]
        _ = listed[0], listed[count // 2]  # decoded ones are counted as well
        assert listed.num_rows == expected
        assert list(listed.row_counts) == [item.num_rows for item in fragments]


def test_the_last_of_a_repeated_field_counts() -> None:
    entry = encode_field(4, 100) + encode_field(4, 7)
    assert WireFragments().peek_num_rows([entry] * 100) == [7] * 100


def test_damaged_entries_are_told() -> None:
    rng = random.Random(3)
    whole = [encode_fragment(_fragment(number, rng)) for number in range(200)]
    for cut in (1, 5, 20):
        entries = [*whole, whole[7][:-cut] if cut > 1 else b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"]
        try:
            WireFragments().peek_num_rows(entries)
        except CorruptFileError:
            continue
    with pytest.raises(CorruptFileError):
        WireFragments().peek_num_rows([*whole, b"\x12\x20abc"])
    with pytest.raises(CorruptFileError):
        WireFragments().peek_num_rows([*whole, b"\x20" + b"\xff" * 11])
