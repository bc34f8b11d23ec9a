"""Postprocess the batches of a scan by the addresses of their rows.

::

    include_deleted_rows=True                       deleted rows come too, their _rowid is null
    blob_handling="all_binary"                      blobs as plain bytes, wherever they are
    blob_handling="blobs_descriptions"              where they are, below structs, too; no blob is read

Without `blob_handling` blobs come as they were written, which the official library does not do: it describes them.

Columns that are blobs or structs with blobs below: with descriptors in the place of blobs, or with plain bytes.

::

    describe_column(snapshot, ("s", "b"), addresses)     [{position 0, size 5}, None, ...]      reads no blobs
    plain_column(snapshot, ("s",), scanned, addresses)   [{b: b"bytes", n: 1}, ...]   blobs v2 are structs

A blob below a list stays as it was written, because a row may have several.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.arrays import Addresses
from lance_core.arrow.buffers import take
from lance_core.arrow.kinds import as_struct
from lance_core.arrow.logical import BLOB_V2
from lance_core.arrow_numpy import arrow_of, no_values, numpy_of
from lance_core.dataset.scan.blobs import is_blob, open_blobs
from lance_core.dataset.scan.projection import OutputColumn, Projection, needs_of
from lance_core.dataset.snapshot.assemble import assemble
from lance_core.dataset.snapshot.deletion_vectors import read_deleted
from lance_core.dataset.snapshot.fragment_reader import FragmentReader, reader_of
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import InputError, UnknownColumnError
from lance_core.expr import SYSTEM_COLUMNS, ast, columns_of
from lance_core.file.blob.read import described_schema
from lance_core.format.schema import NO_PARENT, Field, Schema, column_of
from lance_core.pages.rows import RowSelection

ADDRESS = "_rowaddr"
BLOB_HANDLINGS = ("all_binary", "blobs_descriptions", "all_descriptions")
BlobMode = Literal["lazy", "bytes", "descriptions"]
BLOB_MODES: Mapping[str, str] = MappingProxyType(
    {"lazy": "blobs_descriptions", "bytes": "all_binary", "descriptions": "blobs_descriptions"}
)
"""What a pandas frame shows of blobs, and how they are scanned for it."""
Make = Callable[[pa.RecordBatch, Addresses], Any]


def without_deletions(snapshot: Snapshot) -> Snapshot:
    """The version as if nothing had been deleted from its files."""
    fragments = tuple(replace(fragment, deletion_file=None) for fragment in snapshot.manifest.fragments)
    return replace(snapshot, manifest=replace(snapshot.manifest, fragments=fragments), whole=snapshot.manifest)


@dataclass(frozen=True)
class Finish:
    """`projection` is what to scan; calling this on its batches gives those of `schema`."""

    projection: Projection
    schema: pa.Schema
    makes: Mapping[str, Make]

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch as it was requested."""
        addresses = numpy_of(batch.column(batch.schema.get_field_index(ADDRESS)))
        arrays = [self._column(batch, addresses, name) for name in self.schema.names]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _column(self, batch: pa.RecordBatch, addresses: Addresses, name: str) -> Any:
        if name in self.makes:
            return self.makes[name](batch, addresses)
        return batch.column(batch.schema.get_field_index(name))


