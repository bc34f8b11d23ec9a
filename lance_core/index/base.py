"""The protocol of index kinds: the types they support, how they are trained, opened and searched.

::

    kind.accepts(pa.int64())                    True
    kind.can_answer(a > 3)                      True
    kind.train(folder, batches, ...)            files appear below `_indices/{uuid}/`
    kind.open(folder, ...).search(a > 3)        Answer(rows={0: {1, 5}}, is_exact=True)

Training data are batches of two columns: `value`, and `id` (uint64: row addresses, or stable row ids).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import pyarrow as pa

from lance_core.arrow import schema_from_arrow, schema_to_arrow
from lance_core.arrow.buffers import nulls
from lance_core.arrow_numpy import numpy_of
from lance_core.commit.naming import INDEX_CHECKSUMS
from lance_core.errors import CorruptFileError, NotFoundError
from lance_core.expr.ast import Expr
from lance_core.file.open import open_file
from lance_core.file.open_file import OpenFile
from lance_core.file.writer import FileWriter
from lance_core.format.index import IndexDetails, IndexFile
from lance_core.format.index_details import Details
from lance_core.format.schema import Schema
from lance_core.format.version import FileVersion
from lance_core.index.checksums import (
    CHUNK,
    CheckedStore,
    FileSums,
    FolderSums,
    SummingStore,
    decode_sums,
    encode_sums,
    sums_of_file,
)
from lance_core.io.store import Store
from lance_core.rowids.selection import AddressSet

VALUE, ID = "value", "id"
WRITTEN_ROWS = 1 << 16

_FEW_ROWS, _ROWS_A_BYTE = 1 << 20, 64
"""A file of constants may claim any number of rows; rows of an index differ, at least by their ids, and take space."""
_SMALL, _DECODED_A_BYTE = 64 << 20, 1024
"""Likewise for what texts and lists take in memory."""


@dataclass(frozen=True)
class IndexFolder:
    """The folder of one index segment: `path` below the store's root, the sizes of its files where they are known, and what
    the manifest says of it (only kinds that need it to be opened look there)."""

    store: Store
    path: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    details: IndexDetails | None = None
    known: dict[str, FolderSums] = field(default_factory=dict, compare=False)
    written: dict[str, FileSums] = field(default_factory=dict, compare=False)

    @property
    def key(self) -> tuple[str, str]:
        """What names the segment in a cache."""
        return self.store.uri, self.path

    def open(self, name: str) -> OpenFile:
        """One of its files. Raises NotFoundError, FormatError."""
        store, path, size = self.source(name)
        opened = open_file(store, path, size=size)
        if opened.num_rows > max(_FEW_ROWS, _ROWS_A_BYTE * opened.file_size):
            raise CorruptFileError(f"{path} claims {opened.num_rows} rows in {opened.file_size} bytes, which no index has")
        return opened

    def source(self, name: str) -> tuple[Store, str, int | None]:
        """(a store that checks what is read, where one of its files is there, its size where that is known)."""
        path, store = f"{self.path}/{name}", self.store
        found = self._sums()
        size = self.sizes.get(name) or None
        if name in found.files:
            sums = found.files[name]
            if size not in (None, sums.size):
                raise CorruptFileError(
                    f"{path} has {size} bytes according to the manifest, {sums.size} according to its checksums"
                )
            store, size = CheckedStore(store, sums, chunk=found.chunk), sums.size
        return store, path, size

    @property
    def is_sealed(self) -> bool:
        """Whether checksums were written beside the files. Raises CorruptFileError when those are damaged."""
        return self._sums().is_written

    @property
    def is_pinned(self) -> bool:
        """Whether `hold` was called."""
        return "sums" in self.known and bool(self.known["sums"].files) and not self.known["sums"].is_written

    def hold(self) -> None:
        """Take the bytes of today for right: what is read later must be the same. Reads all files."""
        names = [*self.sizes] or [entry.path.rsplit("/", 1)[1] for entry in self.store.list(f"{self.path}/")]
        sums = {name: sums_of_file(self.store, f"{self.path}/{name}") for name in names}
        self.known["sums"] = FolderSums(sums, CHUNK, is_written=False)

    def write_pinned_checksums(self) -> None:
        """Write down the checksums that `hold` took."""
        self.store.put(f"{self.path}/{INDEX_CHECKSUMS}", encode_sums(self.known["sums"].files))

    def _sums(self) -> FolderSums:
        if "sums" not in self.known:
            path = f"{self.path}/{INDEX_CHECKSUMS}"
            try:
                self.known["sums"] = decode_sums(self.store.get(path), what=path)
            except NotFoundError:
                self.known["sums"] = FolderSums({}, CHUNK, is_written=False)
        return self.known["sums"]

    def seal(self) -> None:
        """Write the checksums of all files written."""
        self.store.put(f"{self.path}/{INDEX_CHECKSUMS}", encode_sums(self.written))

    def write(
        self,
        name: str,
        table: pa.Table | Iterable[pa.RecordBatch],
        schema: pa.Schema,
        *,
        metadata: Mapping[str, bytes] | Callable[[], Mapping[str, bytes]] | None = None,
        buffers: Iterable[bytes] = (),
    ) -> IndexFile:
        """Write a file of the folder in the version index files have (2.2); global buffers are numbered from 1.

        `metadata` as a function is called when all rows have been written.
        """
        path = f"{self.path}/{name}"
        store = SummingStore(self.store)
        writer = FileWriter(store, path, schema_from_arrow(schema, version=FileVersion.V2_2), version=FileVersion.V2_2)
        with writer:
            for data in buffers:
                writer.add_global_buffer(data)
            batches = table.to_batches(max_chunksize=WRITTEN_ROWS) if isinstance(table, pa.Table) else table
            for batch in batches:
                writer.write(batch)
            for key, value in (metadata() if callable(metadata) else metadata or {}).items():
                writer.add_metadata(key, value)
            size = writer.finish().size
        self.written[name] = store.sums_of()
        return IndexFile(name, size)


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows that may satisfy the query; `is_exact`: they do, and no others."""

    rows: AddressSet
    is_exact: bool


