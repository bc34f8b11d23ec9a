"""A file system that is really full, at each verb: typed, the rows as they were, nothing unfinished left."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

CHILD = """
import json, os, subprocess, sys
from pathlib import Path
sys.path.insert(0, sys.argv[4])
import lance_core
from lance_core.errors import LanceError
from tests.io.hanging_stores import build, verbs
place, free, wanted = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3].split(",")
bad = {}
full = 0
for name in wanted:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(place)], check=True)
    try:
        uri = str(place / "t.lance")
        build(uri)
        held = lance_core.dataset(uri)
        before, version = held.to_table(), held.version
        left = os.statvfs(place)
        (place / "filler").write_bytes(bytes(max(0, left.f_bavail * left.f_frsize - free)))
        told = ""
        try:
            verbs(uri)[name]()
        except LanceError as error:
            full += "No space left" in str(error)
        except BaseException as error:
            told = f"{type(error).__name__}: {error}"
        (place / "filler").unlink()
        now = lance_core.dataset(uri)
        now.validate(deep=True)
        if now.version == version and now.to_table() != before:
            told += " rows differ"
        told += " ".join(str(path) for path in place.rglob("*.unfinished"))
        if told:
            bad[name] = told
    finally:
        subprocess.run(["umount", str(place)], check=True)
print(json.dumps([bad, full]))
"""


def _may_mount() -> bool:
    if os.name != "posix" or os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    tried = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False)
    return tried.returncode == 0


CHANGES = ("append", "delete", "update", "merge", "columns", "index", "compact", "stage", "restore")


@pytest.mark.skipif(not _may_mount(), reason="this user may not mount a small file system")
@pytest.mark.parametrize(
    ("free", "verbs"),
    [
        (0, "append,delete,stage"),
        *(pytest.param(free, ",".join(CHANGES), marks=pytest.mark.slow) for free in (0, 4096, 8192, 16384)),
    ],
)  # fmt: skip
def test_a_file_system_that_is_full(tmp_path: Path, free: int, verbs: str) -> None:
    command = ["unshare", "-m", sys.executable, "-c", CHILD, str(tmp_path), str(free), verbs, str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    bad, full = json.loads(done.stdout.splitlines()[-1])
    assert not bad
    assert full or free > 8192, "the disk was not full"
