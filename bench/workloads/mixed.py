"""Five million rows of everyday columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.measure import Case
from bench.workloads.tables import keep, scan_cases, take_cases, write_case

COLUMNS = ("id", "value", "small", "name", "category", "time", "maybe")


def make_table(rows: int) -> pa.Table:
    """int64 id, float64, small int, 12-char strings (1M distinct), 4-value category, timestamp, nullable int."""
    rng = np.random.default_rng(1)
    distinct = max(1, min(1_000_000, rows // 5))
    names = pa.array([f"{number:012x}" for number in rng.permutation(distinct).tolist()])
    categories = pa.array(["red", "green", "blue", "violet"])
    return pa.table(
        {
            "id": pa.array(np.arange(rows, dtype=np.int64)),
            "value": pa.array(rng.normal(size=rows)),
            "small": pa.array(rng.integers(0, 100, rows).astype(np.int32)),
            "name": names.take(pa.array(rng.integers(0, distinct, rows))),
            "category": categories.take(pa.array(rng.integers(0, 4, rows))),
            "time": pa.array(1_600_000_000_000_000 + rng.integers(0, 10**13, rows), pa.timestamp("us")),
            "maybe": pa.array(rng.integers(0, 10**6, rows), mask=rng.random(rows) < 0.1),
        }
    )


def cases(folder: Path, scale: float) -> Iterator[Case]:
    """Scan, each column, write, take."""
    kept = keep(make_table(int(5_000_000 * scale)), folder)
    yield from scan_cases(kept, columns=COLUMNS)
    yield write_case(kept)
    yield from take_cases(kept)