class OpenIndex(Protocol):
    """One segment, opened. Safe to share between threads."""

    @property
    def streams(self) -> bool:
        """Whether `verify_rows` gets all rows in one call and holds few of them at a time."""

    def search(self, part: Expr) -> Answer | None:
        """The rows for a test the kind `can_answer`; None when this segment cannot say."""

    def statistics(self) -> dict[str, Any]:
        """Figures for `index_statistics`."""

    def verify_rows(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Compare what the segment says with live rows it covers, as training data (value, id), and what no row says.

        When rows are many they come in several calls, each row in one; a kind that `streams` gets them all in one
        and holds few at a time. When all calls returned, a search finds every row it should. Raises CorruptFileError.
        """


def _no_options(_folder: IndexFolder, _details: Details | None) -> Mapping[str, Any]:
    return {}


Train = Callable[..., "tuple[IndexFile, ...]"]
"""train(folder, batches, value_type, **parameters) -> the files written."""


@dataclass(frozen=True, slots=True)
class IndexKind:
    """One kind of index. `version` is the newest `index_version` we read; `needs_addresses`: it never holds stable ids."""

    name: str
    title: str
    details: str
    version: int
    written_version: int
    accepts: Callable[[pa.DataType], bool]
    can_answer: Callable[[Expr], bool]
    train: Train
    open: Callable[[IndexFolder, pa.DataType, tuple[str, ...]], OpenIndex]
    describe: Callable[[pa.DataType, Mapping[str, Any]], Details]
    parameters: frozenset[str] = frozenset()
    needs_addresses: bool = False
    stable_version: int | None = None
    options_of: Callable[[IndexFolder, Details | None], Mapping[str, Any]] = _no_options
    """The options a segment was built with, so that one like it can be built."""


def metadata_of(opened: OpenFile, key: str, default: bytes | None = None) -> bytes:
    """A key of an index file's metadata. Raises CorruptFileError when it is missing and there is no default."""
    found = opened.schema.metadata.get(key, default)
    if found is None:
        raise CorruptFileError(f"{opened.path} has no metadata key {key!r}", cure="Rebuild the index.")
    return found


def number_of(opened: OpenFile, key: str, default: int) -> int:
    """A positive whole number of an index file's metadata."""
    text = metadata_of(opened, key, str(default).encode())
    if not text.isdigit() or not 0 < int(text) < 1 << 32:
        raise CorruptFileError(f"{opened.path}: {key} is {text[:20]!r}, expected a positive number")
    return int(text)


def read_all(opened: OpenFile, names: Iterable[str]) -> pa.RecordBatch:
    """The named columns, whole. Raises CorruptFileError when the file has not got them."""
    wanted = list(names)
    schema = opened.schema
    ids = [item.id for item in schema.top_level if item.name in wanted]
    if len(ids) != len(wanted):
        have = ", ".join(item.name for item in schema.top_level)
        raise CorruptFileError(f"{opened.path} has the columns {have}, expected {', '.join(wanted)}")
    whole = schema.project({child.id for item in ids for child in schema.descend(item)})
    table = read_bounded(opened, whole)
    if table.num_rows == 0:
        return pa.RecordBatch.from_pylist([], schema=table.schema).select(wanted)
    return table.to_batches()[0].select(wanted)


def read_bounded(opened: OpenFile, schema: Schema) -> pa.Table:
    """Some columns of an index file, whole and in one piece. CorruptFileError when a small file becomes a large table."""
    room = max(_SMALL, _DECODED_A_BYTE * opened.file_size)
    target = schema_to_arrow(schema)
    widths = [_width(item.type) for item in target]
    rows = opened.num_rows if 0 not in widths else WRITTEN_ROWS >> 4
    if 0 not in widths and opened.num_rows * sum(widths) > room:
        raise CorruptFileError(f"{opened.path} ({opened.file_size} bytes) claims more than {room} bytes of values")
    batches: list[pa.RecordBatch] = []
    for batch in opened.read(schema, batch_size=max(1, min(rows, 1 << 30))):
        room -= batch.nbytes
        if room < 0:
            raise CorruptFileError(f"{opened.path} ({opened.file_size} bytes) claims too many bytes of values")
        batches.append(batch)
    return pa.Table.from_batches(batches, batches[0].schema if batches else target).combine_chunks()


def _width(kind: pa.DataType) -> int:
    """Bytes of a value; 0 where values differ in length."""
    try:
        return (kind.bit_width + 7) // 8
    except ValueError:
        return 0


def column_batch(path: tuple[str, ...], values: Any) -> pa.RecordBatch:
    """A batch in which the column `path` (maybe inside structs) has these values, so that a filter can be evaluated."""
    array: Any = values
    for name in reversed(path[1:]):
        array = pa.StructArray.from_arrays([array], [name])
    return pa.RecordBatch.from_arrays([array], [path[0]])


def gather(batches: Iterable[pa.RecordBatch], value_type: pa.DataType) -> tuple[Any, Any]:
    """All training data: the values as one Arrow array, the ids as uint64. A column that is NOT NULL is like any other."""
    found = [*_nonempty(batches)]
    values: Any = pa.chunked_array([batch.column(VALUE) for batch in found], cast("Any", value_type)).combine_chunks()
    if isinstance(values, pa.ChunkedArray):
        values = values.chunk(0) if values.num_chunks else nulls(0, value_type)
    return values, numpy_of(pa.chunked_array([batch.column(ID) for batch in found], pa.uint64()))


def _nonempty(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return (batch for batch in batches if batch.num_rows)
