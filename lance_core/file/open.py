"""Open a data file of any version and read some of its fields.

opened = open_file(store, "data/a.lance", data_file=fragment.files[0])
for batch in opened.read(schema, batch_size=8192): ...
opened.take(schema, [7, 3, 3])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from lance_core.arrow import field_to_arrow
from lance_core.errors import CorruptFileError
from lance_core.fetch import Fetch
from lance_core.file.blob.read import BlobReader, own_schema
from lance_core.file.convert.tree import Node, assign_columns, blob_below, build_tree, leaves
from lance_core.file.error_location import located
from lance_core.file.metadata import MAGIC, TAIL_SIZE, FileMetadata, Tail, fetch_tail, load_metadata, parse_version
from lance_core.file.open_file import OpenFile
from lance_core.file.projection import Blobs, FileProjection, Reader
from lance_core.file.v1.reader import open_legacy
from lance_core.file.v2.columns20 import (
    FieldReader20,
    PagedColumn,
    assign_columns20,
    holds_texts_as_lists,
    own_fields,
    paged,
)
from lance_core.file.v2.columns21 import field_readers, wanted_columns
from lance_core.format.fragment import DataFile
from lance_core.format.layout import FileColumn
from lance_core.format.schema import Schema
from lance_core.format.version import FileVersion
from lance_core.io.cache import LruCache, shared_cache
from lance_core.io.fetcher import drive_one
from lance_core.io.store import Store

_T = TypeVar("_T")

__all__ = ["ContainerFile", "OpenFile", "open_file"]


def open_file(
    store: Store,
    path: str,
    *,
    size: int | None = None,
    data_file: DataFile | None = None,
    cache: LruCache | None = None,
    tail_size: int = TAIL_SIZE,
) -> OpenFile:
    """Open the data file at `path` with one request for its end (and one for its size when nobody knows it).

    A file of at most `tail_size` bytes is read whole and held: whoever reads it asks the store for nothing else.
    `data_file` is the table's entry for the file: it says which column holds which field; without it the file's own
    schema does. Raises NotFoundError, FormatError (damaged, or a version this library does not know).
    """
    if size is None and data_file is not None and data_file.file_size_bytes:
        size = data_file.file_size_bytes
    file_size = store.size(path) if size is None else size
    with located(path):
        tail = drive_one(store, path, fetch_tail(file_size, tail_size))
        if data_file is not None and data_file.version.is_legacy and bytes(tail.data[-len(MAGIC) :]) != MAGIC:
            # The official library writes down how far it had come before the end of a legacy file.
            file_size = store.size(path)
            tail = drive_one(store, path, fetch_tail(file_size, tail_size))
        version = parse_version(tail.data)
        if version.is_legacy:
            return open_legacy(store, path, tail=tail, file_size=file_size, data_file=data_file)
        metadata = drive_one(store, path, load_metadata(tail, file_size=file_size))
    return ContainerFile(
        store, path, tail=tail, metadata=metadata, data_file=data_file, cache=shared_cache() if cache is None else cache
    )


class ContainerFile(OpenFile):
    """An open file of version 2.0 or newer. Holds its tables and, lazily, the metadata of columns that were read."""

    def __init__(
        self,
        store: Store,
        path: str,
        *,
        tail: Tail,
        metadata: FileMetadata,
        data_file: DataFile | None,
        cache: LruCache,
    ) -> None:
        super().__init__(store, path, version=metadata.footer.version, file_size=metadata.file_size)
        self.metadata = metadata
        self._tail = tail
        self._data_file = data_file
        self._cache = cache
        self._columns_of: Mapping[int, int] | None = None

    @property
    def schema(self) -> Schema:
        """The file's own schema, from its global buffer 0 (one request more unless the file is small)."""
        return own_schema(self._drive(self.metadata.load_descriptor()).schema)

    @property
    def num_rows(self) -> int:
        """Rows in the file, from its global buffer 0."""
        return self._drive(self.metadata.load_descriptor()).num_rows

    @property
    def num_global_buffers(self) -> int:
        """Global buffers, the descriptor included."""
        return len(self.metadata.global_buffers)

    @property
    def columns_of_fields(self) -> Mapping[int, int]:
        """Field id -> column, for fields that have a column of their own."""
        return self._mapping()

    def global_buffer(self, number: int) -> bytes:
        """One global buffer; 0 is the descriptor."""
        return self._drive(self.metadata.load_global_buffer(number))

    def columns(self, indices: Sequence[int]) -> list[FileColumn]:
        """Metadata of some columns."""
        return self._drive(self.metadata.load_columns(indices))

    def _drive(self, fetch: Fetch[_T]) -> _T:
        with located(self.path):
            return drive_one(self.store, self.path, fetch)

    def _project(self, schema: Schema, blobs: Blobs) -> FileProjection:
        mapping = self._mapping()
        described = blobs == "descriptions"
        nodes = [build_tree(schema, field, mapping, described=described) for field in schema.top_level]
        readers: Sequence[Reader]
        if self.version is FileVersion.V2_0:
            readers, num_rows = self._readers20(nodes, mapping)
        else:
            readers, num_rows = self._readers21(nodes)
        if not described:
            readers = [self._with_values(schema, reader) for reader in readers]
        return FileProjection(
            store=self.store,
            path=self.path,
            schema=schema,
            readers=readers,
            num_rows=self.num_rows if num_rows is None else num_rows,
            tail=self._tail,
            blobs=blobs,
        )

    def _with_values(self, schema: Schema, reader: Reader) -> Reader:
        if not blob_below(reader.node):
            return reader
        return BlobReader(reader, self.store, self.path, self.file_size, field_to_arrow(schema, reader.node.field).type)

    def _readers21(self, nodes: Sequence[Node]) -> tuple[Sequence[Reader], int | None]:
        wanted = wanted_columns(nodes)
        found = dict(zip(wanted, self.columns(wanted), strict=True))
        key = (self.store.uri, self.path, self.file_size)
        readers = field_readers(self.path, nodes, found, self._cache, key, self.file_size, self.version)
        counts = {column.num_rows for reader in readers for column in reader.columns}
        return readers, _agreed(counts)

    def _readers20(self, nodes: Sequence[Node], mapping: Mapping[int, int]) -> tuple[Sequence[Reader], int | None]:
        ids = [field_id for node in nodes for field_id in own_fields(node) if field_id in mapping]
        columns = self.columns([mapping[field_id] for field_id in ids])
        found = {field_id: paged(column) for field_id, column in zip(ids, columns, strict=True)}
        texts = self._texts20(nodes, found, mapping)
        readers = []
        for node in nodes:
            own = {field_id: found[field_id] for field_id in own_fields(node) if field_id in found}
            readers.append(FieldReader20(self.path, node, own, self.file_size, texts))
        return readers, _agreed({reader.num_rows for reader in readers if reader.num_rows is not None})

    def _texts20(
        self, nodes: Sequence[Node], found: Mapping[int, PagedColumn], mapping: Mapping[int, int]
    ) -> dict[int, PagedColumn]:
        """The columns of bytes behind columns of strings that are stored as lists."""
        ids = [
            leaf.field.id
            for node in nodes
            for leaf in leaves(node)
            if leaf.field.id in found and holds_texts_as_lists(leaf, found[leaf.field.id].column)
        ]
        columns = self.columns([mapping[field_id] + 1 for field_id in ids])
        return {field_id: paged(column) for field_id, column in zip(ids, columns, strict=True)}

    def _mapping(self) -> Mapping[int, int]:
        """Field id -> column."""
        if self._columns_of is None:
            if self._data_file is not None:
                pairs = zip(self._data_file.fields, self._data_file.column_indices, strict=True)
                self._columns_of = {field: column for field, column in pairs if field >= 0 and column >= 0}
            elif self.version is FileVersion.V2_0:
                schema = self.schema
                self._columns_of = assign_columns20(
                    [build_tree(schema, field, {}) for field in schema.top_level], self.metadata.num_columns
                )
            else:
                self._columns_of = assign_columns(self.schema)
        return self._columns_of


def _agreed(counts: set[int]) -> int | None:
    """The one number of rows that all columns have."""
    if len(counts) > 1:
        raise CorruptFileError(f"columns have different numbers of rows: {sorted(counts)[:5]}")
    return next(iter(counts), None)
