"""Threads that go on after the main thread has ended: they read and write tables by themselves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lance_core.io.threads import Threads

LATE = """
import sys, threading
import lance_core

def late():
    threading.main_thread().join()
    threading.Event().wait(0.2)  # until Python has ended its own pools of threads
    import pyarrow as pa
    uri = sys.argv[1]
    rows = pa.table({"id": range(10), "s": ["a", "b"] * 5, "v": pa.array([[1.0, 2.0]] * 10, pa.list_(pa.float32(), 2))})
    lance_core.write_dataset(rows, uri, max_rows_per_file=3)
    ds = lance_core.dataset(uri)
    ds.create_scalar_index("id", "BTREE")
    ds.create_scalar_index("s", "INVERTED")
    ds.delete("id = 3")
    ds.update({"s": "'x'"}, where="id = 4")
    ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(ds.to_table())
    ds.optimize.compact_files()
    ds.optimize.optimize_indices()
    ds = lance_core.dataset(uri)
    assert ds.to_table(filter="id = 5").num_rows == 1
    ds.cleanup_old_versions(retain_versions=1)
    print("rows:", ds.to_table().num_rows, flush=True)

threading.Thread(target=late).start()
"""


def test_a_thread_that_outlives_the_main_thread_uses_tables(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LATE, str(tmp_path / "t.lance")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.stdout, done.returncode) == ("rows: 9\n", 0), done.stderr[-3000:]


def test_a_pool_that_was_shut_down_says_so() -> None:
    with Threads(1, thread_name_prefix="x") as pool:
        assert list(pool.map(str, range(5))) == ["0", "1", "2", "3", "4"]
    with pytest.raises(RuntimeError, match="shutdown"):
        pool.submit(str, 1)
