"""Scalar indices on 5,000,000 rows: built, and queried for one row, warm; the same look-up without an index.

Each library has a copy of the table (written by pylance) and builds its own index on it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import lance_core
from bench.measure import Case

LOOKUPS = 100
FRAGMENT_ROWS = 1 << 20
LIBRARIES: Mapping[str, Any] = {"lance_core": lance_core, "pylance": lance}
BUILDS = (
    ("BTREE", "key", "shuffled int64"),
    ("BTREE", "name", "strings, 1M distinct"),
    ("BITMAP", "small", "int32, 100 distinct"),
    ("BITMAP", "category", "strings, 1,000 distinct"),
    ("ZONEMAP", "id", "ascending int64"),
    ("ZONEMAP", "value", "random float64"),
)


def cases(folder: Path, scale: float) -> Iterator[Case]:
    """Builds of each kind, then look-ups of single rows."""
    rows = int(5_000_000 * scale)
    uris = {name: str(folder / f"{name}.lance") for name in LIBRARIES}
    first, *others = uris.values()
    lance.write_dataset(_rows(rows), first, max_rows_per_file=FRAGMENT_ROWS)
    for other in others:
        shutil.copytree(first, other)
    for kind, column, label in BUILDS:
        yield Case(
            f"build {kind} ({label})",
            {name: partial(_build, library, uris[name], column, kind) for name, library in LIBRARIES.items()},
            rows=rows,
            repeats=3,
        )
    keys = np.random.default_rng(3).integers(0, rows, LOOKUPS).tolist()
    for title, tests in (
        (f"look up 1 row x {LOOKUPS} by BTREE", [f"key = {key}" for key in keys]),
        (f"look up 1 row x {LOOKUPS} by ZONEMAP", [f"id = {key}" for key in keys]),
    ):
        tables = {name: library.dataset(uris[name]) for name, library in LIBRARIES.items()}
        yield Case(title, {name: partial(_look_up, table, tests) for name, table in tables.items()}, check=_same)
    tables = {name: library.dataset(uris[name]) for name, library in LIBRARIES.items()}
    tests = [f"key = {key}" for key in keys[:5]]
    yield Case(
        "look up 1 row x 5 without an index",
        {name: partial(_look_up, table, tests, use_scalar_index=False) for name, table in tables.items()},
        check=_same,
    )


def _rows(count: int) -> pa.Table:
    rng = np.random.default_rng(1)
    return pa.table(
        {
            "id": pa.array(np.arange(count)),
            "key": pa.array(rng.permutation(count)),
            "name": pa.array(np.char.add("name ", rng.integers(0, 1_000_000, count).astype("U7"))),
            "small": pa.array(rng.integers(0, 100, count), pa.int32()),
            "category": pa.array(np.char.add("category ", rng.integers(0, 1000, count).astype("U4"))),
            "value": pa.array(rng.normal(size=count)),
        }
    )


def _build(library: Any, uri: str, column: str, kind: str) -> None:
    library.dataset(uri).create_scalar_index(column, kind, replace=True)


def _look_up(table: Any, tests: list[str], **options: Any) -> list[Any]:
    to_table: Callable[..., pa.Table] = table.to_table
    return [to_table(columns=["id", "name"], filter=test, **options).to_pylist() for test in tests]


def _same(results: Mapping[str, object]) -> None:
    if results["lance_core"] != results["pylance"]:
        raise AssertionError("the look-ups differ")
