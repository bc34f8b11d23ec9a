"""Some fields of one file, ready to be read: windows of rows are fetched ahead, batches are cut from them.

    rows      |----- window 0 -----|----- window 1 -----|----- window 2 -----|
    reading                          decoded in the background while ...
    consumer  batch batch batch ...  ... these are used

A window is a whole number of batches and about 32 MiB of decoded values, so memory stays bounded whatever the file holds.
What a row of texts takes is not known before some are decoded (77 MB of a file may be 2 GB of repeated words): with
`max_bytes` a first, small window is measured, windows and batches that follow go by the sizes seen so far.

Which rows of a file a read wants, cut into windows.

file rows   [0, 100) [5000, 5010)        two windows of at most 64 rows:  [0,64)   [64,100) [5000,5010)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, Literal, Protocol, cast, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.arrays import Ints
from lance_core.arrow.buffers import nulls
from lance_core.arrow.to_arrow import schema_to_arrow
from lance_core.arrow_numpy import arrow_of, no_rows
from lance_core.cached import cached_property
from lance_core.errors import CorruptFileError, InputError
from lance_core.fetch import Fetch
from lance_core.file.blob.read import described_schema
from lance_core.file.convert.few_values import FieldValues, array_of
from lance_core.file.convert.tree import Node
from lance_core.file.error_location import located
from lance_core.file.metadata import Tail
from lance_core.file.to_user_types import finish
from lance_core.file.v2.columns21 import AlikeColumns, alike_columns, fixed_size
from lance_core.format.schema import Schema
from lance_core.io.fetcher import drive
from lance_core.io.pool import in_work_pool, mark_worker, num_work_threads
from lance_core.io.store import Store
from lance_core.io.threads import Threads
from lance_core.pages.rows import RowSelection
from lance_core.pick import take

DEFAULT_BATCH_SIZE = 8192
WINDOW_BYTES = 32 << 20
_COLUMN_WINDOW_BYTES = 96 << 10
_MAX_WINDOW_ROWS = 1 << 20
_MEASURED_BYTES, _PROBE_BYTES = 8 << 20, 4 << 20
"""Rows of texts that should take more than the first are begun with a window of the second, which shows what they take."""
FEW_ROWS = 64
"""Up to so many rows are read value by value."""
_WINDOWS_AHEAD = 2
MAX_WINDOWS = _WINDOWS_AHEAD + 1
"""Windows of a file that are held at once: those ahead, and the one that is used."""


Blobs = Literal["binary", "descriptions"]
"""What a blob column gives: its bytes, or where they are."""


class Reader(Protocol):
    """What a version of the format offers for one top-level field."""

    @property
    def node(self) -> Node:
        """The field."""
        ...

    def jobs(self, window: RowSelection) -> list[Fetch[object]]:
        """Readers whose results `assemble` takes, in order."""
        ...

    def assemble(self, results: Sequence[object], num_rows: int) -> list[pa.Array[Any]]:
        """The window's values, in one or more chunks."""
        ...

    def pages_of(self, window: RowSelection) -> str | None:
        """The pages that hold the window's rows, for errors: "7" or "0-3"."""
        ...

    def row_size(self) -> float:
        """About how many bytes a row takes once decoded."""
        ...

    @property
    def num_columns(self) -> int:
        """Columns of the file that are read."""
        ...


@runtime_checkable
class ReadsFew(Protocol):
    """A reader with a short way for few rows."""

    def few_jobs(self, rows: Sequence[int]) -> list[Fetch[object]] | None:
        """Readers of a few ascending rows whose results `few_values` takes; None where only `jobs` will do."""
        ...

    def few_values(self, results: Sequence[object]) -> FieldValues:
        """The rows value by value."""
        ...


