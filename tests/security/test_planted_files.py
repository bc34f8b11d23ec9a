"""Files that a stranger plants in a table's folder: of a size that takes no disk, and such that never end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path

import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import StoreRefusedError, UnsupportedFeatureError
from lance_core.io.limits import LIMIT_VARIABLE, limit_of
from lance_core.io.local.store import LocalStore
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.edits import DeleteSpec

TOOL = Path(__file__).with_name("planted_files.py")
KINDS = ("_versions/*.manifest", "_refs/tags/*.json", "_deletions/*", "_indices/*/checksums", "_indices/*/*.lance",
         "_lance_core/staged/*.json", "_transactions/*.txn", "data/*.lance", "_versions/latest_version_hint.json",
         "_lance_core/decisions/*.json", "_refs/branches/*.json", "tree/*/_versions/*.manifest")  # fmt: skip
NAMES = (f"_versions/{2**64 - 1 - 4}.manifest", "_versions/x.manifest", "_versions/4.manifest", "data/x.lance",
         "_deletions/0-9-9.arrow", "_deletions/x", "_indices/x", f"_indices/{uuid.UUID(int=7)}/page_data.lance",
         "_transactions/x.txn", "_refs/tags/more.json", "_refs/tags/x.json", "_refs/branches/more.json",
         "_refs/branches/x.json", "tree/more", "tree/x", "_lance_core/staged/x.json", "_lance_core/x", "x")  # fmt: skip


@pytest.fixture
def table(tmp_path: Path) -> Path:
    uri = str(tmp_path / "t")
    lance_core.write_dataset(pa.table({"id": pa.array(range(30), pa.int64())}), uri)
    found = lance_core.dataset(uri)
    found.create_scalar_index("id", "BTREE")
    found.delete("id in (3, 14)")
    found.tags.create("good", 2)
    found.create_branch("side")
    run_job(DeleteSpec(uri=uri, predicate="id = 9", identity=str(uuid.UUID(int=9))))
    return tmp_path / "t"


def _ended(table: Path, how: str, name: str) -> dict[str, str]:
    command = [sys.executable, str(TOOL), str(table), how, name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    assert not [text for text in found.values() if "ESCAPED" in text], found
    return found


@pytest.mark.parametrize("kind", [*KINDS[:8], *(pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS[8:])])
def test_a_sparse_file_is_not_read_whole(table: Path, kind: str) -> None:
    """40 GB that take no disk were read, before any limit, by whoever looked."""
    assert list(table.glob(kind)), kind
    ended = _ended(table, "sparse", kind)
    assert any(ended.values()) or kind.startswith(("_transactions", "_indices", "data")), "somebody reads it"


@pytest.mark.parametrize("kind", [*KINDS[:8], *(pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS[8:])])
def test_a_pipe_holds_nobody(table: Path, kind: str) -> None:
    assert list(table.glob(kind)), kind
    _ended(table, "pipe", kind)


@pytest.mark.parametrize("how", ["pipe", "sparse", "folder", "socket"])
@pytest.mark.parametrize("name", [NAMES[0], *(pytest.param(name, marks=pytest.mark.slow) for name in NAMES[1:])])
def test_a_name_that_nobody_gave(table: Path, name: str, how: str) -> None:
    """What is listed, and the names that the next writer would give."""
    assert not list(table.glob(name)), name
    _ended(table, how, name)


def test_a_limit_is_named_and_can_be_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalStore(tmp_path)
    store.put("_refs/tags/a.json", b"x" * 1000)
    assert limit_of("_refs/tags/a.json") == 256 << 20
    monkeypatch.setenv(LIMIT_VARIABLE, "999")
    with pytest.raises(UnsupportedFeatureError, match=f"1,000 bytes.*at most 999.*set {LIMIT_VARIABLE}"):
        store.get("_refs/tags/a.json")
    store.copy_if_absent("_refs/tags/a.json", "b")
    monkeypatch.setenv(LIMIT_VARIABLE, "1000")
    assert bytes(store.get("_refs/tags/a.json")) == b"x" * 1000


def test_a_pipe_is_refused_by_name(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a")
    with pytest.raises(StoreRefusedError, match="'a' is neither a file nor a folder"):
        LocalStore(tmp_path).get("a")
