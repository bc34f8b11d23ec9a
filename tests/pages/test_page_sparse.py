"""Sparse pages of 2.3 files: the official library makes them for long lists, constants and nothing but nulls."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_core.errors import FormatError
from lance_core.format.layout import SparseLayout
from lance_core.pages.group import scan
from tests.pages.page_files import OpenBytes, leaf_paths, project, read_rows, scan_column, to_arrow, write_official

LENGTHS = (100, 0, 5, 70_000, 1)
"""One row has more levels than a dense page may."""
INTS, TEXTS = pa.list_(pa.int32()), pa.list_(pa.string())
X = pa.struct([("x", pa.int32())])

SPARSE = {
    "nulls": ([None, *[[None if i % 5000 == 3 else i for i in range(n)] for n in LENGTHS]], INTS),
    "text": ([[None if i % 5000 == 3 else str(i) * 50 for i in range(n)] for n in LENGTHS], TEXTS),
    "wide_text": ([[None if i % 5000 == 3 else str(i) * 60 for i in range(n)] for n in LENGTHS], TEXTS),
    "structs": ([[{"x": i} if i % 777 else None for i in range(n)] for n in LENGTHS], pa.list_(X)),
    "inside_struct": ([*[{"a": list(range(n))} for n in LENGTHS], None], pa.struct([("a", INTS)])),
    "lists": ([[list(range(n)), None, [], [n]] for n in LENGTHS], pa.list_(INTS)),
    "few_values": ([[f"w{i % 3}" for i in range(n)] for n in LENGTHS], TEXTS),
    "fixed": ([None if i % 50 == 0 else [{"x": None}, {"x": None}] for i in range(500)], pa.list_(X, 2)),
    "constant_struct": ([None if i % 50 == 0 else {"x": 7 if i % 3 else None} for i in range(500)], X),
    "constant_list": ([None if i % 50 == 0 else [7 if j % 3 else None for j in range(i % 5)] for i in range(5000)], INTS),
    "runs_in_ranges": ([[None], *[[None] * 3] * 6], pa.list_(pa.null())),
    "mostly_null": ([7 if i % 1000 == 0 else None for i in range(5000)], pa.int64()),
}


@pytest.mark.parametrize("name", sorted(SPARSE))
def test_reads_sparse_pages(name: str, tmp_path: Path) -> None:
    array = pa.array(*SPARSE[name])
    file = write_official(pa.table({"c": array}), tmp_path, "2.3")
    (path,), (column,) = list(leaf_paths(array.type)), file.columns()
    assert any(isinstance(page.layout, SparseLayout) for page in column.pages)
    assert to_arrow(scan_column(file, column), array.type, path).to_pylist() == project(array, path)
    if name == "fixed":
        return
    count = len(array)
    for rows in (np.array([count - 1]), np.array([0, 2]), np.unique(np.random.default_rng(1).integers(0, count, 9))):
        got = to_arrow(read_rows(file, column, rows), array.type, path)
        assert got.to_pylist() == project(array.take(pa.array(rows)), path)


@pytest.mark.parametrize("name", ["constant_list", "lists", "mostly_null"])
def test_damaged_sparse_pages(name: str, tmp_path: Path) -> None:
    array = pa.array(*SPARSE[name])
    file = write_official(pa.table({"c": array}), tmp_path, "2.3")
    page = next(page for page in file.columns()[0].pages if isinstance(page.layout, SparseLayout))
    assert isinstance(page.layout, SparseLayout)
    rng = random.Random(name)
    for _ in range(60):
        broken = bytearray(file.data)
        if page.buffers:
            buffer = rng.choice(page.buffers)
            broken[buffer.start + rng.randrange(min(buffer.size, 64))] = rng.randrange(256)
        layers = list(page.layout.layers)
        if rng.random() < 0.5:
            layers = rng.sample(layers, len(layers) - 1)
        bad = replace(
            page, layout=replace(page.layout, layers=tuple(layers)), num_rows=rng.choice((page.num_rows, 3, 2**40))
        )
        with suppress(FormatError):
            OpenBytes(bytes(broken)).run(scan(bad))
