"""Open a legacy (0.1) file: metadata, schema and page table come from its end.

| pages ... | page table | [statistics] | u32 + Manifest (schema) | u32 + Metadata | footer 16 bytes |

Reading the pages of legacy files: parts of one field, batch by batch, joined into one Arrow array.

    plain       values as Arrow has them, booleans as bits        int32 page of 3: 12 bytes
    binary      absolute i64 offsets (n + 1); the bytes are where they point
    list        i32 or i64 offsets (n + 1) from 0, items in the page of the child field
    dictionary  keys as a plain page; the values once per file, where the field says

Only strings and binary have nulls: a value of length zero is one where the field is nullable, and in
dictionaries. (Spec: legacy files.)
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa

from lance_core.arrays import Ints
from lance_core.arrow.buffers import buffer_of, nulls
from lance_core.arrow.kinds import dictionary_type, list_type
from lance_core.arrow_numpy import numpy_of
from lance_core.codecs.blocks import FixedBlock, VariableBlock
from lance_core.errors import CorruptFileError, InputError, UnsupportedEncodingError
from lance_core.fetch import Buffer, ByteRange, Fetch
from lance_core.file.convert.tree import LeafNode, ListNode, Node, StructNode, build_tree
from lance_core.file.convert.values import bitmap, to_arrow
from lance_core.file.error_location import located, span
from lance_core.file.metadata import Tail, parse_legacy_footer
from lance_core.file.open_file import OpenFile
from lance_core.file.projection import Blobs, FileProjection
from lance_core.file.v1.table import PageSpot, PageTable, decode_table, table_size
from lance_core.format.fragment import DataFile
from lance_core.format.schema import Field, Schema
from lance_core.format.version import FileVersion
from lance_core.io.fetcher import drive_one
from lance_core.io.store import Store
from lance_core.pages.buffers import request
from lance_core.pages.read.lockstep import together
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


class SlotSpan(NamedTuple):
    """Slots `start` to `end` of one field's page in one batch."""

    batch: int
    start: int
    end: int