def plan_finish(snapshot: Snapshot, projection: Projection, *, deleted: bool, blobs: str | None) -> Finish | None:
    """What is left to do after a scan; None for nothing. InputError for an unknown way to handle blobs."""
    if blobs is not None and blobs not in BLOB_HANDLINGS:
        raise InputError(f"unknown blob_handling {blobs!r}", cure=f"Use one of {', '.join(BLOB_HANDLINGS)}.")
    if deleted and "_rowid" not in projection.arrow_schema.names:
        raise InputError("include_deleted_rows needs row ids to mark deleted rows", cure="Pass with_row_id=True.")
    makes: dict[str, Make] = {}
    fields = {output.field.name: output.field for output in projection.outputs}
    dropped: set[str] = set()
    schema = snapshot.manifest.schema
    for name, path in _with_blobs(schema, projection).items() if blobs is not None else ():
        stored = schema.find(".".join(path))
        if blobs != "all_binary":
            described = described_field(schema, path)
            metadata = described.metadata if len(path) > 1 else fields[name].metadata
            fields[name] = pa.field(name, described.type, metadata=metadata)
            makes[name] = _describing(snapshot, path)
            dropped.add(name)
        elif has_blobs(schema, stored, kind=BLOB_V2):
            kind = plain_type(schema, stored, fields[name].type)
            is_whole = stored.extension_name == BLOB_V2
            fields[name] = pa.field(name, kind) if is_whole else fields[name].with_type(cast("Any", kind))
            makes[name] = _reading(snapshot, name, stored)
    if deleted:
        masks = _DeletedRows(snapshot)
        makes |= {name: masks.make(name) for name in ("_rowid", ADDRESS) if name in fields}
    if not makes:
        return None
    return Finish(_scanned(snapshot, projection, dropped), pa.schema([*fields.values()]), makes)


def blob_outputs(snapshot: Snapshot, projection: Projection) -> dict[str, str]:
    """Output name -> column, for outputs that are a blob column as it is."""
    blobs = {item.name for item in snapshot.manifest.schema.fields if item.parent_id == NO_PARENT and is_blob(item)}
    found = {}
    for output in projection.outputs:
        if isinstance(output.expr, ast.Column) and len(output.expr.path) == 1 and output.expr.path[0] in blobs:
            found[output.field.name] = output.expr.path[0]
    return found


def _scanned(snapshot: Snapshot, projection: Projection, dropped: set[str]) -> Projection:
    outputs = [output for output in projection.outputs if output.field.name not in dropped]
    if ADDRESS not in projection.arrow_schema.names:
        outputs.append(OutputColumn(pa.field(ADDRESS, SYSTEM_COLUMNS[ADDRESS]), ast.Column((ADDRESS,))))
    needs = needs_of(snapshot.manifest.schema, {name for output in outputs for name in columns_of(output.expr)})
    return Projection(tuple(outputs), needs.field_ids, needs.system)


def _with_blobs(schema: Schema, projection: Projection) -> dict[str, tuple[str, ...]]:
    """Output name -> path, for outputs that are a column with blobs, or one below a column, as it is."""
    found = {}
    for output in projection.outputs:
        if isinstance(output.expr, ast.Column) and output.expr.path[0] not in SYSTEM_COLUMNS:
            with suppress(UnknownColumnError):
                if has_blobs(schema, schema.find(".".join(output.expr.path))):
                    found[output.field.name] = output.expr.path
    return found


def _describing(snapshot: Snapshot, path: tuple[str, ...]) -> Make:
    return lambda _, addresses: describe_column(snapshot, path, addresses)


def _reading(snapshot: Snapshot, name: str, stored: Field) -> Make:
    def make(batch: pa.RecordBatch, addresses: Addresses) -> Any:
        return plain_column(snapshot, stored, batch.column(batch.schema.get_field_index(name)), addresses)

    return make


def as_objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    """Python objects as a column of a frame; numpy would look into them."""
    made = np.empty(len(values), dtype=object)
    for index, value in enumerate(values):
        made[index] = value
    return made


class _DeletedRows:
    """The addresses of deleted rows, read when the first batch comes."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._addresses: Addresses | None = None

    def make(self, name: str) -> Make:
        def masked(batch: pa.RecordBatch, addresses: Addresses) -> Any:
            values = numpy_of(batch.column(batch.schema.get_field_index(name)))
            return arrow_of(values, pa.uint64(), mask=np.isin(addresses, self._known()))

        return masked

    def _known(self) -> Addresses:
        if self._addresses is None:
            parts = [np.empty(0, np.uint64)]
            for fragment in self._snapshot.manifest.fragments:
                if fragment.deletion_file is not None:
                    offsets = read_deleted(self._snapshot, fragment).astype(np.uint64)
                    parts.append(offsets | np.uint64(fragment.id << 32))
            self._addresses = np.concatenate(parts)
        return self._addresses


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
