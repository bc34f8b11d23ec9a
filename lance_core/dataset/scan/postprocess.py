"""Postprocess the batches of a scan by the addresses of their rows.

::

    include_deleted_rows=True                       deleted rows come too, their _rowid is null
    blob_handling="all_binary"                      blobs as plain bytes, wherever they are
    blob_handling="blobs_descriptions"              where they are; no blob is read

Without `blob_handling` blobs come as they were written, which the official library does not do: it describes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.arrays import Addresses
from lance_core.arrow.extension import BLOB_V2
from lance_core.arrow.kinds import as_struct
from lance_core.arrow_numpy import arrow_of, numpy_of
from lance_core.dataset.scan.blobs import describe_blobs, is_blob, open_blobs
from lance_core.dataset.scan.projection import OutputColumn, Projection, needs_of
from lance_core.dataset.snapshot.deletion_vectors import read_deleted
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import InputError
from lance_core.expr import SYSTEM_COLUMNS, ast, columns_of
from lance_core.format.schema import NO_PARENT

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
    return replace(snapshot, manifest=replace(snapshot.manifest, fragments=fragments))


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
    for name, stored in blob_outputs(snapshot, projection).items() if blobs is not None else ():
        if blobs != "all_binary":
            array_type = describe_blobs(snapshot, stored, np.empty(0, np.uint64)).type
            fields[name] = pa.field(name, array_type, metadata=fields[name].metadata)
            makes[name] = _describing(snapshot, stored)
            dropped.add(name)
        elif snapshot.manifest.schema.find(stored).extension_name == BLOB_V2:
            fields[name] = pa.field(name, pa.large_binary())
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


def _describing(snapshot: Snapshot, stored: str) -> Make:
    return lambda _, addresses: describe_blobs(snapshot, stored, addresses)


def _reading(snapshot: Snapshot, name: str, stored: str) -> Make:
    def make(batch: pa.RecordBatch, addresses: Addresses) -> Any:
        column = batch.column(batch.schema.get_field_index(name))
        # Where another library registered the type with pyarrow, the struct is its storage.
        column = column.storage if isinstance(column, pa.ExtensionArray) else column
        data = as_struct(column).field("data")
        away = numpy_of(column.is_valid(), may_copy=True) & numpy_of(data.is_null(), may_copy=True)
        values = [value if ok else None for value, ok in zip(data.to_pylist(), column.is_valid().to_pylist(), strict=True)]
        for index, file in zip(np.flatnonzero(away).tolist(), open_blobs(snapshot, stored, addresses[away]), strict=True):
            values[index] = None if file is None else file.readall()
        return pa.array(values, pa.large_binary())

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
