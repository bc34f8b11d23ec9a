"""Files of the official library opened with the smallest reader that will do, and leaves turned into Arrow arrays."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa

from lance_core.codecs.blocks import Block, DictionaryBlock, FixedBlock, ListBlock, StructBlock, VariableBlock
from lance_core.fetch import ByteRange, Fetch, run_fetch
from lance_core.format.layout import FileColumn
from lance_core.pages.group import load, read, scan
from lance_core.pages.leaf import ConstantValues, Leaf, LeafValues
from lance_core.pages.levels.join import join_levels
from lance_core.pages.levels.unravel import Nesting, unravel
from lance_core.pages.read.constant import expand
from lance_core.pages.rows import RowSelection
from lance_core.wire.columns import decode_column


@dataclass
class OpenBytes:
    """A file in memory that counts what is asked of it."""

    data: bytes
    requests: list[Sequence[ByteRange]] = field(default_factory=list)

    def run(self, fetch: Fetch) -> object:
        def answer(ranges: Sequence[ByteRange]) -> list[memoryview]:
            self.requests.append(ranges)
            return [memoryview(self.data)[item.start : item.end] for item in ranges]

        return run_fetch(fetch, answer)

    def columns(self) -> list[FileColumn]:
        footer = struct.unpack("<QQQIIHH4s", self.data[-40:])
        table = footer[1]
        places = [struct.unpack_from("<QQ", self.data, table + 16 * number) for number in range(footer[4])]
        return [decode_column(self.data[position : position + size]) for position, size in places]


def write_official(table: pa.Table, folder: Path, version: str) -> OpenBytes:
    uri = str(folder / f"{uuid.uuid4()}.lance")
    lance.write_dataset(table, uri, data_storage_version=version, mode="overwrite")
    (path,) = Path(uri, "data").glob("*.lance")
    return OpenBytes(path.read_bytes())


def scan_column(file: OpenBytes, column: FileColumn) -> list[Leaf]:
    return [file.run(scan(page)) for page in column.pages]


def read_rows(file: OpenBytes, column: FileColumn, rows: np.ndarray) -> list[Leaf]:
    """Rows of the column (sorted, unique), one leaf for each page."""
    leaves = []
    for page in column.pages:
        mine = rows[(rows >= page.priority) & (rows < page.priority + page.num_rows)] - page.priority
        index = file.run(load(page))
        leaves.append(file.run(read(page, index, RowSelection.indices(mine))))
    return leaves


def leaf_paths(type_: pa.DataType) -> Iterator[list[object]]:
    """The way to each leaf column: "list", an int dimension for a fixed-size list of structs, or a struct field number."""
    if pa.types.is_struct(type_) and type_.num_fields:
        for number, item in enumerate(type_):
            yield from ([number, *rest] for rest in leaf_paths(item.type))
    elif pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_map(type_):
        inner = pa.struct([type_.key_field, type_.item_field]) if pa.types.is_map(type_) else type_.value_type
        yield from (["list", *rest] for rest in leaf_paths(inner))
    elif pa.types.is_fixed_size_list(type_) and pa.types.is_struct(type_.value_type):
        yield from ([("fixed", type_.list_size), *rest] for rest in leaf_paths(type_.value_type))
    else:
        yield []


def prune(type_: pa.DataType, path: Sequence[object]) -> pa.DataType:
    """The type with only the structs' fields that the path goes through."""
    if not path:
        return type_
    if isinstance(path[0], int):
        item = type_.field(path[0])
        return pa.struct([pa.field(item.name, prune(item.type, path[1:]), True)])
    if path[0] == "list":
        return pa.large_list(prune(_items(type_), path[1:]))
    return pa.list_(prune(type_.value_type, path[1:]), type_.list_size)


def _items(type_: pa.DataType) -> pa.DataType:
    return pa.struct([type_.key_field, type_.item_field]) if pa.types.is_map(type_) else type_.value_type


