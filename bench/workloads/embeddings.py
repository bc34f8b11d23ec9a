"""200k vectors of 768 float32."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.measure import Case
from bench.workloads.tables import keep, scan_cases, take_cases, write_case


def cases(folder: Path, scale: float) -> Iterator[Case]:
    """Scan, write, take."""
    rows = int(200_000 * scale)
    values = np.random.default_rng(2).normal(size=rows * 768).astype(np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values), 768)
    kept = keep(pa.table({"id": pa.array(np.arange(rows)), "vector": vectors}), folder)
    yield from scan_cases(kept)
    yield write_case(kept)
    yield from take_cases(kept)
