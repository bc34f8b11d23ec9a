"""Open a legacy (0.1) file: metadata, schema and page table come from its end.

| pages ... | page table | [statistics] | u32 + Manifest (schema) | u32 + Metadata | footer 16 bytes |
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa

from lance_core.arrow.kinds import list_type
from lance_core.errors import CorruptFileError, InputError
from lance_core.fetch import Buffer, ByteRange, Fetch
from lance_core.file.convert.tree import Node, build_tree
from lance_core.file.error_location import located, span
from lance_core.file.footer import parse_legacy_footer
from lance_core.file.metadata import Tail
from lance_core.file.open_file import OpenFile
from lance_core.file.projection import Blobs, FileProjection
from lance_core.file.v1.pages import LegacyPages, SlotSpan
from lance_core.file.v1.table import PageTable, decode_table, table_size
from lance_core.format.fragment import DataFile
from lance_core.format.schema import Field, Schema
from lance_core.format.version import FileVersion
from lance_core.io.fetcher import drive_one
from lance_core.io.store import Store
from lance_core.pages.rows import RowSelection, cut_at
from lance_core.wire.file import LegacyMetadata, PageStatistics, decode_legacy_metadata, decode_legacy_schema

_PREFIX = 4
"""Bytes of the length in front of each message."""


@dataclass(frozen=True, slots=True)
class LegacyTables:
    """What opening a legacy file learns."""

    metadata: LegacyMetadata
    schema: Schema
    table: PageTable


def load_tables(tail: Tail, *, file_size: int, field_ids: Sequence[int] | None) -> Fetch[LegacyTables]:
    """Metadata, schema and page table. `field_ids`: the fields of the file as the table lists them, if known."""
    position = parse_legacy_footer(tail.data, file_size=file_size)
    metadata = decode_legacy_metadata((yield from _message(tail, position, file_size)))
    schema = decode_legacy_schema((yield from _message(tail, metadata.manifest_position, file_size)))
    offsets = metadata.batch_offsets
    if not offsets or offsets[0] != 0 or any(a > b for a, b in itertools.pairwise(offsets)):
        raise CorruptFileError(f"batch offsets {offsets[:5]} do not start at 0 or decrease")
    ids = [item for item in field_ids or [] if item >= 0] or [item.id for item in schema.fields]
    size = table_size(ids, len(offsets) - 1)
    data = yield from _get(tail, metadata.page_table_position, size, file_size)
    return LegacyTables(metadata, schema, decode_table(data, ids, len(offsets) - 1))


def _message(tail: Tail, position: int, file_size: int) -> Fetch[bytes]:
    """A message behind its u32 length."""
    size = int.from_bytes((yield from _get(tail, position, _PREFIX, file_size)), "little")
    return bytes((yield from _get(tail, position + _PREFIX, size, file_size)))


def _get(tail: Tail, position: int, size: int, file_size: int) -> Fetch[Buffer]:
    if not 0 <= position <= position + size <= file_size:
        raise CorruptFileError(f"{size} bytes at {position} are outside the file of {file_size} bytes")
    wanted = ByteRange(position, position + size)
    if size == 0:
        return b""
    found: Buffer | None = tail.get(wanted)
    if found is None:
        (found,) = yield [wanted]
    return found


def open_legacy(store: Store, path: str, *, tail: Tail, file_size: int, data_file: DataFile | None) -> LegacyFile:
    """A legacy file whose last bytes are in `tail`."""
    field_ids = None if data_file is None else data_file.fields
    tables = drive_one(store, path, load_tables(tail, file_size=file_size, field_ids=field_ids))
    return LegacyFile(store, path, tail=tail, tables=tables, file_size=file_size, data_file=data_file)


class LegacyFile(OpenFile):
    """An open file of version 0.1."""

    def __init__(
        self, store: Store, path: str, *, tail: Tail, tables: LegacyTables, file_size: int, data_file: DataFile | None
    ) -> None:
        super().__init__(store, path, version=FileVersion.V0_1, file_size=file_size)
        self.tables = tables
        self._tail = tail
        live = {item.id for item in tables.schema.fields}
        if data_file is not None:
            live &= set(data_file.fields)
        self._stored = Schema(tuple(item for item in tables.schema.fields if item.id in live), tables.schema.metadata)

    @property
    def schema(self) -> Schema:
        """The file's own schema."""
        return self.tables.schema

    @property
    def num_rows(self) -> int:
        """Rows in the file."""
        return self.tables.metadata.batch_offsets[-1]

    @property
    def num_global_buffers(self) -> int:
        """Legacy files have none."""
        return 0

    def global_buffer(self, number: int) -> bytes:
        """Always an InputError: legacy files have no global buffers."""
        raise InputError(f"{self.path}: legacy files have no global buffers")

    def dictionary(self, field_id: int) -> tuple[bytes, ...] | None:
        """The bytes of each value of a field's dictionary; None when it has none."""
        if field_id not in self.schema.by_id or self.schema.by_id[field_id].dictionary is None:
            return None
        node = build_tree(self.schema, self.schema.by_id[field_id], {}, packs=False)
        pages = LegacyPages(self.schema, self.tables.table, self.file_size)
        with located(self.path, column=node.field.name):
            items = drive_one(self.store, self.path, pages.read_items(node.field, list_type(node.type).value_type))
        if pa.types.is_fixed_size_binary(items.type) or not pa.types.is_primitive(items.type):
            return tuple(value.as_buffer().to_pybytes() for value in items.fill_null(b"" if _is_bytes(items.type) else ""))
        width, data = items.type.bit_width // 8, memoryview(items.buffers()[1])
        return tuple(bytes(data[at : at + width]) for at in range(0, len(items) * width, width))

    def statistics(self, field_id: int) -> pa.StructArray | None:
        """Null count, lowest and highest value of each batch of a field; None when the file has no statistics of it.

        One struct of null_count int64, min_value and max_value per batch. Strings may be cut: the bounds hold all the same.
        """
        found = self.tables.metadata.statistics
        name = str(field_id)
        if found is None or all(item.name != name for item in found.schema.top_level):
            return None
        field = found.schema.find(name)
        with located(self.path, column=name):
            return drive_one(self.store, self.path, self._load_statistics(found, field))

    def _load_statistics(self, found: PageStatistics, field: Field) -> Fetch[pa.StructArray]:
        ids = [item.id for item in found.schema.fields]
        data = yield from _get(self._tail, found.page_table_position, table_size(ids, 1), self.file_size)
        pages = LegacyPages(found.schema, decode_table(data, ids, 1), self.file_size)
        num_batches = len(self.tables.metadata.batch_offsets) - 1
        read = yield from pages.read(build_tree(found.schema, field, {}, packs=False), [SlotSpan(0, 0, num_batches)])
        return cast("pa.StructArray", read)

    def _project(self, schema: Schema, blobs: Blobs) -> FileProjection:
        pages = LegacyPages(self._stored, self.tables.table, self.file_size)
        starts = np.array(self.tables.metadata.batch_offsets, np.int64)
        nodes = [build_tree(schema, field, {}, packs=False) for field in schema.top_level]
        readers = [_FieldReader(self.path, node, pages, starts) for node in nodes]
        return FileProjection(
            store=self.store,
            path=self.path,
            schema=schema,
            readers=readers,
            num_rows=self.num_rows,
            tail=self._tail,
            blobs=blobs,
        )


