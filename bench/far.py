"""Both libraries on an object store that is far: `python -m bench.far --latency-ms 30 --megabytes-per-second 50`.

Each operation runs on a fresh copy of a table of 100 fragments, or of one of many versions, that each library wrote for
itself; the libraries take turns, `--repeat` times after a round that is not counted. Requests, depth (the longest chain of
requests one after the other) and bytes are counted at the server: they are the same on any machine. Times are medians.
"""

from __future__ import annotations

import argparse
import datetime as dt
import resource
import statistics
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import lance_core
from bench.object_client import RunningServer, Traffic, object_server
from lance_core.io.cache import shared_cache

LIBRARIES: Mapping[str, Any] = {"lance_core": lance_core, "official": lance}
FRAGMENTS = 100
_WARM_ROWS = 200_000
MANY, LOG = "many", "log"


@dataclass(frozen=True)
class Place:
    """A copy of a table, and the library that it is for."""

    library: Any
    uri: str
    options: dict[str, str]

    def open(self) -> Any:
        """A handle just opened."""
        return self.library.dataset(self.uri, storage_options=self.options)

    def append(self, rows: pa.Table) -> None:
        """What users write most."""
        self.library.write_dataset(rows, self.uri, mode="append", storage_options=self.options)


@dataclass(frozen=True)
class Operation:
    """What is measured, on a copy of one of the tables."""

    title: str
    table: str
    run: Callable[[Place], object]


def rows(start: int, count: int) -> pa.Table:
    """Numbers, floats and short texts."""
    rng = np.random.default_rng(start)
    ids = np.arange(start, start + count)
    texts = pa.array([f"text {number * 7919 % 100_003} and more" for number in ids.tolist()])
    return pa.table({"id": ids, "x": rng.normal(size=count), "y": rng.normal(size=count), "s": texts})


def operations(size: int, versions: int) -> Iterator[Operation]:
    """All of them, for tables of FRAGMENTS fragments of `size` rows and of so many versions."""
    picks = np.sort(np.random.default_rng(1).choice(FRAGMENTS * size, 200, replace=False)).tolist()
    few, source = rows(0, 10), rows(100, 50)
    yield Operation("open and count", MANY, lambda table: table.open().count_rows())
    yield Operation("append 10 rows", LOG, lambda table: table.append(few))
    yield Operation("take 200 rows of 100 fragments", MANY, lambda table: table.open().take(picks))
    yield Operation("`to_batches`", MANY, lambda table: sum(batch.num_rows for batch in table.open().to_batches()))
    yield Operation("`to_table`", MANY, lambda table: table.open().to_table())
    yield Operation("`to_table` of one column", MANY, lambda table: table.open().to_table(columns=["x"]))
    yield Operation("`count_rows(filter)`", MANY, lambda table: table.open().count_rows("id % 3 = 0"))
    yield Operation("delete one row by value", MANY, lambda table: table.open().delete("id = 777"))
    yield Operation("update one row", MANY, lambda table: table.open().update({"y": "1.5"}, where="id = 4"))
    yield Operation(
        "`merge_insert` of 50 rows",
        MANY,
        lambda table: table.open().merge_insert("id").when_matched_update_all().execute(source),
    )
    yield Operation("compact 100 fragments", MANY, lambda table: table.open().optimize.compact_files())
    title = f"clean up {versions} versions"
    yield Operation(title, LOG, lambda table: table.open().cleanup_old_versions(dt.timedelta(0)))


def make_tables(server: RunningServer, size: int, versions: int) -> None:
    """The tables of both libraries, at full speed."""
    for name, library in LIBRARIES.items():
        place, options = f"s3://bench/{name}", server.options
        many = rows(0, FRAGMENTS * size)
        library.write_dataset(many, f"{place}/{MANY}", storage_options=options, max_rows_per_file=size)
        library.write_dataset(rows(0, 100), f"{place}/{LOG}", storage_options=options)
        for number in range(versions):
            library.write_dataset(rows(number, 1), f"{place}/{LOG}", mode="append", storage_options=options)


