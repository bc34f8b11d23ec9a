"""A process without file handles: what a verb still has to import or to open ends typed, and the table is as it was."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import lance_core

CHILD = """
import json, os, resource, sys
uri, verb, left, opens = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "opens"
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
del sys.modules["resource"]
import lance_core
from lance_core.errors import LanceError
table = (lambda held: lambda: held)(None if opens else lance_core.dataset(uri))
if opens:
    table = lambda: lance_core.dataset(uri)
verbs = {
    "scan": lambda: table().to_table(filter="id > 3"),
    "nearest": lambda: table().to_table(nearest={"column": "v", "q": [1.0, 2.0], "k": 3}),
    "delete": lambda: table().delete("id = 3"),
    "compact": lambda: table().optimize.compact_files(),
    "index": lambda: table().create_scalar_index("s", "INVERTED"),
    "append": lambda: lance_core.write_dataset(table().to_table(limit=1), uri, mode="append"),
}
held = []
try:
    while True:
        held.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
for _ in range(left):
    os.close(held.pop())
try:
    verbs[verb]()
    ended = "ok"
except LanceError as error:
    ended = f"typed {error}"
except BaseException as error:
    ended = f"{type(error).__name__}: {error}"
for handle in held:
    try:
        os.close(handle)
    except OSError:
        pass
print(json.dumps(ended), flush=True)
"""


def _ended(uri: str, verb: str, left: int, first: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, uri, verb, str(left), first], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return str(json.loads(done.stdout.splitlines()[-1]))


VERBS = ("scan", "nearest", "delete", "compact", "index", "append")


@pytest.mark.parametrize(
    ("verb", "left", "first"),
    [("scan", 0, "opens"), ("delete", 0, "has opened"), ("append", 1, "opens"),
     *(pytest.param(verb, left, first, marks=pytest.mark.slow)
       for verb in VERBS for left in (0, 1, 2, 3) for first in ("opens", "has opened"))],
)  # fmt: skip
def test_a_process_without_file_handles(tmp_path: Path, verb: str, left: int, first: str) -> None:
    """An import raised a raw OSError, which an orchestrator takes for an unknown fault."""
    uri = str(tmp_path / "t.lance")
    vectors = pa.array([[1.0, float(number)] for number in range(40)], pa.list_(pa.float32(), 2))
    rows = pa.table({"id": range(40), "s": [f"r{number % 3}" for number in range(40)], "v": vectors})
    lance_core.write_dataset(rows, uri, max_rows_per_file=10)
    ended = _ended(uri, verb, left, first)
    assert ended == "ok" or (ended.startswith("typed") and "Too many open files" in ended), ended
    assert ended != "ok" or left, "nothing was asked for"
    if ended != "ok":
        assert lance_core.dataset(uri).to_table() == rows
