"""The body of a legacy (0.1) file being written: rows in batches of 1,024, one page per field and batch.

    rows 0..1023     page of field 0 | page of field 1 | ...        rows 1024..2047   ...
    at the end       dictionary values | page table | statistics | Manifest | Metadata | footer

Nulls of strings and binary become empty values, which read back as null; other nulls are lost (zeros, empty lists), as
the format has no place for them; page statistics count them.

Page statistics of a legacy file being written: how many nulls each batch of a field has, and bounds of its values.

    field 3, batches [1.0, nan, 0.0] [null]     column "3": null_count 0 1, min_value -0.0 -inf, max_value 1.0 inf

The rules are those of the official writer. NaNs count for nothing, a lowest zero is -0.0 and a highest 0.0, a batch without
values has the widest bounds its type has. Strings and bytes are cut after 64 bytes; a highest value that is cut is raised by
one in its last place, and left out (empty) when there is no higher. Other types have no statistics. (Spec: legacy files.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.arrow.buffers import buffer_of
from lance_core.arrow.kinds import as_dictionary, as_list, as_struct, dictionary_type, list_type
from lance_core.arrow.logical import logical_of
from lance_core.arrow_numpy import number_type, numpy_of
from lance_core.codecs.blocks import FixedBlock, ListBlock, VariableBlock
from lance_core.errors import InputError
from lance_core.file.convert.arrow_to_blocks import block_of
from lance_core.file.convert.assemble import concat
from lance_core.file.convert.tree import LeafNode, ListNode, Node, StructNode, build_tree, leaves
from lance_core.file.metadata import LEGACY_FOOTER, MAGIC
from lance_core.file.v1.table import PageSpot, encode_table
from lance_core.format.schema import NO_PARENT, Field, FieldEncoding, LegacyDictionary, Schema
from lance_core.format.version import FileVersion
from lance_core.io.store import StoreWriter
from lance_core.wire.file import LegacyMetadata, PageStatistics, encode_legacy_metadata, encode_legacy_schema

BATCH_ROWS = 1024


class LegacyBody:
    """Fields of a legacy file on their way into it."""

    def __init__(self, out: StoreWriter, schema: Schema) -> None:
        self._out = out
        self._schema = schema
        self._nodes = [build_tree(schema, field, {}, packs=False) for field in schema.top_level]
        for node in self._nodes:
            _check(node)
        if not any(_has_pages(node) for node in self._nodes):
            raise InputError("a legacy file needs at least one column with values", cure="Use storage version 2.2.")
        self._waiting: list[list[pa.Array[Any]]] = []
        self._num_waiting = 0
        self._offsets = [0]
        self._spots: dict[tuple[int, int], PageSpot] = {}
        self._items: dict[int, pa.Array[Any]] = {}
        self._fixed = {item.id for item in schema.fields if item.dictionary and item.dictionary.values is not None}
        self._statistics = StatisticsCollector()
        self.position = 0

    @property
    def num_waiting_bytes(self) -> int:
        """Bytes of rows that wait for their batch to be full."""
        return sum(array.nbytes for arrays in self._waiting for array in arrays)

    @property
    def fields(self) -> tuple[int, ...]:
        """All field ids, parents too, ascending: so the official library demands of a table's entries."""
        return tuple(sorted(item.id for item in self._schema.fields))

    @property
    def column_indices(self) -> tuple[int, ...]:
        """None: legacy files find pages by field id."""
        return ()

    def append(self, arrays: Sequence[pa.Array[Any]], num_rows: int) -> None:
        """Storage arrays of all top-level fields."""
        start = 0
        while start < num_rows:
            rows = min(num_rows - start, BATCH_ROWS - self._num_waiting)
            self._waiting.append([array.slice(start, rows) for array in arrays])
            self._num_waiting += rows
            start += rows
            if self._num_waiting == BATCH_ROWS:
                self._flush()

    def add_global_buffer(self, data: bytes) -> int:
        """Always an InputError: legacy files have no global buffers."""
        raise InputError("legacy files have no global buffers", cure="Use storage version 2.2.")

    def abandon(self) -> None:
        """Nothing is ever under way here."""

    def finish(self, schema_metadata: dict[str, bytes], num_rows: int) -> int:
        """Write what waits, then the tables."""
        self._flush()
        fields = [
            replace(item, dictionary=self._write_items(self._items[item.id])) if item.id in self._items else item
            for item in self._schema.fields
        ]
        table = self.position
        self._write(encode_table(self._spots, self.fields, len(self._offsets) - 1))
        statistics = self._statistics.write(self._write_values, self._write_table)
        manifest = self.position
        self._write_message(encode_legacy_schema(Schema(tuple(fields), schema_metadata)))
        metadata = self.position
        self._write_message(encode_legacy_metadata(LegacyMetadata(manifest, tuple(self._offsets), table, statistics)))
        self._write(LEGACY_FOOTER.pack(metadata, *FileVersion.V0_1.footer_numbers, MAGIC))
        return self.position

    def _flush(self) -> None:
        """One batch of pages."""
        if not self._num_waiting:
            return
        batch = len(self._offsets) - 1
        for number, node in enumerate(self._nodes):
            array = concat([_without_null_items(node, arrays[number]) for arrays in self._waiting], node.type)
            self._measure(node, array)
            self._write_field(node, array, batch)
        self._offsets.append(self._offsets[-1] + self._num_waiting)
        self._waiting, self._num_waiting = [], 0

    def _measure(self, node: Node, array: pa.Array[Any]) -> None:
        """Statistics of fields that have a value to a row."""
        if isinstance(node, StructNode):
            for number, child in enumerate(node.children):
                self._measure(child, as_struct(array).field(number))
        elif isinstance(node, LeafNode):
            self._statistics.add(node.field.id, array)

    def _write_table(self, data: bytes) -> int:
        position = self.position
        self._write(data)
        return position

    def _write_field(self, node: Node, array: pa.Array[Any], batch: int) -> None:
        if isinstance(node, StructNode):
            for number, child in enumerate(node.children):
                self._write_field(child, as_struct(array).field(number), batch)
        elif isinstance(node, ListNode):
            self._write_list(node, array, batch)
        elif pa.types.is_dictionary(node.type):
            self._write_keys(node, as_dictionary(array), batch)
        elif not pa.types.is_struct(node.type):
            self._spots[node.field.id, batch] = self._write_values(array)

    def _write_list(self, node: ListNode, array: pa.Array[Any], batch: int) -> None:
        lengths = numpy_of(pc.fill_null(pc.list_value_length(array), 0).cast(pa.int64()), may_copy=True)
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
        dtype = "<i8" if pa.types.is_large_list(node.type) else "<i4"
        self._spots[node.field.id, batch] = PageSpot(self.position, len(offsets))
        self._write(offsets.astype(dtype).tobytes())
        self._write_field(node.item, as_list(array).flatten(), batch)

    def _write_keys(self, node: LeafNode, array: pa.DictionaryArray[Any, Any], batch: int) -> None:
        """Keys into one dictionary for the whole file: later batches are translated into what it holds by then."""
        known = self._known(node)
        items = array.dictionary if known is None else _merged(known, array.dictionary)
        if not len(items) and len(array) and node.field.id not in self._fixed:
            # Keys that are null need a value to point at: an empty text reads as null, a number as zero.
            items = _zeros(1, items.type)
        if node.field.id in self._fixed and known is not None and len(items) > len(known):
            raise InputError(
                f"column {node.field.name!r} holds {items[len(known)].as_py()!r}, which is not in the table's dictionary",
                cure="A column of a legacy table keeps its first dictionary; rewrite the table with storage version 2.2.",
            )
        index_type = dictionary_type(node.type).index_type
        largest = 2 ** (index_type.bit_width - pa.types.is_signed_integer(index_type)) - 1
        if len(items) - 1 > largest:
            raise InputError(f"{len(items)} values of {node.field.name!r} do not fit {index_type} keys")
        places = pc.index_in(array.dictionary, value_set=items)
        # Below nulls of a struct, keys may point into a dictionary without values.
        indices = array.indices if len(places) else pa.nulls(len(array), array.indices.type)
        keys = cast("Any", pc.fill_null(cast("Any", pc.take(cast("Any", places), indices)), 0)).cast(index_type)
        self._items[node.field.id] = items
        self._spots[node.field.id, batch] = self._write_values(keys)

    def _known(self, node: LeafNode) -> pa.Array[Any] | None:
        """The values so far, to begin with those of the table."""
        found = node.field.dictionary
        if node.field.id not in self._items and found is not None and found.values is not None:
            self._items[node.field.id] = _items_of(found.values, list_type(node.type).value_type)
        return self._items.get(node.field.id)

    def _write_items(self, items: pa.Array[Any]) -> LegacyDictionary:
        spot = self._write_values(items)
        return LegacyDictionary(spot.position, spot.length)

    def _write_values(self, array: pa.Array[Any]) -> PageSpot:
        """One page of values; strings put their bytes first and are found by their offsets."""
        if pa.types.is_null(array.type):
            return PageSpot(self.position, len(array))
        if not pa.types.is_nested(array.type) and array.null_count:
            array = _filled(array)
        values = block_of(array)
        if isinstance(values, VariableBlock):
            start = self.position
            self._write(values.data[: int(values.offsets[-1])].tobytes())
            spot = PageSpot(self.position, values.count)
            self._write((values.offsets.astype("<i8") + start).tobytes())
            return spot
        while isinstance(values, ListBlock):
            values = values.items
        if not isinstance(values, FixedBlock):
            raise InputError(f"values of type {array.type} cannot be stored in a legacy file")
        spot = PageSpot(self.position, len(array))
        self._write(_exact(values).tobytes())
        return spot

    def _write_message(self, data: bytes) -> None:
        self._write(len(data).to_bytes(4, "little"))
        self._write(data)

    def _write(self, data: bytes) -> None:
        self._out.write(data)
        self.position += len(data)


