"""One file at a time, written by one library and read by the other, column by column.

    problems = read_by_us(root, table, "2.2")        ["list_int: take [3, 3]: ..."], empty when all is equal

Every problem names its column, so one file may hold columns of all types and still tell which of them failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance.file import LanceFileReader, LanceFileWriter
from lance.fragment import DataFile as OfficialDataFile
from lance.fragment import FragmentMetadata

from lance_core.arrow import schema_from_arrow, schema_to_arrow
from lance_core.file.open import OpenFile, open_file
from lance_core.file.writer import FileWriter, WrittenFile
from lance_core.format.schema import Schema
from lance_core.format.version import parse_storage_version
from lance_core.io.local.store import LocalStore

PATH = "data/a.lance"


def write_official(root: Path, table: pa.Table, version: str, *, batch_rows: int = 1 << 20) -> None:
    """A single file by the official library's file writer (tables of no rows get a file too)."""
    (root / "data").mkdir(parents=True)
    with LanceFileWriter(str(root / PATH), table.schema, version=version) as writer:
        for batch in table.to_batches(max_chunksize=batch_rows):
            writer.write_batch(batch)


def read_official(root: Path) -> pa.Table:
    """What the official library's file reader makes of the file."""
    return LanceFileReader(str(root / PATH)).read_all().to_table()


def write_ours(root: Path, table: pa.Table, version: str, *, batch_rows: int = 1 << 20, **options: int) -> WrittenFile:
    """A single file of ours."""
    parsed = parse_storage_version(version)
    writer = FileWriter(LocalStore(root), PATH, schema_from_arrow(table.schema, version=parsed), version=parsed, **options)
    for batch in table.to_batches(max_chunksize=batch_rows):
        writer.write(batch)
    return writer.finish()


def official_table(root: Path, table: pa.Table, written: WrittenFile, version: str) -> lance.LanceDataset:
    """A table of the official library around a file of ours."""
    entry = written.data_file
    file = OfficialDataFile(
        entry.path,
        list(entry.fields),
        list(entry.column_indices),
        entry.file_major_version,
        entry.file_minor_version,
        entry.file_size_bytes,
    )
    fragment = FragmentMetadata(id=0, files=[file], physical_rows=written.num_rows)
    schema = schema_to_arrow(schema_from_arrow(table.schema, version=parse_storage_version(version)))
    return lance.LanceDataset.commit(root, lance.LanceOperation.Overwrite(schema, [fragment]))


def open_at(root: Path) -> OpenFile:
    """The file, opened by us."""
    return open_file(LocalStore(root), PATH)


def batches_of(opened: OpenFile, schema: Schema, **options: Any) -> pa.Table:
    """A read as one table."""
    return pa.Table.from_batches(list(opened.read(schema, **options)), schema_to_arrow(schema))


def differences(got: pa.Table, expected: pa.Table, *, what: str = "read") -> Iterator[str]:
    """One line for each column that differs."""
    if got.num_rows != expected.num_rows:
        yield f"{what}: {got.num_rows} rows, expected {expected.num_rows}"
        return
    if got.column_names != expected.column_names:
        yield f"{what}: columns {got.column_names}, expected {expected.column_names}"
        return
    for name in expected.column_names:
        column = got.column(name)
        try:
            column.validate(full=True)
        except pa.ArrowException as error:
            yield f"{name}: {what}: not a sound array: {error}"
            continue
        if column.num_chunks and not same(_one(column), _one(expected.column(name))):
            yield f"{name}: {what}: {_first_difference(column.to_pylist(), expected.column(name).to_pylist())}"


def same(got: pa.Array, expected: pa.Array) -> bool:
    """Equal to the bit (NaNs and signed zeros too); dictionaries, views and extensions compare by what they stand for."""
    left, right = _plain(got), _plain(expected)
    if left.type != right.type and not _renamed(left.type, right.type):
        return False
    if len(left) != len(right) or left.null_count != right.null_count:
        return False
    if left.null_count and not left.is_valid().equals(right.is_valid()):
        return False
    if pa.types.is_null(left.type):
        return True
    if pa.types.is_struct(left.type):
        return all(same(_child(left, i), _child(right, i)) for i in range(left.type.num_fields))
    if pa.types.is_fixed_size_list(left.type):
        valid = left.is_valid()
        return same(left.filter(valid).flatten(), right.filter(valid).flatten())
    if pa.types.is_map(left.type) or pa.types.is_list(left.type) or pa.types.is_large_list(left.type):
        return _lists_equal(left, right)
    if pa.types.is_floating(left.type):
        bits = {16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}[left.type.bit_width]
        return bool(left.view(bits).equals(right.view(bits)))
    return bool(left.equals(right))


