"""The chunks of a few rows, found without arrays, are those found with them."""

from __future__ import annotations

import numpy as np

from lance_core.format.encoding import Flat
from lance_core.format.layout import MiniBlockLayout, RepDefLayer
from lance_core.pages.chunks import ChunkTable, chunks_of_few, chunks_of_rows
from lance_core.pages.rows import RowSelection

LAYOUT = MiniBlockLayout(Flat(64), (RepDefLayer.ALL_VALID_ITEM, RepDefLayer.NULLABLE_LIST), 0, repetition_index_depth=1)


def test_chunks_of_few_rows_are_those_of_any() -> None:
    rng, seen = np.random.default_rng(2), 0
    for _ in range(200):
        ended = rng.integers(0, 4, int(rng.integers(1, 9)))
        carries = rng.integers(0, 2, len(ended))
        # The last row ends with the page, and a row goes on only into a chunk that there is.
        ended[-1], carries[-1] = ended[-1] + 1, 0
        row_ends = np.cumsum(ended)
        edges = np.arange(len(ended) + 1) * 10
        table = ChunkTable(edges, edges, row_ends, carries)
        num_rows = int(row_ends[-1])
        wanted = np.unique(rng.integers(0, num_rows, int(rng.integers(1, 5))))
        rows = RowSelection.indices(wanted)
        found = chunks_of_few(table, rows)
        seen += found is not None
        assert found is None or found == chunks_of_rows(LAYOUT, table, rows).tolist()
        every = np.arange(len(ended) + 1)
        assert [table.started(chunk) for chunk in every.tolist()] == table.rows_before(every).tolist()
    assert seen > 150


def test_many_rows_or_chunks_are_left_to_arrays() -> None:
    edges = np.arange(21) * 10
    table = ChunkTable(edges, edges, np.arange(1, 21), np.zeros(20, np.int64))
    assert chunks_of_few(table, RowSelection.indices([1, 5])) == [1, 5]
    assert chunks_of_few(table, RowSelection.span(0, 20)) is None
    assert chunks_of_few(table, RowSelection.indices(np.arange(0, 20, 2))) is None
    assert chunks_of_few(ChunkTable(edges, edges), RowSelection.indices([1])) is None