class FileProjection:
    """Fields of a file that can be read as batches. Made by `OpenFile.project`; safe to share between threads."""

    def __init__(
        self,
        *,
        store: Store,
        path: str,
        schema: Schema,
        readers: Sequence[Reader],
        num_rows: int,
        tail: Tail | None,
        blobs: Blobs = "binary",
    ) -> None:
        self.schema = schema
        self.blobs = blobs
        self.arrow_schema = schema_to_arrow(schema) if blobs == "binary" else described_schema(schema)
        self.num_rows = num_rows
        self._store = store
        self._path = path
        self._readers = readers
        # Worth looking at only when it is the whole file: otherwise hardly a page is in it, and many ranges pass by.
        self._tail = tail if tail is not None and tail.start == 0 else None
        self._row_size = sum(reader.row_size() for reader in readers)
        self._num_columns = sum(reader.num_columns for reader in readers)

    def read(
        self, *, ranges: Ranges | None = None, batch_size: int = DEFAULT_BATCH_SIZE, max_bytes: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Batches of `batch_size` rows (the last may be smaller) of the rows in `ranges`, in order.

        `max_bytes`: about what a batch takes at most, so that it may have fewer rows; one row is never cut.
        `ranges` are sorted, disjoint, half-open ranges of row numbers; None means all rows. Reading runs ahead of the
        consumer in the background. Raises InputError for rows the file does not have, FormatError for damage.
        """
        if batch_size <= 0:
            raise InputError(f"batch_size must be positive, got {batch_size}")
        selection = select_ranges(ranges, self.num_rows)
        return self._batches(selection, batch_size) if max_bytes is None else self._bounded(selection, batch_size, max_bytes)

    def take(self, indices: npt.ArrayLike) -> pa.RecordBatch:
        """The rows at `indices`, in the order given, repeats included, as one batch."""
        selection, order = select_indices(indices, self.num_rows)
        batch = _combine(self._load(selection))
        if order is None:
            return batch
        if not self.arrow_schema.names:
            return no_columns(len(order))
        return take(batch, arrow_of(order))

    def rows_within(self, num_bytes: int) -> int:
        """About how many rows take up `num_bytes` once decoded, at least one."""
        return max(1, int(num_bytes / self._row_size)) if self._row_size > 0 else _MAX_WINDOW_ROWS

    def table(self, ranges: Ranges | None = None) -> pa.Table:
        """All selected rows as one table whose columns keep the chunks they were decoded in."""
        selection = select_ranges(ranges, self.num_rows)
        window_rows = self._window_rows(1)
        tables = list(self._tables(selection, lambda: window_rows))
        return tables[0] if len(tables) == 1 else pa.concat_tables(tables) if tables else no_rows(self.arrow_schema)

    def _window_rows(self, batch_size: int) -> int:
        # Wide tables get larger windows: a column is not worth a visit for a few rows.
        size = max(WINDOW_BYTES, _COLUMN_WINDOW_BYTES * self._num_columns)
        rows = int(size / self._row_size) if self._row_size > 0 else _MAX_WINDOW_ROWS
        return max(1, min(rows, _MAX_WINDOW_ROWS) // batch_size) * batch_size

    def _batches(self, selection: RowSelection, batch_size: int) -> Iterator[pa.RecordBatch]:
        window_rows = self._window_rows(batch_size)
        for table in self._tables(selection, lambda: window_rows):
            yield from _cut(table, batch_size)

    def _bounded(self, selection: RowSelection, batch_size: int, max_bytes: int) -> Iterator[pa.RecordBatch]:
        """Batches of at most `batch_size` rows and about `max_bytes`."""
        rest = selection
        if self._row_size * selection.num_rows > _MEASURED_BYTES and self._is_elastic:
            parts = windows(selection, lambda: self.rows_within(_PROBE_BYTES))
            table = self._load(next(parts))
            rest = _behind(selection, table.num_rows)
            yield from _cut(table, self._learned(table, batch_size, max_bytes))

        def window_rows() -> int:
            return self._window_rows(min(batch_size, self.rows_within(max_bytes)))

        for table in self._tables(rest, window_rows):
            yield from _cut(table, self._learned(table, batch_size, max_bytes))

    @cached_property
    def _is_elastic(self) -> bool:
        """Whether only decoding shows what a row takes."""
        return any(fixed_size(field.type) is None for field in self.arrow_schema)

    def _learned(self, table: pa.Table, batch_size: int, max_bytes: int) -> int:
        """The rows of a batch of this table; windows to come are made for rows as large as these."""
        size = table.nbytes
        self._row_size = max(self._row_size, size / max(1, table.num_rows))
        return batch_size if size <= max_bytes else max(1, min(batch_size, table.num_rows * max_bytes // size))

    def _tables(self, selection: RowSelection, rows: Callable[[], int]) -> Iterator[pa.Table]:
        window_rows = rows()
        if selection.num_rows <= window_rows:
            # One window: nothing to run ahead of.
            if selection.num_rows:
                yield self._load(selection)
            return
        parts = windows(selection, rows)
        # Threads of this reader's own: they wait for the shared pools, which must therefore not run them.
        mark = mark_worker if in_work_pool() or num_work_threads() <= _WINDOWS_AHEAD else None
        pool = Threads(max_workers=_WINDOWS_AHEAD, thread_name_prefix="lance-ahead", initializer=mark)
        pending: deque[Future[pa.Table]] = deque()
        # Batches of very large rows make very large windows; then fewer of them are held at once.
        ahead = _WINDOWS_AHEAD if self._row_size * window_rows <= 4 * WINDOW_BYTES else 1
        try:
            for part in parts:
                pending.append(pool.submit(self._load, part))
                if len(pending) > ahead:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def few(self, window: RowSelection) -> dict[str, FieldValues | pa.ChunkedArray[Any]] | None:
        """A few rows of each field: value by value, or as an array where there is no short way; None for many rows."""
        return dict(zip(self.arrow_schema.names, self._fields(window), strict=True)) if self._is_few(window) else None

    def _is_few(self, window: RowSelection) -> bool:
        return 0 < window.num_rows <= FEW_ROWS and not window.covers(self.num_rows)

    def _load(self, window: RowSelection) -> pa.Table:
        """One window's rows."""
        fields = zip(self._fields(window), self.arrow_schema, strict=True)
        columns = [array_of(found, field) if isinstance(found, FieldValues) else found for found, field in fields]
        if not columns:
            return pa.Table.from_batches([no_columns(window.num_rows)])
        return pa.Table.from_arrays(columns, schema=self.arrow_schema)

    def _fields(self, window: RowSelection) -> list[FieldValues | pa.ChunkedArray[Any]]:
        """One window's rows of each field."""
        groups = self._alike if window.covers(self.num_rows) else ()
        grouped = {number for group in groups for number in group.numbers}
        short = self._short_jobs(window)
        jobs = [
            short[number] if number in short else [] if number in grouped else reader.jobs(window)
            for number, reader in enumerate(self._readers)
        ]
        flat: list[Fetch[object]] = [*(group.fetch() for group in groups), *(job for found in jobs for job in found)]
        results = drive(self._store, [(self._path, self._from_tail(job)) for job in flat]) if flat else []
        made = _by_number(groups, results)
        fields: list[FieldValues | pa.ChunkedArray[Any]] = []
        position = len(groups)
        for number, (reader, own, field) in enumerate(zip(self._readers, jobs, self.arrow_schema, strict=True)):
            found = [made[number]] if number in made else results[position : position + len(own)]
            position += len(own)
            if number in short:
                fields.append(self._few_readers[number].few_values(found))
                continue
            chunks = self._finished(reader, found, field, window)
            fields.append(_chunked(chunks, field, window.num_rows, self._path))
        return fields

    def _short_jobs(self, window: RowSelection) -> dict[int, list[Fetch[object]]]:
        """The readers of fields that have a short way for the window's rows, if they are few."""
        if not self._is_few(window):
            return {}
        rows = window.to_indices().tolist()
        found = {number: reader.few_jobs(rows) for number, reader in self._few_readers.items()}
        return {number: jobs for number, jobs in found.items() if jobs is not None}

    @cached_property
    def _few_readers(self) -> dict[int, ReadsFew]:
        # Thousands of columns have few classes, and looking for a protocol's members takes longer than all else here.
        examples = {type(reader): reader for reader in self._readers}
        short = {kind for kind, reader in examples.items() if isinstance(reader, ReadsFew)}
        return {number: cast("ReadsFew", item) for number, item in enumerate(self._readers) if type(item) in short}

    @cached_property
    def _alike(self) -> Sequence[AlikeColumns]:
        """Columns that are read together by a window of all rows."""
        return alike_columns(self._readers, self.num_rows)

    def _finished(
        self, reader: Reader, results: Sequence[object], field: pa.Field[Any], window: RowSelection
    ) -> list[pa.Array[Any]]:
        """The window of one field as users see it; what is found to be wrong only now names the pages it came from."""
        try:
            return [finish(chunk, field.type) for chunk in reader.assemble(results, window.num_rows)]
        except Exception:
            with located(self._path, column=field.name, page=reader.pages_of(window)):
                raise

    def _from_tail(self, fetch: Fetch[object]) -> Fetch[object]:
        return fetch if self._tail is None else _served(self._tail, fetch)


def _by_number(groups: Sequence[AlikeColumns], results: Sequence[object]) -> dict[int, object]:
    """The arrays of columns that were read together, by the numbers of their readers."""
    found: dict[int, object] = {}
    for group, arrays in zip(groups, results, strict=False):
        found.update(zip(group.numbers, cast("list[object]", arrays), strict=True))
    return found


def _served(tail: Tail, fetch: Fetch[object]) -> Fetch[object]:
    """The reader, answered from the bytes that opening the file brought: all of them."""
    try:
        ranges = next(fetch)
        while True:
            found = [tail.get(item) for item in ranges]
            ranges = fetch.send([data for data in found if data is not None])
    except StopIteration as stop:
        return stop.value
    yield  # makes this a generator, though it never asks


def _chunked(chunks: list[pa.Array[Any]], field: pa.Field[Any], num_rows: int, path: str) -> pa.ChunkedArray[Any]:
    array = pa.chunked_array(chunks, field.type)
    if len(array) != num_rows:
        raise CorruptFileError(f"{path}: column {field.name!r} has {len(array)} of the {num_rows} requested rows")
    return array


def _cut(table: pa.Table, batch_size: int) -> Iterator[pa.RecordBatch]:
    """The table in batches of so many rows."""
    for start in range(0, table.num_rows, batch_size):
        # A table without columns does not clip its slices by itself.
        yield _combine(table.slice(start, min(batch_size, table.num_rows - start)))


def _behind(selection: RowSelection, num_rows: int) -> RowSelection:
    """The selection without its first rows."""
    before = np.cumsum(selection.ends - selection.starts)
    first = int(np.searchsorted(before, num_rows, side="right"))
    starts, ends = selection.starts[first:].copy(), selection.ends[first:].copy()
    if len(starts):
        starts[0] = ends[0] - (int(before[first]) - num_rows)
    return RowSelection(starts, ends)


def _combine(table: pa.Table) -> pa.RecordBatch:
    """The table as one batch; copies only columns that are in several chunks."""
    if not table.num_columns:
        return no_columns(table.num_rows)
    arrays = [_one(column) for column in table.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema)


def _one(column: pa.ChunkedArray[Any]) -> pa.Array[Any]:
    if column.num_chunks == 1:
        return cast("pa.Array[Any]", column.chunk(0))
    if column.num_chunks == 0:
        return nulls(0, column.type)
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    return pa.concat_arrays(column.chunks)


def no_columns(num_rows: int) -> pa.RecordBatch:
    """A batch without columns that still knows how many rows it has."""
    return pa.record_batch([pa.nulls(num_rows)], names=["_"]).select([])


Ranges = Sequence[tuple[int, int]] | RowSelection
"""Sorted, disjoint half-open ranges of row numbers, as pairs or already as a selection."""


def select_ranges(ranges: Ranges | None, num_rows: int) -> RowSelection:
    """The selection of sorted, disjoint half-open ranges of file rows; None selects all. InputError when out of bounds."""
    if ranges is None:
        return RowSelection.all(num_rows)
    selection = ranges if isinstance(ranges, RowSelection) else RowSelection.ranges(ranges)
    if len(selection.starts):
        out_of_order = len(selection.starts) > 1 and bool((selection.starts[1:] < selection.ends[:-1]).any())
        if out_of_order or selection.starts[0] < 0 or selection.ends[-1] > num_rows:
            raise InputError(
                f"row ranges must be sorted, disjoint and within 0..{num_rows}, got {_first(selection)}",
                cure="Pass row indices to read rows in another order.",
            )
    return selection


def _first(selection: RowSelection) -> list[tuple[int, int]]:
    return [*zip(selection.starts[:5].tolist(), selection.ends[:5].tolist(), strict=True)]


def select_indices(indices: npt.ArrayLike, num_rows: int) -> tuple[RowSelection, Ints | None]:
    """The selection of the distinct indices, and how to gather its rows into the requested order (None: as they are)."""
    wanted = np.asarray(indices, np.int64)
    if wanted.ndim != 1:
        raise InputError("row indices must be a flat list of integers")
    if len(wanted) == 0:
        return RowSelection.all(0), None
    low, high = int(wanted.min()), int(wanted.max())
    if low < 0 or high >= num_rows:
        raise InputError(f"row {low if low < 0 else high} was requested, the file has rows 0..{num_rows - 1}")
    if len(wanted) == 1 or bool((np.diff(wanted) > 0).all()):
        return RowSelection.indices(wanted), None
    distinct, order = np.unique(wanted, return_inverse=True)
    return RowSelection.indices(distinct), order.astype(np.int64)


def windows(selection: RowSelection, window_rows: Callable[[], int]) -> Iterator[RowSelection]:
    """The selection in order, in parts of as many rows as `window_rows` says when one is due (the last may have fewer)."""
    lengths = selection.ends - selection.starts
    before = np.concatenate(([0], np.cumsum(lengths)))
    total = int(before[-1])
    start = 0
    while start < total:
        end = min(start + window_rows(), total)
        first = int(np.searchsorted(before, start, side="right")) - 1
        last = int(np.searchsorted(before, end, side="left"))
        starts = selection.starts[first:last].copy()
        ends = selection.ends[first:last].copy()
        starts[0] += start - before[first]
        ends[-1] -= before[last] - end
        yield RowSelection(starts, ends)
        start = end
