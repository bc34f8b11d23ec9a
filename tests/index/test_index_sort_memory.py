"""What sorting for an index holds, counted in allocations; and the pages of a B-tree whose rows come in any parts."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_core.index.base import ID, VALUE
from lance_core.index.scalar import btree
from lance_core.index.scalar.external_sort import in_order, order_of
from lance_core.kernels.sort import order_of_words
from lance_core.scratch import BatchFile

COUNT = 400_000
RNG = np.random.default_rng(0)
SHUFFLED = RNG.permutation(COUNT)
LAYOUT = pa.schema([pa.field("values", pa.int64()), pa.field("ids", pa.uint64(), nullable=False)])


def peak(work: Callable[[], object]) -> float:
    """The most that numpy and Python hold while something is done, in arrays of eight bytes a row."""
    work()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / (8 * COUNT)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("values", "most"),
    [
        (pa.array(SHUFFLED), 1.2),
        (pa.array(SHUFFLED.astype(np.uint32)), 1.2),
        (pa.array(RNG.integers(-(2**62), 2**62, COUNT)), 4.2),
        (pa.array(RNG.normal(size=COUNT)), 4.2),
        (pa.array([f"row {number}" for number in SHUFFLED]), 6.0),
        (pa.array([f"the name of row {number}" for number in SHUFFLED]), 9.0),
    ],
    ids=["int64", "uint32", "wide int64", "float64", "texts", "longer texts"],
)
def test_an_order_takes_few_arrays_beside_its_own(values: Any, most: float) -> None:
    assert peak(lambda: order_of(values)) <= most


def test_keys_are_overwritten_only_where_that_was_allowed() -> None:
    for keys in (SHUFFLED.astype(np.uint64), RNG.integers(0, 2**64, 1000, np.uint64)):
        before = keys.copy()
        expected = np.argsort(keys, kind="stable")
        assert (order_of_words(keys) == expected).all()
        assert (keys == before).all()
        assert (order_of_words(keys, may_overwrite=True) == expected).all()


def test_an_array_that_is_sorted_is_left_as_it_was() -> None:
    for values in (pa.array(SHUFFLED), pa.array(SHUFFLED.astype(np.uint64)), pa.array(SHUFFLED, pa.timestamp("us"))):
        before = values.to_pylist()
        order_of(values)
        assert values.to_pylist() == before


def test_batches_are_given_up_before_they_are_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []
    batches: list[pa.RecordBatch] = []

    def watched(values: Any) -> Any:
        held.append(pa.total_allocated_bytes())
        return order_of(values)

    monkeypatch.setattr("lance_core.index.scalar.external_sort.order_of", watched)
    before = pa.total_allocated_bytes()

    def rows() -> Any:
        for start in range(0, COUNT, 1000):
            values = pa.array([f"value {number}" for number in range(start, start + 1000)])
            yield pa.RecordBatch.from_arrays([values, pa.array(range(start, start + 1000), pa.uint64())], [VALUE, ID])

    parts = [*in_order(rows(), pa.string(), limit=1 << 40)]
    (values, _) = parts[0]
    assert not batches
    assert held[0] - before < 1.5 * values.nbytes


def test_merging_holds_little_of_the_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of all runs between two borders are held, never a run."""
    limit, held = 8 << 20, []
    before = pa.total_allocated_bytes()
    get = BatchFile.get

    def watched(file: BatchFile, number: int) -> pa.RecordBatch:
        held.append(pa.total_allocated_bytes() - before)
        return get(file, number)

    monkeypatch.setattr(BatchFile, "get", watched)
    rows = 0
    for values, _ in in_order(pieces(), pa.int64(), limit=limit):
        assert (np.asarray(values) == np.arange(rows, rows + len(values))).all()
        rows += len(values)
    assert rows == COUNT
    assert len(held) > 100
    assert max(held) < limit // 8


def test_most_of_the_runs_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    get = BatchFile.get

    def watched(file: BatchFile, number: int) -> pa.RecordBatch:
        found = get(file, number)
        read.append(found.nbytes)
        return found

    monkeypatch.setattr(BatchFile, "get", watched)
    assert sum(len(values) for values, _ in in_order(pieces(), pa.int64(), limit=8 << 20)) == COUNT
    assert 16 * COUNT <= sum(read) < 1.3 * 16 * COUNT


def pieces() -> Iterator[pa.RecordBatch]:
    ids = pa.array(np.arange(COUNT, dtype=np.uint64))
    batch = pa.RecordBatch.from_arrays([pa.array(SHUFFLED), ids], [VALUE, ID])
    return (batch.slice(start, 10_000) for start in range(0, COUNT, 10_000))


@given(st.lists(st.integers(0, 40), max_size=12), st.integers(0, 60))
def test_pages_do_not_depend_on_the_parts(sizes: list[int], num_nulls: int) -> None:
    total = sum(sizes)
    values = pa.array([None] * min(num_nulls, total) + [*range(max(0, total - num_nulls))], pa.int64())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(btree, "PAGE_ROWS", 16)
        ends = np.cumsum([0, *sizes]).tolist()
        parts = [
            (values.slice(start, end - start), np.arange(start, end, dtype=np.uint64))
            for start, end in itertools.pairwise(ends)
        ]
        pages = btree._Pages(pa.int64())
        written = [*pages.noted(parts, LAYOUT)]
        rows = values.to_pylist()
        expected = [(rows[start], rows[start : start + 16]) for start in range(0, total, 16)]
        found = pages.table().to_pylist()
    assert [value for batch in written for value in batch.column(0).to_pylist()] == rows
    assert [item["min"] for item in found if item["page_idx"] < len(expected)] == [first for first, _ in expected]
    assert [item["max"] for item in found] == [page[-1] for _, page in expected]
    assert [item["null_count"] for item in found] == [page.count(None) for _, page in expected]
    assert [item["page_idx"] for item in found] == [*range(len(expected))]
