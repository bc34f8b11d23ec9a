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
        entries = [encode_fragment(item) for item in fragments]
        listed = FragmentList.of_bytes(entries, WireFragments())
        expected = sum(item.num_rows for item in fragments)
        assert list(listed.ids) == [item.id for item in fragments]
        assert listed.num_rows == expected
        assert list(listed.row_counts) == [item.num_rows for item in fragments]
        listed = FragmentList.of_bytes(entries, WireFragments())
        _ = listed[0], listed[count // 2]  # decoded ones are counted as well
        assert listed.num_rows == expected
        assert list(listed.row_counts) == [item.num_rows for item in fragments]


@pytest.mark.parametrize("order", ["ascending", "gaps", "shuffled"])
def test_a_fragment_is_found_by_its_id(order: str) -> None:
    rng = random.Random(7)
    numbers = list(range(300)) if order == "ascending" else sorted(rng.sample(range(5000), 300))
    if order == "shuffled":
        rng.shuffle(numbers)
    entries = [encode_fragment(_fragment(number, rng)) for number in numbers]
    for number in [*numbers[::17], -1, 5001, 1 << 40, next(it for it in range(5000) if it not in numbers)]:
        listed = FragmentList.of_bytes(entries, WireFragments())
        found = listed.get(number)
        assert (None if found is None else found.id) == (number if number in numbers else None)
        if order != "shuffled" and found is not None:
            assert 300 - listed._decoded.count(None) <= 10  # the others were not looked at


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
