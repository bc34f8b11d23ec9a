"""Texts of 2 KB, binary values of 200 KiB, and the same values as blobs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.measure import Case
from bench.workloads.tables import keep, scan_cases, take_cases, write_case


def make_texts(rows: int) -> pa.Array:
    """English-like words, about 2,000 bytes a row."""
    rng = np.random.default_rng(4)
    words = np.array([f"{'aeiou'[n % 5]}{'tnrsl'[n // 5 % 5]}{n:x}" for n in range(2000)])
    picks = rng.zipf(1.3, size=(rows, 380)) % 2000
    return pa.array([" ".join(words[row]) for row in picks])


def cases(folder: Path, scale: float) -> Iterator[Case]:
    """Scan, write and take of texts, then of large binary values; the write of blobs."""
    rows = int(100_000 * scale)
    (folder / "texts").mkdir(exist_ok=True)
    kept = keep(pa.table({"id": pa.array(np.arange(rows)), "text": make_texts(rows)}), folder / "texts")
    yield from scan_cases(kept, columns=("text",))
    yield write_case(kept)
    yield from take_cases(kept)
    rng = np.random.default_rng(5)
    values = pa.array([rng.bytes(200 * 1024) for _ in range(max(1, int(1000 * scale)))], pa.large_binary())
    (folder / "values").mkdir(exist_ok=True)
    large = keep(pa.table({"value": values}), folder / "values")
    yield from scan_cases(large, columns=("value",))
    yield write_case(large, name="write 200 KiB values")
    (folder / "blobs").mkdir(exist_ok=True)
    blob = pa.field("value", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    yield write_case(keep(large.table.cast(pa.schema([blob])), folder / "blobs"), name="write 200 KiB blobs")
