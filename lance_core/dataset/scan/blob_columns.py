"""Columns that are blobs or structs with blobs below: with descriptors in the place of blobs, or with plain bytes.

::

    describe_column(snapshot, ("s", "b"), addresses)     [{position 0, size 5}, None, ...]      reads no blobs
    plain_column(snapshot, ("s",), scanned, addresses)   [{b: b"bytes", n: 1}, ...]   blobs v2 are structs

A blob below a list stays as it was written, because a row may have several.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.arrays import Addresses
from lance_core.arrow.buffers import take
from lance_core.arrow.extension import BLOB_V2
from lance_core.arrow.kinds import as_struct
from lance_core.arrow_numpy import no_values, numpy_of
from lance_core.dataset.scan.blobs import is_blob, open_blobs
from lance_core.dataset.snapshot.assemble import assemble
from lance_core.dataset.snapshot.fragment_reader import FragmentReader, reader_of
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.file.blob.read import described_schema
from lance_core.format.schema import Field, Schema, column_of
from lance_core.pages.rows import RowSelection


def has_blobs(schema: Schema, field: Field, *, kind: str | None = None) -> bool:
    """Whether the field is a blob, or a struct with one below (`kind`: of that extension)."""
    if is_blob(field):
        return kind is None or field.extension_name == kind
    return field.logical_type == "struct" and any(has_blobs(schema, item, kind=kind) for item in schema.children(field.id))


def described_field(schema: Schema, path: Sequence[str]) -> pa.Field[Any]:
    """The Arrow field of a column with descriptors in the place of blobs."""
    found: pa.Field[Any] = described_schema(schema.project([schema.find(".".join(path)).id])).field(0)
    for name in path[1:]:
        found = found.type.field(name)
    return found


def describe_column(snapshot: Snapshot, path: Sequence[str], addresses: Addresses) -> Any:
    """The column with descriptors in the place of blobs, for row addresses, in order. Reads no blobs."""
    table = snapshot.manifest.schema
    schema = table.project([table.find(".".join(path)).id])
    target = described_schema(schema)
    unique, order = np.unique(addresses, return_inverse=True)
    owners = (unique >> np.uint64(32)).astype(np.int64)
    offsets = (unique & np.uint64(0xFFFFFFFF)).astype(np.int64)
    fragments = {fragment.id: fragment for fragment in snapshot.manifest.fragments}
    parts = [no_values(target.field(0).type)]
    for number in np.unique(owners).tolist():
        parts += _described(reader_of(snapshot, fragments[number]), schema, offsets[owners == number], target)
    found: Any = take(pa.concat_arrays(parts), order)
    for name in path[1:]:
        found = pc.struct_field(found, name)
    return found


def _described(reader: FragmentReader, schema: Schema, offsets: Any, target: pa.Schema) -> list[pa.Array[Any]]:
    rows, size = RowSelection.indices(offsets), max(len(offsets), 1)
    streams = [
        reader.open(file).project(part, blobs="descriptions").read(ranges=rows, batch_size=size)
        for file, part in reader.sources(schema)
    ]
    if not streams:
        return [assemble((), target, len(offsets)).column(0)]
    return [assemble(parts, target, parts[0].num_rows).column(0) for parts in zip(*streams, strict=True)]


def plain_type(schema: Schema, field: Field, kind: pa.DataType) -> pa.DataType:
    """The type of a scanned column with bytes in the place of blobs v2."""
    if field.extension_name == BLOB_V2:
        return pa.large_binary()
    if not has_blobs(schema, field, kind=BLOB_V2):
        return kind
    fields = [kind.field(number) for number in range(kind.num_fields)]
    for number, item in enumerate(schema.children(field.id)):
        fields[number] = fields[number].with_type(plain_type(schema, item, fields[number].type))
    return pa.struct(fields)


def plain_column(snapshot: Snapshot, field: Field, column: Any, addresses: Addresses) -> Any:
    """A scanned column with bytes in the place of blobs v2, wherever they are."""
    schema = snapshot.manifest.schema
    if field.extension_name == BLOB_V2:
        return _bytes(snapshot, column_of(schema, field.id), column, addresses)
    if not has_blobs(schema, field, kind=BLOB_V2):
        return column
    children = zip(schema.children(field.id), as_struct(column).flatten(), strict=True)
    arrays = [plain_column(snapshot, item, array, addresses) for item, array in children]
    kind: Any = plain_type(schema, field, column.type)
    return pa.StructArray.from_arrays(arrays, fields=[*kind], mask=column.is_null())


def _bytes(snapshot: Snapshot, stored: str, column: Any, addresses: Addresses) -> Any:
    # Where another library registered the type with pyarrow, the struct is its storage.
    column = column.storage if isinstance(column, pa.ExtensionArray) else column
    data = as_struct(column).field("data")
    away = numpy_of(column.is_valid(), may_copy=True) & numpy_of(data.is_null(), may_copy=True)
    values = [value if ok else None for value, ok in zip(data.to_pylist(), column.is_valid().to_pylist(), strict=True)]
    for index, file in zip(np.flatnonzero(away).tolist(), open_blobs(snapshot, stored, addresses[away]), strict=True):
        values[index] = None if file is None else file.readall()
    return pa.array(values, pa.large_binary())
