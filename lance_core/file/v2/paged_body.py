"""The body of a 2.x file being written: rows are buffered per column until they fill a page.

    column a   8 MiB waiting -> encode -> page 0 written      column b   3 MiB waiting

All columns together hold at most `max_buffered_bytes`; pages are encoded on the work pool while others are written.

Pages are encoded on the work pool while earlier ones are written; the file has one writer, so its bytes have one order.

::

    calling thread   add a   add b   add c   write a      write b   ...
    work pool          encode a ...  encode b ...  encode c ...

Pages are written in the order they were added; small ones (of wide tables) are encoded several to a task. What waits is
bounded in bytes, before encoding: `add` writes the oldest until the new ones fit. A thread of the work pool itself
encodes at once.

Writing the 2.x container: aligned buffers, then metadata, tables and the footer.

offset 0     page buffers and global buffers as they come, each at a multiple of 64, gaps filled with 'H'
then         column metadata blocks | column table | buffer table | footer (40 bytes)
"""

from __future__ import annotations

import struct
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from lance_core.arrays import Addresses, Ints
from lance_core.errors import InputError
from lance_core.fetch import Buffer, ByteRange
from lance_core.file.blob.external import ExternalUris
from lance_core.file.blob.read import stored_schema
from lance_core.file.blob.write import BlobSink, BlobStore, check_blobs
from lance_core.file.convert.assemble import copied
from lance_core.file.convert.tree import build_tree
from lance_core.file.metadata import Footer, encode_footer
from lance_core.file.v2.encode20 import ArrayEncoder, ValueSlice
from lance_core.file.v2.encode21 import LeafEncoder, LeafSlice, refusal_of, refusal_of_values
from lance_core.format.layout import FileColumn, Page
from lance_core.format.schema import Schema
from lance_core.format.version import FileVersion
from lance_core.io.pool import in_work_pool, num_work_threads, work_pool
from lance_core.io.store import Store, StoreWriter
from lance_core.pages.leaf import EncodedPage
from lance_core.pages.write.extend import extended_layout
from lance_core.wire.columns import encode_columns
from lance_core.wire.file import FileDescriptor, encode_file_descriptor


class Encoder(Protocol):
    """What a version of the format offers for writing."""

    @property
    def num_columns(self) -> int:
        """Columns of the file."""
        ...

    @property
    def fields(self) -> tuple[int, ...]:
        """Field id of each column."""
        ...

    def split(self, field: int, array: pa.Array[Any]) -> Iterator[tuple[int, Any]]:
        """(column, rows) pairs of one top-level field, numbered from 0; rows have `num_bytes`."""
        ...

    def encode(self, column: int, slices: Sequence[Any]) -> list[EncodedPage]:
        """Pages of some rows of a column."""
        ...

    def encode_together(self, rows: Sequence[tuple[int, Sequence[Any]]]) -> list[list[EncodedPage]]:
        """The same of several columns."""
        ...

    def column_encoding(self, column: int) -> object:
        """What the column says of itself beside its pages; usually None."""
        ...


@dataclass
class _Column:
    """Rows that wait, and the pages already written. `next_row` is the first row of the next page.

    The first `num_owned` items of `waiting` keep no large batch of the caller's alive.
    """

    waiting: list[Any] = field(default_factory=list)
    num_owned: int = 0
    num_bytes: int = 0
    pages: list[Page] = field(default_factory=list)
    next_row: int = 0

    def add(self, item: Any) -> None:
        self.waiting.append(item)
        self.num_bytes += item.num_bytes

    def drain(self) -> list[Any]:
        waiting, self.waiting, self.num_bytes, self.num_owned = self.waiting, [], 0, 0
        return waiting

    def own(self) -> None:
        for number in range(self.num_owned, len(self.waiting)):
            self.waiting[number] = _owned(self.waiting[number])
        self.num_owned = len(self.waiting)


