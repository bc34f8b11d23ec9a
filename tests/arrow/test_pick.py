"""Rows by place and by truth, of every nesting and every slice, against the same lists of Python."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_core
from lance_core import pick
from tests.compatibility.storable import WRAPS, array_of, kind_of

NESTED = [name for name in WRAPS if name not in ("", "fixed0")]
SHAPES = [(outer, inner, "int32") for outer in NESTED for inner in NESTED]
SHAPES += [(top, outer, inner, "int32") for top in NESTED for outer in ("fixed", "list") for inner in ("fixed", "fixed1")]


def _sliced(names: tuple[str, ...], rng: random.Random) -> Iterator[tuple[Any, list[Any]]]:
    """Arrays that begin in the middle of their buffers, of a type, and their values."""
    for share in (0.0, 0.3):
        kind, make = kind_of(names, share)
        values = [None if rng.random() < share else make(rng) for _ in range(12)]
        whole = array_of(values, kind)
        for offset in (0, 1, 3):
            yield whole.slice(offset, 8), whole.to_pylist()[offset : offset + 8]


def test_rows_are_those_that_were_asked_for() -> None:
    rng = random.Random(11)
    for names in SHAPES:
        for array, values in _sliced(names, rng):
            places = [rng.choice([None, *range(8)]) for _ in range(6)]
            mask = [rng.choice([True, False, None]) for _ in range(8)]
            parts = pa.chunked_array([array.slice(0, 3), array.slice(3)])
            for data in (array, parts, pa.table({"a": array}), pa.table({"a": parts}), pa.record_batch({"a": array})):
                for found, expected in (
                    (pick.take(data, pa.array(places, pa.int64())), [None if at is None else values[at] for at in places]),
                    (pick.keep(data, pa.array(mask)), [value for value, kept in zip(values, mask, strict=True) if kept]),
                ):
                    column = found["a"] if isinstance(found, (pa.Table, pa.RecordBatch)) else found
                    assert column.to_pylist() == expected, (names, type(data))


GRID = pa.list_(pa.list_(pa.int32(), 2), 2)


@pytest.mark.parametrize(
    "expression",
    [
        "CASE WHEN k % 2 = 1 THEN c[1][2] + 12 / (k % 2) ELSE 0 END",
        "coalesce(CASE WHEN k % 2 = 0 THEN 0 END, c[1][2] + 12 / (k % 2))",
    ],
)
def test_expressions_for_some_rows_read_those_rows(expression: str, tmp_path: Path) -> None:
    """A branch that fails for other rows is computed for its own, of a batch that is a slice."""
    rows = pa.table({"k": range(20), "c": pa.array([[[4 * k, 4 * k + 1], [4 * k + 2, 4 * k + 3]] for k in range(20)], GRID)})
    table = lance_core.write_dataset(rows, str(tmp_path), data_storage_version="2.2")
    found = table.to_table(columns={"x": expression}, batch_size=7)["x"].to_pylist()
    assert found == [4 * k + 13 if k % 2 else 0 for k in range(20)]


def test_ordered_rows_have_their_own_matrices(tmp_path: Path) -> None:
    rows = pa.table({"k": range(40), "c": pa.array([[[k, k], [k, -k]] for k in range(40)], GRID)})
    table = lance_core.write_dataset(rows, str(tmp_path), data_storage_version="2.2", max_rows_per_file=15)
    table.delete("k % 7 = 3")
    for limit, offset in ((None, None), (5, 3), (None, 6)):
        found = table.scanner(order_by=["k"], limit=limit, offset=offset, batch_size=4).to_table()
        assert found["c"].to_pylist() == [[[k, k], [k, -k]] for k in found["k"].to_pylist()]
        assert found.num_rows
