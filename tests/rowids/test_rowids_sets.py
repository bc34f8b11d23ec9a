"""Deletion vectors, sets of addresses, and the index from ids to addresses."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_core.errors import CorruptFileError
from lance_core.format.address import row_address
from lance_core.rowids.deletion import decode_deletions, deletion_vector, encode_deletions
from lance_core.rowids.index import MISSING, FragmentIds, build_row_id_index
from lance_core.rowids.selection import (
    AddressSet,
    address_set,
    decode_address_set,
    decode_address_treemap,
    encode_address_set,
    encode_address_treemap,
)
from lance_core.rowids.sequence import range_sequence, sequence_of


@pytest.mark.parametrize(("count", "kind"), [(0, "array"), (1, "array"), (4999, "array"), (5000, "bitmap")])
def test_deletion_files_change_form_at_5000_rows(count: int, kind: str) -> None:
    vector = deletion_vector(np.arange(count) * 3)
    chosen, data = encode_deletions(vector)
    assert chosen == kind
    assert decode_deletions(chosen, data) == vector


@given(st.sets(st.integers(0, 2**32 - 1), max_size=100), st.sampled_from(["array", "bitmap"]))
def test_deletion_round_trip(rows: set[int], kind: str) -> None:
    chosen, data = encode_deletions(deletion_vector(rows), kind=kind)  # type: ignore[arg-type]
    vector = decode_deletions(chosen, data)
    assert set(vector.offsets().tolist()) == rows
    assert len(vector) == len(rows)


def test_array_form_is_what_the_official_reader_expects() -> None:
    _, data = encode_deletions(deletion_vector([3, 1]))
    table = pa.ipc.open_file(data).read_all()
    assert table.schema == pa.schema([pa.field("row_id", pa.uint32(), nullable=False)])
    assert b"ARROW1" in data[:8]


def test_masks() -> None:
    vector = deletion_vector([0, 2])
    assert vector.live_mask(4).tolist() == [False, True, False, True]
    assert vector.live_offsets(4).tolist() == [1, 3]
    assert 2 in vector
    assert 1 not in vector
    assert (vector | deletion_vector([1])).offsets().tolist() == [0, 1, 2]
    assert vector.intersects(deletion_vector([2]))
    assert not vector.intersects(deletion_vector([1]))


@pytest.mark.parametrize(("num_rows", "num_deleted"), [(4, 1), (2, 2)])
def test_vectors_that_do_not_fit(num_rows: int, num_deleted: int) -> None:
    with pytest.raises(CorruptFileError):
        deletion_vector([0, 2]).check(num_rows=num_rows, num_deleted=num_deleted, what="x")


@pytest.mark.parametrize("kind", ["array", "bitmap"])
@given(noise=st.binary(max_size=100))
def test_damaged_deletion_files(kind: str, noise: bytes) -> None:
    with pytest.raises(CorruptFileError):
        decode_deletions(kind, noise + b"!")


def test_wrong_column_type() -> None:
    sink = pa.BufferOutputStream()
    table = pa.table({"row_id": pa.array([1], pa.int64())})
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(CorruptFileError):
        decode_deletions("array", sink.getvalue().to_pybytes())


ADDRESSES = st.sets(st.tuples(st.integers(0, 5), st.integers(0, 200)).map(lambda p: row_address(*p)), max_size=80)


@given(ADDRESSES, ADDRESSES)
def test_set_algebra(left: set[int], right: set[int]) -> None:
    a, b = address_set(left), address_set(right)
    assert set((a | b).to_array().tolist()) == left | right
    assert set((a & b).to_array().tolist()) == left & right
    assert set((a - b).to_array().tolist()) == left - right
    probe = np.array(sorted(left | right), dtype=np.uint64)
    assert a.mask(probe).tolist() == [int(item) in left for item in probe]
    assert set(decode_address_set(encode_address_set(a)).to_array().tolist()) == left
    assert set(decode_address_treemap(encode_address_treemap(a)).to_array().tolist()) == left


def test_whole_fragments() -> None:
    some = AddressSet({0: None, 1: address_set([row_address(1, 7)]).fragments[1]})
    assert some.mask(np.array([3, row_address(1, 7), row_address(1, 8), row_address(2, 0)], np.uint64)).tolist() == [
        1,
        1,
        0,
        0,
    ]
    assert (some & address_set([5, row_address(2, 1)])).to_array().tolist() == [5]
    assert (some | AddressSet({1: None})).fragments == {0: None, 1: None}
    assert (some - AddressSet({0: None})).to_array().tolist() == [row_address(1, 7)]
    assert some.resolved({0: 2}).to_array().tolist() == [0, 1, row_address(1, 7)]
    assert decode_address_set(encode_address_set(some)).fragments[0] is None
    assert some.restricted([1]).fragments.keys() == {1}
    for refused in (some.to_array, lambda: some - address_set([1]), lambda: encode_address_treemap(some)):
        with pytest.raises(ValueError, match="resolved"):
            refused()
    assert not address_set([])


def test_ids_are_found_where_they_went() -> None:
    index = build_row_id_index(
        [
            FragmentIds(0, range_sequence(0, 4), deletion_vector([2])),
            FragmentIds(4, sequence_of([2, 9])),
            FragmentIds(5, range_sequence(20, 3)),
            FragmentIds(6, range_sequence(50, 0)),
        ]
    )
    found = index.addresses_of(np.array([0, 1, 2, 3, 9, 20, 22, 23, 4, 2**63], dtype=np.uint64))
    expected = [0, 1, row_address(4, 0), 3, row_address(4, 1), row_address(5, 0), row_address(5, 2)]
    assert found.tolist() == [*expected, *[int(MISSING)] * 3]
    assert len(index) == 8


def test_an_id_that_lives_twice_is_damage() -> None:
    with pytest.raises(CorruptFileError, match="row id 2"):
        build_row_id_index([FragmentIds(0, range_sequence(0, 4)), FragmentIds(1, sequence_of([2]))])


def test_empty_index() -> None:
    index = build_row_id_index([])
    assert index.addresses_of(np.array([1], dtype=np.uint64)).tolist() == [int(MISSING)]


@given(st.permutations(list(range(40))), st.sets(st.integers(0, 39)), st.integers(1, 39))
def test_index_against_a_dictionary(ids: list[int], deleted: set[int], cut: int) -> None:
    parts = [(3, ids[:cut]), (8, ids[cut:])]
    fragments, expected = [], {}
    for fragment_id, own in parts:
        gone = {i for i in range(len(own)) if own[i] in deleted}
        fragments.append(FragmentIds(fragment_id, sequence_of(own), deletion_vector(gone) if gone else None))
        expected.update({item: row_address(fragment_id, i) for i, item in enumerate(own) if i not in gone})
    found = build_row_id_index(fragments).addresses_of(np.arange(41, dtype=np.uint64))
    assert found.tolist() == [expected.get(item, int(MISSING)) for item in range(41)]
