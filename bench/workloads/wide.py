"""2,000 float columns: what it costs to open a wide file for a few columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import lance_core
from bench.measure import Case
from bench.workloads.tables import keep, same_rows, scan_cases, write_case

PICKED = ["c3", "c500", "c999", "c1500", "c1999"]


def cases(folder: Path, scale: float) -> Iterator[Case]:
    """Open and read five columns of a cold handle; scan; write."""
    rng = np.random.default_rng(6)
    rows = int(20_000 * scale)
    table = pa.table({f"c{number}": pa.array(rng.normal(size=rows).astype(np.float32)) for number in range(2000)})
    kept = keep(table, folder)
    contenders = {
        "lance_core": lambda: lance_core.dataset(kept.lance).to_table(columns=PICKED),
        "pylance": lambda: lance.dataset(kept.lance).to_table(columns=PICKED),
        "parquet": lambda: pq.read_table(kept.parquet, columns=PICKED),
    }
    yield Case("open 5 of 2000 columns", contenders, num_bytes=table.select(PICKED).nbytes, rows=rows, check=same_rows)
    yield from scan_cases(kept)
    yield write_case(kept, repeats=3)