def to_arrow(leaves: list[Leaf], type_: pa.DataType, path: Sequence[object]) -> pa.Array:
    """One leaf column as an array of the pruned type."""
    joined = join_levels(leaves)
    sizes = [item[1] if isinstance(item, tuple) else 1 for item in path] + [1]
    nestings = unravel(joined.rep, joined.def_, joined.layers, joined.num_visible, dimensions=sizes[::-1])
    leaf_type = leaf_type_of(type_, path)
    parts = [values_to_arrow(values, leaf_type) for values in joined.values]
    leaf = pa.concat_arrays(parts) if parts else pa.array([], leaf_type)
    return _nest(nestings, leaf, prune(type_, path), path)


def leaf_type_of(type_: pa.DataType, path: Sequence[object]) -> pa.DataType:
    for item in path:
        type_ = type_.field(item).type if isinstance(item, int) else _items(type_)
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def _mask(array: pa.Array, validity: np.ndarray | None) -> pa.Array:
    if validity is None:
        return array
    indices = pa.array(np.arange(len(array)), mask=~validity)
    return array.take(indices)


def _nest(nestings: list[Nesting], leaf: pa.Array, type_: pa.DataType, path: Sequence[object]) -> pa.Array:
    nesting = nestings[0]
    nulls = None if nesting.validity is None else pa.array(~nesting.validity)
    if not path:
        return _mask(leaf, nesting.validity)
    if isinstance(path[0], int):
        child = _nest(nestings[1:], leaf, type_.field(0).type, path[1:])
        return pa.StructArray.from_arrays([child], fields=[type_.field(0)], mask=nulls)
    child = _nest(nestings[1:], leaf, type_.value_type, path[1:])
    if path[0] == "list":
        assert nesting.offsets is not None
        return pa.LargeListArray.from_arrays(pa.array(nesting.offsets), child, type=type_, mask=nulls)
    return pa.FixedSizeListArray.from_arrays(child, type=type_, mask=nulls)


def bits_of(type_: pa.DataType) -> int | None:
    if pa.types.is_null(type_):
        return 8
    try:
        return int(type_.bit_width)
    except ValueError:
        return None


def values_to_arrow(values: LeafValues, type_: pa.DataType) -> pa.Array:
    if pa.types.is_null(type_):
        return pa.nulls(values.count)
    if isinstance(values, ConstantValues):
        if values.scalar is None:
            return pa.nulls(values.count, type_)
        values = expand(values, bits=bits_of(type_))
    return block_to_arrow(values, type_)


def block_to_arrow(block: Block, type_: pa.DataType) -> pa.Array:
    if isinstance(block, DictionaryBlock):
        numbers = np.frombuffer(block.indices.data, f"u{block.indices.bits // 8}", block.count).astype(np.int64)
        return block_to_arrow(block.items, type_).take(pa.array(numbers))
    if isinstance(block, FixedBlock):
        return pa.Array.from_buffers(type_, block.count, [None, pa.py_buffer(np.ascontiguousarray(block.data))])
    if isinstance(block, VariableBlock):
        wide = pa.types.is_large_string(type_) or pa.types.is_large_binary(type_)
        offsets = block.offsets.astype(np.int64 if wide else np.int32)
        return pa.Array.from_buffers(
            type_, block.count, [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(block.data))]
        )
    if isinstance(block, ListBlock):
        items = block_to_arrow(block.items, type_.value_type)
        if block.validity is not None:
            bits = np.unpackbits(block.validity, bitorder="little")[: len(items)].astype(bool)
            items = _mask(items, bits)
        return pa.FixedSizeListArray.from_arrays(items, type=type_)
    assert isinstance(block, StructBlock)
    children = [block_to_arrow(child, item.type) for child, item in zip(block.children, type_, strict=True)]
    return pa.StructArray.from_arrays(children, fields=list(type_))


def project(array: pa.Array, path: Sequence[object]) -> list[object]:
    """The array's Python values with structs cut down to the path, as `to_arrow(...).to_pylist()` has them."""
    return [_project(item, array.type, path) for item in array.to_pylist()]


def _project(value: object, type_: pa.DataType, path: Sequence[object]) -> object:
    if value is None or not path:
        return value
    if isinstance(path[0], int):
        item = type_.field(path[0])
        return {item.name: _project(value[item.name], item.type, path[1:])}
    inner = _items(type_)
    if pa.types.is_map(type_):
        value = [{inner.field(0).name: pair[0], inner.field(1).name: pair[1]} for pair in value]
    return [_project(item, inner, path[1:]) for item in value]
