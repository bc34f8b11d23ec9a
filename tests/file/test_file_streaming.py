"""`to_batches` over a table that is larger than the memory the process may have."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_core

READER = """
import os, resource, sys
import lance_core
table = lance_core.dataset(sys.argv[1])
batches = table.to_batches(batch_size=int(sys.argv[3]))
next(batches)  # everything is imported, every pool is born
with open("/proc/self/statm") as file:
    used = int(file.read().split()[5]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_DATA, (used + (int(sys.argv[2]) << 20),) * 2)
print(int(sys.argv[3]) + sum(batch.num_rows for batch in batches))
"""
ENVIRONMENT = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2", "LANCE_CPU_THREADS": "2"}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit on memory is Linux's")
@pytest.mark.parametrize(
    "kind", ["numbers", pytest.param("texts", marks=pytest.mark.slow), pytest.param("lists", marks=pytest.mark.slow)]
)
def test_a_stream_stays_within_the_memory_it_is_given(tmp_path: Path, kind: str) -> None:
    """512 MiB of rows in one file are read with 256 MiB."""
    rows, rng = 1 << 20, np.random.default_rng(1)
    if kind == "numbers":
        columns = {f"c{number}": pa.array(rng.random(rows)) for number in range(8)}
    elif kind == "texts":
        text = pa.array([rng.bytes(32).hex() for _ in range(1000)])
        columns = {"c": text.take(pa.array(rng.integers(0, 1000, rows)))}
    else:
        items = pa.array(rng.random(rows * 8))
        columns = {"c": pa.ListArray.from_arrays(pa.array(np.arange(rows + 1) * 8, pa.int32()), items)}
    part = pa.table(columns)
    repeats = -(-(512 << 20) // part.nbytes)
    reader = pa.RecordBatchReader.from_batches(
        part.schema, (batch for _ in range(repeats) for batch in part.to_batches(max_chunksize=1 << 17))
    )
    lance_core.write_dataset(reader, str(tmp_path), max_rows_per_file=1 << 40)
    command = [sys.executable, "-c", READER, str(tmp_path), "256", "8192"]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**ENVIRONMENT, "PYTHONPATH": ":".join(sys.path)}, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) == rows * repeats