def _lists_equal(left: pa.Array, right: pa.Array) -> bool:
    lengths = [np.diff(array.offsets.to_numpy()) for array in (left, right)]
    valid = left.is_valid().to_numpy(zero_copy_only=False)
    if not np.array_equal(lengths[0][valid], lengths[1][valid]):
        return False
    if pa.types.is_map(left.type):
        storage = pa.list_(pa.struct([("key", left.type.key_type), ("value", left.type.item_type)]))
        keep = left.is_valid()
        parts = [_map_entries(array.filter(keep), storage) for array in (left, right)]
        return same(*parts)
    return same(left.flatten(), right.flatten())


def _map_entries(array: pa.MapArray, storage: pa.DataType) -> pa.Array:
    first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
    size = last - first
    return pa.StructArray.from_arrays(
        [array.keys.slice(first, size), array.items.slice(first, size)], names=["key", "value"]
    )


def _child(array: pa.StructArray, number: int) -> pa.Array:
    """A child where its parent is valid."""
    return array.field(number).filter(array.is_valid()) if array.null_count else array.field(number)


def _plain(array: pa.Array) -> pa.Array:
    array = stored(array)
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def stored(array: pa.Array) -> pa.Array:
    """The array as what it is stored as: no views, no extensions, at any depth."""
    if isinstance(array, pa.ExtensionArray):
        return stored(array.storage)
    if array.type == pa.string_view():
        return array.cast(pa.string())
    if array.type == pa.binary_view():
        return array.cast(pa.binary())
    kind = array.type
    if pa.types.is_map(kind):
        entries = pa.struct([kind.key_field, kind.item_field])
        pairs = pa.Array.from_buffers(entries, len(array.keys), [None], children=[array.keys, array.items])
        pairs = stored(pairs)
        made = pa.map_(pairs.type.field(0).with_nullable(False), pairs.type.field(1))
        return pa.Array.from_buffers(made, len(array), array.buffers()[:2], offset=array.offset, children=[pairs])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        items = stored(array.values)
        make = pa.list_ if pa.types.is_list(kind) else pa.large_list
        made = make(pa.field("item", items.type))
        return pa.Array.from_buffers(made, len(array), array.buffers()[:2], offset=array.offset, children=[items])
    if pa.types.is_fixed_size_list(kind):
        items = stored(array.values)
        made = pa.list_(pa.field("item", items.type), kind.list_size)
        return pa.Array.from_buffers(made, len(array), array.buffers()[:1], offset=array.offset, children=[items])
    if pa.types.is_struct(kind) and kind.num_fields:
        names = [field.name for field in kind]
        children = [stored(array.field(number)) for number in range(len(names))]
        return pa.StructArray.from_arrays(children, names=names, mask=array.is_null() if array.null_count else None)
    return array


def _renamed(left: pa.DataType, right: pa.DataType) -> bool:
    """Nested types may differ in what they call and say about their children; the values are compared below."""
    return left.id == right.id and pa.types.is_nested(left) and left.num_fields == right.num_fields


def _one(column: pa.ChunkedArray) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        return pa.chunked_array([chunk.dictionary_decode() for chunk in column.chunks]).combine_chunks()
    joined = pa.chunked_array([stored(chunk) for chunk in column.chunks]).combine_chunks()
    return joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined


def _first_difference(got: list[Any], expected: list[Any]) -> str:
    for row, (left, right) in enumerate(zip(got, expected, strict=True)):
        if left != right and not (left is not right and left != left and right != right):
            return f"row {row}: {left!r:.80}, expected {right!r:.80}"
    return "types or bits differ"


def read_by_us(root: Path, table: pa.Table) -> list[str]:
    """Problems of reading the file whole, projected, taken and sliced."""
    opened = open_at(root)
    schema = opened.schema
    if opened.num_rows != table.num_rows:
        return [f"{opened.num_rows} rows, expected {table.num_rows}"]
    found = list(differences(batches_of(opened, schema, batch_size=max(700, table.num_rows // 3)), table))
    if found:
        return found
    half = schema.project([field.id for field in schema.top_level[::2]])
    found += differences(batches_of(opened, half), table.select(table.column_names[::2]), what="projected")
    rows = table.num_rows
    if rows:
        picks = np.random.default_rng(9).integers(0, rows, 25)
        for what, indices in (("take sorted", np.unique(picks)), ("take", np.concatenate((picks, picks[:3], [rows - 1])))):
            taken = pa.Table.from_batches([opened.take(schema, indices)])
            found += differences(taken, take(table, indices), what=what)
        ranges = [(start, end) for start, end in ((rows // 7, rows // 3), (rows // 3 + 1, rows - 1)) if start < end]
        sliced = batches_of(opened, schema, ranges=ranges, batch_size=4000)
        expected = np.concatenate([np.arange(*part) for part in ranges] or [np.arange(0)])
        found += differences(sliced, take(table, expected), what="sliced")
    return found


def take(table: pa.Table, indices: np.ndarray[Any, Any]) -> pa.Table:
    """Rows of a table, of types that Arrow itself cannot take too."""
    columns = [pc.take(stored(column.combine_chunks()), pa.array(indices)) for column in table.columns]
    return pa.table(columns, names=table.column_names)