class PagedBody:
    """Columns of a 2.x file on their way into it."""

    def __init__(
        self,
        out: StoreWriter,
        schema: Schema,
        version: FileVersion,
        *,
        store: Store,
        path: str,
        max_page_bytes: int,
        max_buffered_bytes: int,
        external: ExternalUris,
    ) -> None:
        check_blobs(schema, version)
        self._schema = schema
        self._version = version
        self._encoder = encoder_for(schema, version)
        self._columns = [_Column() for _ in range(self._encoder.num_columns)]
        self._max_page_bytes = max_page_bytes
        self._max_buffered_bytes = max_buffered_bytes
        self._container = ContainerWriter(out)
        self._sink = BlobSink(store, path, self._container.add_buffers)
        self._blobs = BlobStore(version, self._sink, external)
        nodes = [build_tree(schema, field, {}) for field in schema.top_level]
        self._refusal = refusal_of(nodes, version)
        refused = [(number, refusal_of_values(node, version)) for number, node in enumerate(nodes)]
        self._only_nulls = {number: refusal for number, refusal in refused if refusal is not None}
        self._blob_nodes = {number: node for number, node in enumerate(nodes) if self._blobs.has_blobs(node)}
        self._ahead = EncodeAhead(self._encoder.encode_together, self._write_pages, page_bytes=max_page_bytes)

    @property
    def position(self) -> int:
        """Bytes written so far."""
        return self._container.position

    @property
    def num_waiting_bytes(self) -> int:
        """Bytes of rows that wait to become pages, before they are encoded."""
        return sum(column.num_bytes for column in self._columns) + self._ahead.num_bytes

    @property
    def fields(self) -> tuple[int, ...]:
        """Field id of each column."""
        return self._encoder.fields

    @property
    def column_indices(self) -> tuple[int, ...]:
        """Where each of `fields` is stored."""
        return tuple(range(len(self._columns)))

    def append(self, arrays: Sequence[pa.Array[Any]], num_rows: int) -> None:
        """Storage arrays of all top-level fields; each is cut so that it adds not much more than a page at a time.

        InputError for rows that a file of this version cannot hold.
        """
        if num_rows and self._refusal is not None:
            raise self._refusal
        for number, refusal in self._only_nulls.items():
            if arrays[number].null_count < num_rows:
                raise refusal
        # Only now, so that rows which became pages in the meantime are not copied.
        for column in self._columns:
            column.own()
        for number, array in enumerate(arrays):
            # Offsets and validity make a page's worth of values a little larger than a page.
            count = max(1, -(-array.nbytes // (self._max_page_bytes * 9 // 8)))
            step = max(1, -(-num_rows // count))
            for start in range(0, num_rows, step):
                self._append(number, self._described(number, array.slice(start, step)))
        self._flush_excess()

    def _described(self, number: int, array: pa.Array[Any]) -> pa.Array[Any]:
        """The array, or what stands for its values when they are kept out of line."""
        node = self._blob_nodes.get(number)
        return array if node is None else self._blobs.replaced(node, array)

    def add_global_buffer(self, data: bytes) -> int:
        """Store bytes beside the pages; returns their number."""
        return self._container.add_global_buffer(data)

    def finish(self, schema_metadata: dict[str, bytes], num_rows: int) -> int:
        """Encode what waits and write the tables; returns the file's size."""
        for number, column in enumerate(self._columns):
            if column.waiting:
                self._flush(number)
        self._ahead.drain()
        self._sink.close()
        descriptor = FileDescriptor(stored_schema(Schema(self._schema.fields, schema_metadata)), num_rows)
        columns = [
            FileColumn(tuple(column.pages), encoding=self._encoder.column_encoding(number))
            for number, column in enumerate(self._columns)
        ]
        return self._container.finish(columns, encode_file_descriptor(descriptor), self._version)

    def abandon(self) -> None:
        """Stop encoding; the file is withdrawn."""
        self._ahead.abandon()
        self._sink.abort()

    def _append(self, field: int, array: pa.Array[Any]) -> None:
        for number, item in self._encoder.split(field, array):
            column = self._columns[number]
            if column.waiting and column.num_bytes + item.num_bytes > self._max_page_bytes * 5 // 4:
                self._flush(number)
            column.add(item)
            if column.num_bytes >= self._max_page_bytes:
                self._flush(number)

    def _flush_excess(self) -> None:
        total = sum(column.num_bytes for column in self._columns)
        if total <= self._max_buffered_bytes:
            return
        for number in sorted(range(len(self._columns)), key=lambda number: -self._columns[number].num_bytes):
            if total <= self._max_buffered_bytes // 2:
                break
            total -= self._columns[number].num_bytes
            self._flush(number)

    def _flush(self, number: int) -> None:
        """Make pages of a column's waiting rows."""
        self._ahead.add(number, self._columns[number].drain())

    def _write_pages(self, number: int, pages: Sequence[EncodedPage], num_rows: int) -> None:
        column = self._columns[number]
        items = max(1, sum(page.num_rows for page in pages))
        done = 0
        for page in pages:
            if self._extend_last(column, page):
                done += page.num_rows
                continue
            buffers = tuple(self._container.add_buffer(data) for data in page.buffers)
            # Pages of list items (2.0) and of fixed-size lists of structs count items, not rows.
            column.pages.append(
                Page(page.layout, buffers, page.num_rows, column.next_row + done * num_rows // max(1, items))
            )
            done += page.num_rows
        column.next_row += num_rows

    def _extend_last(self, column: _Column, page: EncodedPage) -> bool:
        """Make the rows part of the column's last page, where that is the end of the file and their bytes can follow it."""
        if not column.pages:
            return False
        last = column.pages[-1]
        layout = extended_layout(last, page)
        if layout is None or not self._container.ends_with(last.buffers[0]):
            return False
        whole = self._container.extend_buffer(last.buffers[0], page.buffers[0])
        column.pages[-1] = replace(last, layout=layout, buffers=(whole,), num_rows=last.num_rows + page.num_rows)
        return True


def encoder_for(schema: Schema, version: FileVersion) -> Encoder:
    """The encoder of a storage version. InputError for versions that cannot be written."""
    if version is FileVersion.V2_0:
        return ArrayEncoder(schema)
    if version is FileVersion.V2_3:
        warnings.warn(
            "file version 2.3 is unstable: files of it may not be readable in the future; use it for experiments only",
            UserWarning,
            stacklevel=2,
        )
    if version >= FileVersion.V2_1:
        return LeafEncoder(schema, version)
    raise InputError(f"files of version {version.text} cannot be written", cure="Use storage version 2.0, 2.1 or 2.2.")


def _owned(item: Any) -> Any:
    """The rows, free of buffers that are much larger than they are (slices of big batches would keep those alive)."""
    if not isinstance(item, LeafSlice | ValueSlice) or item.values.get_total_buffer_size() <= 2 * item.values.nbytes + 4096:
        return item
    return replace(item, values=copied(item.values))


_SMALL = 64 << 10
"""So few bytes are encoded directly instead of passed to a thread."""

Rows = Sequence[tuple[int, Sequence[Any]]]
Encode = Callable[[Rows], list[list[EncodedPage]]]
Write = Callable[[int, Sequence[EncodedPage], int], None]

_TASK_BYTES = 1 << 20
"""Rows of less than this together are not worth a thread's attention."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Rows that are being encoded: (column, rows) of each of `pages`; `num_bytes` before encoding."""

    columns: list[tuple[int, int]]
    num_bytes: int
    pages: Future[list[list[EncodedPage]]]


class EncodeAhead:
    """The pages between an encoder and a file. `write(column, pages, num_rows)` runs in the caller's thread only."""

    def __init__(self, encode: Encode, write: Write, *, page_bytes: int) -> None:
        self._encode = encode
        self._write = write
        self._next: list[tuple[int, Sequence[Any]]] = []
        self._next_bytes = 0
        self._waiting: deque[_Waiting] = deque()
        self._max_bytes = 2 * num_work_threads() * page_bytes
        self._num_bytes = 0

    @property
    def num_bytes(self) -> int:
        """Bytes of rows that are being encoded or wait to be written."""
        return self._num_bytes + self._next_bytes

    def add(self, column: int, slices: Sequence[Any]) -> None:
        """Encode some rows of a column; write what is ready. Raises what the encoding of earlier rows raised."""
        self._next.append((column, slices))
        self._next_bytes += sum(item.num_bytes for item in slices)
        if self._next_bytes >= _TASK_BYTES:
            self._submit()

    def drain(self) -> None:
        """Write everything that waits."""
        if self._next:
            self._submit()
        while self._waiting:
            self._write_oldest()

    def abandon(self) -> None:
        """Forget what waits; returns when nobody encodes for this file any more."""
        waiting, self._waiting, self._num_bytes = self._waiting, deque(), 0
        self._next, self._next_bytes = [], 0
        for item in waiting:
            if not item.pages.cancel():
                with suppress(Exception):  # nobody wants the pages, nor what went wrong with them
                    item.pages.result()

    def _submit(self) -> None:
        rows, num_bytes = self._next, self._next_bytes
        self._next, self._next_bytes = [], 0
        if in_work_pool() or (num_bytes < _SMALL and not self._waiting):
            for (column, slices), pages in zip(rows, self._encode(rows), strict=True):
                self._write(column, pages, _num_rows(slices))
            return
        while self._waiting and (self._waiting[0].pages.done() or self._num_bytes + num_bytes > self._max_bytes):
            self._write_oldest()
        self._num_bytes += num_bytes
        columns = [(column, _num_rows(slices)) for column, slices in rows]
        self._waiting.append(_Waiting(columns, num_bytes, work_pool().submit(self._encode, rows)))

    def _write_oldest(self) -> None:
        oldest = self._waiting.popleft()
        self._num_bytes -= oldest.num_bytes
        for (column, num_rows), pages in zip(oldest.columns, oldest.pages.result(), strict=True):
            self._write(column, pages, num_rows)


def _num_rows(slices: Sequence[Any]) -> int:
    return sum(item.num_rows for item in slices)


ALIGNMENT = 64
_JOINED = 4 << 20
"""Bytes of small buffers that are written at once."""
_FILLER = b"H" * ALIGNMENT


class ContainerWriter:
    """Appends buffers to a file and closes it with its tables."""

    def __init__(self, out: StoreWriter) -> None:
        self._out = out
        self._global_buffers: list[ByteRange] = []
        self.position = 0

    def add_buffer(self, data: Buffer) -> ByteRange:
        """Write one buffer, aligned; says where it is."""
        gap = -self.position % ALIGNMENT
        if gap:
            self._write(_FILLER[:gap])
        start = self.position
        if len(data):
            self._write(data)
        return ByteRange(start, self.position)

    def extend_buffer(self, last: ByteRange, data: Buffer) -> ByteRange:
        """Go on writing a buffer that nothing was written behind (`ends_with`); says where the whole of it is."""
        self._write(data)
        return ByteRange(last.start, self.position)

    def ends_with(self, last: ByteRange) -> bool:
        """Whether the next byte of the file would stand right behind this buffer."""
        return last.end == self.position

    def add_buffers(self, data: memoryview, starts: Ints, sizes: Ints) -> Addresses:
        """Write `data[starts[i] : starts[i] + sizes[i]]`, each aligned; says where each is, 0 for an empty one."""
        positions = np.zeros(len(sizes), np.uint64)
        filled = np.flatnonzero(sizes)
        ends = np.cumsum(sizes[filled] + -sizes[filled] % ALIGNMENT)
        first, done = 0, 0
        while first < len(filled):
            last = max(first + 1, int(np.searchsorted(ends, done + _JOINED, side="right")))
            rows = filled[first:last]
            steps = np.diff(ends[first:last], prepend=done)
            spot = self.add_buffer(_aligned(data, starts[rows], sizes[rows], steps))
            positions[rows] = spot.start + (ends[first:last] - done) - steps
            first, done = last, int(ends[last - 1])
        return positions

    def add_global_buffer(self, data: Buffer) -> int:
        """Write a global buffer; its number counts from 1, because 0 is the descriptor that `finish` writes."""
        self._global_buffers.append(self.add_buffer(data))
        return len(self._global_buffers)

    def finish(self, columns: Sequence[FileColumn], descriptor: bytes, version: FileVersion) -> int:
        """Write descriptor, metadata, tables and footer; returns the file's size. The caller closes the file."""
        buffers = [self.add_buffer(descriptor), *self._global_buffers]
        metadata_start = self.position
        encoded = encode_columns(columns, planar=version is FileVersion.V2_3)
        ends = [*accumulate(map(len, encoded), initial=self.position)]
        blocks = [ByteRange(start, end) for start, end in pairwise(ends)]
        self._write(b"".join(encoded))
        column_table = self.position
        self._write(_table(blocks))
        buffer_table = self.position
        self._write(_table(buffers))
        footer = Footer(metadata_start, column_table, buffer_table, len(buffers), len(blocks), version)
        self._write(encode_footer(footer))
        return self.position

    def _write(self, data: Buffer) -> None:
        self._out.write(data)
        # The length of a view counts its items, which need not be bytes.
        self.position += len(data) if isinstance(data, bytes) else memoryview(data).nbytes


def _aligned(data: memoryview, starts: Ints, sizes: Ints, steps: Ints) -> Buffer:
    """Buffers with gaps between them, as `add_buffer` would write them one by one."""
    if len(starts) == 1:
        return data[int(starts[0]) : int(starts[0] + sizes[0])]
    parts: list[Buffer] = []
    for start, size, step in zip(starts.tolist(), sizes.tolist(), steps.tolist(), strict=True):
        parts += (data[start : start + size], _FILLER[: step - size])
    return b"".join(parts[:-1])


def _table(ranges: Sequence[ByteRange]) -> bytes:
    return struct.pack(f"<{2 * len(ranges)}Q", *(number for item in ranges for number in (item.start, item.size)))
