"""Cost curves of both libraries: ten and a hundred times as many fragments, versions, rows, columns, staged appends, tags.

::

    python -m bench.growth --figure docs/figures/growth.svg

One process, both libraries in turn, the least processor time of three; each has a copy of the same table. Processor time
hardly depends on what else the machine does; of an operation in threads it is the sum, without waiting for the disk.
"""

from __future__ import annotations

import argparse
import datetime as dt
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import lance_core
from bench.plot import Panel, draw
from lance_core.commit.loop import commit_transaction
from lance_core.io.resolve import resolve_store
from lance_core.table.operations import Append
from lance_core.table.transaction import Transaction

LIBRARIES: dict[str, Any] = {"lance_core": lance_core, "official": lance}
Action = Callable[[Any, str], object]
Steps = Iterator[tuple[int, Callable[[str], None], dict[str, Action]]]
"""Of one quantity: how many, what makes the table at a place, and what is done with it."""


@dataclass
class Curve:
    """Milliseconds of one operation by library, at each of some sizes."""

    sizes: list[int] = field(default_factory=list)
    found: dict[str, list[float]] = field(default_factory=dict)


def fragments() -> Steps:
    """Entries of one manifest that all name one data file."""
    for count in (1_000, 10_000, 100_000):

        def make(place: str, count: int = count) -> None:
            made = lance_core.write_dataset(pa.table({"a": [1, 2, 3]}), place)
            entry = replace(made.snapshot.manifest.fragments[0], id=0)
            transaction = Transaction(1, str(uuid.uuid4()), Append((entry,) * (count - 1)))
            commit_transaction(resolve_store(place), transaction)

        yield (
            count,
            make,
            {
                "open and count": lambda library, place: library.dataset(place).count_rows(),
                "open and take a row": lambda library, place: library.dataset(place).take([7]),
                "append a row": lambda library, place: library.write_dataset(pa.table({"a": [1]}), place, mode="append"),
            },
        )


def versions() -> Steps:
    """Appends of one row."""
    for count in (10, 100, 1_000):

        def make(place: str, count: int = count) -> None:
            options = {"local_fsync": "false"}
            for number in range(count):
                rows_of = pa.table({"a": [number]})
                lance_core.write_dataset(rows_of, place, mode="append" if number else "create", storage_options=options)

        yield (
            count,
            make,
            {
                "open": lambda library, place: library.dataset(place).version,
                "versions()": lambda library, place: library.dataset(place).versions(),
                "clean up": lambda library, place: library.dataset(place).cleanup_old_versions(dt.timedelta(0)),
            },
        )


def rows() -> Steps:
    """Two columns of numbers."""
    for count in (100_000, 1_000_000, 10_000_000):

        def make(place: str, count: int = count) -> None:
            rng = np.random.default_rng(0)
            lance_core.write_dataset(pa.table({"a": rng.integers(0, 1 << 40, count), "x": rng.normal(size=count)}), place)

        yield (
            count,
            make,
            {
                "scan": lambda library, place: library.dataset(place).to_table(),
                "count with a filter": lambda library, place: library.dataset(place).count_rows("a % 7 = 3"),
                "build a B-tree": lambda library, place: library.dataset(place).create_scalar_index("a", "BTREE"),
            },
        )


def columns() -> Steps:
    """Of 1,000 rows."""
    for count in (10, 100, 1_000):

        def make(place: str, count: int = count) -> None:
            lance_core.write_dataset(pa.table({f"c{number}": np.arange(1_000) + number for number in range(count)}), place)

        yield (
            count,
            make,
            {
                "open and read five": lambda library, place: library.dataset(place).to_table(columns=_FIVE),
                "scan": lambda library, place: library.dataset(place).to_table(),
                "take a row": lambda library, place: library.dataset(place).take([7]),
            },
        )


def staged() -> Steps:
    """Appends that are committed as one version."""
    for count in (10, 100, 1_000):

        def make(place: str) -> None:
            lance_core.write_dataset(pa.table({"a": [1, 2, 3]}), place)

        def commit(library: Any, place: str, count: int = count) -> None:
            handle = library.dataset(place)
            (first, *_) = library.fragment.write_fragments(pa.table({"a": [4]}), place)
            operation = library.LanceOperation.Append([first])
            work = [library.Transaction(handle.version, operation, str(uuid.uuid4())) for _ in range(count)]
            library.LanceDataset.commit_batch(place, work)

        yield count, make, {"commit_batch": commit}


def tags() -> Steps:
    """All of one version."""
    for count in (10, 100, 1_000):

        def make(place: str, count: int = count) -> None:
            handle = lance_core.write_dataset(pa.table({"a": [1]}), place)
            for number in range(count):
                handle.tags.create(f"tag{number}", 1)

        yield (
            count,
            make,
            {
                "list": lambda library, place: library.dataset(place).tags.list(),
                "open by tag": lambda library, place: library.dataset(place, version="tag7").count_rows(),
            },
        )


_FIVE = [f"c{number}" for number in range(5)]
QUANTITIES: dict[str, Callable[[], Steps]] = {
    item.__name__: item for item in (fragments, versions, rows, columns, staged, tags)
}


def measure(names: list[str], *, repeats: int) -> dict[str, dict[str, Curve]]:
    """Curves by quantity and operation."""
    found: dict[str, dict[str, Curve]] = {}
    for name in names:
        for count, make, actions in QUANTITIES[name]():
            with tempfile.TemporaryDirectory(prefix="lance-growth-") as folder:
                make(f"{folder}/table")
                for title, action in actions.items():
                    curve = found.setdefault(name, {}).setdefault(title, Curve())
                    curve.sizes.append(count)
                    for library in LIBRARIES:
                        best = min(_time(action, library, folder) for _ in range(repeats))
                        curve.found.setdefault(library, []).append(best)
                        print(f"{name} {count:,} {title} {library}: {best:,.1f} ms", flush=True)
    return found


def _time(action: Action, library: str, folder: str) -> float:
    place = Path(folder) / "copy"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(Path(folder) / "table", place)
    began = time.process_time()
    action(LIBRARIES[library], str(place))
    return (time.process_time() - began) * 1000


def table_of(found: dict[str, dict[str, Curve]]) -> str:
    """Markdown: ours / the official library's, in milliseconds of processor time."""
    lines = ["| quantity | operation | sizes | lance_core / official, ms |", "|---|---|---|---|"]
    for name, curves in found.items():
        for title, curve in curves.items():
            pairs = zip(curve.found["lance_core"], curve.found["official"], strict=True)
            cells = ", ".join(f"{ours:,.1f} / {theirs:,.1f}" for ours, theirs in pairs)
            sizes = ", ".join(f"{size:,}" for size in curve.sizes)
            lines.append(f"| {name} | {title} | {sizes} | {cells} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=[*QUANTITIES])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--figure", type=Path)
    given = parser.parse_args()
    found = measure(given.only or [*QUANTITIES], repeats=given.repeats)
    print(table_of(found))
    if given.figure is not None:
        panels = [
            Panel(f"{name}: {title}", curve.sizes, curve.found)
            for name, curves in found.items()
            for title, curve in curves.items()
        ]
        given.figure.write_text(draw(panels), encoding="utf-8")


if __name__ == "__main__":
    main()
