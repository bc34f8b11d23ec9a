"""One large table on one machine: write, scan, index, merge, compact and clean up, with the time and the peak of each.

::

    python -m bench.large --rows 100000000 --folder /big/disk      a few gigabytes of disk; about 2 GiB of memory

Each step runs in a process of its own, so that its peak is its own.
"""

from __future__ import annotations

import argparse
import datetime as dt
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

import lance_core

_BATCH = 100_000


def rows(count: int) -> Iterator[pa.RecordBatch]:
    """Shuffled keys, a float, few categories, a short text."""
    rng = np.random.default_rng(0)
    for start in range(0, count, _BATCH):
        size = min(_BATCH, count - start)
        # A permutation of all keys that needs no memory: 7 and the count have no common divisor in round counts.
        keys = (np.arange(start, start + size, dtype=np.int64) * 7_919) % count
        kinds = rng.integers(0, 1_000, size, dtype=np.int32)
        texts = pa.array([f"row {number}" for number in keys.tolist()])
        columns = {"id": keys, "x": rng.normal(size=size), "kind": kinds, "s": texts}
        yield pa.RecordBatch.from_pydict(columns)


def write(place: str, count: int) -> None:
    first = next(rows(count))
    reader = pa.RecordBatchReader.from_batches(first.schema, rows(count))
    lance_core.write_dataset(reader, place, max_rows_per_file=500_000)


def scan(place: str, count: int) -> None:
    assert sum(batch.num_rows for batch in lance_core.dataset(place).to_batches()) == count


def index_keys(place: str, count: int) -> None:
    lance_core.dataset(place).create_scalar_index("id", "BTREE")


def index_kinds(place: str, count: int) -> None:
    lance_core.dataset(place).create_scalar_index("kind", "BITMAP")


def look_up(place: str, count: int) -> None:
    handle = lance_core.dataset(place)
    for number in range(100):
        assert handle.count_rows(f"id = {number * (count // 100)}") == 1


def merge(place: str, count: int) -> None:
    size = count // 1_000
    keys = np.arange(size, dtype=np.int64) * 1_000 + count // 2
    new = {"id": keys, "x": np.ones(size), "kind": np.zeros(size, np.int32), "s": ["merged"] * size}
    handle = lance_core.dataset(place)
    handle.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(pa.table(new))


def compact(place: str, count: int) -> None:
    lance_core.dataset(place).optimize.compact_files()


def clean_up(place: str, count: int) -> None:
    lance_core.dataset(place).cleanup_old_versions(dt.timedelta(0))


STEPS: dict[str, Callable[[str, int], None]] = {
    step.__name__: step for step in (write, scan, index_keys, index_kinds, look_up, merge, compact, clean_up)
}


def main() -> None:
    """All steps, each in a child; or one of them, as that child."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--step", choices=[*STEPS])
    given = parser.parse_args()
    place = str(given.folder / "large.lance")
    if given.step:
        began = time.perf_counter()
        STEPS[given.step](place, given.rows)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"| {given.step} | {time.perf_counter() - began:,.1f} s | {peak:,.0f} MB |", flush=True)
        return
    shutil.rmtree(place, ignore_errors=True)
    print(f"| {given.rows:,} rows | time | peak |\n|---|---|---|", flush=True)
    for step in STEPS:
        command = [sys.executable, "-m", "bench.large", "--rows", str(given.rows), "--folder", str(given.folder)]
        subprocess.run([*command, "--step", step], check=True)
    shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
