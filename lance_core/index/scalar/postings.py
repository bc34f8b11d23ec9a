"""Values as keys, each with the set of rows that have it: the file that bitmap and label list indices share.

::

    bitmap_page_lookup.lance     keys T (null first, then ascending), bitmaps binary (row address map, FORMAT E.2)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute

from lance_core.arrow import schema_to_arrow
from lance_core.arrow_numpy import arrow_of, true_of
from lance_core.errors import CorruptFileError
from lance_core.expr import evaluate
from lance_core.expr.ast import Expr
from lance_core.format.index import IndexFile
from lance_core.index.base import IndexFolder, column_batch, read_bounded
from lance_core.index.scalar.external_sort import Part, is_change
from lance_core.index.scalar.id_lookup import STEP
from lance_core.index.scalar.row_sets import RowSets
from lance_core.index.scalar.verify import expanded, require
from lance_core.io.cache import shared_cache
from lance_core.rowids.selection import AddressSet, address_set, decode_address_set, encode_address_set

pc: Any = compute  # the stubs know only some of what the kernels take
LOOKUP = "bitmap_page_lookup.lance"
_WRITTEN_KEYS = 4096
_WRITTEN_BYTES = 8 << 20
_SETS_AT_ONCE = 512
_CACHED_SETS = 16
_SET_BYTES = 256


def write_postings(
    folder: IndexFolder,
    parts: Iterable[Part],
    key_type: pa.DataType,
    *,
    metadata: Mapping[str, bytes],
    buffers: Iterable[bytes] = (),
) -> IndexFile:
    """Write one row per distinct value with the rows that have it. `parts` are in order; ids may repeat."""
    schema = pa.schema([pa.field("keys", key_type), pa.field("bitmaps", pa.binary())])
    count = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal count
        for keys, sets in sets_by_key(parts, encode_address_set):
            count += len(sets)
            yield pa.RecordBatch.from_arrays([keys, pa.array(sets, pa.binary())], schema=schema)

    def told() -> dict[str, bytes]:
        return {"lance:index_stats": b'{"num_bitmaps":%d}' % count, **metadata}

    return folder.write(LOOKUP, batches(), schema, metadata=told, buffers=buffers)


def sets_by_key(parts: Iterable[Part], encode: Callable[[AddressSet], bytes]) -> Iterator[tuple[Any, list[bytes]]]:
    """Distinct values of ordered parts, each with the encoded set of its rows, as many at a time as are written at once.

    A value's rows may be spread over parts; they are held as sets, which are far smaller than the rows.
    """
    keys: list[Any] = []
    sets: list[bytes] = []
    size = 0
    for key_of_last, found in _runs(parts):
        keys.append(key_of_last)
        sets += [encode(rows) for rows in found]
        size += sum(map(len, sets[len(sets) - len(found) :]))
        if len(sets) >= _WRITTEN_KEYS or size >= _WRITTEN_BYTES:
            yield pa.concat_arrays(keys), sets
            keys, sets, size = [], [], 0
    if sets:
        yield pa.concat_arrays(keys), sets


def _runs(parts: Iterable[Part]) -> Iterator[tuple[Any, list[AddressSet]]]:
    """Some distinct values in order, each once, with the sets of their rows."""
    held: Any = None  # the last value so far, which may go on in the next part
    pieces: list[AddressSet] = []
    for values, ids in parts:
        if len(values) == 0:
            continue
        starts = key_starts(values)
        ends = np.append(starts[1:], len(values))
        goes_on = held is not None and not is_change(pa.concat_arrays([held, values.slice(0, 1)])).any()
        first = 0
        if goes_on:
            pieces.append(address_set(ids[: ends[0]]))
            first = 1
        if first == len(starts):
            continue
        if held is not None:
            yield held, [_union(pieces)]
        last = len(starts) - 1
        for begin in range(first, last, _SETS_AT_ONCE):
            spans = zip(starts[begin : min(begin + _SETS_AT_ONCE, last)], ends[begin:last], strict=False)
            sets = [address_set(ids[start:end]) for start, end in spans]
            yield values.take(arrow_of(starts[begin : begin + len(sets)])), sets
        held = values.take(arrow_of(starts[last:]))
        pieces = [address_set(ids[starts[last] :])]
    if held is not None:
        yield held, [_union(pieces)]


def _union(pieces: list[AddressSet]) -> AddressSet:
    """All rows of some sets: halves are united first, so that no large set is copied for each small one."""
    while len(pieces) > 1:
        pieces = [one | other for one, other in zip_longest(pieces[::2], pieces[1::2], fillvalue=AddressSet())]
    return pieces[0]


def key_starts(ordered: Any) -> Any:
    """Where each run of equal values begins in an ordered array (nulls first); int64."""
    if len(ordered) == 0:
        return np.empty(0, np.int64)
    return np.concatenate([[0], np.flatnonzero(is_change(ordered)) + 1]).astype(np.int64)


class Postings:
    """The open file: keys are in memory, sets are read on request."""

    def __init__(self, folder: IndexFolder, path: tuple[str, ...]) -> None:
        self._folder = folder
        self.file = folder.open(LOOKUP)
        schema = self.file.schema
        names = [item.name for item in schema.top_level]
        if names != ["keys", "bitmaps"]:
            raise CorruptFileError(f"{self.file.path} has the columns {', '.join(names)}, expected keys, bitmaps")
        ids = [item.id for item in schema.top_level]
        self._keys_schema, self._sets_schema = schema.project({ids[0]}), schema.project({ids[1]})
        batches = read_bounded(self.file, self._keys_schema).to_batches()
        self.num_keys = sum(batch.num_rows for batch in batches)
        self._keys = [column_batch(path, batch.column(0)) for batch in batches]
        if not folder.is_sealed:
            self._check_keys()

    def _check_keys(self) -> None:
        """What can be seen without the column: each key once. Releases up to 4.0 wrote them in no order."""
        keys = self.keys()
        present = keys.drop_null()
        # Not a number may be there several times, of different bits.
        times = 0 if pa.types.is_floating(keys.type) else len(present) - pc.count_distinct(present).as_py()
        require(len(present) + 1 >= len(keys) and times == 0, "a key is contained twice")

    def matching(self, test: Expr) -> Any:
        """Positions of the keys that pass a test of the column; int64, ascending."""
        found, first = [np.empty(0, np.int64)], 0
        for batch in self._keys:
            known: Any = evaluate(test, batch)
            found.append(np.flatnonzero(true_of(known)) + first)
            first += batch.num_rows
        return np.concatenate(found)

    def rows(self, positions: Any) -> AddressSet:
        """All rows that have one of the keys. Sets of few keys are kept in the shared cache."""
        if len(positions) <= _CACHED_SETS:
            return self._cached_rows(positions)
        rows = AddressSet()
        for start in range(0, len(positions), _WRITTEN_KEYS):
            batch = self.file.take(self._sets_schema, positions[start : start + _WRITTEN_KEYS])
            for data in batch.column(0):
                rows = rows | decode_address_set(data.as_buffer() or b"", what=f"a bitmap of {self.file.path}")
        return rows

    def _cached_rows(self, positions: Any) -> AddressSet:
        cache, key = shared_cache(), (*self._folder.key, "set")
        known: dict[int, AddressSet] = {
            place: held for place in positions.tolist() if (held := cache.get((*key, place))) is not None
        }
        wanted = [place for place in positions.tolist() if place not in known]
        if wanted:
            batch = self.file.take(self._sets_schema, np.array(wanted, np.int64))
            for place, data in zip(wanted, batch.column(0), strict=True):
                buffer = data.as_buffer() or b""
                known[place] = decode_address_set(buffer, what=f"a bitmap of {self.file.path}")
                cache.put((*key, place), known[place], 2 * len(buffer) + _SET_BYTES)
        sets = [*known.values()]
        return sets[0] if len(sets) == 1 else _union(sets) if sets else AddressSet()

    def keys(self) -> Any:
        """All keys, in their order."""
        return pa.concat_arrays([batch.column(0) for batch in self._leaves()])

    def pairs(self, among: Any) -> Iterator[tuple[Any, Any]]:
        """All pairs (position of a key, row that has it), many at once; a whole fragment as the rows of `among` in it."""
        first = 0
        for batch in self.file.read(self._sets_schema, batch_size=_WRITTEN_KEYS):
            for part in (batch.column(0).slice(at, _SETS_AT_ONCE) for at in range(0, batch.num_rows, _SETS_AT_ONCE)):
                sets = RowSets.of([part], has_sizes=True)
                found = sets.pairs() if sets is not None else self._decoded_pairs(part, among)
                for positions, ids in found:
                    yield positions + first, ids
                first += len(part)

    def _decoded_pairs(self, sets: Any, among: Any) -> Iterator[tuple[Any, Any]]:
        positions: list[Any] = []
        ids: list[Any] = []
        waiting = 0
        for position, data in enumerate(sets):
            ids.append(expanded(decode_address_set(data.as_buffer() or b"", what=f"a bitmap of {self.file.path}"), among))
            positions.append(np.full(len(ids[-1]), position, np.int64))
            waiting += len(ids[-1])
            if waiting >= STEP or position + 1 == len(sets):
                yield np.concatenate(positions), np.concatenate(ids)
                positions, ids, waiting = [], [], 0

    def row_sets(self) -> RowSets | None:
        """All sets, where it is worth it; see `RowSets.of`."""
        batches = self.file.read(self._sets_schema, batch_size=_WRITTEN_KEYS)
        return RowSets.of([batch.column(0) for batch in batches], has_sizes=True)

    def _leaves(self) -> list[pa.RecordBatch]:
        found = read_bounded(self.file, self._keys_schema).to_batches()
        return found or [pa.RecordBatch.from_pylist([], schema=schema_to_arrow(self._keys_schema))]
