"""Zones: ranges of a fragment's rows with one summary each; shared by zone maps and bloom filters.

::

    fragment_id 3, zone_start 8192, zone_length 100     offsets 8192 to 8292 of fragment 3

A zone holds up to a number of live rows; its length is measured in offsets, so deleted rows between them count too.
Releases 0.34 to 0.39 counted live rows instead: their zones of a fragment with deleted rows are not where they say.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrow_numpy import numpy_of
from lance_core.errors import CorruptFileError
from lance_core.file.open_file import OpenFile
from lance_core.format.address import OFFSET_BITS
from lance_core.index.base import ID, VALUE
from lance_core.rowids.bitmap import BitMap
from lance_core.rowids.selection import AddressSet

ROWS_PER_ZONE = 8192
PLACE = (
    pa.field("fragment_id", pa.uint64(), nullable=False),
    pa.field("zone_start", pa.uint64(), nullable=False),
    pa.field("zone_length", pa.uint64(), nullable=False),
)
PLACES = tuple(item.name for item in PLACE)


class Zoned:
    """An open index of zones. `ends`: where the zones of each fragment end. `are_offsets`: they are where they say; if not,
    the writer may have counted live rows, and those of a fragment are where they say only if they end where it does."""

    ends: Mapping[int, int]
    are_offsets: bool

    def _note_ends(self, opened: OpenFile, places: pa.RecordBatch) -> None:
        # Files of releases that may have counted otherwise have no set of the rows that are null.
        self.are_offsets = "null_bitmap" in opened.schema.metadata
        require_told(places, PLACES, where=opened.path)
        owners, starts, lengths = (numpy_of(places.column(name)).astype(np.uint64) for name in PLACES)
        ends: dict[int, int] = {}
        for owner, end in zip(owners.tolist(), (starts + lengths).tolist(), strict=True):
            ends[owner] = max(end, ends.get(owner, 0))
        self.ends = ends


@dataclass(frozen=True, eq=False)
class Zone:
    """The values of one zone with their addresses, and where it is."""

    fragment_id: int
    start: int
    length: int
    values: Any
    addresses: Any


def zones_of(batches: Iterable[pa.RecordBatch], rows_per_zone: int) -> Iterator[Zone]:
    """Cut training data (addresses ascending within a fragment) into zones."""
    waiting: list[tuple[Any, Any]] = []
    for values, ids in _by_fragment(batches):
        if waiting and waiting[0][1][0] >> OFFSET_BITS != ids[0] >> OFFSET_BITS:
            yield _zone(waiting)
            waiting = []
        first = 0
        while first < len(ids):
            room = rows_per_zone - sum(len(part) for _, part in waiting)
            taken = min(room, len(ids) - first)
            waiting.append((values.slice(first, taken), ids[first : first + taken]))
            first += taken
            if taken == room:
                yield _zone(waiting)
                waiting = []
    if waiting:
        yield _zone(waiting)


def _by_fragment(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, Any]]:
    for batch in batches:
        if batch.num_rows == 0:
            continue
        ids = numpy_of(batch.column(ID)).view(np.int64)
        if ids[0] >> OFFSET_BITS == ids[-1] >> OFFSET_BITS:
            # Batches of a scan never go back to an earlier fragment.
            yield batch.column(VALUE), ids
            continue
        owners = ids >> OFFSET_BITS
        cuts = [0, *(np.flatnonzero(owners[1:] != owners[:-1]) + 1).tolist(), len(ids)]
        for start, end in itertools.pairwise(cuts):
            yield batch.column(VALUE).slice(start, end - start), ids[start:end]


def _zone(parts: list[tuple[Any, Any]]) -> Zone:
    values = parts[0][0] if len(parts) == 1 else pa.concat_arrays([values for values, _ in parts])
    first, last = int(parts[0][1][0]), int(parts[-1][1][-1])
    mask = (1 << OFFSET_BITS) - 1
    addresses = parts[0][1] if len(parts) == 1 else np.concatenate([ids for _, ids in parts])
    return Zone(first >> OFFSET_BITS, first & mask, last - first + 1, values, addresses)


def require_told(rows: pa.RecordBatch, names: Iterable[str], *, where: str) -> None:
    """Raises CorruptFileError where what every zone has to say is null."""
    for name in names:
        if rows.column(name).null_count:
            raise CorruptFileError(f"{where}: {name} of a zone is null", cure="Rebuild the index.")


def zone_rows(places: pa.RecordBatch, picked: Any) -> AddressSet:
    """All rows of the zones where `picked` (bool per zone) is true. Raises CorruptFileError for impossible places."""
    owners, starts, lengths = (numpy_of(places.column(name)) for name in PLACES)
    limit = 1 << OFFSET_BITS
    if len(owners) and (int(owners.max()) >= limit or int(starts.max()) >= limit or int(lengths.max()) > limit):
        raise CorruptFileError("a zone is outside the range of row addresses", cure="Rebuild the index.")
    rows: dict[int, BitMap | None] = {}
    for number in np.flatnonzero(picked).tolist():
        owner, start = int(owners[number]), int(starts[number])
        part = rows.setdefault(owner, BitMap())
        assert part is not None
        part.add_range(start, min(start + int(lengths[number]), limit))
    return AddressSet(rows)


def null_rows(nulls: list[Any]) -> Any:
    """Addresses of null values, gathered zone by zone, as one array."""
    return np.concatenate(nulls).astype(np.uint64) if nulls else np.empty(0, np.uint64)
