"""Folders that cannot be written, disks that cannot be read, clocks that are wrong: typed, and no row lost or changed."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest import mock

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import FormatError, InputError, LanceError, StoreError
from tests.io.hanging_stores import build, verbs

ROOT = Path(__file__).resolve().parents[2]
READS = ("scan", "filter", "take", "nearest", "search", "log", "tag", "branch", "stats", "validate", "doctor")
IDLE = ("optimize", "collect", "cleanup")
"""Verbs that may find nothing to do."""

WITHOUT_WRITING = """
import json, sys
sys.path.insert(0, sys.argv[2])
from lance_core.errors import LanceError
from tests.io.hanging_stores import verbs
ended = {}
for name, verb in verbs(sys.argv[1]).items():
    try:
        verb()
        ended[name] = ["", False]
    except LanceError as error:
        ended[name] = [type(error).__name__, error.retryable]
    except BaseException as error:
        ended[name] = [f"ESCAPED {error!r}", False]
print(json.dumps(ended))
"""
AS_NOBODY = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
"""Root whom the permissions of files bind."""
MOUNTED = ("unshare", "-m", "sh", "-c", 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"')


def _may(*command: str) -> bool:
    if os.name != "posix" or shutil.which(command[0]) is None:
        return False
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _digests(place: Path) -> dict[str, str]:
    return {
        str(path.relative_to(place)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in place.rglob("*")
        if path.is_file()
    }


def _ended_without_writing(table: Path, *before: str) -> dict[str, list[Any]]:
    command = [*before, sys.executable, "-c", WITHOUT_WRITING, str(table), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, list[Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("how", ["permissions", "mounted"])
def test_a_folder_that_cannot_be_written(tmp_path: Path, how: str) -> None:
    """Reads work; whatever would write is refused at once, by one error without a retry."""
    table = tmp_path / "t.lance"
    build(str(table))
    before = _digests(table)
    if how == "mounted":
        if not _may(*MOUNTED[:4], MOUNTED[4], str(table), "true"):
            pytest.skip("this user may not mount")
        ended = _ended_without_writing(table, *MOUNTED, str(table))
    else:
        is_root = os.geteuid() == 0
        if is_root and not _may(*AS_NOBODY, "true"):
            pytest.skip("root cannot give up its rights here")
        folders = [table, *(path for path in table.rglob("*") if path.is_dir())]
        for folder in folders:
            folder.chmod(0o555)
        try:
            ended = _ended_without_writing(table, *(AS_NOBODY if is_root else ()))
        finally:
            for folder in folders:
                folder.chmod(0o755)
    assert {name: ended[name] for name in READS} == {name: ["", False] for name in READS}
    refused = ["StoreRefusedError", False]
    assert {name: told for name, told in ended.items() if name not in READS + IDLE and told != refused} == {}
    assert not [told for told in ended.values() if told[0] not in ("", "StoreRefusedError")]
    assert _digests(table) == before


class Reads:
    """The n-th read of the table's files fails, and with `stays` all behind it."""

    def __init__(self, at: int, *, stays: bool) -> None:
        self.at, self.stays, self.calls = at, stays, 0

    def hit(self, path: object) -> None:
        self.calls += 1
        if self.calls == self.at or (self.stays and self.calls > self.at):
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))


@contextmanager
def _unreadable(table: Path, reads: Reads) -> Iterator[None]:
    """What opens, lists and reads below a folder goes through `reads`."""
    opened: set[int] = set()

    def looked(call: Callable[..., Any]) -> Callable[..., Any]:
        def looks(path: Any = ".", *given: Any, **named: Any) -> Any:
            is_ours = isinstance(path, str | Path) and str(path).startswith(f"{table}/")
            if is_ours:
                reads.hit(path)
            found = call(path, *given, **named)
            if call is really_open:
                (opened.add if is_ours else opened.discard)(found)
            return found

        return looks

    def pread(fd: int, *given: Any) -> bytes:
        if fd in opened:
            reads.hit(fd)
        return really_pread(fd, *given)

    really_open, really_pread = os.open, os.pread
    with (
        mock.patch.object(os, "open", looked(os.open)),
        mock.patch.object(os, "pread", pread),
        mock.patch.object(os, "scandir", looked(os.scandir)),
        mock.patch.object(os, "listdir", looked(os.listdir)),
        mock.patch.object(os, "stat", looked(os.stat)),
    ):
        yield


def _rows(uri: str) -> list[int]:
    return sorted(lance.dataset(uri).to_table(columns=["id"])["id"].to_pylist())


def _tried(good: Path, work: Path, verb: str, at: int, *, stays: bool, allowed: list[list[int]]) -> str:
    """One verb on a copy of the table whose `at`-th read fails; what is wrong with its end."""
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(good, work)
    wrong = ""
    with _unreadable(work, Reads(at, stays=stays)):
        try:
            verbs(str(work))[verb]()
        except FormatError as error:
            wrong = f"damage is told of a sound table: {error}"
        except LanceError:
            pass
        except BaseException as error:
            wrong = f"untyped {error!r}"
    lance_core.dataset(str(work)).validate(deep=True)
    if verb in READS and _digests(good) != _digests(work):
        wrong += " a reader wrote"
    now = _rows(str(work))
    return wrong if now in allowed else f"{wrong} rows {now}"


def _counted(good: Path, work: Path, verb: str) -> tuple[int, list[int]]:
    """How many reads a verb makes when none fails, and the rows behind it."""
    shutil.copytree(good, work)
    reads = Reads(0, stays=False)
    with _unreadable(work, reads):
        verbs(str(work))[verb]()
    return reads.calls, _rows(str(work))


