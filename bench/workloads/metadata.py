"""The log at scale: many fragments, many versions, many staged appends; work on metadata, hardly any on data.

The 10,000 fragments are real: 100 rows and a data file each. Those of the large manifest are one data file named again and
again under new fragment ids, as both libraries allow: only the manifest is read.
Rates mean nothing here; the ratios do.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import lance
import pyarrow as pa
from lance.fragment import write_fragments as write_fragments_official

import lance_core
from bench.installed import as_installed
from bench.measure import Case
from lance_core.commit.naming import new_attempt
from lance_core.dataset.handle.write_fragments import write_fragments
from lance_core.io.resolve import resolve_store
from lance_core.publish.commit import commit_staged
from lance_core.publish.model import StagedTransaction
from lance_core.publish.stage import begin_attempt, finish_attempt
from lance_core.table.transaction import Transaction

_OPEN = r"""
import json, re, time
began = time.perf_counter()
from lance_core.dataset.handle.open import dataset
started = time.perf_counter()
count = dataset({uri!r}).count_rows()
seconds = time.perf_counter() - started
# Not getrusage: its peak counts the process that started this one.
peak = re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())
print(json.dumps([started - began, seconds, int(peak[1]) / 1024]))
"""

_APPENDS = """
import pyarrow as pa, {library}
rows = pa.table({{"id": pa.array(range(100), pa.int64())}})
for _ in range({times}):
    {library}.write_dataset(rows, {uri!r}, mode="append", storage_options={options})
