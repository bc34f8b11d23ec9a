"""Write a data file: batches in, one file out, bounded memory.

    writer = FileWriter(store, "data/a.lance", schema)
    for batch in batches: writer.write(batch)
    written = writer.finish()                   WrittenFile(data_file=..., num_rows=..., size=...)

Rows wait per column until about 8 MiB have come together, then they become pages; all columns together hold at most
`MAX_BUFFERED_BYTES`. Pages are encoded on the work pool while others are written. Nobody sees the file before `finish`.

Arrays users give -> storage arrays: extension wrappers come off, JSON text becomes JSONB.

extension<arrow.json> '{"a":1}'      large_binary 40000001 ...
extension<arrow.uuid>                fixed_size_binary[16]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from lance_core.arrow.cast import BatchCaster
from lance_core.arrow.jsonb import encode_jsonb
from lance_core.arrow.kinds import as_extension, as_list, as_struct, list_type
from lance_core.arrow.to_arrow import storage_type
from lance_core.errors import InputError
from lance_core.file.blob.external import BASES_ONLY, ExternalUris
from lance_core.file.v1.writer import LegacyBody
from lance_core.file.v2.paged_body import PagedBody
from lance_core.format.fragment import DataFile
from lance_core.format.schema import Schema
from lance_core.format.version import DEFAULT_VERSION, FileVersion
from lance_core.io.store import Store

MAX_PAGE_BYTES = 8 << 20
MAX_BUFFERED_BYTES = 512 << 20


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A finished file: its entry for a fragment, its rows and its size in bytes."""

    data_file: DataFile
    num_rows: int
    size: int


class Body(Protocol):
    """How a version of the format takes rows."""

    @property
    def position(self) -> int:
        """Bytes written so far."""
        ...

    @property
    def num_waiting_bytes(self) -> int:
        """Bytes of rows that wait to become pages."""
        ...

    @property
    def fields(self) -> tuple[int, ...]:
        """Field ids for the file's entry in the fragment."""
        ...

    @property
    def column_indices(self) -> tuple[int, ...]:
        """Columns of those fields; empty in legacy files."""
        ...

    def append(self, arrays: Sequence[pa.Array[Any]], num_rows: int) -> None:
        """Storage arrays, one per top-level field."""
        ...

    def add_global_buffer(self, data: bytes) -> int:
        """Store bytes of the caller's own."""
        ...

    def finish(self, schema_metadata: dict[str, bytes], num_rows: int) -> int:
        """Write everything but the last sync; returns the file's size."""
        ...

    def abandon(self) -> None:
        """Stop whatever is under way; nothing will be written any more."""
        ...


class FileWriter:
    """One data file, being written. `schema` carries the table's field ids."""

    def __init__(
        self,
        store: Store,
        path: str,
        schema: Schema,
        *,
        version: FileVersion = DEFAULT_VERSION,
        max_page_bytes: int = MAX_PAGE_BYTES,
        max_buffered_bytes: int = MAX_BUFFERED_BYTES,
        external: ExternalUris = BASES_ONLY,
    ) -> None:
        self.path = path
        self.schema = schema
        self.version = version
        self.num_rows = 0
        self._storage = [storage_type(schema, item) for item in schema.top_level]
        self._caster = BatchCaster(schema)
        self._metadata = dict(schema.metadata)
        self._out = store.open_writer(path)
        try:
            self._body: Body = (
                LegacyBody(self._out, schema)
                if version.is_legacy
                else PagedBody(
                    self._out,
                    schema,
                    version,
                    store=store,
                    path=path,
                    max_page_bytes=max_page_bytes,
                    max_buffered_bytes=max_buffered_bytes,
                    external=external,
                )
            )
        except BaseException:
            self._out.abort()
            raise
        self._finished = False

    @property
    def num_bytes(self) -> int:
        """Bytes written so far; rows that still wait are not counted."""
        return self._body.position

    @property
    def num_waiting_bytes(self) -> int:
        """Bytes of rows that wait to become pages, before they are encoded."""
        return self._body.num_waiting_bytes

    def write(self, batch: pa.RecordBatch) -> None:
        """Append a batch; columns are matched by name.

        Raises SchemaMismatchError naming the column (and row) for a wrong type, or a null where none may be.
        """
        self._check_open()
        self.write_exact(self._caster.cast(batch, first_row=self.num_rows))

    def write_exact(self, batch: pa.RecordBatch) -> None:
        """Append a batch that a `BatchCaster` (or a job's `Conformer`) has brought into the exact types of the schema."""
        self._check_open()
        arrays = [prepare(array, storage) for array, storage in zip(batch.columns, self._storage, strict=True)]
        self._body.append(arrays, batch.num_rows)
        self.num_rows += batch.num_rows

    def add_global_buffer(self, data: bytes) -> int:
        """Store some bytes of the caller's own beside the pages; returns the buffer's number."""
        self._check_open()
        return self._body.add_global_buffer(data)

    def add_metadata(self, key: str, value: bytes) -> None:
        """Set a key of the file schema's metadata (the table's schema is not touched)."""
        self._metadata[key] = value

    def finish(self) -> WrittenFile:
        """Encode what waits, write the tables, make the file visible."""
        self._check_open()
        size = self._body.finish(self._metadata, self.num_rows)
        self._out.close()  # when that fails, `abort` still has the temporary file to remove
        self._finished = True
        major, minor = self.version.data_file_numbers
        entry = DataFile(
            path=self.path.removeprefix("data/"),
            fields=self._body.fields,
            column_indices=self._body.column_indices,
            file_major_version=major,
            file_minor_version=minor,
            file_size_bytes=size,
        )
        return WrittenFile(entry, self.num_rows, size)

    def abort(self) -> None:
        """Throw the file away; a no-op after `finish`."""
        if not self._finished:
            self._finished = True
            self._body.abandon()
            self._out.abort()

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.abort()

    def _check_open(self) -> None:
        if self._finished:
            raise InputError(f"the file {self.path!r} is finished or aborted; nothing more can be written to it")


def prepare(array: pa.Array[Any], storage: pa.DataType) -> pa.Array[Any]:
    """`array` (of the type users see) as its storage type; the same object when nothing changes."""
    if isinstance(array.type, pa.BaseExtensionType):
        return prepare(as_extension(array).storage, storage)
    if array.type == storage:
        return array
    types = pa.types
    if types.is_large_binary(storage) and (types.is_string(array.type) or types.is_large_string(array.type)):
        return encode_jsonb(array)
    if types.is_struct(storage):
        children = [prepare(as_struct(array).field(i), storage.field(i).type) for i in range(storage.num_fields)]
        fields = [storage.field(i) for i in range(storage.num_fields)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null() if array.null_count else None)
    item = pa.struct([storage.key_field, storage.item_field]) if types.is_map(storage) else list_type(storage).value_type
    values = prepare(as_list(array).values, item)
    num_buffers = 1 if types.is_fixed_size_list(storage) else 2
    return pa.Array.from_buffers(storage, len(array), array.buffers()[:num_buffers], offset=array.offset, children=[values])
