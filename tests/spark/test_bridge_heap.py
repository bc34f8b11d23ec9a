"""The memory of the bridge's workers: kept while they decode, handed back when they have nothing to do."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys

import pytest

needs_glibc = pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="no mallopt")

SCRIPT = """
import json, resource, sys
import numpy as np
import psutil
import pyarrow as pa
from lance_core.spark.bridge.heap import give_freed_memory_back, keep_freed_memory

if sys.argv[1] == "kept":
    keep_freed_memory()

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def decode():
    arrays = [np.full(1 << 18, number, np.int64) for number in range(8)]
    return pa.concat_arrays([pa.array(array) for array in arrays]).nbytes

decode()
before = faults()
for _ in range(10):
    decode()
found = {"faults": faults() - before}
blocks = [np.ones(1 << 17) for _ in range(200)]
del blocks
held = psutil.Process().memory_info().rss
give_freed_memory_back()
found["back"] = held - psutil.Process().memory_info().rss
print(json.dumps(found))
"""


def _run(how: str) -> dict[str, int]:
    done = subprocess.run([sys.executable, "-c", SCRIPT, how], capture_output=True, text=True, check=True)
    found: dict[str, int] = json.loads(done.stdout)
    return found


@needs_glibc
def test_what_is_freed_serves_the_next_batch_and_goes_back_when_nothing_is_to_do() -> None:
    kept, plain = _run("kept"), _run("plain")
    assert kept["faults"] < plain["faults"] / 4
    assert kept["back"] > 150_000_000