"""

_FRAGMENT_ROWS = 100


def cases(folder: Path, scale: float) -> Iterator[Case]:
    """10,000 fragments, 1,000 versions, 100 staged appends, a manifest of 100,000 fragments."""
    yield from _many_fragments(folder, int(10_000 * scale))
    yield from _many_versions(folder, int(1_000 * scale))
    yield from _one_by_one(folder, int(50 * scale) + 1)
    yield from _staged_appends(folder, 100)
    yield from _many_staged(folder, 100, int(1_000 * scale))
    yield from _large_manifest(folder, int(100_000 * scale))


def _rows(start: int = 0, count: int = _FRAGMENT_ROWS) -> pa.Table:
    return pa.table({"id": pa.array(range(start, start + count), pa.int64())})


def _repeated(uri: str, count: int) -> None:
    """A table of `count` fragments that share one data file."""
    made = lance.write_dataset(_rows(), uri)
    metadata = made.get_fragments()[0].metadata
    operation = lance.LanceOperation.Append([metadata] * (count - 1))
    lance.LanceDataset.commit(uri, operation, read_version=made.version)


class _Copies:
    """A separate table for each contender, created again before each timed call that changes it.

    Data and manifests are linked; the small files that a commit removes are real ones, for freeing a file takes its time.
    """

    def __init__(self, source: Path, folder: Path) -> None:
        self._source = source
        self._folder = folder

    def uri(self, contender: str) -> str:
        return str(self._folder / f"{contender}.lance")

    def renew(self, contender: str) -> None:
        shutil.rmtree(self.uri(contender), ignore_errors=True)
        shutil.copytree(self._source, self.uri(contender), copy_function=_link_or_copy)
        os.sync()


def _link_or_copy(source: str, target: str) -> None:
    parts = Path(source).parts
    if "_lance_core" in parts or "_transactions" in parts:
        shutil.copy2(source, target)
    else:
        os.link(source, target)


def _changing(
    name: str, source: Path, folder: Path, ours: Callable[[str], object], theirs: Callable[[str], object], repeats: int
) -> Case:
    """Side by side, and once more without waiting for the disk: pylance never asks it to write (no fsync)."""
    copies = _Copies(source, folder)
    contenders: dict[str, Callable[[], object]] = {
        "lance_core": lambda: ours(copies.uri("lance_core")),
        "pylance": lambda: theirs(copies.uri("pylance")),
        "no fsync": lambda: _without_sync(partial(ours, copies.uri("no fsync"))),
    }
    return Case(name, contenders, before=copies.renew, repeats=repeats, check=_same)


def _without_sync(work: Callable[[], object]) -> object:
    with mock.patch.object(os, "fsync", return_value=None):
        return work()


def _reading(name: str, ours: Callable[[], object], theirs: Callable[[], object]) -> Case:
    return Case(name, {"lance_core": ours, "pylance": theirs}, check=_same)


def _same(results: Mapping[str, object]) -> None:
    """All contenders must have come to the same: a number of rows, a version, a count of what they did."""
    first, *others = results.items()
    for name, result in others:
        if result != first[1]:
            raise AssertionError(f"{first[0]}: {str(first[1])[:300]}, but {name}: {str(result)[:300]}")


def _append(library: Any, uri: str) -> object:
    return library.write_dataset(_rows(), uri, mode="append").version


def _delete(library: Any, uri: str, predicate: str) -> object:
    return library.dataset(uri).delete(predicate)


def _many_fragments(folder: Path, count: int) -> Iterator[Case]:
    source = folder / "fragments.lance"
    uri, label, rows = str(source), f"{count} fragments", count * _FRAGMENT_ROWS
    lance.write_dataset(_rows(count=rows), uri, max_rows_per_file=_FRAGMENT_ROWS, max_rows_per_group=_FRAGMENT_ROWS)
    # A row near the end: no fragment can be left out without looking at its data.
    by_value, by_address = f"id = {rows - 50}", f"_rowaddr = {count - 1 << 32 | 7}"
    yield _reading(
        f"{label}: open and count",
        lambda: lance_core.dataset(uri).count_rows(),
        lambda: lance.dataset(uri).count_rows(),
    )
    yield _reading(
        f"{label}: filter that matches one row",
        lambda: lance_core.dataset(uri).to_table(filter=by_value).to_pylist(),
        lambda: lance.dataset(uri).to_table(filter=by_value).to_pylist(),
    )
    yield _reading(
        f"{label}: read all rows",
        lambda: lance_core.dataset(uri).to_table().num_rows,
        lambda: lance.dataset(uri).to_table().num_rows,
    )
    works: tuple[tuple[str, Callable[[Any, str], object]], ...] = (
        ("append", _append),
        ("delete one row", lambda library, uri: _delete(library, uri, by_value)),
        ("delete one row by address", lambda library, uri: _delete(library, uri, by_address)),
    )
    for name, work in works:
        yield _changing(f"{label}: {name}", source, folder, partial(work, lance_core), partial(work, lance), 7)


def _many_versions(folder: Path, count: int) -> Iterator[Case]:
    source = folder / "versions.lance"
    for number in range(count):
        lance_core.write_dataset(_rows(number, 1), str(source), mode="append" if number else "create")
    uri = str(source)
    label = f"{count} versions"
    yield _reading(f"{label}: open latest", lambda: lance_core.dataset(uri).version, lambda: lance.dataset(uri).version)
    opened, official = lance_core.dataset(uri), lance.dataset(uri)
    yield _reading(f"{label}: versions()", lambda: _numbers(opened.versions()), lambda: _numbers(official.versions()))
    yield _changing(f"{label}: append", source, folder, partial(_append, lance_core), partial(_append, lance), 9)


def _one_by_one(folder: Path, count: int) -> Iterator[Case]:
    """Small commits that follow one another: deletes of one handle, appends of eight processes."""
    source = folder / "one_by_one.lance"
    lance.write_dataset(_rows(count=10_000), str(source))

    def delete(library: Any, uri: str) -> object:
        table = library.dataset(uri)
        for number in range(count):
            table.delete(f"id = {number * 97}")
        return table.count_rows()

    yield _changing(f"{count} deletes of one row", source, folder, partial(delete, lance_core), partial(delete, lance), 5)
    copies, times = _Copies(source, folder), count // 10 + 1
    contenders: dict[str, Callable[[], object]] = {
        "lance_core": lambda: _append_at_once("lance_core", copies.uri("lance_core"), times),
        "pylance": lambda: _append_at_once("lance", copies.uri("pylance"), times),
        "no fsync": lambda: _append_at_once("lance_core", copies.uri("no fsync"), times, {"local_fsync": "false"}),
    }
    yield Case(f"8 processes append {times} times each", contenders, before=copies.renew, repeats=5, check=_same)


def _append_at_once(library: str, uri: str, times: int, options: Mapping[str, str] | None = None) -> object:
    code = _APPENDS.format(library=library, uri=uri, times=times, options=options)
    running = [subprocess.Popen([sys.executable, "-c", code], env=as_installed()) for _ in range(8)]
    ended = [process.wait() for process in running]
    if any(ended):
        raise AssertionError(f"a process that appends with {library} failed")
    return lance_core.dataset(uri).count_rows()


def _numbers(versions: list[Any]) -> object:
    """What both libraries say of versions; the times differ by a microsecond's rounding."""
    return [(item["version"], int(item["metadata"]["total_rows"])) for item in versions]


