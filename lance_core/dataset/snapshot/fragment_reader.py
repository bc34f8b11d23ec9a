"""Read a fragment: join its data files, select rows, compute system columns.

::

    FragmentReader(snapshot, fragment).read(schema, RowSelection.span(0, 100), batch_size=32)
    -> batches of 32, 32, 32, 4 rows: the columns of `schema`, nulls for fields no file has

Rows here are physical; who calls decides which of them are living.

Packed structs: the fields of one are stored together, so a file with one of them has all of them, and all are read.

::

    the table  p struct (packed)  x, y        file  p in one column      requested: p.y
    -> read p with x and y, as the file's own schema lists them; p.x is dropped afterwards

A field that the file packed and the table no longer has is read too, under a name that nobody asks for.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Generator, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrays import Ints
from lance_core.arrow import schema_to_arrow
from lance_core.arrow.logical import BLOB_V2, STRUCT
from lance_core.arrow_numpy import arrow_of
from lance_core.cached import cached_property
from lance_core.dataset.snapshot.assemble import assemble, side_by_side
from lance_core.dataset.snapshot.deletion_vectors import read_deleted
from lance_core.dataset.snapshot.row_offsets import addresses, row_places
from lance_core.dataset.snapshot.snapshot import CacheSlot, Snapshot
from lance_core.errors import CorruptFileError
from lance_core.expr import SYSTEM_COLUMNS
from lance_core.fetch import ByteRange
from lance_core.file.convert.few_values import FieldValues
from lance_core.file.convert.tree import is_old_blob, is_packed
from lance_core.file.open import OpenFile, open_file
from lance_core.file.projection import FileProjection
from lance_core.format.fragment import DataFile, ExternalFile, Fragment
from lance_core.format.schema import Field, Schema
from lance_core.format.version import FileVersion
from lance_core.io.store import Store
from lance_core.pages.rows import RowSelection
from lance_core.rowids.message import decode_row_ids, decode_versions
from lance_core.shortage import batch_bytes
from lance_core.table.features import check_fragment_entry

_MANY_ROWS = 1 << 22
"""From this many rows on, what the manifest says is compared with the data files before memory is taken for it."""
_MAX_SEQUENCE_BYTES = 1 << 31
_WHOLE_FILE = 4 << 20
"""Up to this size a file whose columns are all wanted is one request: its end first would be a second round."""


class ReaderCache:
    """The readers of one snapshot, the latest used kept: a warm handle does not open its files again."""

    def __init__(self, *, max_readers: int = 256) -> None:
        self._max = max_readers
        self._lock = threading.Lock()
        self._readers: OrderedDict[int, FragmentReader] = OrderedDict()

    def get(self, snapshot: Snapshot, fragment: Fragment) -> FragmentReader:
        """The reader of a fragment, made or remembered."""
        with self._lock:
            reader = self._readers.pop(fragment.id, None)
            if reader is None or reader.fragment is not fragment:
                reader = FragmentReader(snapshot, fragment)
            self._readers[fragment.id] = reader
            while len(self._readers) > self._max:
                self._readers.popitem(last=False)
            return reader


_READERS = CacheSlot[Snapshot, ReaderCache](lambda _: ReaderCache())


def reader_of(snapshot: Snapshot, fragment: Fragment) -> FragmentReader:
    """The (remembered) reader of a fragment of a snapshot."""
    return snapshot.cached(_READERS).get(snapshot, fragment)


class FragmentReader:
    """One fragment of a snapshot. Files are opened on first use and kept."""

    def __init__(self, snapshot: Snapshot, fragment: Fragment) -> None:
        self.snapshot = snapshot
        self.fragment = fragment
        check_fragment_entry(snapshot.manifest, fragment, uri=snapshot.uri)
        self._open: dict[str, OpenFile] = {}
        self._parts: dict[tuple[int, ...], list[tuple[DataFile, Schema]]] = {}
        self._projected: dict[tuple[str, tuple[tuple[int, str], ...]], FileProjection] = {}

    @cached_property
    def deleted(self) -> Ints:
        """Sorted physical offsets of deleted rows."""
        return read_deleted(self.snapshot, self.fragment)

    def read(
        self,
        schema: Schema,
        rows: RowSelection,
        *,
        batch_size: int,
        system: Collection[str] = (),
    ) -> Generator[pa.RecordBatch, None, None]:
        """The selected physical rows in order: the columns of `schema` (a part of the table's), then `system` columns."""
        if rows.num_rows > _MANY_ROWS:
            self._check_rows()
        batches = self._stored(schema, rows, batch_size)
        if not system:
            yield from batches
            return
        names = [name for name in SYSTEM_COLUMNS if name in system]
        offsets = rows.to_indices()
        first = 0
        for batch in batches:
            part = offsets[first : first + batch.num_rows]
            first += batch.num_rows
            yield self._with_system(batch, names, part)

    def table(self, schema: Schema, rows: RowSelection) -> pa.Table | None:
        """Physical rows as a table of decoded chunks, when one file has all the columns; else None."""
        sources = self.sources(schema)
        if len(sources) != 1 or sources[0][1].ids != schema.ids:
            return None
        file = self._stream(*sources[0], is_whole=self._is_most(rows))
        self._check_within(file, rows)
        return file.table(rows)

    def few(self, schema: Schema, rows: RowSelection) -> dict[str, FieldValues | pa.ChunkedArray[Any]] | None:
        """A few physical rows of each field (`FileProjection.few`), when one file has all the columns; else None."""
        sources = self.sources(schema)
        if len(sources) != 1 or sources[0][1].ids != schema.ids or self._is_most(rows):
            return None
        file = self._project(*sources[0])
        self._check_within(file, rows)
        return file.few(rows)

    def _stored(self, schema: Schema, rows: RowSelection, batch_size: int) -> Iterator[pa.RecordBatch]:
        target = schema_to_arrow(schema)
        sources = self.sources(schema)
        if not sources:
            if not self.fragment.files and rows.num_rows:
                raise CorruptFileError(
                    f"{self.snapshot.uri}: fragment {self.fragment.id} declares {self.fragment.physical_rows} rows, "
                    "but has no data file",
                    uri=self.snapshot.uri,
                    version=self.snapshot.version,
                )
            if self.fragment.physical_rows > _MANY_ROWS:
                self._check_rows()
            yield from (assemble((), target, count) for count in _counts(rows.num_rows, batch_size))
            return
        is_whole = self._is_most(rows)
        files = [self._stream(file, part, is_whole=is_whole) for file, part in sources]
        for file in files:
            self._check_within(file, rows)
        # Files are read side by side: each may take its share of a batch.
        most = max(1, batch_bytes() // len(files))
        streams = [file.read(ranges=rows, batch_size=batch_size, max_bytes=most) for file in files]
        for parts in side_by_side(streams):
            yield assemble(parts, target, parts[0].num_rows)

    def sources(self, schema: Schema) -> list[tuple[DataFile, Schema]]:
        """The files that hold some of the fields, each with the part of the schema it holds."""
        key = schema.ids
        if key in self._parts:
            return self._parts[key]
        found = []
        for file in self.fragment.files:
            part = stored_part(schema, file)
            if part.fields and has_packed_structs(part) and file.version > FileVersion.V0_1:
                part = with_whole_structs(part, self.open(file).schema)
            if part.fields:
                found.append((file, part))
        self._parts[key] = found
        return found

    def _is_most(self, rows: RowSelection) -> bool:
        """All rows, or nearly: deleted ones at either end are not requested."""
        return rows.num_rows * 4 >= self.fragment.physical_rows * 3

    def _stream(self, file: DataFile, part: Schema, *, is_whole: bool) -> FileProjection:
        """Fields of a file whose rows are read in order. On a far store a small file that is wanted whole is one request;
        it is not remembered as open, because its bytes would stay with it."""
        if is_whole and file.path not in self._open and _is_read_whole(file, part):
            store, path = self._place_of(file)
            if not store.is_local:
                return open_file(store, path, data_file=file, tail_size=_WHOLE_FILE).project(part)
        return self._project(file, part)

    def _project(self, file: DataFile, part: Schema) -> FileProjection:
        key = (file.path, tuple((item.id, item.name) for item in part.fields))
        if key not in self._projected:
            self._projected[key] = self.open(file).project(part)
        return self._projected[key]

    def open(self, file: DataFile) -> OpenFile:
        """A data file of this fragment, opened once."""
        opened = self._open.get(file.path)
        if opened is None:
            store, path = self._place_of(file)
            opened = open_file(store, path, data_file=file)
            self._open[file.path] = opened
        return opened

    def _place_of(self, file: DataFile) -> tuple[Store, str]:
        store, is_root = self.snapshot.store_of(file.base_id)
        return store, f"data/{file.path}" if is_root else file.path

    def _with_system(self, batch: pa.RecordBatch, names: Sequence[str], offsets: Ints) -> pa.RecordBatch:
        arrays = [*batch.columns, *(self.system_column(name, offsets) for name in names)]
        return pa.RecordBatch.from_arrays(arrays, schema=_with_fields(batch.schema, names))

    def system_column(self, name: str, offsets: Ints) -> Any:
        """A system column's values for physical offsets, as an Arrow array."""
        if name == "_rowaddr":
            return addresses(self.fragment.id, offsets)
        if name == "_rowoffset":
            return arrow_of(row_places(self.snapshot, self.fragment, offsets).astype(np.uint64))
        if name == "_rowid":
            ids = self.row_ids
            return addresses(self.fragment.id, offsets) if ids is None else arrow_of(ids[offsets])
        versions = self.created_at if name == "_row_created_at_version" else self.last_updated_at
        if versions is None:
            return arrow_of(np.ones(len(offsets), np.uint64))
        return arrow_of(versions[offsets])

    @cached_property
    def row_ids(self) -> Any:
        """Stable row ids of all physical rows (uint64), None when the table has none."""
        if self.fragment.row_ids is None:
            return None
        sequence = decode_row_ids(self._inline(self.fragment.row_ids))
        self._check_length("row ids", len(sequence))
        return sequence.to_array()

    @cached_property
    def created_at(self) -> Any:
        """The version each physical row was created in (uint64), None when it is not recorded."""
        return self._versions(self.fragment.created_at_versions)

    @cached_property
    def last_updated_at(self) -> Any:
        """The version each physical row was last changed in (uint64), None when it is not recorded."""
        return self._versions(self.fragment.last_updated_at_versions)

    def _versions(self, stored: bytes | ExternalFile | None) -> Any:
        if stored is None:
            return None
        sequence = decode_versions(self._inline(stored))
        self._check_length("row versions", len(sequence))
        return sequence.to_array()

    def _check_length(self, what: str, length: int) -> None:
        """What stands beside the rows must be as long as they are: before memory is taken for a claim."""
        rows = self.fragment.physical_rows
        if length != rows:
            raise CorruptFileError(
                f"{self.snapshot.uri}: fragment {self.fragment.id} has {length} {what} for {rows} rows",
                uri=self.snapshot.uri,
                version=self.snapshot.version,
            )
        if rows > _MANY_ROWS:
            self._check_rows()

    def _check_within(self, file: FileProjection, rows: RowSelection) -> None:
        """Whether a file has the rows that the manifest says it has, as far as they are wanted."""
        if len(rows.ends) and int(rows.ends[-1]) > file.num_rows:
            self._check_rows()

    def _check_rows(self) -> None:
        """Whether the fragment's files have as many rows as the manifest says."""
        for file in self.fragment.files:
            found = self.open(file).num_rows
            if found != self.fragment.physical_rows:
                raise CorruptFileError(
                    f"{self.snapshot.uri}: {file.path} has {found} rows, fragment {self.fragment.id} declares "
                    f"{self.fragment.physical_rows}",
                    uri=self.snapshot.uri,
                    version=self.snapshot.version,
                )

    def _inline(self, stored: bytes | ExternalFile) -> bytes:
        if isinstance(stored, bytes):
            return stored
        if stored.size > _MAX_SEQUENCE_BYTES:
            raise CorruptFileError(
                f"{self.snapshot.uri}: {stored.path} should hold a sequence of {stored.size} bytes, which is impossible"
            )
        wanted = ByteRange(stored.offset, stored.offset + stored.size)
        return bytes(self.snapshot.store.get_ranges(stored.path, [wanted])[0])


def _is_read_whole(file: DataFile, part: Schema) -> bool:
    """Whether a small file has no other columns than those of `part`, and none whose values are elsewhere."""
    size = file.file_size_bytes
    if not size or size > _WHOLE_FILE or not set(file.fields) <= set(part.ids):
        return False
    return not any(item.extension_name == BLOB_V2 or is_old_blob(item) for item in part.fields)


def _with_fields(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    for name in names:
        schema = schema.append(pa.field(name, SYSTEM_COLUMNS[name]))
    return schema


def _counts(total: int, size: int) -> Iterator[int]:
    for first in range(0, total, size):
        yield min(size, total - first)


def stored_part(schema: Schema, file: DataFile) -> Schema:
    """The fields of `schema` that a data file holds, with their parents.

    In files 2.1 and newer only leaves are listed, and a listed parent (a packed struct, a blob) holds all below it; older
    files list parents beside their leaves, so there a parent says nothing about leaves that came later, unless it is packed.
    """
    listed = {field for field in file.fields if field >= 0}
    held = [
        item.id
        for item in schema.fields
        if not schema.children(item.id)
        and (item.id in listed or _has_listed_parent(schema, item.id, listed, version=file.version))
    ]
    return schema.project(held)


def _has_listed_parent(schema: Schema, field_id: int, listed: set[int], *, version: FileVersion) -> bool:
    if version is FileVersion.V0_1:
        return False
    parent = schema.by_id[field_id].parent_id
    while parent in schema.by_id:
        item = schema.by_id[parent]
        if parent in listed and (version >= FileVersion.V2_1 or is_packed_struct(item)):
            return True
        parent = item.parent_id
    return False


def is_packed_struct(item: Field) -> bool:
    """Whether a field is a struct whose fields are stored in one column (blobs have readers of their own)."""
    return item.logical_type == STRUCT and item.extension_name != BLOB_V2 and is_packed(item)


def has_packed_structs(schema: Schema) -> bool:
    """Whether any field is a packed struct."""
    return any(is_packed_struct(item) for item in schema.fields)


def with_whole_structs(part: Schema, own: Schema) -> Schema:
    """The part of the table's schema with all the fields that the file, whose schema is `own`, packed with some of it."""
    if not any(is_packed_struct(item) and _ids(part, item.id) != _ids(own, item.id) for item in part.fields):
        return part
    fields: list[Field] = []
    inside: set[int] = set()
    for item in part.fields:
        if item.id in inside:
            continue
        fields.append(item)
        if is_packed_struct(item) and item.id in own.by_id:
            below = [child for child in own.descend(item.id) if child.id != item.id]
            inside.update(child.id for child in part.descend(item.id))
            inside.update(child.id for child in below)
            fields.extend(part.by_id.get(child.id) or _unnamed(child) for child in below)
    return Schema(tuple(fields), part.metadata)


def _ids(schema: Schema, field_id: int) -> list[int]:
    return [item.id for item in schema.descend(field_id)] if field_id in schema.by_id else []


def _unnamed(item: Field) -> Field:
    return replace(item, name=f"\N{MIDDLE DOT}{item.id}")
