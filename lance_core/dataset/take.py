"""Take rows by position, by id, or by address, in the order asked, repeats included.

::

    take_rows(snapshot, [7, 3, 3], projection)         rows counted over the whole table, deleted ones not
    take_addresses(snapshot, [1 << 32 | 5], ...)       fragment 1, physical offset 5

Each fragment is asked once, for sorted unique rows; the answer is put in order afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.dataset.fragments import FragmentReader, reader_of
from lance_core.dataset.projection import Projection
from lance_core.dataset.rows import Ints, living_to_physical
from lance_core.dataset.scan import project
from lance_core.dataset.snapshot import Snapshot
from lance_core.errors import InputError
from lance_core.format.fragment import Fragment
from lance_core.format.schema import Schema
from lance_core.pages.rows import RowSelection

_ALL = 1 << 31


def take_rows(snapshot: Snapshot, indices: npt.ArrayLike, projection: Projection) -> pa.Table:
    """The rows at positions 0 .. number of rows - 1. Raises InputError for a position the table does not have."""
    fragments = snapshot.manifest.fragments
    rows = _whole_numbers(indices)
    ends = np.cumsum([fragment.num_rows for fragment in fragments], dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    if len(rows) and (rows.min() < 0 or rows.max() >= total):
        wrong = int(rows.min()) if rows.min() < 0 else int(rows.max())
        raise InputError(
            f"row {wrong} of {snapshot.uri}, which has {total} rows", cure=f"Rows are counted from 0 to {total - 1}."
        )
    unique, order = np.unique(rows, return_inverse=True)
    owner = np.searchsorted(ends, unique, side="right")
    parts = []
    for number in np.unique(owner).tolist():
        first = int(ends[number - 1]) if number else 0
        reader = reader_of(snapshot, fragments[number])
        parts.append((reader, living_to_physical(reader.deleted, unique[owner == number] - first)))
    return _gather(snapshot.manifest.schema, parts, projection, order)


def take_addresses(snapshot: Snapshot, addresses: npt.ArrayLike, projection: Projection) -> pa.Table:
    """The rows at addresses. Raises InputError for an address without a living row."""
    wanted = np.asarray(addresses, np.uint64)
    unique, order = np.unique(wanted, return_inverse=True)
    owners = (unique >> np.uint64(32)).astype(np.int64)
    offsets = (unique & np.uint64(0xFFFFFFFF)).astype(np.int64)
    by_id = {fragment.id: fragment for fragment in snapshot.manifest.fragments}
    parts = []
    for fragment_id in np.unique(owners).tolist():
        reader = reader_of(snapshot, _fragment(by_id, fragment_id, snapshot))
        mine = offsets[owners == fragment_id]
        _require_living(reader, mine)
        parts.append((reader, mine))
    return _gather(snapshot.manifest.schema, parts, projection, order)


def _fragment(by_id: dict[int, Fragment], fragment_id: int, snapshot: Snapshot) -> Fragment:
    if fragment_id not in by_id:
        raise InputError(
            f"version {snapshot.version} of {snapshot.uri} has no fragment {fragment_id}", cure="The row moved."
        )
    return by_id[fragment_id]


def _require_living(reader: FragmentReader, offsets: Ints) -> None:
    gone = offsets[(offsets >= reader.fragment.physical_rows) | np.isin(offsets, reader.deleted)]
    if len(gone):
        raise InputError(f"fragment {reader.fragment.id} has no living row at offset {int(gone[0])}", cure="It was deleted.")


def _gather(schema: Schema, parts: Sequence[tuple[FragmentReader, Ints]], projection: Projection, order: Ints) -> pa.Table:
    """Rows of each part one after the other, then in the order asked."""
    needed = schema.project(projection.field_ids)
    batches = [batch for reader, offsets in parts for batch in _read(reader, needed, offsets, projection)]
    if not batches:
        return projection.arrow_schema.empty_table()
    joined = pa.Table.from_batches(batches)
    if not joined.num_columns:
        return joined
    if len(order) == joined.num_rows and (order == np.arange(len(order))).all():
        return joined
    wanted: Any = pa.array(order)
    return joined.take(wanted)


def _read(reader: FragmentReader, schema: Schema, offsets: Ints, projection: Projection) -> Iterator[pa.RecordBatch]:
    rows = RowSelection.indices(offsets)
    for batch in reader.read(schema, rows, batch_size=_ALL, system=projection.system):
        yield project(batch, projection)


def _whole_numbers(indices: npt.ArrayLike) -> Ints:
    values = indices.to_numpy(zero_copy_only=False) if isinstance(indices, (pa.Array, pa.ChunkedArray)) else indices
    array = np.asarray(values)
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(f"row indices are whole numbers in one dimension, got {array.dtype} of shape {array.shape}")
    if array.dtype.kind == "u" and array.max() > np.uint64(2**63 - 1):
        raise InputError(f"row index {int(array.max())} is too large")
    return array.astype(np.int64)
