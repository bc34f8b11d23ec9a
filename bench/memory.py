"""The peak of memory of work on large tables, both libraries: `python -m bench.memory --folder /big/disk`.

Each piece of work is done by a process of its own, on a copy (data files are linked) of one table that the official library
wrote. A peak is that of the process less what it held when its library was loaded and the table open. The goal is
1 GiB, or one and a half times the official library's peak where that is more.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.large import rows as numbers

LIBRARIES = ("lance_core", "lance")
GOAL_MIB = 1024.0
Make = Callable[[int], Iterator[pa.RecordBatch]]

_BATCH = 100_000
_ROWS_PER_FILE = 500_000


def documents(count: int) -> Iterator[pa.RecordBatch]:
    """Texts of eight words out of 50,000, common ones more often; two labels of 500 each."""
    rng = np.random.default_rng(1)
    words = np.array([f"w{number:05d}" for number in range(50_000)])
    for start in range(0, count, _BATCH):
        size = min(_BATCH, count - start)
        drawn = words[np.minimum(rng.zipf(1.3, (size, 8)), len(words)) - 1]
        labels = [f"label {number}" for number in rng.integers(0, 500, 2 * size).tolist()]
        lists = pa.ListArray.from_arrays(np.arange(0, 2 * size + 1, 2, dtype=np.int32), pa.array(labels))
        yield pa.RecordBatch.from_pydict({"text": pa.array([" ".join(row) for row in drawn.tolist()]), "labels": lists})


def update(library: Any, place: str, rows: int) -> None:
    library.dataset(place).update({"x": "x + 1"})


def compact(library: Any, place: str, rows: int) -> None:
    library.dataset(place).optimize.compact_files()


def _merge(key: str, step: int) -> Callable[[Any, str, int], None]:
    def merge(library: Any, place: str, rows: int) -> None:
        new = pa.RecordBatchReader.from_batches(next(numbers(1)).schema, _every(numbers(rows), step))
        library.dataset(place).merge_insert(key).when_matched_update_all().when_not_matched_insert_all().execute(new)

    return merge


def _every(batches: Iterator[pa.RecordBatch], step: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.take(pa.array(range(0, batch.num_rows, step)))


def _build(column: str, kind: str) -> Callable[[Any, str, int], None]:
    def build(library: Any, place: str, rows: int) -> None:
        library.dataset(place).create_scalar_index(column, kind)

    return build


def compare(library: Any, place: str, rows: int) -> None:
    assert library.dataset(place).check_indices() == 1


@dataclass(frozen=True)
class Work:
    """A piece of work on a table; `indexed` columns have a B-tree of the official library before it."""

    name: str
    make: Make
    call: Callable[[Any, str, int], None]
    rows: tuple[int, ...]
    indexed: str = ""
    only_here: bool = False


_SIZES = (2_000_000, 10_000_000, 30_000_000)
WORKS = {
    work.name: work
    for work in (
        Work("update", numbers, update, _SIZES),
        Work("compact", numbers, compact, _SIZES),
        Work("compact_indexed", numbers, compact, _SIZES[1:], indexed="id"),
        Work("merge_half", numbers, _merge("id", 2), _SIZES),
        Work("merge_half_texts", numbers, _merge("s", 2), _SIZES),
        Work("merge_few", numbers, _merge("id", 1_000), (20_000_000, 50_000_000)),
        Work("merge_few_texts", numbers, _merge("s", 1_000), (20_000_000,)),
        Work("btree", numbers, _build("id", "BTREE"), (5_000_000, 50_000_000)),
        Work("btree_texts", numbers, _build("s", "BTREE"), (5_000_000, 50_000_000)),
        Work("compare", numbers, compare, (10_000_000,), indexed="id", only_here=True),
        Work("bitmap", numbers, _build("kind", "BITMAP"), (2_000_000, 20_000_000)),
        Work("label_list", documents, _build("labels", "LABEL_LIST"), (400_000, 4_000_000)),
        Work("ngram", documents, _build("text", "NGRAM"), (200_000, 2_000_000)),
        Work("inverted", documents, _build("text", "INVERTED"), (200_000, 2_000_000)),
    )
}


def _peak() -> float:
    # Not getrusage: its peak counts the process that started this one.
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


def _child(library: str, work: Work, place: str, rows: int) -> None:
    module = importlib.import_module(library)
    module.dataset(place).count_rows()
    base, began = _peak(), time.perf_counter()
    work.call(module, place, rows)
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds, cpu = time.perf_counter() - began, used.ru_utime + used.ru_stime
    print(json.dumps({"peak": _peak() - base, "seconds": seconds, "cpu": cpu}))


def _by_table(names: Iterable[str], scale: float) -> dict[tuple[Make, str, int], list[Work]]:
    found: dict[tuple[Make, str, int], list[Work]] = {}
    for work in (WORKS[name] for name in names):
        for rows in work.rows:
            found.setdefault((work.make, work.indexed, int(rows * scale)), []).append(work)
    return dict(sorted(found.items(), key=lambda item: (item[0][0].__name__, item[0][2])))


def _table(folder: Path, make: Make, rows: int, indexed: str) -> Path:
    import lance  # not in the children that measure lance_core

    place = folder / "source.lance"
    shutil.rmtree(place, ignore_errors=True)
    reader = pa.RecordBatchReader.from_batches(next(make(1)).schema, make(rows))
    made = lance.write_dataset(reader, str(place), max_rows_per_file=_ROWS_PER_FILE)
    if indexed:
        made.create_scalar_index(indexed, "BTREE")
    return place


def _measure(folder: Path, source: Path, library: str, work: Work, rows: int) -> dict[str, float]:
    place = folder / f"{library}.lance"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(source, place, copy_function=os.link)
    command = [sys.executable, "-m", "bench.memory", "--folder", str(folder), "--child", library, work.name, str(rows)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    shutil.rmtree(place)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _row(work: Work, rows: int, ours: dict[str, float], theirs: dict[str, float] | None) -> str:
    goal = max(GOAL_MIB, 1.5 * theirs["peak"]) if theirs else GOAL_MIB
    others = f"{theirs['peak']:,.0f} MiB, {theirs['seconds']:.1f} s" if theirs else "no counterpart"
    verdict = "met" if ours["peak"] <= goal else "MISSED"
    mine = f"{ours['peak']:,.0f} MiB, {ours['seconds']:.1f} s"
    return f"| {work.name} | {rows:,} | {mine} | {others} | {goal:,.0f} MiB {verdict} |"


def main() -> None:
    """All of it, or what `--only` names; or one piece of work, as a child."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="tables are made here, and removed; 10 GB at full scale")
    parser.add_argument("--only", choices=[*WORKS], action="append")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--child", nargs=3, metavar=("LIBRARY", "WORK", "ROWS"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        library, name, rows = given.child
        _child(library, WORKS[name], str(given.folder / f"{library}.lance"), int(rows))
        return
    given.folder.mkdir(parents=True, exist_ok=True)
    print("| work | rows | lance_core | official library | goal |\n|---|---|---|---|---|", flush=True)
    for (make, indexed, rows), works in _by_table(given.only or [*WORKS], given.scale).items():
        source = _table(given.folder, make, rows, indexed)
        for work in works:
            libraries = LIBRARIES[:1] if work.only_here else LIBRARIES
            found = [_measure(given.folder, source, library, work, rows) for library in libraries]
            print(_row(work, rows, found[0], found[1] if len(found) > 1 else None), flush=True)
        shutil.rmtree(source)


if __name__ == "__main__":
    main()