@pytest.mark.parametrize("stays", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("verb", ["scan", "delete", *(pytest.param(verb, marks=pytest.mark.slow) for verb in verbs(""))])
def test_a_disk_that_cannot_be_read(tmp_path: Path, verb: str, stays: bool) -> None:
    """EIO at reads: an error of the store, never of the format, and the table is what it was or what it should become."""
    good, work = tmp_path / "good.lance", tmp_path / "work.lance"
    build(str(good))
    total, after = _counted(good, work, verb)
    assert total > 1
    allowed, step = [_rows(str(good)), after], max(1, total // 12)
    bad = {at: _tried(good, work, verb, at, stays=stays, allowed=allowed) for at in range(1, total + 1, step)}
    assert not {at: told for at, told in bad.items() if told}


CLOCKS = {"1970": 0.0, "1969": -3.6e8, "2099": 4.07e9, "2300": 1.04e10}


@contextmanager
def _clock(*moments: float) -> Iterator[None]:
    """Looks at the clock are answered by these moments in turn."""
    looks = [0]

    def now() -> float:
        looks[0] += 1
        return moments[looks[0] % len(moments)]

    with mock.patch.object(time, "time", now), mock.patch.object(time, "time_ns", lambda: int(now() * 1e9)):
        yield


@pytest.mark.parametrize("name", CLOCKS)
@pytest.mark.parametrize("jumps", [False, True], ids=["wrong", "jumping"])
def test_a_clock_that_is_wrong(tmp_path: Path, name: str, jumps: bool) -> None:
    """Rows are those of the verbs, whatever the time was; a moment that cannot be stored is a typed error."""
    table = tmp_path / "t.lance"
    build(str(table))
    moments = (CLOCKS[name], time.time(), CLOCKS[name] + 86400) if jumps else (CLOCKS[name],)
    wanted = {number for number in range(40) if number not in (3,)}
    with _clock(*moments):
        for verb, action in verbs(str(table)).items():
            if verb in ("restore", "collect", "cleanup"):
                continue
            try:
                action()
            except LanceError:
                continue
            wanted ^= {"append": {100}, "delete": {5}, "stage": {9}}.get(verb, set())
    assert _rows(str(table)) == sorted(wanted)
    lance_core.dataset(str(table)).validate(deep=True)


def test_a_time_that_no_manifest_has_is_refused_before_anything_is_published(tmp_path: Path) -> None:
    """A version of 1969 was published, and nobody could open the table any more."""
    uri = str(tmp_path / "t.lance")
    table: Any = lance_core.write_dataset(pa.table({"id": [1, 2]}), uri)
    before = _digests(tmp_path)
    for moment in (-1.0, 253_402_300_800.0):
        with _clock(moment), pytest.raises(InputError, match=r"1970 to 9999\. Set the clock"):
            table.delete("id = 1")
    assert {name for name in _digests(tmp_path) if "_lance_core/" not in name} == before.keys()
    assert lance_core.dataset(uri).count_rows() == 2


@pytest.mark.parametrize("name", ["1970", "2099"])
def test_a_collection_by_a_wrong_clock_takes_nothing_that_is_published(tmp_path: Path, name: str) -> None:
    """It may take what somebody stages at the moment, as any collection that is told to; never rows."""
    table = tmp_path / "t.lance"
    build(str(table))
    before = _rows(str(table))
    with _clock(CLOCKS[name]):
        for verb in ("collect", "cleanup"):
            with suppress(InputError):  # of a tagged version, which is old by this clock
                verbs(str(table))[verb]()
    assert _rows(str(table)) == before
    lance_core.dataset(str(table)).validate(deep=True)


def test_a_disk_that_cannot_be_read_is_no_damage_of_an_index_that_must_be_used(tmp_path: Path) -> None:
    """`strict_index` says what is wrong: the store, not the index."""
    table = tmp_path / "t.lance"
    build(str(table))
    table = Path(shutil.copytree(table, tmp_path / "unknown.lance"))  # nothing of it is in a cache
    reads, really_open = Reads(1, stays=True), os.open

    def broken(path: Any, *given: Any, **named: Any) -> int:
        if "/_indices/" in str(path):
            reads.hit(path)
        return really_open(path, *given, **named)

    held: Any = lance_core.dataset(str(table))
    with mock.patch.object(os, "open", broken), pytest.raises(StoreError, match="Input/output error"):
        held.to_table(filter="id = 8", strict_index=True)
    assert reads.calls


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_both_forms_of_a_word_are_names_of_tables_one_of_branches(tmp_path: Path, form: str) -> None:
    """Nothing is normalised on the way. A letter may be of any alphabet; an accent by itself is none, as officially."""
    name = unicodedata.normalize(form, "caf\u00e9")
    uri = str(tmp_path / name)
    table: Any = lance_core.write_dataset(pa.table({"id": [1]}), uri)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    theirs = lance.dataset(uri)
    assert theirs.to_table().to_pylist() == [{"id": 1}]
    if form == "NFD":
        with pytest.raises(InputError):
            table.create_branch(name)
        with pytest.raises(OSError):
            theirs.create_branch(name)
        return
    theirs.create_branch(f"{name}/theirs")
    lance_core.write_dataset(pa.table({"id": [2]}), table.create_branch(f"{name}/ours").uri, mode="append")
    for held in (lance.dataset(uri), lance_core.dataset(uri)):
        assert sorted(held.branches.list()) == [f"{name}/ours", f"{name}/theirs"]
        assert held.checkout_version((f"{name}/theirs", None)).to_table().to_pylist() == [{"id": 1}]
        assert held.checkout_version((f"{name}/ours", None)).to_table().to_pylist() == [{"id": 1}, {"id": 2}]
