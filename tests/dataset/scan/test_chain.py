"""The steps of a scan on a fragment that exists only here: whatever is deleted, picked or selected, rows are right."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_core.arrays import Ints
from lance_core.arrow import schema_from_arrow
from lance_core.dataset.scan import chain
from lance_core.dataset.scan.plan import FragmentTask, Picked, ScanPlan, plan_scan
from lance_core.dataset.scan.projection import plan_projection
from lance_core.dataset.snapshot.assemble import empty_columns
from lance_core.expr import parse_filter
from lance_core.format.fragment import Fragment
from lance_core.format.schema import Schema
from lance_core.pages.rows import RowSelection

ROWS = 500
TABLE = pa.table(
    {
        "a": pa.array([None if number % 11 == 0 else number % 10 for number in range(ROWS)]),
        "b": pa.array([f"row {number}" for number in range(ROWS)]),
    }
)
SCHEMA = schema_from_arrow(TABLE.schema)


class _Reader:
    """Rows of the table; remembers how many of each column were read."""

    def __init__(self, deleted: Ints) -> None:
        self.deleted = deleted
        self.num_read: dict[str, int] = {}

    def read(
        self, schema: Schema, rows: RowSelection, *, batch_size: int, system: Collection[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        names = [item.name for item in schema.top_level]
        found = TABLE.select(names).take(pa.array(rows.to_indices()))
        for name in names:
            self.num_read[name] = self.num_read.get(name, 0) + found.num_rows
        if not names:
            for first in range(0, rows.num_rows, batch_size):
                yield empty_columns(min(batch_size, rows.num_rows - first))
            return
        yield from found.combine_chunks().to_batches(max_chunksize=batch_size)


def _plan(columns: list[str], test: str | None) -> ScanPlan:
    filter = None if test is None else parse_filter(test, TABLE.schema)
    return plan_scan(SCHEMA, (), plan_projection(SCHEMA, columns), filter=filter)


def _passes(number: int, test: str | None) -> bool:
    value = TABLE["a"][number].as_py()
    return test is None or (value is not None and value < 4)


def _task(living: int, picked: Picked | None = None) -> FragmentTask:
    return FragmentTask(Fragment(id=3, files=(), physical_rows=ROWS), 0, living, picked)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("columns", [["a"], ["b"], ["b", "a"], []])
@pytest.mark.parametrize("test", [None, "a < 4"])
def test_rows_and_offsets_agree(seed: int, columns: list[str], test: str | None) -> None:
    rng = np.random.default_rng(seed)
    deleted = np.sort(rng.choice(ROWS, int(rng.choice([0, 1, 40, 400])), replace=False))
    plan, reader = _plan(columns, test), _Reader(deleted)
    given: Any = reader
    batch_size = int(rng.choice([1, 7, 64, 1000]))
    task, candidates = _task(ROWS - len(deleted)), np.arange(ROWS)
    if seed % 3:
        candidates = np.sort(rng.choice(ROWS, int(rng.choice([1, 3, 90, 450])), replace=False))
        task = _task(ROWS - len(deleted), Picked(candidates, plan))
    wanted = [number for number in candidates.tolist() if number not in set(deleted.tolist()) and _passes(number, test)]
    _, rows = chain.task_rows(given, plan, task, batch_size=batch_size)
    found = [*rows]
    assert [number for item in found for number in item.kept_offsets.tolist()] == wanted
    assert sum(item.num_kept for item in found) == len(wanted)
    batches = [*chain.task_batches(given, plan, task, batch_size=batch_size)]
    assert sum(batch.num_rows for batch in batches) == len(wanted)
    assert all(0 < batch.num_rows <= batch_size or test is not None for batch in batches)
    if columns and wanted:
        assert pa.Table.from_batches(batches).equals(TABLE.select(columns).take(wanted).combine_chunks())
    if test is not None and columns == ["b"] and len(wanted) == 0:
        assert "b" not in reader.num_read


@pytest.mark.parametrize(("offset", "limit"), [(0, None), (0, 1), (3, 4), (10, 100), (0, 10), (25, 3)])
def test_a_limit_stops_the_steps_before_it(offset: int, limit: int | None) -> None:
    taken = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal taken
        for first in range(0, 20, 5):
            taken += 1
            yield pa.record_batch({"n": pa.array(range(first, first + 5))})

    found = [number for batch in chain.limited(batches(), offset, limit) for number in batch["n"].to_pylist()]
    assert found == [*range(20)][offset:][:limit]
    if limit is not None and offset + limit <= 20:
        assert taken == -(-(offset + limit) // 5)
