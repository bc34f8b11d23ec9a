"""The log at scale: many fragments, many versions, many staged appends; work on metadata, hardly any on data.

The many fragments are one real data file that the manifest names again and again under new fragment ids, as both libraries
allow: writing thousands of files would measure the file system. Rates mean nothing here; the ratios do.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import lance
import pyarrow as pa

import lance_core
from bench.measure import Case
from lance_core.dataset.write_fragments import write_fragments
from lance_core.table.transaction import Transaction

_OPEN = r"""
import json, re, time, lance_core
lance_core.dataset
started = time.perf_counter()
count = lance_core.dataset({uri!r}).count_rows()
seconds = time.perf_counter() - started
# Not getrusage: its peak counts the process that started this one.
peak = re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())
print(json.dumps([count, seconds, int(peak[1]) / 1024]))
"""

_FAR = 1_000_000
_ONE_ROW = f"id = {_FAR}"
"""Matches a row of the last fragment; no fragment can be left out without looking at its data."""


def cases(folder: Path, scale: float) -> Iterator[Case]:
    """10,000 fragments, 1,000 versions, 100 staged appends, a manifest of 100,000 fragments."""
    yield from _many_fragments(folder, int(10_000 * scale))
    yield from _many_versions(folder, int(1_000 * scale))
    yield from _staged_appends(folder, 100)
    yield from _large_manifest(folder, int(100_000 * scale))


def _rows(start: int = 0, count: int = 100) -> pa.Table:
    return pa.table({"id": pa.array(range(start, start + count), pa.int64())})


def _repeated(uri: str, count: int) -> None:
    """A table of `count` fragments that share one data file."""
    made = lance.write_dataset(_rows(), uri)
    metadata = made.get_fragments()[0].metadata
    operation = lance.LanceOperation.Append([metadata] * (count - 1))
    lance.LanceDataset.commit(uri, operation, read_version=made.version)


class _Copies:
    """A table of each contender's own, copied anew before each timed call that changes it."""

    def __init__(self, source: Path, folder: Path) -> None:
        self._source = source
        self._folder = folder

    def uri(self, contender: str) -> str:
        return str(self._folder / f"{contender}.lance")

    def renew(self, contender: str) -> None:
        shutil.rmtree(self.uri(contender), ignore_errors=True)
        shutil.copytree(self._source, self.uri(contender))


def _changing(
    name: str, source: Path, folder: Path, ours: Callable[[str], object], theirs: Callable[[str], object], repeats: int
) -> Case:
    copies = _Copies(source, folder)
    contenders: dict[str, Callable[[], object]] = {
        "lance_core": lambda: ours(copies.uri("lance_core")),
        "pylance": lambda: theirs(copies.uri("pylance")),
    }
    return Case(name, contenders, before=copies.renew, repeats=repeats)


def _reading(name: str, ours: Callable[[], object], theirs: Callable[[], object]) -> Case:
    return Case(name, {"lance_core": ours, "pylance": theirs})


def _append_ours(uri: str) -> object:
    return lance_core.write_dataset(_rows(), uri, mode="append").version


def _append_theirs(uri: str) -> object:
    return lance.write_dataset(_rows(), uri, mode="append").version


def _delete_ours(uri: str) -> object:
    return lance_core.dataset(uri).delete(_ONE_ROW)


def _delete_theirs(uri: str) -> object:
    return lance.dataset(uri).delete(_ONE_ROW)


def _many_fragments(folder: Path, count: int) -> Iterator[Case]:
    source = folder / "fragments.lance"
    _repeated(str(source), count - 1)
    uri = str(source)
    lance.write_dataset(_rows(_FAR, 1), uri, mode="append")
    label = f"{count} fragments"
    yield _reading(
        f"{label}: open and count",
        lambda: lance_core.dataset(uri).count_rows(),
        lambda: lance.dataset(uri).count_rows(),
    )
    yield _changing(f"{label}: append", source, folder, _append_ours, _append_theirs, 5)
    yield _changing(f"{label}: delete one row", source, folder, _delete_ours, _delete_theirs, 3)


def _many_versions(folder: Path, count: int) -> Iterator[Case]:
    source = folder / "versions.lance"
    for number in range(count):
        lance_core.write_dataset(_rows(number, 1), str(source), mode="append" if number else "create")
    uri = str(source)
    label = f"{count} versions"
    yield _reading(f"{label}: open latest", lambda: lance_core.dataset(uri).version, lambda: lance.dataset(uri).version)
    opened, official = lance_core.dataset(uri), lance.dataset(uri)
    yield _reading(f"{label}: versions()", lambda: len(opened.versions()), lambda: len(official.versions()))
    yield _changing(f"{label}: append", source, folder, _append_ours, _append_theirs, 5)


def _staged_appends(folder: Path, count: int) -> Iterator[Case]:
    """Both contenders are ours: one commit of one append, and one commit of many that were staged apart."""
    source = folder / "staged.lance"
    uri = str(source)
    lance_core.write_dataset(_rows(), uri)
    operations = [_staged(uri, number) for number in range(count)]
    copies = _Copies(source, folder)
    yield Case(
        f"{count} staged appends into one version",
        {
            "lance_core": lambda: (
                lance_core.LanceDataset.commit_batch(copies.uri("lance_core"), operations)["dataset"].version
            ),
            "one append": lambda: (
                lance_core.LanceDataset.commit_batch(copies.uri("one append"), operations[:1])["dataset"].version
            ),
        },
        before=copies.renew,
        repeats=5,
    )


def _staged(uri: str, number: int) -> Transaction:
    """A transaction whose fragments are written, but not committed."""
    made = write_fragments(_rows(number), uri, return_transaction=True)
    assert isinstance(made, Transaction)
    return made


def _large_manifest(folder: Path, count: int) -> Iterator[Case]:
    uri = str(folder / "large.lance")
    _repeated(uri, count)
    printed = subprocess.run([sys.executable, "-c", _OPEN.format(uri=uri)], check=True, capture_output=True).stdout
    _, seconds, megabytes = json.loads(printed)
    yield Case(
        f"{count} fragments: open and count",
        {"lance_core": lambda: lance_core.dataset(uri).count_rows(), "pylance": lambda: lance.dataset(uri).count_rows()},
        notes={"seconds in a fresh process": seconds, "peak MiB of that process": megabytes},
    )
