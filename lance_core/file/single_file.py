"""Single Lance files by their paths, with the official library's names (`lance.file`): no table around them.

::

    with LanceFileWriter("/tmp/a.lance", schema) as writer:
        writer.write_batch(batch)
    LanceFileReader("/tmp/a.lance").read_range(10, 5).to_table()
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lance_core.arrow import schema_from_arrow, schema_to_arrow
from lance_core.errors import InputError
from lance_core.fetch import ByteRange
from lance_core.file.open import ContainerFile, open_file
from lance_core.file.writer import MAX_PAGE_BYTES, FileWriter
from lance_core.format.layout import FileColumn
from lance_core.format.schema import Schema
from lance_core.format.version import DEFAULT_VERSION, parse_storage_version
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store

DEFAULT_BATCH_SIZE = 1024


@dataclass(frozen=True, slots=True)
class LanceBufferDescriptor:
    """Where a buffer is in its file."""

    position: int
    size: int


@dataclass(frozen=True, slots=True)
class LancePageMetadata:
    """A page: its buffers, and its encoding in words."""

    buffers: list[LanceBufferDescriptor]
    encoding: str


@dataclass(frozen=True, slots=True)
class LanceColumnMetadata:
    """A column of a file: its pages, and buffers of the column as a whole."""

    column_buffers: list[LanceBufferDescriptor]
    pages: list[LancePageMetadata]


@dataclass(frozen=True, slots=True)
class LanceFileMetadata:
    """What a file says about itself; sizes in bytes, those of the data with the padding between buffers."""

    schema: pa.Schema
    num_rows: int
    num_data_bytes: int
    num_column_metadata_bytes: int
    num_global_buffer_bytes: int
    global_buffers: list[LanceBufferDescriptor]
    columns: list[LanceColumnMetadata]


@dataclass(frozen=True, slots=True)
class LanceColumnStatistics:
    """How large a column is in its file."""

    num_pages: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class LanceFileStatistics:
    """One entry for each column of a file."""

    columns: list[LanceColumnStatistics]


def stable_version() -> str:
    """The version of the file format that is written unless another is named."""
    return DEFAULT_VERSION.text


class ReaderResults:
    """Rows of a file, as a stream or as a table; to be taken once."""

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self._reader = reader

    def to_batches(self) -> pa.RecordBatchReader:
        """The rows as a stream of batches."""
        return self._reader

    def to_table(self) -> pa.Table:
        """The rows as one table."""
        return self._reader.read_all()


class LanceFileReader:
    """One open file of version 2.0 or newer; `columns` restricts what is read to some top-level columns.

    Raises NotFoundError, FormatError, InputError.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        storage_options: Mapping[str, str] | None = None,
        columns: Sequence[str] | None = None,
    ) -> None:
        store, name = _place(path, storage_options)
        opened = open_file(store, name)
        if not isinstance(opened, ContainerFile):
            raise InputError(
                f"{path} has version {opened.version.text}, whose files cannot be read without their table",
                cure="Read it as part of its table.",
            )
        self._file = opened
        self._schema = opened.schema if columns is None else _select(opened.schema, columns)

    def read_all(self, *, batch_size: int = DEFAULT_BATCH_SIZE, batch_readahead: int = 16) -> ReaderResults:
        """Return a result whose batches are all rows of the file, `batch_size` rows each."""
        return self._results(None, batch_size)

    def read_range(
        self, start: int, num_rows: int, *, batch_size: int = DEFAULT_BATCH_SIZE, batch_readahead: int = 16
    ) -> ReaderResults:
        """`num_rows` rows from the row `start` on. InputError beyond the end."""
        if start < 0 or num_rows < 0 or start + num_rows > self.num_rows():
            raise InputError(f"rows {start} to {start + num_rows} were requested, the file has {self.num_rows()}")
        return self._results([(start, start + num_rows)], batch_size)

    def take_rows(
        self, indices: Sequence[int], *, batch_size: int = DEFAULT_BATCH_SIZE, batch_readahead: int = 16
    ) -> ReaderResults:
        """Rows by their number, in the order given. InputError beyond the end."""
        wanted = np.asarray(indices, np.int64)
        if wanted.size and (wanted.min() < 0 or wanted.max() >= self.num_rows()):
            raise InputError(f"row {int(wanted.max())} was requested, the file has {self.num_rows()}")
        batches = self._file.take(self._schema, wanted)
        table = pa.Table.from_batches([batches])
        return ReaderResults(
            pa.RecordBatchReader.from_batches(table.schema, iter(table.to_batches(max_chunksize=batch_size)))
        )

    def metadata(self) -> LanceFileMetadata:
        """Where everything is in the file."""
        found = self._file.metadata
        columns = [_described(column) for column in self._file.columns(range(found.num_columns))]
        buffers = [_buffer(item) for item in found.global_buffers]
        footer, num_global_bytes = found.footer, sum(item.size for item in buffers)
        return LanceFileMetadata(
            schema=schema_to_arrow(self._file.schema),
            num_rows=self.num_rows(),
            num_data_bytes=footer.column_metadata_start - num_global_bytes,
            num_column_metadata_bytes=footer.buffer_table_start - footer.column_metadata_start,
            num_global_buffer_bytes=num_global_bytes,
            global_buffers=buffers,
            columns=columns,
        )

    def file_statistics(self) -> LanceFileStatistics:
        """Pages and bytes of every column."""
        columns = self.metadata().columns
        return LanceFileStatistics(
            [
                LanceColumnStatistics(len(column.pages), sum(item.size for page in column.pages for item in page.buffers))
                for column in columns
            ]
        )

    def read_global_buffer(self, index: int) -> bytes:
        """Bytes that the file's writer put beside the pages; buffer 0 holds the schema."""
        return self._file.global_buffer(index)

    def num_rows(self) -> int:
        """Rows in the file."""
        return self._file.num_rows

    def _results(self, ranges: list[tuple[int, int]] | None, batch_size: int) -> ReaderResults:
        batches: Iterator[pa.RecordBatch] = self._file.read(self._schema, ranges=ranges, batch_size=batch_size)
        return ReaderResults(pa.RecordBatchReader.from_batches(schema_to_arrow(self._schema), batches))


