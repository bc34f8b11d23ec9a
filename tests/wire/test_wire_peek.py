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


def _versions_decoded(entries: list[bytes]) -> set[tuple[int, int]]:
    files = [file for entry in entries for file in WireFragments().decode(entry).files]
    return {(file.file_major_version, file.file_minor_version) for file in files}


def _plain(number: int, version: tuple[int, int], **more: object) -> bytes:
    file = DataFile("a" * 20 + ".lance", (0, 1), (0, 1), *version, 1000 + number, None)
    return encode_fragment(Fragment(number, (file,), 1 + number, **more))  # type: ignore[arg-type]


@pytest.mark.parametrize("place", [0, 1, 150, 399])
def test_one_file_of_another_version_is_found_among_many(place: int) -> None:
    entries = [_plain(number, (2, 0) if number == place else (2, 1)) for number in range(400)]
    assert WireFragments().peek_versions(entries) == {(2, 0), (2, 1)} == _versions_decoded(entries)


def test_bytes_that_look_like_a_version_are_not_taken_for_one() -> None:
    alike = encode_field(4, 2) + encode_field(5, 1)  # these bytes are a version in a file, and a name in a path
    old = encode_field(1, alike) + encode_field(4, 0) + encode_field(5, 3)
    new = encode_field(1, b"wxyz") + encode_field(4, 2) + encode_field(5, 1)
    entries = [encode_field(1, 5) + encode_field(2, old if number == 77 else new) for number in range(200)]
    assert WireFragments().peek_versions(entries) == {(0, 3), (2, 1)} == _versions_decoded(entries)


def test_fields_that_trade_places_are_no_common_shape() -> None:
    ahead = encode_field(2, encode_field(4, 2) + encode_field(5, 1)) + encode_field(4, 7)
    behind = encode_field(4, 7) + encode_field(2, encode_field(5, 2) + encode_field(4, 1))
    entries = [ahead] * 99 + [behind] * 99
    assert WireFragments().peek_versions(entries) == {(2, 1), (1, 2)} == _versions_decoded(entries)


def test_the_last_of_a_repeated_version_counts() -> None:
    file = encode_field(4, 2) + encode_field(5, 1) + encode_field(5, 0)
    entries = [encode_field(2, file) + encode_field(4, number) for number in range(100)]
    assert WireFragments().peek_versions(entries) == {(2, 0)} == _versions_decoded(entries)


@pytest.mark.parametrize("seed", range(20))
def test_versions_of_many_fragments(seed: int) -> None:
    rng = random.Random(seed)
    versions = [(0, 3), (2, 0), (2, 1), (2, 300), (70_000, 2)][: rng.randrange(1, 6)]
    entries = []
    for number in range(300):
        if rng.random() < seed / 20:
            made = _fragment(number, rng)
            files = [DataFile(it.path, it.fields, it.column_indices, *rng.choice(versions), 7, None) for it in made.files]
            entries.append(encode_fragment(Fragment(number, tuple(files), made.physical_rows, made.deletion_file)))
        else:
            entries.append(_plain(rng.randrange(1 << 32), rng.choice(versions)))
    assert WireFragments().peek_versions(entries) == _versions_decoded(entries)


def test_damage_in_one_entry_is_found_while_versions_are_read() -> None:
    whole = [_plain(number, (2, 1)) for number in range(200)]
    for damaged in (whole[150][:-1] + b"\xff", whole[7][:9] + b"\xff" + whole[7][10:-3], b"\x12\x20abc"):
        with pytest.raises(CorruptFileError):
            WireFragments().peek_versions([*whole[:100], damaged, *whole[100:]])
