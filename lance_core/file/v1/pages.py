"""Reading the pages of legacy files: parts of one field, batch by batch, joined into one Arrow array.

    plain       values as Arrow has them, booleans as bits        int32 page of 3: 12 bytes
    binary      absolute i64 offsets (n + 1); the bytes are where they point
    list        i32 or i64 offsets (n + 1) from 0, items in the page of the child field
    dictionary  keys as a plain page; the values once per file, where the field says

Only strings and binary have nulls: a value of length zero is one where the field is nullable, and in
dictionaries. (Spec: legacy files.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from lance_core.arrays import Ints
from lance_core.arrow.buffers import buffer_of, nulls
from lance_core.arrow.kinds import dictionary_type, list_type
from lance_core.arrow_numpy import numpy_of
from lance_core.codecs.blocks import FixedBlock, VariableBlock
from lance_core.errors import CorruptFileError, UnsupportedEncodingError
from lance_core.fetch import ByteRange, Fetch
from lance_core.file.convert.tree import LeafNode, ListNode, Node, StructNode
from lance_core.file.convert.values import bitmap, to_arrow
from lance_core.file.v1.table import PageSpot, PageTable
from lance_core.format.schema import Field, Schema
from lance_core.pages.buffers import request
from lance_core.pages.read.lockstep import together


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