def measure(
    server: RunningServer, wanted: Sequence[Operation], *, latency_ms: float, megabytes_per_second: float, repeat: int
) -> dict[str, dict[str, list[Traffic]]]:
    """The traffic of each run of each operation, by title and library; the first run of each is left out."""
    found: dict[str, dict[str, list[Traffic]]] = {}
    for operation in wanted:
        runs = found.setdefault(operation.title, {name: [] for name in LIBRARIES})
        for number in range(repeat + 1):
            for name, library in LIBRARIES.items():
                place = Place(library, f"s3://bench/{uuid.uuid4().hex}/t", server.options)
                server.copy(f"s3://bench/{name}/{operation.table}", place.uri)
                shared_cache().clear()
                server.set_speed(latency_ms=latency_ms, megabytes_per_second=megabytes_per_second)
                with server.watch() as seen:
                    operation.run(place)
                server.set_speed(latency_ms=0, megabytes_per_second=0)
                if number:
                    runs[name].append(seen)
    return found


def measure_write(server: RunningServer, *, latency_ms: float, megabytes_per_second: float, size: int) -> str:
    """A row of the table about a large write; each library in a process of its own, for its memory."""
    cells = []
    for name in LIBRARIES:
        server.set_speed(latency_ms=latency_ms, megabytes_per_second=megabytes_per_second)
        command = [sys.executable, "-m", "bench.far", "--write", name, "--endpoint", str(server.port), "--size", str(size)]
        with server.watch() as seen:
            told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        server.set_speed(latency_ms=0, megabytes_per_second=0)
        seconds, peak = map(float, told.split())
        cells.append((seen, seconds, peak))
    (ours, our_seconds, our_peak), (theirs, their_seconds, their_peak) = cells
    title = f"write {ours.num_bytes / 1e6:.0f} MB (peak {our_peak:.0f} / {their_peak:.0f} MB)"
    return _line(title, ours, theirs, our_seconds, their_seconds)


def write_here(name: str, port: int, size: int) -> None:
    """Write one table in this process and print seconds and the peak of memory over that of the rows, in megabytes."""
    server = RunningServer(port)
    numbers = np.random.default_rng(0).integers(0, 1 << 62, size)
    table = pa.table({"id": numbers, "x": numbers * 1.5, "s": pa.array(numbers[::-1].astype("S19").astype(str))})
    # As many rows as make lance_core load its compiled kernels: what a process needs once is not part of either time.
    few, options = table.slice(0, _WARM_ROWS), server.options
    LIBRARIES[name].write_dataset(few, f"s3://bench/{uuid.uuid4().hex}", storage_options=options)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with server.watch() as seen:
        LIBRARIES[name].write_dataset(table, f"s3://bench/{uuid.uuid4().hex}", storage_options=options)
    print(seen.seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)


def table_of(found: Mapping[str, Mapping[str, Sequence[Traffic]]]) -> str:
    """Markdown: ours / the official library's; the run of the median time stands for its counts."""
    lines = ["| operation | requests | depth | MB | ms | ratio |", "|---|---|---|---|---|---|"]
    for title, runs in found.items():
        ours, theirs = (_median(runs[name]) for name in LIBRARIES)
        lines.append(_line(title, ours, theirs, ours.seconds, theirs.seconds))
    return "\n".join(lines)


def _median(runs: Sequence[Traffic]) -> Traffic:
    middle = statistics.median_low(run.seconds for run in runs)
    return next(run for run in runs if run.seconds == middle)


def _line(title: str, ours: Traffic, theirs: Traffic, seconds: float, their_seconds: float) -> str:
    size = f"{ours.num_bytes / 1e6:.1f} / {theirs.num_bytes / 1e6:.1f}"
    wall = f"{seconds * 1000:,.0f} / {their_seconds * 1000:,.0f} | {seconds / their_seconds:.2f}"
    return f"| {title} | {ours.requests:,} / {theirs.requests:,} | {ours.depth} / {theirs.depth} | {size} | {wall} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency-ms", type=float, default=30.0)
    parser.add_argument("--megabytes-per-second", type=float, default=50.0)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--only", default="", help="operations whose title has this text")
    parser.add_argument("--write", choices=LIBRARIES, help=argparse.SUPPRESS)
    parser.add_argument("--endpoint", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--size", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.write:
        write_here(given.write, given.endpoint, given.size)
        return
    size, versions = max(50, int(20_000 * given.scale)), max(5, int(300 * given.scale))
    wanted = [item for item in operations(size, versions) if given.only in item.title]
    speed = {"latency_ms": given.latency_ms, "megabytes_per_second": given.megabytes_per_second}
    with object_server() as server:
        make_tables(server, size, versions)
        print(table_of(measure(server, wanted, repeat=given.repeat, **speed)), flush=True)
        if given.only in "write":
            print(measure_write(server, size=int(6_000_000 * given.scale), **speed))


if __name__ == "__main__":
    main()
