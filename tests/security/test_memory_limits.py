"""A shortage of memory is reported as one: never as damage, never untyped, and nothing is lost by it."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import zstandard

import lance_core
from lance_core.errors import CorruptFileError, InputError, MemoryShortageError, StoreError
from lance_core.file.error_location import located
from lance_core.shortage import BATCH_VARIABLE, shortage_of, tells_shortages

TOOL = Path(__file__).with_name("memory_verbs.py")


SHORTAGES = [
    MemoryError(),
    OSError(errno.ENOMEM, "Cannot allocate memory"),
    RuntimeError("can't start new thread"),
    ImportError("libx.so: failed to map segment from shared object"),
    zstandard.ZstdError("zstd decompress error: Allocation error : not enough memory"),
]


@pytest.mark.parametrize("error", SHORTAGES, ids=repr)
def test_a_shortage_is_no_damage(error: Exception) -> None:
    """Of whichever library it is, and also where a reader has taken it for damage on its way."""
    with pytest.raises(MemoryShortageError, match=rf"ulimit -v.*{BATCH_VARIABLE}") as told, located("data/a.lance"):
        tells_shortages(_raise)(error)
    assert told.value.retryable
    with pytest.raises(MemoryShortageError), located("data/a.lance"):
        _raise(CorruptFileError("it ends early"), error)
    with pytest.raises(MemoryShortageError):
        tells_shortages(_raise)(InputError("it cannot be evaluated"), error)


def test_a_claim_of_more_than_anyone_has_is_damage() -> None:
    """A forged size is asked for, and refused by the same error as a shortage."""
    with pytest.raises(CorruptFileError), located("data/a.lance"):
        np.empty(1 << 60, np.uint8)
    with pytest.raises(CorruptFileError), located("data/a.lance"):
        pa.allocate_buffer(1 << 50)


def test_other_errors_pass() -> None:
    """What is no shortage stays what it is, whatever it says."""
    for error in (
        ValueError("not enough memory of yesterday"),
        OSError(errno.ENOSPC, "full"),
        KeyError("x"),
        InputError("no"),
    ):
        assert shortage_of(error) is None
    told = shortage_of(ImportError("libx.so: cannot open shared object file: Too many open files"))
    assert isinstance(told, StoreError)
    assert "ulimit -n" in str(told)


def _raise(error: Exception, cause: Exception | None = None) -> None:
    raise error from cause


def test_batches_are_bounded_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of 40 KB that compress to nothing: 8,192 of them were one batch of 320 MB."""
    uri = str(tmp_path / "t")
    row = "word " * 8000
    numbers = pa.table({"id": pa.array(range(9000), pa.int64())})
    lance_core.write_dataset(numbers, uri)
    held = lance_core.dataset(uri)
    held.add_columns({"text": f"concat('{row}', CAST(id AS STRING))"})
    monkeypatch.setenv(BATCH_VARIABLE, str(16 << 20))
    batches = [(batch.num_rows, batch.nbytes) for batch in lance_core.dataset(uri).to_batches()]
    assert sum(rows for rows, _ in batches) == 9000
    assert max(size for _, size in batches) <= 18 << 20
    wide = [batch.nbytes for batch in lance_core.dataset(uri).to_batches(filter="id >= 0")]
    assert max(wide) <= 18 << 20


def test_verbs_under_a_small_limit(tmp_path: Path) -> None:
    """One process, warm, which may then have little more than it has: each verb does it or names the shortage."""
    uri = tmp_path / "t"
    _tool("make", str(uri), "6000")
    ended = json.loads(_tool("under", str(uri), "4").splitlines()[-1])
    assert not {verb: text for verb, text in ended.items() if text != "ok" and not text.startswith("MemoryShortageError")}
    assert any(text != "ok" for text in ended.values()), "the limit bites"


@pytest.mark.slow
def test_every_verb_under_ulimit(tmp_path: Path) -> None:
    """`ulimit -v` from the first import on, a process for each verb, a table of 450 MB of which 62 MB are on disk."""
    _tool("sweep", str(tmp_path), "100000", "1000,2000,4000", seconds=7200)
    found = [json.loads(line) for line in (tmp_path / "ended.jsonl").read_text().splitlines()]
    assert not [item for item in found if item["wrong"]]
    assert any(item["ended"].startswith("MemoryShortageError") for item in found), "the limits bite"


def _tool(*arguments: str, seconds: float = 600) -> str:
    command = [sys.executable, str(TOOL), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