def _staged_appends(folder: Path, count: int) -> Iterator[Case]:
    """Appends that were staged apart, committed in one version: as bare transactions, and exactly once by the service."""
    source = folder / "staged.lance"
    uri = str(source)
    lance_core.write_dataset(_rows(), uri)
    ours = [_staged(uri, number) for number in range(count)]
    theirs = [write_fragments_official(_rows(number), uri, return_transaction=True) for number in range(count)]
    copies = _Copies(source, folder)
    yield Case(
        f"{count} staged appends into one version",
        {
            "lance_core": lambda: _batch(lance_core, copies.uri("lance_core"), ours),
            "pylance": lambda: _batch(lance, copies.uri("pylance"), theirs),
        },
        before=copies.renew,
        repeats=5,
        check=_same,
    )
    yield Case(
        "one staged append into one version",
        {
            "lance_core": lambda: _batch(lance_core, copies.uri("lance_core"), ours[:1]),
            "pylance": lambda: _batch(lance, copies.uri("pylance"), theirs[:1]),
        },
        before=copies.renew,
        repeats=5,
        check=_same,
    )
    yield from _exactly_once(source, folder, count, "one version")


def _many_staged(folder: Path, count: int, fragments: int) -> Iterator[Case]:
    """The commit task on a larger table: the time in the table's commit pool."""
    source = folder / "staged_many.lance"
    lance.write_dataset(_rows(count=fragments * 10), str(source), max_rows_per_file=10, max_rows_per_group=10)
    yield from _exactly_once(source, folder, count, f"a version of {fragments} fragments")


def _exactly_once(source: Path, folder: Path, count: int, label: str) -> Iterator[Case]:
    copies = _Copies(source, folder)
    refs = [_staged_once(str(source), number) for number in range(count)]
    yield Case(
        f"{count} exactly-once appends into {label}",
        {
            "lance_core": partial(_commit_once, copies.uri("lance_core"), refs),
            "one append": partial(_commit_once, copies.uri("one append"), refs[:1]),
        },
        before=copies.renew,
        repeats=9,
    )


def _batch(library: Any, uri: str, transactions: list[Any]) -> object:
    made = library.LanceDataset.commit_batch(uri, transactions)["dataset"]
    return made.version, made.count_rows()


def _staged(uri: str, number: int) -> Transaction:
    """A transaction whose fragments are written, but not committed."""
    made = write_fragments(_rows(number), uri, return_transaction=True)
    assert isinstance(made, Transaction)
    return made


def _staged_once(uri: str, number: int) -> StagedTransaction:
    """A write with an identity, as a task stages it: registered, written, finished."""
    store = resolve_store(uri)
    identity = f"{number:08d}-0000-4000-8000-{new_attempt()[:12]}"
    attempt = begin_attempt(store, identity=identity, spec={"number": number}, read_version=1)
    made = _staged(uri, number)
    return finish_attempt(store, attempt, made, rows=_FRAGMENT_ROWS, bytes=0)


def _commit_once(uri: str, refs: list[StagedTransaction]) -> object:
    result = commit_staged(resolve_store(uri), refs)
    if result.num_versions != 1 or result.rows_added != len(refs) * _FRAGMENT_ROWS:
        raise AssertionError(f"expected all of {len(refs)} in one version, got {result}")
    return result


def _large_manifest(folder: Path, count: int) -> Iterator[Case]:
    uri = str(folder / "large.lance")
    _repeated(uri, count)
    command = [sys.executable, "-c", _OPEN.format(uri=uri)]
    for _ in range(2):  # the first one leaves the bytecode
        printed = subprocess.run(command, check=True, capture_output=True, env=as_installed()).stdout
    importing, seconds, megabytes = json.loads(printed)
    yield Case(
        f"{count} fragments: open and count",
        {"lance_core": lambda: lance_core.dataset(uri).count_rows(), "pylance": lambda: lance.dataset(uri).count_rows()},
        check=_same,
        notes={
            "seconds in a fresh process": seconds,
            "seconds of its imports": importing,
            "peak MiB of that process": megabytes,
        },
    )