class LanceFileWriter:
    """One file, being written; nobody sees it before `close`. Without a schema the first batch says it."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        schema: pa.Schema | None = None,
        *,
        data_cache_bytes: int | None = None,
        version: str | None = None,
        storage_options: Mapping[str, str] | None = None,
        max_page_bytes: int | None = None,
    ) -> None:
        self._place = _place(path, storage_options)
        self._version = DEFAULT_VERSION if version is None else parse_storage_version(version)
        self._max_page_bytes = max_page_bytes or MAX_PAGE_BYTES
        if self._version.is_legacy:
            raise InputError(
                f"single files of version {self._version.text} cannot be written", cure="Pass version 2.0 or newer."
            )
        self._writer = None if schema is None else self._begin(schema)

    def write_batch(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Append the rows of a batch or a table. SchemaMismatchError when they do not fit."""
        if self._writer is None:
            self._writer = self._begin(batch.schema)
        for part in batch.to_batches() if isinstance(batch, pa.Table) else [batch]:
            self._writer.write(part)

    def add_schema_metadata(self, key: str, value: str) -> None:
        """Set a key of the schema's metadata."""
        self._open().add_metadata(key, value.encode())

    def add_global_buffer(self, data: bytes) -> int:
        """Store bytes beside the pages; returns the number to read them by."""
        return self._open().add_global_buffer(data)

    def close(self) -> int:
        """Finish the file; returns how many rows it has."""
        return self._open().finish().num_rows

    def __enter__(self) -> LanceFileWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        elif self._writer is not None:
            self._writer.abort()

    def _begin(self, schema: pa.Schema) -> FileWriter:
        store, name = self._place
        own = schema_from_arrow(schema, version=self._version)
        return FileWriter(store, name, own, version=self._version, max_page_bytes=self._max_page_bytes)

    def _open(self) -> FileWriter:
        if self._writer is None:
            raise InputError("the file has no schema yet", cure="Pass schema=, or write a batch first.")
        return self._writer


def _place(path: str | os.PathLike[str], storage_options: Mapping[str, str] | None) -> tuple[Store, str]:
    """The store of the folder, and the file's name in it."""
    folder, slash, name = os.fspath(path).rpartition("/")
    if not name:
        raise InputError(f"{os.fspath(path)!r} is not the path of a file")
    return resolve_store(folder or ("/" if slash else "."), storage_options), name


def _select(schema: Schema, columns: Sequence[str]) -> Schema:
    known = {field.name for field in schema.top_level}
    missing = [name for name in columns if name not in known]
    if missing:
        raise InputError(f"the file has no column {', '.join(missing)}", cure=f"Its columns: {', '.join(sorted(known))}.")
    return schema.project(field.id for field in schema.top_level if field.name in columns)


def _buffer(item: ByteRange) -> LanceBufferDescriptor:
    return LanceBufferDescriptor(item.start, item.size)


def _described(column: FileColumn) -> LanceColumnMetadata:
    pages = [LancePageMetadata([_buffer(item) for item in page.buffers], repr(page.layout)) for page in column.pages]
    return LanceColumnMetadata([_buffer(item) for item in column.buffers], pages)
