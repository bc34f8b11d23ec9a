"""Neighbours within bounds: every one is in one run, and no run could have had the next one as well."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lance_core.runs import runs_within


def test_an_item_that_alone_has_more_is_a_run() -> None:
    assert list(runs_within(([10, 10, 90, 200, 10], 100))) == [(0, 2), (2, 3), (3, 4), (4, 5)]
    assert list(runs_within(([], 3))) == []
    assert list(runs_within(([1] * 5, 2), ([9, 1, 1, 1, 9], 9))) == [(0, 1), (1, 3), (3, 4), (4, 5)]


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=30), st.integers(0, 40), st.integers(0, 40))
def test_runs_are_whole_in_order_and_as_long_as_they_may(items: list[tuple[int, int]], most: int, other: int) -> None:
    sizes, counts = [size for size, _ in items], [count for _, count in items]
    found = list(runs_within((sizes, most), (counts, other)))
    assert [place for start, end in found for place in range(start, end)] == [*range(len(items))]

    def fits(start: int, end: int) -> bool:
        return sum(sizes[start:end]) <= most and sum(counts[start:end]) <= other

    assert all(end - start == 1 or fits(start, end) for start, end in found)
    assert not any(fits(start, end + 1) for start, end in found if end < len(items))
