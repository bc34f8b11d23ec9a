"""Row id sequences: round trips, the cheapest encoding, and the protobuf classes as judge of the hand-written bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_core.errors import CorruptFileError, InputError
from lance_core.rowids.message import decode_row_ids, decode_versions, encode_row_ids, encode_versions
from lance_core.rowids.segment import Array, IdRange, RangeWithBitmap, RangeWithHoles, SortedArray, segment_of
from lance_core.rowids.sequence import RowIdSequence, concat_sequences, range_sequence, sequence_of
from lance_core.rowids.versions import VersionRun, VersionSequence, constant_versions, versions_of
from lance_core.wire.pb import rowids_pb2

U64 = st.integers(0, 2**64 - 1)
IDS = st.one_of(
    st.lists(U64, max_size=50),
    st.lists(st.integers(0, 300), max_size=300, unique=True),
    st.lists(st.integers(0, 5000), max_size=100, unique=True).map(sorted),
    st.tuples(st.integers(0, 2**40), st.integers(0, 500), st.integers(1, 7)).map(
        lambda r: [i for i in range(r[0], r[0] + r[1]) if i % 7 != r[2]]
    ),
)


@given(IDS)
def test_sequence_round_trip(values: list[int]) -> None:
    sequence = sequence_of(values)
    again = decode_row_ids(encode_row_ids(sequence))
    assert again.to_array().tolist() == values
    assert len(again) == len(sequence) == len(values)
    assert again == sequence


@given(IDS)
def test_bytes_are_the_messages_of_the_format(values: list[int]) -> None:
    data = encode_row_ids(sequence_of(values))
    message = rowids_pb2.RowIdSequence.FromString(data)
    assert message.SerializeToString(deterministic=True) == data
    assert len(message.segments) == len(sequence_of(values).segments)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (range(5, 50), IdRange),
        ([i for i in range(1000) if i != 500], RangeWithHoles),
        (range(0, 1000, 2), RangeWithBitmap),
        ([1, 1000, 10**6, 10**9], SortedArray),
        ([3, 1, 2], Array),
        ([], IdRange),
        ([7], IdRange),
    ],
)
def test_cheapest_segment(values: list[int], kind: type) -> None:
    segment = segment_of(np.array(values, dtype=np.uint64))
    assert isinstance(segment, kind)
    assert segment.to_array().tolist() == list(values)
    assert len(segment) == len(values)


def test_bitmap_bits_run_from_the_least_significant() -> None:
    bits = rowids_pb2.U64Segment.RangeWithBitmap(start=100, end=106, bitmap=b"\x2b")
    data = segment(range_with_bitmap=bits)
    assert decode_row_ids(data).to_array().tolist() == [100, 101, 103, 105]


def test_bytes_that_the_official_library_wrote() -> None:
    # A compacted fragment of a table with updates and deletes: bitmaps, ranges and lists in one sequence.
    data = (
        b"\n\x08\x1a\x06\x10\n\x1a\x02\xf7\x03\n\n\x1a\x08\x08\x14\x10\x1e\x1a\x02\xdf\x03\n\x06\n\x04\x08\x1f\x10d"
        b'\n\x0c"\n\n\x08\x08\x19\x12\x04\x00\x00d\x00\n\x0e"\x0c\n\n\x08\x1e\x12\x06\x00\x00d\x00\xaa\x00'
    )
    ids = decode_row_ids(data).to_array().tolist()
    expected = [i for i in range(10) if i != 3] + [i for i in range(20, 30) if i != 25] + list(range(31, 100))
    assert ids == [*expected, 25, 125, 30, 130, 200]


def test_sequences_are_cut_and_joined() -> None:
    sequence = concat_sequences([range_sequence(10, 100), sequence_of([5, 3])])
    assert [type(segment) for segment in sequence.segments] == [IdRange, Array]
    assert sequence.slice(98, 4).to_array().tolist() == [108, 109, 5, 3]
    assert sequence.select(np.array([101, 0])).to_array().tolist() == [3, 10]
    assert concat_sequences([]) == RowIdSequence(())
    with pytest.raises(InputError):
        sequence.slice(100, 3)


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 2**63)), max_size=20))
def test_versions_round_trip(runs: list[tuple[int, int]]) -> None:
    values = [version for length, version in runs for _ in range(length)]
    sequence = versions_of(values)
    again = decode_versions(encode_versions(sequence))
    assert again == sequence
    assert again.to_array().tolist() == values
    assert len(again) == len(values)
    message = rowids_pb2.RowDatasetVersionSequence.FromString(encode_versions(sequence))
    assert len(message.runs) == len(sequence.runs)


def test_only_the_length_of_a_version_span_counts() -> None:
    message = rowids_pb2.RowDatasetVersionSequence()
    run = message.runs.add(version=7)
    run.span.range.CopyFrom(rowids_pb2.U64Segment.Range(start=10, end=100))
    assert decode_versions(message.SerializeToString()) == VersionSequence((VersionRun(90, 7),))
    assert constant_versions(3, 2).to_array().tolist() == [2, 2, 2]


def segment(**arm: object) -> bytes:
    return rowids_pb2.RowIdSequence(segments=[rowids_pb2.U64Segment(**arm)]).SerializeToString()


MESSAGE = rowids_pb2.U64Segment
ARRAY = rowids_pb2.EncodedU64Array
DAMAGED = {
    "no encoding": b"\x0a\x00",
    "a number for a segment": b"\x08\x05",
    "truncated": b"\x0a\x04\x0a\x02",
    "backwards": segment(range=MESSAGE.Range(start=9, end=3)),
    "absurd": segment(range=MESSAGE.Range(start=0, end=2**60)),
    "bitmap too short": segment(range_with_bitmap=MESSAGE.RangeWithBitmap(start=0, end=99, bitmap=b"\1")),
    "hole outside": segment(
        range_with_holes=MESSAGE.RangeWithHoles(
            start=0, end=9, holes=ARRAY(u16_array=ARRAY.U16Array(base=9, offsets=b"\0\0"))
        )
    ),
    "odd bytes": segment(array=ARRAY(u32_array=ARRAY.U32Array(offsets=b"123"))),
    "not sorted": segment(sorted_array=ARRAY(u16_array=ARRAY.U16Array(offsets=b"\2\0\1\0"))),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damage(name: str) -> None:
    with pytest.raises(CorruptFileError):
        decode_row_ids(DAMAGED[name])


@given(st.binary(max_size=80))
def test_noise(noise: bytes) -> None:
    for decode in (decode_row_ids, decode_versions):
        try:
            decode(noise)
        except CorruptFileError:
            continue
