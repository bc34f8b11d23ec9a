"""Selected rows are cut at the pages of a column, all pages at once, as each page alone would cut them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from lance_core.pages.rows import RowSelection, cut_at


def test_rows_are_cut_at_the_edges_of_pages() -> None:
    selection = RowSelection.ranges([(0, 100), (120, 130), (5_000, 5_010)])
    found = [
        (page, rows.starts.tolist(), rows.ends.tolist()) for page, rows in cut_at(selection, np.array([0, 64, 5_000, 9_000]))
    ]
    assert found == [(0, [0], [64]), (1, [0, 56], [36, 66]), (2, [0], [10])]


def test_random_rows_in_random_pages() -> None:
    rng = np.random.default_rng(3)
    for _ in range(300):
        edges = np.unique(np.append(rng.integers(0, 200, rng.integers(1, 9)), [0, 200]))
        wanted = np.unique(rng.integers(0, 200, rng.integers(1, 60)))
        first, last = sorted(rng.choice(len(edges), 2, replace=False).tolist())
        mine = edges[first : last + 1]
        expected = [(wanted[(wanted >= low) & (wanted < high)] - low).tolist() for low, high in pairwise(mine)]
        found = {page: rows.to_indices().tolist() for page, rows in cut_at(RowSelection.indices(wanted), mine)}
        assert found == {page: rows for page, rows in enumerate(expected) if rows}


def test_nothing_is_in_no_page() -> None:
    assert not [*cut_at(RowSelection.all(0), np.array([0, 10, 20]))]
    assert not [*cut_at(RowSelection.indices([3]), np.array([0]))]
