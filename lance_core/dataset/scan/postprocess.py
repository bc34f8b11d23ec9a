"""Postprocess the batches of a scan by the addresses of their rows.

::

    include_deleted_rows=True                       deleted rows come too, their _rowid is null
    blob_handling="all_binary"                      blobs as plain bytes, wherever they are
    blob_handling="blobs_descriptions"              where they are, below structs, too; no blob is read

Without `blob_handling` blobs come as they were written, which the official library does not do: it describes them.
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

from lance_core.arrays import Addresses
from lance_core.arrow.extension import BLOB_V2
from lance_core.arrow_numpy import arrow_of, numpy_of
from lance_core.dataset.scan.blob_columns import describe_column, described_field, has_blobs, plain_column, plain_type
from lance_core.dataset.scan.blobs import is_blob
from lance_core.dataset.scan.projection import OutputColumn, Projection, needs_of
from lance_core.dataset.snapshot.deletion_vectors import read_deleted
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import InputError, UnknownColumnError
from lance_core.expr import SYSTEM_COLUMNS, ast, columns_of
from lance_core.format.schema import NO_PARENT, Field, Schema

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