class LegacyPages:
    """Reads fields through the page table; `schema` is the file's own, which knows where dictionaries are."""

    def __init__(self, schema: Schema, table: PageTable, file_size: int) -> None:
        self._schema = schema
        self._table = table
        self._file_size = file_size

    def read(self, node: Node, parts: Sequence[SlotSpan]) -> Fetch[Any]:
        """The parts of a field, in order, as one array of the node's storage type."""
        count = sum(part.end - part.start for part in parts)
        if isinstance(node, StructNode):
            children = yield from together([self.read(child, parts) for child in node.children])
            return pa.Array.from_buffers(node.type, count, [None], children=children)
        if node.field.id not in self._schema.by_id:
            return nulls(count, node.type)
        if isinstance(node, ListNode):
            return (yield from self._read_list(node, parts))
        if pa.types.is_struct(node.type):
            return pa.Array.from_buffers(node.type, count, [None], children=[])
        spots = [(self._table.spot(node.field.id, part.batch), part) for part in parts]
        for spot, part in spots:
            if part.end > spot.length:
                raise CorruptFileError(f"batch {part.batch} has {spot.length} values, expected at least {part.end}")
        if pa.types.is_dictionary(node.type):
            return (yield from self._read_dictionary(node, spots))
        return (yield from self._read_values(node.type, spots, nullable=node.field.nullable))

    def _read_values(
        self, arrow_type: pa.DataType, spots: Sequence[tuple[PageSpot, SlotSpan]], *, nullable: bool = True
    ) -> Fetch[Any]:
        count = sum(part.end - part.start for _, part in spots)
        if pa.types.is_null(arrow_type):
            return pa.nulls(count)
        if _is_variable(arrow_type):
            return (yield from self._read_binary(arrow_type, spots, nullable=nullable))
        bits, items = _plain_width(arrow_type)
        block = yield from self._read_plain(bits, items, spots)
        if pa.types.is_fixed_size_list(arrow_type):
            return _lists(block, arrow_type, count)
        return to_arrow(block, arrow_type)

    def _read_plain(self, bits: int, items: int, spots: Sequence[tuple[PageSpot, SlotSpan]]) -> Fetch[FixedBlock]:
        """Values of `bits` bits, `items` of them to a slot."""
        count = sum(part.end - part.start for _, part in spots) * items
        ranges = []
        for spot, part in spots:
            first, last = part.start * items * bits, part.end * items * bits
            ranges.append(self._range(spot.position + first // 8, spot.position + -(-last // 8)))
        buffers = yield from request(ranges)
        if bits == 1:
            pieces = [
                np.unpackbits(data, bitorder="little")[part.start * items % 8 :][: (part.end - part.start) * items]
                for data, (_, part) in zip(buffers, spots, strict=True)
            ]
            joined = np.packbits(np.concatenate([np.empty(0, np.uint8), *pieces]), bitorder="little")
            return FixedBlock(1, joined, count)
        data = buffers[0] if len(buffers) == 1 else np.concatenate([np.empty(0, np.uint8), *buffers])
        return FixedBlock(bits, data, count)

    def _range(self, start: int, end: int) -> ByteRange:
        if not 0 <= start <= end <= self._file_size:
            raise CorruptFileError(f"bytes {start}..{end} are outside the file of {self._file_size} bytes")
        return ByteRange(start, end)

    def _read_offsets(self, dtype: str, spots: Sequence[tuple[PageSpot, SlotSpan]]) -> Fetch[list[Ints]]:
        """One more offset than slots, for each part."""
        width = np.dtype(dtype).itemsize
        ranges = [
            self._range(spot.position + width * part.start, spot.position + width * (part.end + 1)) for spot, part in spots
        ]
        buffers = yield from request(ranges)
        offsets = [np.frombuffer(data.tobytes(), dtype).astype(np.int64) for data in buffers]
        for item in offsets:
            if len(item) and (int(item[0]) < 0 or bool((np.diff(item) < 0).any())):
                raise CorruptFileError("offsets decrease or are negative")
        return offsets

    def _read_binary(
        self, arrow_type: pa.DataType, spots: Sequence[tuple[PageSpot, SlotSpan]], *, nullable: bool
    ) -> Fetch[Any]:
        offsets = yield from self._read_offsets("<i8", spots)
        buffers = yield from request([self._range(int(item[0]), int(item[-1])) for item in offsets])
        lengths = np.concatenate([np.empty(0, np.int64), *(np.diff(item) for item in offsets)])
        ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
        data = buffers[0] if len(buffers) == 1 else np.concatenate([np.empty(0, np.uint8), *buffers])
        valid = lengths > 0
        return to_arrow(VariableBlock(ends, data), arrow_type, bitmap(valid) if nullable and not valid.all() else None)

    def _read_list(self, node: ListNode, parts: Sequence[SlotSpan]) -> Fetch[Any]:
        if node.dimension or pa.types.is_map(node.type):
            raise UnsupportedEncodingError(f"{node.type} is not supported in a legacy file")
        spots = [(self._table.spot(node.field.id, part.batch), part) for part in parts]
        for spot, part in spots:
            if part.end + 1 > spot.length:
                raise CorruptFileError(
                    f"batch {part.batch} has {spot.length} list offsets, expected at least {part.end + 1}"
                )
        large = pa.types.is_large_list(node.type)
        offsets = yield from self._read_offsets("<i8" if large else "<i4", spots)
        below = [SlotSpan(part.batch, int(item[0]), int(item[-1])) for part, item in zip(parts, offsets, strict=True)]
        items = yield from self.read(node.item, below)
        lengths = np.concatenate([np.zeros(1, np.int64), *(np.diff(item) for item in offsets)])
        ends = np.cumsum(lengths)
        if not large and int(ends[-1]) >= 1 << 31:
            raise CorruptFileError(f"{int(ends[-1])} items do not fit in {node.type}")
        buffer = buffer_of(ends.astype(np.int64 if large else np.int32))
        return pa.Array.from_buffers(node.type, len(ends) - 1, [None, buffer], children=[items])

    def read_items(self, field: Field, arrow_type: pa.DataType) -> Fetch[Any]:
        """The values of a field's dictionary."""
        where = self._schema.by_id[field.id].dictionary
        if where is None:
            raise CorruptFileError("a dictionary column has no position of its values")
        whole = [(PageSpot(where.offset, where.length), SlotSpan(0, 0, where.length))]
        return (yield from self._read_values(arrow_type, whole))

    def _read_dictionary(self, node: LeafNode, spots: Sequence[tuple[PageSpot, SlotSpan]]) -> Fetch[Any]:
        keys, items = yield from together(
            [
                self._read_values(dictionary_type(node.type).index_type, spots),
                self.read_items(node.field, list_type(node.type).value_type),
            ]
        )
        if not len(items):
            # Null keys are stored as 0; with nothing to point at, that is what they still are.
            return nulls(len(keys), node.type)
        numbers = numpy_of(keys, may_copy=True)
        if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < len(items):
            raise CorruptFileError(f"dictionary key {int(numbers.max())}, the dictionary has {len(items)} items")
        return pa.DictionaryArray.from_arrays(keys, items)


def _is_variable(arrow_type: pa.DataType) -> bool:
    types = pa.types
    small = types.is_string(arrow_type) or types.is_binary(arrow_type)
    return bool(small or types.is_large_string(arrow_type) or types.is_large_binary(arrow_type))


def _plain_width(arrow_type: pa.DataType) -> tuple[int, int]:
    """(bits of a value, values to a slot)."""
    if pa.types.is_fixed_size_list(arrow_type):
        bits, items = _plain_width(arrow_type.value_type)
        return bits, items * arrow_type.list_size
    return int(arrow_type.bit_width), 1


def _lists(block: FixedBlock, arrow_type: pa.DataType, count: int) -> pa.Array[Any]:
    """Flat items as fixed-size lists, nested as the type says."""
    item = list_type(arrow_type).value_type
    number = count * list_type(arrow_type).list_size
    values = _lists(block, item, number) if pa.types.is_fixed_size_list(item) else to_arrow(block, item)
    return pa.Array.from_buffers(arrow_type, count, [None], children=[values])
