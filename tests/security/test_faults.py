"""A full disk, a quota, a broken one, no permission: typed errors, nothing left behind, the table as before."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import CommitStateUnknownError, LanceError, StoreError, StoreRefusedError
from lance_core.io.local import writer as writer_module
from lance_core.io.resolve import resolve_store
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.edits import DeleteSpec
from lance_core.jobs.specs.spec import CommitSpec
from lance_core.publish.collect import collect_garbage

REFUSED = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS)
FAILED = (errno.EIO, errno.EMFILE, errno.EINTR)
ROWS = pa.table({"id": range(100, 110), "s": [f"n{number}" for number in range(10)]})


def _stage(uri: str) -> object:
    staged: Any = run_job(DeleteSpec(uri=uri, predicate="id = 9"))
    return run_job(CommitSpec.of([staged], uri=uri))


VERBS: dict[str, Callable[[str], object]] = {
    "append": lambda uri: lance_core.write_dataset(ROWS, uri, mode="append"),
    "overwrite": lambda uri: lance_core.write_dataset(ROWS, uri, mode="overwrite"),
    "delete": lambda uri: lance_core.dataset(uri).delete("id < 5"),
    "update": lambda uri: lance_core.dataset(uri).update({"s": "'new'"}, where="id = 3"),
    "merge": lambda uri: lance_core.dataset(uri).merge_insert("id").when_not_matched_insert_all().execute(ROWS),
    "compact": lambda uri: lance_core.dataset(uri).optimize.compact_files(),
    "index": lambda uri: lance_core.dataset(uri).create_scalar_index("s", "BTREE", replace=True),
    "add columns": lambda uri: lance_core.dataset(uri).add_columns({"t": "id + 1"}),
    "tag": lambda uri: lance_core.dataset(uri).tags.create("x", 1),
    "branch": lambda uri: lance_core.dataset(uri).create_branch("side"),
    "job": _stage,
}


class Faults:
    """The n-th call that touches the disk fails; calls are counted over all of them."""

    def __init__(self, code: int, at: int) -> None:
        self.code, self.at, self.calls = code, at, 0

    def hit(self, call: str) -> None:
        self.calls += 1
        if self.calls >= self.at:  # a full disk stays full
            raise OSError(self.code, os.strerror(self.code), call)


class FullFile:
    """A file on a disk with faults; as of Python, closing it flushes, which fails once more."""

    def __init__(self, inner: Any, faults: Faults) -> None:
        self._inner, self._faults = inner, faults

    def write(self, data: Any) -> int:
        self._faults.hit("write")
        return int(self._inner.write(data))

    def flush(self) -> None:
        self._faults.hit("flush")
        self._inner.flush()

    def close(self) -> None:
        try:
            self._faults.hit("close")
        finally:
            self._inner.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __enter__(self) -> FullFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Callable[[Faults | None], None]:
    """`broken(faults)` puts the disk out of order, `broken(None)` mends it."""
    create, real = writer_module._create, {name: getattr(os, name) for name in ("fsync", "replace", "link", "mkdir")}

    def set_faults(faults: Faults | None) -> None:
        monkeypatch.setattr(writer_module, "_create", create if faults is None else lambda path: made(path, faults))
        for name, action in real.items():
            monkeypatch.setattr(writer_module.os, name, action if faults is None else failing(name, action, faults))

    def made(path: str, faults: Faults) -> FullFile:
        faults.hit("create")
        return FullFile(create(path), faults)

    def failing(name: str, action: Callable[..., Any], faults: Faults) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            faults.hit(name)
            return action(*given, **named)

        return call

    return set_faults


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("good") / "t.lance"
    rows = pa.table({"id": range(20), "s": [f"row {number}" for number in range(20)]})
    lance_core.write_dataset(rows, str(place), max_rows_per_file=5)
    return place


def _copy(good: Path, place: Path) -> str:
    for path in good.rglob("*"):
        if path.is_file():
            target = place / path.relative_to(good)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    return str(place)


def _files(uri: str) -> Iterator[Path]:
    return (path for path in Path(uri).rglob("*") if path.is_file())


def _count(uri: str, verb: str, broken: Callable[[Faults | None], None]) -> int:
    """How many calls a verb makes when none fails."""
    faults = Faults(0, 10**9)
    broken(faults)
    VERBS[verb](uri)
    broken(None)
    return faults.calls


def _check(good: Path, place: Path, verb: str, code: int, at: int, broken: Callable[[Faults | None], None]) -> None:
    uri = _copy(good, place)
    before = lance.dataset(uri).to_table().to_pylist()
    version = lance.dataset(uri).version
    broken(Faults(code, at))
    failed = None
    try:
        VERBS[verb](uri)
    except LanceError as error:
        failed = error
    finally:
        broken(None)
    where = (verb, errno.errorcode[code], at)
    unfinished = [path for path in _files(uri) if path.name.endswith(".unfinished")]
    assert not unfinished, where
    if isinstance(failed, StoreError) and code in REFUSED and type(failed) is StoreRefusedError:
        assert not failed.retryable, where
    if failed is not None and lance.dataset(uri).version == version:
        assert lance.dataset(uri).to_table().to_pylist() == before, where
        with suppress(LanceError):
            collect_garbage(resolve_store(uri), now=4e9)
        if isinstance(failed, CommitStateUnknownError):  # its files may be those of a version, for all that the writer knew
            lance_core.dataset(uri).cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
        left = {str(path.relative_to(uri)) for path in _files(uri)} - {
            str(path.relative_to(good)) for path in _files(str(good))
        }
        left = {name for name in left if not name.startswith(("_lance_core/", "_versions/latest"))}
        assert not {name for name in left if name.startswith("data/")}, (where, left)
    lance_core.dataset(uri).validate()


@pytest.mark.parametrize("verb", VERBS)
def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, good: Path, verb: str, broken: Any) -> None:
    total = _count(_copy(good, tmp_path / "dry"), verb, broken)
    assert total > 2
    for number, at in enumerate(sorted({1, 2, total // 2, total - 1})):
        _check(good, tmp_path / str(number), verb, errno.ENOSPC, max(at, 1), broken)


@pytest.mark.slow
@pytest.mark.parametrize("code", [*REFUSED, *FAILED], ids=lambda code: errno.errorcode[code])
@pytest.mark.parametrize("verb", VERBS)
def test_every_call_of_every_verb_may_fail(tmp_path: Path, good: Path, verb: str, code: int, broken: Any) -> None:
    total = _count(_copy(good, tmp_path / "dry"), verb, broken)
    for at in range(1, total + 1):
        _check(good, tmp_path / str(at), verb, code, at, broken)


@pytest.mark.parametrize("code", REFUSED)
def test_what_a_retry_cannot_mend_is_not_retryable(tmp_path: Path, code: int, broken: Any) -> None:
    store = resolve_store(str(tmp_path / "t"))
    for at in range(1, 5):
        broken(Faults(code, at))
        with pytest.raises(StoreRefusedError) as caught:
            store.put("a/b", b"x" * 10)
        broken(None)
        assert not caught.value.retryable
        assert not [path for path in tmp_path.rglob("*") if path.is_file()]


class ShortWrites(io.RawIOBase):
    """A disk that takes a few bytes at a time, and that a signal interrupts before each."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._file, self.calls = open(path, "xb", buffering=0), 0  # noqa: PTH123, SIM115

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.calls += 1
        if self.calls % 2:
            raise InterruptedError(errno.EINTR, "a signal")
        return self._file.write(bytes(memoryview(data)[:7]))

    def fileno(self) -> int:
        return self._file.fileno()

    def close(self) -> None:
        super().close()
        self._file.close()


def test_short_and_interrupted_writes_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "_create", lambda path: io.BufferedWriter(ShortWrites(path), 64))
    uri = str(tmp_path / "t")
    rows = pa.table({"id": range(50), "s": [f"row {number}" for number in range(50)]})
    lance_core.write_dataset(rows, uri)
    assert lance.dataset(uri).to_table() == rows


def test_a_folder_that_cannot_be_listed_is_not_an_empty_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = resolve_store(str(tmp_path))
    store.put("data/a", b"x")
    real = os.scandir

    def scandir(path: Any) -> Any:
        if str(path).endswith("data"):
            raise OSError(errno.EIO, "broken", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(StoreError):
        list(store.list(""))
