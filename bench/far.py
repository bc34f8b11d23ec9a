"""Both libraries on an object store that is far: `python -m bench.far --latency-ms 30 --megabytes-per-second 50`.

Each operation runs on a table of 100 fragments, or one of many versions, that each library wrote for itself. Requests, depth
(the longest chain of requests one after the other) and bytes are counted at the server: they are the same on any machine.
"""

from __future__ import annotations

import argparse
import datetime as dt
from collections.abc import Callable, Iterator
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import lance_core
from bench.object_client import RunningServer, Traffic, object_server
from lance_core.io.cache import shared_cache

LIBRARIES: dict[str, Any] = {"lance_core": lance_core, "official": lance}
Action = Callable[[], object]


def rows(start: int, count: int) -> pa.Table:
    """Numbers, floats and short texts."""
    rng = np.random.default_rng(start)
    ids = np.arange(start, start + count)
    texts = pa.array([f"text {number * 7919 % 100_003} and more" for number in ids.tolist()])
    return pa.table({"id": ids, "x": rng.normal(size=count), "y": rng.normal(size=count), "s": texts})


def operations(library: Any, place: str, options: dict[str, str], scale: float) -> Iterator[tuple[str, Action]]:
    """What is measured, in order; the tables are made here, before the first of them."""
    fragments, size, versions = 100, max(50, int(20_000 * scale)), max(5, int(300 * scale))
    many, log = f"{place}/many", f"{place}/log"
    library.write_dataset(rows(0, fragments * size), many, storage_options=options, max_rows_per_file=size)
    library.write_dataset(rows(0, 100), log, storage_options=options)
    for number in range(versions):
        library.write_dataset(rows(number, 1), log, mode="append", storage_options=options)
    picks = np.sort(np.random.default_rng(1).choice(fragments * size, 200, replace=False)).tolist()

    def open_many() -> Any:
        return library.dataset(many, storage_options=options)

    source = rows(100, 50)
    yield "open and count", lambda: open_many().count_rows()
    yield "append 10 rows", lambda: library.write_dataset(rows(0, 10), log, mode="append", storage_options=options)
    yield "take 200 rows of 100 fragments", lambda: open_many().take(picks)
    yield "to_batches", lambda: sum(batch.num_rows for batch in open_many().to_batches())
    yield "to_table", lambda: open_many().to_table()
    yield "to_table of one column", lambda: open_many().to_table(columns=["x"])
    yield "count_rows(filter)", lambda: open_many().count_rows("id % 3 = 0")
    yield "delete one row by value", lambda: open_many().delete("id = 777")
    yield "update one row", lambda: open_many().update({"y": "1.5"}, where="id = 4")
    yield "merge_insert of 50 rows", lambda: open_many().merge_insert("id").when_matched_update_all().execute(source)
    yield "compact 100 fragments", lambda: open_many().optimize.compact_files()
    yield (
        f"clean up {versions} versions",
        lambda: library.dataset(log, storage_options=options).cleanup_old_versions(dt.timedelta(0)),
    )


def measure(
    server: RunningServer, *, latency_ms: float, megabytes_per_second: float, scale: float
) -> dict[str, list[Traffic]]:
    """The traffic of each operation, by library in the order of `LIBRARIES`."""
    found: dict[str, list[Traffic]] = {}
    for name, library in LIBRARIES.items():
        for title, action in operations(library, f"s3://bench/{name}", server.options, scale):
            shared_cache().clear()
            server.set_speed(latency_ms=latency_ms, megabytes_per_second=megabytes_per_second)
            with server.watch() as seen:
                action()
            server.set_speed(latency_ms=0, megabytes_per_second=0)
            found.setdefault(title, []).append(seen)
    return found


def table_of(found: dict[str, list[Traffic]]) -> str:
    """Markdown: ours / the official library's."""
    lines = ["| operation | requests | depth | MB | ms | ratio |", "|---|---|---|---|---|---|"]
    for title, (ours, theirs) in found.items():
        size = f"{ours.num_bytes / 1e6:.1f} / {theirs.num_bytes / 1e6:.1f}"
        wall = f"{ours.seconds * 1000:,.0f} / {theirs.seconds * 1000:,.0f} | {ours.seconds / theirs.seconds:.2f}"
        counts = f"{ours.requests:,} / {theirs.requests:,} | {ours.depth} / {theirs.depth}"
        lines.append(f"| {title} | {counts} | {size} | {wall} |")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency-ms", type=float, default=30.0)
    parser.add_argument("--megabytes-per-second", type=float, default=50.0)
    parser.add_argument("--scale", type=float, default=1.0)
    given = parser.parse_args()
    with object_server() as server:
        measure(server, latency_ms=0, megabytes_per_second=0, scale=0.02)  # compiles kernels, imports what is imported late
    with object_server() as server:
        speed = {"latency_ms": given.latency_ms, "megabytes_per_second": given.megabytes_per_second}
        print(table_of(measure(server, scale=given.scale, **speed)))


if __name__ == "__main__":
    main()