def _exact(values: FixedBlock) -> npt.NDArray[np.uint8]:
    return values.data[: (values.count * values.bits + 7) // 8]


def _filled(array: pa.Array[Any]) -> pa.Array[Any]:
    """Nulls as zeros or empty values."""
    if array.null_count == len(array):
        return _zeros(len(array), array.type)
    try:
        return pc.fill_null(array, _zeros(1, array.type)[0])
    except pa.ArrowNotImplementedError:
        # Types without a fill kernel go through plain Python values.
        zero = _zeros(1, array.type)[0].as_py()
        filled = [zero if value is None else value for value in array.to_pylist()]
        return cast("pa.Array[Any]", pa.array(filled, array.type))


def _zeros(count: int, arrow_type: pa.DataType) -> pa.Array[Any]:
    types = pa.types
    if types.is_string(arrow_type) or types.is_binary(arrow_type):
        buffers = [None, buffer_of(np.zeros(count + 1, np.int32)), buffer_of(b"")]
    elif types.is_large_string(arrow_type) or types.is_large_binary(arrow_type):
        buffers = [None, buffer_of(np.zeros(count + 1, np.int64)), buffer_of(b"")]
    else:
        buffers = [None, buffer_of(np.zeros((count * arrow_type.bit_width + 7) // 8, np.uint8))]
    return pa.Array.from_buffers(arrow_type, count, buffers)


def _items_of(values: Sequence[bytes], arrow_type: pa.DataType) -> pa.Array[Any]:
    """An array from the bytes of each value."""
    if pa.types.is_primitive(arrow_type):
        return pa.Array.from_buffers(arrow_type, len(values), [None, pa.py_buffer(b"".join(values))])
    return pa.array(values, pa.large_binary()).cast(arrow_type)


def _without_null_items(node: Node, array: pa.Array[Any]) -> pa.Array[Any]:
    """The array with nulls among the values of its dictionaries as what legacy pages keep of a null."""
    if not any(pa.types.is_dictionary(leaf.type) for leaf in leaves(node)):
        return array
    if isinstance(node, StructNode):
        struct = as_struct(array)
        parts = [_without_null_items(child, struct.field(number)) for number, child in enumerate(node.children)]
        return pa.StructArray.from_arrays(parts, fields=list(struct.type), mask=struct.is_null())
    if isinstance(node, ListNode):
        values = _without_null_items(node.item, cast("Any", array).values)
        buffers = array.buffers()[: 1 if node.dimension else 2]
        return pa.Array.from_buffers(array.type, len(array), buffers, offset=array.offset, children=[values])
    whole = as_dictionary(array)
    return pa.DictionaryArray.from_arrays(whole.indices, _filled(whole.dictionary)) if whole.dictionary.null_count else array


def _merged(known: pa.Array[Any], more: pa.Array[Any]) -> pa.Array[Any]:
    unknown = pc.filter(more, pc.invert(pc.is_in(more, value_set=known)))
    return pa.concat_arrays([known, unknown.unique()]) if len(unknown) else known


def _is_odd_dictionary(arrow_type: pa.DataType) -> bool:
    """Whether a dictionary holds neither whole numbers nor strings nor bytes: readers know no others."""
    if not pa.types.is_dictionary(arrow_type):
        return False
    kind = arrow_type.value_type
    return not (pa.types.is_integer(kind) or _is_text(kind))


def _is_list_of_odd_items(arrow_type: pa.DataType) -> bool:
    """Whether the items of a fixed-size list have no fixed width."""
    if not pa.types.is_fixed_size_list(arrow_type):
        return False
    item = arrow_type.value_type
    while pa.types.is_fixed_size_list(item):
        item = item.value_type
    return not (pa.types.is_primitive(item) or pa.types.is_decimal(item) or pa.types.is_fixed_size_binary(item))


def _is_text(arrow_type: pa.DataType) -> bool:
    """Whether values are strings or bytes of any length, whose empty ones read as null."""
    return str(arrow_type) in ("string", "large_string", "binary", "large_binary")


def _has_pages(node: Node) -> bool:
    if isinstance(node, StructNode):
        return any(_has_pages(child) for child in node.children)
    return isinstance(node, ListNode) or not pa.types.is_struct(node.type)


def _check(node: Node) -> None:
    """Refuse what legacy files cannot hold."""
    is_list_of_structs = isinstance(node, ListNode) and node.dimension
    is_blob = node.field.extension_name.startswith("lance.blob")
    is_odd = _is_odd_dictionary(node.type) or _is_list_of_odd_items(node.type)
    if pa.types.is_map(node.type) or is_list_of_structs or is_blob or is_odd:
        raise InputError(
            f"column {node.field.name!r} has type {node.type}, which legacy files cannot hold",
            cure="Use storage version 2.2.",
        )
    for child in node.children if isinstance(node, StructNode) else (node.item,) if isinstance(node, ListNode) else ():
        _check(child)


MAX_BOUND_BYTES = 64
_TEXT = ("string", "large_string")
_VARIABLE = (*_TEXT, "binary", "large_binary")


def has_statistics(arrow_type: pa.DataType) -> bool:
    """Whether fields of this type get statistics."""
    types = pa.types
    is_number = types.is_integer(arrow_type) or types.is_boolean(arrow_type) or arrow_type in (pa.float32(), pa.float64())
    return bool(is_number or types.is_date(arrow_type) or types.is_decimal128(arrow_type) or str(arrow_type) in _VARIABLE)


@dataclass
class _Column:
    """What is known of one field, batch by batch; bounds are arrays of one value."""

    nulls: list[int] = field(default_factory=list)
    lows: list[Any] = field(default_factory=list)
    highs: list[Any] = field(default_factory=list)


class StatisticsCollector:
    """Statistics of all fields of a file. Batches of a field come in order."""

    def __init__(self) -> None:
        self._columns: dict[int, _Column] = {}

    def add(self, field_id: int, array: pa.Array[Any]) -> None:
        """The values of a field in one batch; types without statistics are passed over."""
        if not has_statistics(array.type):
            return
        column = self._columns.setdefault(field_id, _Column())
        low, high = _bounds(array)
        column.nulls.append(array.null_count)
        column.lows.append(low if isinstance(low, pa.Array) else pa.array([low], array.type))
        column.highs.append(high if isinstance(high, pa.Array) else pa.array([high], array.type))

    def write(
        self, write_values: Callable[[pa.Array[Any]], PageSpot], write_table: Callable[[bytes], int]
    ) -> PageStatistics | None:
        """Store the pages and their table; None when there are no statistics."""
        if not self._columns:
            return None
        fields: list[Field] = []
        spots: dict[tuple[int, int], PageSpot] = {}
        for field_id, column in sorted(self._columns.items()):
            parent = len(fields)
            fields.append(Field(parent, str(field_id), NO_PARENT, "struct", nullable=False))
            parts = {"null_count": pa.array(column.nulls, pa.int64()), "min_value": pa.concat_arrays(column.lows)}
            parts["max_value"] = pa.concat_arrays(column.highs)
            for name, values in parts.items():
                spots[len(fields), 0] = write_values(values)
                kind = values.type
                encoding = FieldEncoding.VAR_BINARY if str(kind) in _VARIABLE else FieldEncoding.PLAIN
                is_count = name == "null_count"
                logical = logical_of(kind, path=name)
                fields.append(Field(len(fields), name, parent, logical, nullable=not is_count, encoding=encoding))
        ids = tuple(item.id for item in fields)
        return PageStatistics(Schema(tuple(fields)), ids, write_table(encode_table(spots, ids, 1)))


def _bounds(array: pa.Array[Any]) -> tuple[Any, Any]:
    if str(array.type) in _VARIABLE:
        return _byte_bounds(array)
    values = array.drop_null()
    if pa.types.is_floating(array.type):
        values = values.filter(pc.invert(pc.is_nan(values)))
    if not len(values):
        return _widest(array.type)
    found = pc.min_max(values)
    low, high = found["min"], found["max"]
    if pa.types.is_floating(array.type):
        # Signed zeros are equal, so either of them may be in the batch.
        return low.as_py() if low.as_py() else -0.0, high.as_py() if high.as_py() else 0.0
    return low, high


def _widest(arrow_type: pa.DataType) -> tuple[Any, Any]:
    types = pa.types
    if types.is_boolean(arrow_type):
        return False, True
    if types.is_floating(arrow_type):
        return -np.inf, np.inf
    if types.is_decimal(arrow_type):
        # Beyond what the precision allows: the edges of 128 bits.
        edges = (b"\x00" * 15 + b"\x80", b"\xff" * 15 + b"\x7f")
        low, high = (pa.Array.from_buffers(arrow_type, 1, [None, pa.py_buffer(edge)]) for edge in edges)
        return low, high
    plain = {"date32[day]": pa.int32(), "date64[ms]": pa.int64()}.get(str(arrow_type), arrow_type)
    info = np.iinfo(number_type(plain))
    bounds = pa.array([info.min, info.max], plain).view(arrow_type)
    return bounds[0], bounds[1]


def _byte_bounds(array: pa.Array[Any]) -> tuple[Any, Any]:
    if array.null_count == len(array):
        return None, None
    found = pc.min_max(array)
    low, high = found["min"].as_py(), found["max"].as_py()
    if str(array.type) not in _TEXT:
        return low[:MAX_BOUND_BYTES], high if len(high) <= MAX_BOUND_BYTES else _raised_bytes(high[:MAX_BOUND_BYTES])
    return _cut(low), high if len(high.encode()) <= MAX_BOUND_BYTES else _raised_text(_cut(high))


def _cut(text: str) -> str:
    return text.encode()[:MAX_BOUND_BYTES].decode(errors="ignore")


def _raised_bytes(data: bytes) -> bytes | None:
    """The lowest value of no more bytes that is above all that begin with `data`."""
    kept = data.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def _raised_text(text: str) -> str | None:
    kept = text.rstrip("\U0010ffff")
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    # There are no characters in the range of surrogates.
    return kept[:-1] + chr(0xE000 if 0xD800 <= following < 0xE000 else following)
