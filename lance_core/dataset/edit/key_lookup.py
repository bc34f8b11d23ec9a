"""Find the rows of a table that have the keys of a source: the first step of a merge.

::

    on id    source ids 7, 9, 7 -> table rows with 7 or 9: (address, row of the source) for every pair that agrees

One whole-number key that is close together is looked up in an array, without hashing anything; the rest is a hash join.
Of the table a few fragments' keys are in memory at a time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.arrays import Addresses, Ints
from lance_core.arrow.buffers import fields_schema
from lance_core.arrow_numpy import arrow_of, numpy_of
from lance_core.dataset.scan.plan import plan_scan
from lance_core.dataset.scan.projection import plan_projection
from lance_core.dataset.scan.sinks import scan_tables
from lance_core.dataset.snapshot.fragment_reader import reader_of
from lance_core.dataset.snapshot.row_offsets import living_to_physical
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import InputError
from lance_core.shortage import ARROW_ERRORS

_ROW = "__source_row"
_STEP = 1 << 16
"""Rows looked up at a time, so that what is computed of them stays in the processor's cache."""
_JOINED_ROWS = 1 << 21
"""Rows of the table that are joined with the source at once, and four times the source's if that is more."""
_MOST_SLOTS = 1 << 24
"""Entries of the look-up array at most, 64 MiB of them; or, if that is more, a few for each row of the source."""
_SLOTS_A_ROW = 4


def match_keys(snapshot: Snapshot, source: pa.Table, on: Sequence[str]) -> tuple[Addresses, Ints]:
    """Addresses of live rows, ascending, and the row of the source that each agrees with; nulls never agree.

    Raises InputError for keys of types that cannot be compared.
    """
    if len(on) == 1:
        kind = snapshot.arrow_schema.field(on[0]).type
        table = _look_up_table(source.column(on[0]), kind, num_rows=snapshot.manifest.num_rows)
        if table is not None:
            return _look_up(snapshot, on[0], *table)
    return _join(snapshot, source, on)


def _join(snapshot: Snapshot, source: pa.Table, on: Sequence[str]) -> tuple[Addresses, Ints]:
    schema = snapshot.manifest.schema
    plan = plan_scan(schema, snapshot.manifest.fragments, plan_projection(schema, [*on, "_rowaddr"]))
    keys = plain_keys(source.select([*on])).append_column(_ROW, arrow_of(np.arange(source.num_rows)))
    found, rows = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
    for target in _shares(scan_tables(snapshot, plan), max(_JOINED_ROWS, 4 * source.num_rows)):
        try:
            joined = plain_keys(target).join(keys, keys=[*on], join_type="inner")
        except ARROW_ERRORS as error:
            raise InputError(f"cannot merge on {', '.join(on)}: {error}") from error
        found.append(numpy_of(joined.column("_rowaddr")).astype(np.uint64))
        rows.append(numpy_of(joined.column(_ROW)).astype(np.int64))
    addresses, matched = np.concatenate(found), np.concatenate(rows)
    order = np.argsort(addresses, kind="stable")
    return addresses[order], matched[order]


def plain_keys(table: pa.Table) -> pa.Table:
    """The table with the values of dictionaries: their numbers mean other values in each chunk."""
    kinds = [item.type.value_type if pa.types.is_dictionary(item.type) else item.type for item in table.schema]
    if kinds == table.schema.types:
        return table
    fields = [item.with_type(kind) for item, kind in zip(table.schema, kinds, strict=True)]
    return table.cast(fields_schema(fields, table.schema.metadata))


def _shares(tables: Iterator[pa.Table], most: int) -> Iterator[pa.Table]:
    """Tables of about `most` rows: each join builds a hash table of the whole source again."""
    waiting: list[pa.Table] = []
    count = 0
    for table in tables:
        waiting.append(table)
        count += table.num_rows
        if count >= most:
            yield pa.concat_tables(waiting)
            waiting, count = [], 0
    if waiting:
        yield pa.concat_tables(waiting)


