"""Arrow columns -> leaves -> pages -> files, with the file's schema borrowed from a file of the official library."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lance_core.codecs.blocks import Block, DictionaryBlock, FixedBlock, ListBlock, VariableBlock
from lance_core.fetch import ByteRange
from lance_core.format.layout import FileColumn, Page
from lance_core.pages.leaf import ConstantValues, Leaf
from lance_core.pages.levels.build import ItemStep, ListStep, Step, build_levels
from lance_core.pages.write.encode import EncodedPage
from lance_core.wire.columns import encode_column
from tests.pages.page_files import OpenBytes


def leaf_of(array: pa.Array, path: Sequence[object]) -> Leaf:
    """The leaf column at a path of an unsliced array."""
    num_rows = len(array)
    steps: list[Step] = []
    for item in path:
        valid = _validity(array)
        if isinstance(item, int):
            steps.append(ItemStep(valid))
            array = array.field(item)
        elif item == "list":
            steps.append(ListStep(array.offsets.to_numpy(), valid))
            array = _map_entries(array) if pa.types.is_map(array.type) else array.values
        else:
            assert isinstance(item, tuple)
            steps.append(ItemStep(valid, item[1]))
            array = array.values
    steps.append(ItemStep(_validity(array)))
    built = build_levels(steps, num_rows)
    if built.slots is not None:
        array = array.take(pa.array(built.slots))
    if pa.types.is_null(array.type):
        return Leaf(ConstantValues(len(array)), built.rep, None, built.layers, built.num_rows)
    return Leaf(block_of(array), built.rep, built.def_, built.layers, built.num_rows)


def _map_entries(array: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])


def _validity(array: pa.Array) -> np.ndarray | None:
    return np.asarray(array.is_valid()) if array.null_count else None


def block_of(array: pa.Array) -> Block:
    type_ = array.type
    if pa.types.is_dictionary(type_):
        numbers = np.asarray(array.indices.fill_null(0))
        indices = FixedBlock(numbers.itemsize * 8, np.ascontiguousarray(numbers).view(np.uint8), len(array))
        return DictionaryBlock(indices, block_of(array.dictionary))
    if pa.types.is_fixed_size_list(type_):
        items = array.flatten() if array.null_count == 0 else array.values
        validity = None
        if items.null_count or array.null_count:
            bits = np.asarray(items.is_valid())
            if array.null_count:
                bits = bits & np.repeat(np.asarray(array.is_valid()), type_.list_size)
            validity = np.packbits(bits, bitorder="little")
        return ListBlock(type_.list_size, block_of(items), len(array), validity)
    array = pa.concat_arrays([array, array.slice(0, 0)]) if array.offset else array
    buffers = array.buffers()
    if pa.types.is_boolean(type_):
        return FixedBlock(1, np.packbits(np.asarray(array.fill_null(False)), bitorder="little"), len(array))
    if len(buffers) == 2:
        size = type_.bit_width // 8
        return FixedBlock(type_.bit_width, np.frombuffer(buffers[1], np.uint8)[: size * len(array)], len(array))
    offsets = np.frombuffer(buffers[1], np.int64 if "large" in str(type_) else np.int32)[: len(array) + 1]
    data = np.frombuffer(buffers[2], np.uint8) if buffers[2] is not None else np.empty(0, np.uint8)
    return VariableBlock(offsets, data)


def assemble(template: OpenBytes, columns: Sequence[Sequence[EncodedPage]]) -> OpenBytes:
    """A file with the template's schema and our pages."""
    out = bytearray()

    def add(data: bytes | memoryview) -> ByteRange:
        out.extend(b"\x48" * (-len(out) % 64))
        start = len(out)
        out.extend(data)
        return ByteRange(start, len(out))

    made = []
    for pages in columns:
        listed, first = [], 0
        for page in pages:
            listed.append(Page(page.layout, tuple(add(buffer) for buffer in page.buffers), page.num_rows, first))
            first += page.num_rows
        made.append(FileColumn(tuple(listed)))
    footer = struct.unpack("<QQQIIHH4s", template.data[-40:])
    position, size = struct.unpack_from("<QQ", template.data, footer[2])
    descriptor = add(template.data[position : position + size])
    metadata_start = len(out)
    places = []
    for column in made:
        data = encode_column(column)
        places.append((len(out), len(data)))
        out.extend(data)
    table_start = len(out)
    for place in places:
        out.extend(struct.pack("<QQ", *place))
    buffers_start = len(out)
    out.extend(struct.pack("<QQ", descriptor.start, descriptor.size))
    out.extend(struct.pack("<QQQIIHH4s", metadata_start, table_start, buffers_start, 1, len(made), *footer[5:7], b"LANC"))
    return OpenBytes(bytes(out))