@dataclass(frozen=True, eq=False)
class _FieldReader:
    """One top-level field; `starts` are the first rows of the batches, and the number of rows."""

    path: str
    node: Node
    pages: LegacyPages
    starts: np.ndarray[tuple[int], np.dtype[np.int64]]

    def jobs(self, window: RowSelection) -> list[Fetch[object]]:
        """One reader for the whole field."""
        return [self._read(window)]

    def _read(self, window: RowSelection) -> Fetch[object]:
        with located(self.path, column=self.node.field.name):
            array: object = yield from self.pages.read(self.node, list(self._parts(window)))
            return array

    def _parts(self, window: RowSelection) -> list[SlotSpan]:
        parts: list[SlotSpan] = []
        if not len(window.starts):
            return parts
        first = int(np.searchsorted(self.starts, window.starts[0], side="right")) - 1
        last = int(np.searchsorted(self.starts, window.ends[-1], side="left"))
        for batch, rows in cut_at(window, self.starts[first : last + 1]):
            spans = zip(rows.starts.tolist(), rows.ends.tolist(), strict=True)
            parts.extend(SlotSpan(first + batch, start, end) for start, end in spans)
        return parts

    def assemble(self, results: Sequence[object], num_rows: int) -> list[pa.Array[Any]]:
        """The one array the reader made."""
        arrays: list[Any] = list(results)
        return arrays

    def pages_of(self, window: RowSelection) -> str | None:
        """The batches that hold these rows: each is a page of the field."""
        return span(part.batch for part in self._parts(window))

    def row_size(self) -> float:
        """About how many bytes a row takes: legacy files are not compressed, but only their size as a whole is known."""
        return _type_size(self.node.type)

    @property
    def num_columns(self) -> int:
        """One, whatever is below."""
        return 1


def _is_bytes(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_binary(arrow_type) or pa.types.is_large_binary(arrow_type))


def _type_size(arrow_type: pa.DataType) -> float:
    types = pa.types
    if types.is_fixed_size_list(arrow_type):
        return float(arrow_type.list_size) * _type_size(arrow_type.value_type)
    if types.is_struct(arrow_type):
        return sum(_type_size(arrow_type.field(i).type) for i in range(arrow_type.num_fields))
    if types.is_list(arrow_type) or types.is_large_list(arrow_type):
        return 8.0 + 16 * _type_size(arrow_type.value_type)
    if types.is_primitive(arrow_type) or types.is_fixed_size_binary(arrow_type) or types.is_decimal(arrow_type):
        return float(arrow_type.bit_width) / 8
    return 64.0
