"""What keeping a declared column true costs: `python -m bench.declared_columns --rows 10000000 --folder /large`.

The column is made by a function of 20 us a row from texts of 200 bytes. Each figure is processor time of this process,
beside the function alone over the rows that have to be computed; bytes are those read from data files.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import lance_core
from lance_core.io.local.store import LocalStore

FUNCTION = "bench.declared_columns:slow_length"
MICROSECONDS = 20
TEXT_BYTES = 200
CHUNK = 100_000


def slow_length(batch: pa.RecordBatch) -> Any:
    """The length of each text, as if it took 20 us."""
    end = time.thread_time() + batch.num_rows * MICROSECONDS / 1e6
    column: Any = batch.column("text")
    made = pc.binary_length(column)
    while time.thread_time() < end:
        sum(range(200))
    return made


@dataclass
class Reads:
    """Bytes that were read from data files."""

    num_bytes: int = 0
    files: set[str] = field(default_factory=set)

    def add(self, path: str, size: int) -> None:
        if path.startswith("data/"):
            self.num_bytes += size
            self.files.add(path)


@contextlib.contextmanager
def counted() -> Iterator[Reads]:
    """Counts the reads of local stores in the block."""
    reads, plain, scattered = Reads(), LocalStore.get_ranges, LocalStore.get_scattered

    def get_ranges(self: LocalStore, path: str, ranges: Any) -> Any:
        found = plain(self, path, ranges)
        reads.add(path, sum(memoryview(item).nbytes for item in found))
        return found

    def get_scattered(self: LocalStore, path: str, asked: Any) -> Any:
        for joint in scattered(self, path, asked):
            reads.add(path, joint.data.nbytes)
            yield joint

    LocalStore.get_ranges, LocalStore.get_scattered = get_ranges, get_scattered  # type: ignore[method-assign]
    try:
        yield reads
    finally:
        LocalStore.get_ranges, LocalStore.get_scattered = plain, scattered  # type: ignore[method-assign]


def texts(first: int, count: int) -> pa.Table:
    """Rows with texts of 200 bytes, no two alike."""
    keys = np.arange(first, first + count)
    heads = pc.utf8_lpad(pa.array(keys).cast(pa.string()), TEXT_BYTES, "x")
    return pa.table({"key": keys, "text": heads})


def with_values(rows: pa.Table) -> pa.Table:
    return rows.append_column("length", pc.binary_length(rows["text"]).cast(pa.int32()))


def build(uri: str, rows: int) -> None:
    """The table, its column filled and trusted."""
    schema = with_values(texts(0, 1)).schema
    batches = (
        batch
        for first in range(0, rows, CHUNK)
        for batch in with_values(texts(first, min(CHUNK, rows - first))).to_batches()
    )
    lance_core.write_dataset(pa.RecordBatchReader.from_batches(schema, batches), uri, mode="overwrite")
    lance_core.declare_column(uri, "length", function=FUNCTION, inputs=["text"], trust_existing=True)


def seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def refresh(uri: str) -> Any:
    return lance_core.refresh_columns(uri, functions={FUNCTION: slow_length})


def evidence_bytes(uri: str, rows: int) -> float:
    """Bytes on disk of evidence, a row: the files with value and evidence, without the values as they are written alone."""
    ours = lance_core.dataset(uri)
    alone = Path(uri).parent / "values.lance"
    lance_core.write_dataset(ours.to_table(columns=["length"]), str(alone), mode="overwrite")
    plain = sum(path.stat().st_size for path in (alone / "data").iterdir())
    both = sum(item.file_size_bytes or 0 for fragment in ours.get_fragments() for item in fragment.metadata.files[1:])
    return (both - plain) / rows


def main() -> None:
    """Print a table of figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--appended", type=int, help="rows of one append; 1 %% of the rows unless given")
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=given.folder))
    try:
        report(str(folder / "declared.lance"), given.rows, given.appended or given.rows // 100, given.repeats)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def report(uri: str, rows: int, share: int, repeats: int) -> None:
    """The figures, a line for each."""
    build(uri, rows)
    print(f"evidence: {evidence_bytes(uri, rows):.2f} bytes a row", flush=True)
    refresh(uri)
    with counted() as reads:
        idle = statistics.median(seconds(lambda: refresh(uri)) for _ in range(repeats))
    print(f"nothing to do: {idle:.3f} s, {reads.num_bytes:,} bytes of data read", flush=True)
    first, ratios = rows, list[float]()
    for _ in range(repeats):
        new = texts(first, share)
        first += share
        lance_core.write_dataset(new, uri, mode="append")
        batches = new.combine_chunks().to_batches(max_chunksize=1024)
        alone = seconds(lambda batches=batches: [slow_length(batch) for batch in batches])  # type: ignore[misc]
        with counted() as reads:
            whole = seconds(lambda: refresh(uri))
        ratios.append(whole / alone)
        print(
            f"{share:,} rows appended: {whole:.2f} s, the function alone {alone:.2f} s, "
            f"{reads.num_bytes / new.nbytes:.2f} x the bytes of the texts read"
        )
    print(f"{share:,} rows appended: median {statistics.median(ratios):.3f} x the function alone")
    lance.dataset(uri).optimize.compact_files(target_rows_per_fragment=max(1, rows // 2))
    size = sum(path.stat().st_size for path in (Path(uri) / "data").iterdir())
    with counted() as reads:
        found = []
        spent = seconds(lambda: found.append(refresh(uri)))
    counts = found[0].columns["length"]
    print(f"after a compaction by the official library: {spent:.2f} s, {counts.calls} calls, {counts.stale} stale rows, "
          f"{reads.num_bytes / size:.2f} x the files' bytes read")  # fmt: skip
    lance.dataset(uri).cleanup_old_versions(dt.timedelta(0), delete_unverified=True)
    plain = str(Path(uri).parent / "plain.lance")
    lance_core.write_dataset(texts(0, CHUNK), plain)
    new = texts(first, CHUNK)
    pairs = [
        (seconds(lambda: lance_core.write_dataset(new, uri, mode="append")),
         seconds(lambda: lance_core.write_dataset(new, plain, mode="append")))
        for _ in range(max(7, repeats))
    ]  # fmt: skip
    print(
        f"append of {CHUNK:,} rows: {statistics.median(a / b for a, b in pairs):.3f} x that of a table without a declaration"
    )


if __name__ == "__main__":
    main()
