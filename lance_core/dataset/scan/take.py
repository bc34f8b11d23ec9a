"""Take rows by position, by id, or by address, in the requested order, including repetitions.

::

    take_rows(snapshot, [7, 3, 3], projection)         rows counted over the whole table, deleted ones not
    take_addresses(snapshot, [1 << 32 | 5], ...)       fragment 1, physical offset 5

Each fragment is read once, for sorted unique rows; the answer is put in order afterwards.

Select rows by position, by id, or by address: exactly one of the three.

::

    addresses_of(snapshot, indices=[7])      the 8th living row     -> 1 << 32 | 3
    addresses_of(snapshot, ids=[42])         `_rowid` 42, wherever that row is now
    addresses_of(snapshot, addresses=[...])  themselves

Random rows of a table by position.

::

    sample_indices(1000, 3, randomize_order=True) -> [412, 7, 958]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.arrays import Addresses, Ints
from lance_core.arrow_numpy import arrow_of, no_rows, numpy_of
from lance_core.dataset.scan.chain import project
from lance_core.dataset.scan.parallel import at_once
from lance_core.dataset.scan.projection import Columns, Projection, plan_projection
from lance_core.dataset.snapshot.assemble import empty_columns, joined_rows
from lance_core.dataset.snapshot.fragment_reader import FragmentReader, reader_of
from lance_core.dataset.snapshot.row_id_index import row_id_index
from lance_core.dataset.snapshot.row_offsets import living_to_physical
from lance_core.dataset.snapshot.snapshot import CacheSlot, KeyedCache, Snapshot
from lance_core.errors import InputError
from lance_core.file.convert.few_values import FieldValues, array_of, joined_array
from lance_core.file.projection import FEW_ROWS
from lance_core.format.fragment import Fragment
from lance_core.format.fragments import FragmentList
from lance_core.format.schema import Schema
from lance_core.pages.rows import RowSelection
from lance_core.pick import take
from lance_core.rowids.index import MISSING

_Int = TypeVar("_Int", np.int64, np.uint64)
Piece: TypeAlias = "FieldValues | pa.ChunkedArray[Any]"
_ALL = 1 << 31


def projection_of(snapshot: Snapshot, columns: Columns) -> Projection:
    """The projection of columns by name, remembered with the snapshot: takes of few rows would spend their time planning."""
    if not (columns is None or (isinstance(columns, (list, tuple)) and all(isinstance(name, str) for name in columns))):
        return plan_projection(snapshot.manifest.schema, columns)
    key = None if columns is None else tuple(columns)
    return snapshot.cached(_PROJECTIONS).get(key, lambda: plan_projection(snapshot.manifest.schema, columns))


def take_rows(snapshot: Snapshot, indices: npt.ArrayLike, projection: Projection) -> pa.Table:
    """The rows at positions 0 .. number of rows - 1. Raises InputError for a position the table does not have."""
    fragments = snapshot.manifest.fragments
    rows = _whole_numbers(indices)
    ends = snapshot.cached(_ROW_ENDS)
    total = int(ends[-1]) if len(ends) else 0
    if len(rows) and (rows.min() < 0 or rows.max() >= total):
        wrong = int(rows.min()) if rows.min() < 0 else int(rows.max())
        raise InputError(
            f"row {wrong} is outside {snapshot.uri}, which has {total} rows", cure=f"Rows are counted from 0 to {total - 1}."
        )
    unique, order = _distinct(rows)
    owner = ends.searchsorted(unique, side="right")
    parts = []
    for number in _distinct(owner)[0].tolist():
        first = int(ends[number - 1]) if number else 0
        reader = reader_of(snapshot, fragments[number])
        parts.append((reader, living_to_physical(reader.deleted, unique[owner == number] - first)))
    return _gather(snapshot, parts, projection, order)


def take_addresses(snapshot: Snapshot, addresses: npt.ArrayLike, projection: Projection) -> pa.Table:
    """The rows at addresses. Raises InputError for an address without a living row."""
    wanted = np.asarray(addresses, np.uint64)
    unique, order = _distinct(wanted)
    owners = (unique >> np.uint64(32)).astype(np.int64)
    offsets = (unique & np.uint64(0xFFFFFFFF)).astype(np.int64)
    wanted_ids = np.unique(owners).tolist()
    by_id = FragmentList.of(snapshot.manifest.fragments).pick(frozenset(wanted_ids))
    parts = []
    for fragment_id in wanted_ids:
        reader = reader_of(snapshot, _fragment(by_id, fragment_id, snapshot))
        mine = offsets[owners == fragment_id]
        _require_living(reader, mine)
        parts.append((reader, mine))
    return _gather(snapshot, parts, projection, order)


def _fragment(by_id: dict[int, Fragment], fragment_id: int, snapshot: Snapshot) -> Fragment:
    if fragment_id not in by_id:
        raise InputError(
            f"version {snapshot.version} of {snapshot.uri} has no fragment {fragment_id}", cure="The row moved."
        )
    return by_id[fragment_id]


def _require_living(reader: FragmentReader, offsets: Ints) -> None:
    gone = offsets[(offsets >= reader.fragment.physical_rows) | np.isin(offsets, reader.deleted)]
    if len(gone):
        raise InputError(f"fragment {reader.fragment.id} has no live row at offset {int(gone[0])}", cure="It was deleted.")


def _row_ends(snapshot: Snapshot) -> Ints:
    return np.cumsum(FragmentList.of(snapshot.manifest.fragments).row_counts, dtype=np.int64)


_ROW_ENDS = CacheSlot(_row_ends)
_PROJECTIONS = CacheSlot[Snapshot, KeyedCache[tuple[str, ...] | None, Projection]](lambda _: KeyedCache(max_items=16))


def _distinct(values: npt.NDArray[_Int]) -> tuple[npt.NDArray[_Int], Ints | None]:
    """Sorted unique values, and where in them each value is (None: they are as they were)."""
    if len(values) < 2 or bool((values[1:] > values[:-1]).all()):
        return values, None
    unique, order = np.unique(values, return_inverse=True)
    return unique, order


def _gather(
    snapshot: Snapshot, parts: Sequence[tuple[FragmentReader, Ints]], projection: Projection, order: Ints | None
) -> pa.Table:
    """Rows of each part one after the other, then in the order asked."""
    needed = snapshot.part_of_schema(projection.field_ids)
    num_rows = sum(len(offsets) for _, offsets in parts)
    if projection.is_plain and needed.fields and 0 < num_rows <= FEW_ROWS * len(parts):
        found = at_once(snapshot, parts, lambda part: _few(part[0], needed, part[1], projection))
        return _joined(found, projection.arrow_schema, order)
    tables = at_once(snapshot, parts, lambda part: _read(part[0], needed, part[1], projection))
    if not tables:
        return no_rows(projection.arrow_schema)
    joined = joined_rows(tables)
    if order is None or not joined.num_columns:
        return joined if order is None else _without_columns(len(order))
    return _ordered(joined, order)


def _few(reader: FragmentReader, schema: Schema, offsets: Ints, projection: Projection) -> Mapping[str, Piece]:
    """Rows of one fragment, each field by its name."""
    found = reader.few(schema, RowSelection.indices(offsets))
    if found is not None:
        return found
    table = _read(reader, schema, offsets, projection)
    return dict(zip(table.column_names, table.columns, strict=True))


def _joined(found: Sequence[Mapping[str, Piece]], target: pa.Schema, order: Ints | None) -> pa.Table:
    """The rows of all fragments in the order asked: one array of those that were read value by value."""
    numbers = None if order is None else order.tolist()
    columns: dict[str, pa.Array[Any] | pa.ChunkedArray[Any]] = {}
    rest = []
    for field in target:
        pieces = [item[field.name] for item in found]
        values = [piece for piece in pieces if isinstance(piece, FieldValues)]
        if len(values) == len(pieces):
            columns[field.name] = joined_array(values, field, numbers)
        else:
            rest.append(field)
    if rest:
        tables = [_table([item[field.name] for field in rest], pa.schema(rest)) for item in found]
        table = tables[0] if len(tables) == 1 else pa.concat_tables(tables)
        table = table if order is None else _ordered(table, order)
        columns.update(zip(table.column_names, table.columns, strict=True))
    return pa.Table.from_arrays([columns[name] for name in target.names], schema=target)


def _table(pieces: Sequence[Piece], schema: pa.Schema) -> pa.Table:
    arrays = [
        array_of(piece, field) if isinstance(piece, FieldValues) else piece
        for piece, field in zip(pieces, schema, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _ordered(table: pa.Table, order: Ints) -> pa.Table:
    wanted: Any = arrow_of(order)
    return take(table.combine_chunks(), wanted)


def _read(reader: FragmentReader, schema: Schema, offsets: Ints, projection: Projection) -> pa.Table:
    rows = RowSelection.indices(offsets)
    if projection.is_plain and schema.fields:
        table = reader.table(schema, rows)
        if table is not None:
            return _in_order(table, projection.arrow_schema)
    batches = reader.read(schema, rows, batch_size=_ALL, system=projection.system)
    return pa.Table.from_batches([project(batch, projection) for batch in batches])


def _in_order(table: pa.Table, target: pa.Schema) -> pa.Table:
    if table.schema.equals(target, check_metadata=True):
        return table
    return pa.Table.from_arrays([table.column(name) for name in target.names], schema=target)


def _without_columns(num_rows: int) -> pa.Table:
    return pa.Table.from_batches([empty_columns(num_rows)])


def _whole_numbers(indices: npt.ArrayLike) -> Ints:
    values = numpy_of(indices, may_copy=True) if isinstance(indices, (pa.Array, pa.ChunkedArray)) else indices
    array = np.asarray(values)
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(f"row indices must be integers in one dimension, got {array.dtype} of shape {array.shape}")
    if array.dtype.kind == "u" and array.max() > np.uint64(2**63 - 1):
        raise InputError(f"row index {int(array.max())} is too large")
    return array.astype(np.int64)


def addresses_of(snapshot: Snapshot, *, ids: Any = None, indices: Any = None, addresses: Any = None) -> Addresses:
    """Row addresses, in the order given, repeats included. Raises InputError for rows that are not there."""
    given = [item for item in (ids, indices, addresses) if item is not None]
    if len(given) != 1:
        raise InputError(
            "rows must be selected by exactly one of ids, indices and addresses", cure="Pass exactly one of them."
        )
    if indices is not None:
        rows = take_rows(snapshot, indices, projection_of(snapshot, ["_rowaddr"]))
        return numpy_of(rows.column(0)) if rows.num_rows else np.empty(0, np.uint64)
    numbers = _numbers(given[0])
    if addresses is not None or not snapshot.manifest.uses_stable_row_ids:
        return numbers
    found = row_id_index(snapshot).addresses_of(numbers)
    if (found == MISSING).any():
        raise InputError(f"{snapshot.uri} has no row with id {int(numbers[found == MISSING][0])}", cure="It was deleted.")
    return found


def _numbers(values: Any) -> Addresses:
    array = numpy_of(values, may_copy=True) if isinstance(values, (pa.Array, pa.ChunkedArray)) else np.asarray(values)
    if array.size == 0:
        return np.empty(0, np.uint64)
    if array.ndim != 1 or array.dtype.kind not in "iu" or (array.dtype.kind == "i" and array.min() < 0):
        raise InputError(f"row ids and addresses must be non-negative integers, got {array.dtype}")
    return array.astype(np.uint64)


def sample_indices(total: int, count: int, *, randomize_order: bool) -> npt.NDArray[np.int64]:
    """`count` different positions below `total`, in random or ascending order. InputError when there are not that many."""
    if count < 0 or count > total:
        raise InputError(f"cannot sample {count} of {total} rows", cure="Request at most as many rows as the table has.")
    chosen = np.random.default_rng().choice(total, size=count, replace=False, shuffle=randomize_order)
    picked: npt.NDArray[np.int64] = chosen.astype(np.int64) if randomize_order else np.sort(chosen).astype(np.int64)
    return picked
