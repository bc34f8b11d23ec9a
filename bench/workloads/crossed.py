"""Every writer with every reader: the files of both libraries, read by both, by processor time.

Files of one library that only the other reads slowly show in no workload that reads one writer's files. The contenders are
"reader on writer's files"; ratios are against pylance on its own files, which is what a user of either library has.

    lance_core             lance_core reads what lance_core wrote
    lance_core/official    lance_core reads what pylance wrote
    pylance                pylance reads what pylance wrote
    pylance/ours           pylance reads what lance_core wrote
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import lance_core
from bench.measure import Case
from bench.workloads import mixed, nested, texts
from bench.workloads.tables import same_rows

Readers = Mapping[str, Any]
_TAKES = ((1000, 5), (100, 10), (10, 20), (1, 50))


def cases(folder: Path, scale: float) -> Iterator[Case]:
    """Takes and scans of texts, nested rows, vectors and everyday columns; index builds, points and ranges."""
    rows = int(100_000 * scale)
    yield from _reads("texts", pa.table({"id": pa.array(np.arange(rows)), "text": texts.make_texts(rows)}), folder, ["text"])
    yield from _reads("nested", nested.make_table(int(500_000 * scale)), folder, ["numbers", "entries", "point"])
    yield from _reads("embeddings", _vectors(int(60_000 * scale)), folder, ["vector"])
    everyday = mixed.make_table(int(2_000_000 * scale))
    yield from _reads("mixed", everyday, folder, ["name"])
    yield from _indexed(everyday, folder)


def _vectors(rows: int) -> pa.Table:
    values = np.random.default_rng(2).normal(size=rows * 768).astype(np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values), 768)
    return pa.table({"id": pa.array(np.arange(rows)), "vector": vectors})


def _write(table: pa.Table, folder: Path, name: str) -> Readers:
    """The table written by both, open in both."""
    ours, theirs = str(folder / f"{name}-ours.lance"), str(folder / f"{name}-official.lance")
    lance_core.write_dataset(table, ours, mode="create")
    lance.write_dataset(table, theirs, mode="create")
    return {
        "lance_core": lance_core.dataset(ours),
        "lance_core/official": lance_core.dataset(theirs),
        "pylance": lance.dataset(theirs),
        "pylance/ours": lance.dataset(ours),
    }


def _reads(name: str, table: pa.Table, folder: Path, columns: Sequence[str]) -> Iterator[Case]:
    readers = _write(table, folder, name)
    many = np.random.default_rng(7).choice(table.num_rows, min(1000, table.num_rows), replace=False).tolist()
    for count, rounds in _TAKES:
        yield _case(f"{name}: take {count} x {rounds}", readers, partial(_take, rows=many[:count], rounds=rounds), count)
    yield _case(f"{name}: scan all", readers, _scan, table.num_rows)
    for column in columns:
        yield _case(f"{name}: scan {column}", readers, partial(_scan, columns=[column]), table.num_rows)


def _indexed(table: pa.Table, folder: Path) -> Iterator[Case]:
    """A B-tree over sorted ids: its build, points with all columns, ranges."""
    readers = _write(table, folder, "indexed")
    builds = {name: readers[name] for name in ("lance_core", "pylance")}
    yield _case("indexed: build BTREE of sorted ids", builds, _build, table.num_rows)
    opened = {name: _opened(name, reader.uri) for name, reader in readers.items()}
    points = np.random.default_rng(9).integers(0, table.num_rows, 20).tolist()
    yield _case("indexed: point x 20", opened, partial(_filter, tests=[f"id = {point}" for point in points]), 1)
    ranges = [f"id >= {point} AND id < {point + 1000}" for point in points]
    yield _case("indexed: range of 1,000 x 20", opened, partial(_filter, tests=ranges), 1000)


def _opened(reader: str, uri: str) -> Any:
    library: Any = lance_core if reader.startswith("lance_core") else lance
    return library.dataset(uri)


def _case(name: str, readers: Readers, work: Callable[[Any], object], rows: int) -> Case:
    contenders = {reader: partial(work, opened) for reader, opened in readers.items()}
    check = same_rows if set(readers) > {"lance_core/official"} else None
    return Case(name, contenders, rows=rows, check=check, clock=time.process_time)


def _take(table: Any, *, rows: list[int], rounds: int) -> pa.Table:
    for _ in range(rounds - 1):
        table.take(rows)
    found: pa.Table = table.take(rows)
    return found


def _scan(table: Any, *, columns: list[str] | None = None) -> pa.Table:
    found: pa.Table = table.to_table(columns=columns)
    return found


def _filter(table: Any, *, tests: Sequence[str]) -> pa.Table:
    return pa.concat_tables([table.to_table(filter=test) for test in tests])


def _build(table: Any) -> None:
    table.create_scalar_index("id", "BTREE", replace=True)
