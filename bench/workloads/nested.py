"""Lists and structs, with nulls on every level."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.measure import Case
from bench.workloads.tables import keep, scan_cases, take_cases, write_case


def make_table(rows: int) -> pa.Table:
    """A list of int64, a list of structs, a struct of a number and a string."""
    rng = np.random.default_rng(3)
    lengths = rng.integers(0, 12, rows)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    count = int(offsets[-1])
    numbers = pa.array(rng.integers(0, 1000, count), mask=rng.random(count) < 0.05)
    words = pa.array([f"word {number}" for number in range(1000)]).take(pa.array(rng.integers(0, 1000, count)))
    entries = pa.StructArray.from_arrays([numbers, words], ["count", "word"])
    point = pa.StructArray.from_arrays(
        [pa.array(rng.normal(size=rows)), words.take(pa.array(rng.integers(0, count, rows)))],
        ["x", "label"],
        mask=pa.array(rng.random(rows) < 0.1),
    )
    return pa.table(
        {
            "numbers": pa.ListArray.from_arrays(pa.array(offsets), numbers),
            "entries": pa.ListArray.from_arrays(pa.array(offsets), entries),
            "point": point,
        }
    )


def cases(folder: Path, scale: float) -> Iterator[Case]:
    """Scan, each column, write, take."""
    kept = keep(make_table(int(500_000 * scale)), folder)
    yield from scan_cases(kept, columns=("numbers", "entries", "point"))
    yield write_case(kept)
    yield from take_cases(kept)
