"""A fork of a busy process: its children can import, read and write, whatever the other threads were at."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")

SLOW = """
import os, sys, threading
import lance_core
begun = threading.Event()
sys.modules["told"] = begun
importing = threading.Thread(target=lambda: __import__("slow"))
importing.start()
begun.wait()
child = os.fork()
if child == 0:
    threading.Timer(20, lambda: os._exit(1)).start()
    import slow
    os._exit(0 if slow.whole else 2)
importing.join()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
SLOW_MODULE = """
import sys, time
sys.modules["told"].set()
time.sleep(1)
whole = True
"""
INSIDE = """
import os, sys, threading
import lance_core
sys.modules["told"] = threading.Event()
import forking
sys.exit(forking.status)
"""
INSIDE_MODULE = """
import os, sys, threading
waiting = threading.Thread(target=lambda: __import__("forking"), daemon=True)
waiting.start()
child = os.fork()
if child == 0:
    os._exit(0)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""

BUSY = """
import os, sys, threading, time
import lance_core
uri, children = sys.argv[1], int(sys.argv[2])
over = threading.Event()

def verbs(number):
    yield lambda: lance_core.dataset(uri).to_table(filter=f"id % 7 = {number % 7} and s like 'r%'")
    yield lambda: lance_core.dataset(uri).count_rows("id in (1, 2, 3)")
    yield lambda: lance_core.dataset(uri).to_table(nearest={"column": "v", "q": [1.0, 0.0], "k": 3})
    yield lambda: lance_core.dataset(uri).scanner(order_by=["s"]).to_table()
    yield lambda: lance_core.dataset(uri).take([number % 20])

def work(number):
    while not over.is_set():
        for verb in verbs(number):
            verb()
        number += 1

for number in range(3):
    threading.Thread(target=work, args=(number,), daemon=True).start()
failed = 0
for number in range(children):
    child = os.fork()
    if child == 0:
        threading.Timer(60, lambda: os._exit(3)).start()
        status = 1
        try:
            for verb in verbs(number):
                verb()
            status = 0
        finally:
            os._exit(status)
    failed += os.waitpid(child, 0)[1] != 0
over.set()
print("failed:", failed, flush=True)
os._exit(1 if failed else 0)
"""


def _run(script: str, folder: Path, *arguments: str, seconds: float = 120) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=seconds, check=False, cwd=folder
    )


def test_a_child_imports_what_another_thread_was_importing(tmp_path: Path) -> None:
    """The lock of the module stayed with a thread that the child does not have."""
    (tmp_path / "slow.py").write_text(SLOW_MODULE)
    done = _run(SLOW, tmp_path)
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])


def test_a_fork_inside_of_an_import_waits_for_nobody(tmp_path: Path) -> None:
    """The others may wait for the module that this thread imports."""
    (tmp_path / "forking.py").write_text(INSIDE_MODULE)
    done = _run(INSIDE, tmp_path, seconds=60)
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])


def _table(uri: str) -> None:
    import pyarrow as pa

    import lance_core

    rows = pa.table({
        "id": range(20), "s": [f"r{number % 3}" for number in range(20)],
        "v": pa.array([[1.0, float(number)] for number in range(20)], pa.list_(pa.float32(), 2)),
    })  # fmt: skip
    lance_core.write_dataset(rows, uri, max_rows_per_file=5)


@pytest.mark.parametrize("children", [10, pytest.param(200, marks=pytest.mark.slow)])
def test_forks_of_a_busy_process(tmp_path: Path, children: int) -> None:
    uri = str(tmp_path / "t.lance")
    _table(uri)
    done = _run(BUSY, tmp_path, uri, str(children), seconds=120 + 10 * children)
    assert (done.stdout, done.returncode) == ("failed: 0\n", 0), done.stderr[-3000:]