def _look_up_table(
    keys: pa.ChunkedArray[Any], target: pa.DataType, *, num_rows: int
) -> tuple[int, npt.NDArray[np.int32]] | None:
    """(smallest key, row of the source by key - smallest key, -1 for none); None when keys do not lend themselves to it.

    Filling the array costs less than the table's rows do, while it has not many more entries than there are rows.
    """
    signed = pa.types.is_signed_integer(target)
    if keys.type != target or not signed or keys.null_count or not 0 < len(keys) < 1 << 31:
        return None
    numbers: npt.NDArray[Any] = numpy_of(keys.combine_chunks())
    low, high = int(numbers.min()), int(numbers.max())
    if high - low >= min(max(_MOST_SLOTS, _SLOTS_A_ROW * len(numbers)), max(64 * len(numbers) + 4096, 2 * num_rows)):
        return None
    # The last one stands for every key that is outside.
    slots = np.full(high - low + 2, -1, np.int32)
    rows = np.arange(len(numbers), dtype=np.int32)
    at = numbers.astype(np.int64) - low
    slots[at] = rows
    # A key that is there twice would lose a pair.
    return (low, slots) if bool((slots[at] == rows).all()) else None


def _look_up(snapshot: Snapshot, key: str, low: int, slots: npt.NDArray[np.int32]) -> tuple[Addresses, Ints]:
    schema = snapshot.manifest.schema
    fragments = snapshot.manifest.fragments
    tables = scan_tables(snapshot, plan_scan(schema, fragments, plan_projection(schema, [key])))
    found, rows = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    is_known = slots >= 0
    start = 0
    for chunk in itertools.chain.from_iterable(table.column(0).chunks for table in tables):
        hits, theirs = _hits(chunk, low, slots, is_known)
        found.append(hits + start)
        rows.append(theirs)
        start += len(chunk)
    addresses, matched = _addresses(snapshot, np.concatenate(found)), np.concatenate(rows)
    # Fragments ascend by id, but nobody has to write a manifest so.
    order = np.argsort(addresses, kind="stable")
    return addresses[order], matched[order]


def _hits(
    chunk: pa.Array[Any], low: int, slots: npt.NDArray[np.int32], is_known: npt.NDArray[np.bool_]
) -> tuple[Ints, Ints]:
    """Positions in a chunk whose key the source has, and the rows of the source."""
    valid = None
    if chunk.null_count:
        valid = numpy_of(chunk.is_valid(), may_copy=True)
        chunk = chunk.fill_null(low)
    numbers: npt.NDArray[Any] = numpy_of(chunk)
    hits, rows = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    last = np.uint64(len(slots) - 1)
    for start in range(0, len(numbers), _STEP):
        at = numbers[start : start + _STEP].astype(np.int64)
        at -= low
        # Keys below the lowest become very large numbers.
        unsigned = at.view(np.uint64)
        np.minimum(unsigned, last, out=unsigned)
        kept = is_known.take(at)
        if valid is not None:
            kept &= valid[start : start + _STEP]
        here = np.flatnonzero(kept)
        hits.append(here + start)
        rows.append(slots[at[here]].astype(np.int64))
    return np.concatenate(hits), np.concatenate(rows)


def _addresses(snapshot: Snapshot, living: Ints) -> Addresses:
    """Addresses of rows counted among the live rows of the table; `living` ascends."""
    parts = [np.empty(0, np.uint64)]
    start = 0
    position = 0
    for fragment in snapshot.manifest.fragments:
        end = start + fragment.num_rows
        stop = int(np.searchsorted(living, end))
        if stop > position:
            offsets = living_to_physical(reader_of(snapshot, fragment).deleted, living[position:stop] - start)
            parts.append(offsets.astype(np.uint64) + np.uint64(fragment.id << 32))
        start, position = end, stop
    return np.concatenate(parts)
