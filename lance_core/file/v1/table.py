"""The page table of a legacy file: for every field id from the lowest to the highest, for every batch, position and length.

    fields 3..4, 2 batches      (position, length) of field 3 batch 0, field 3 batch 1, field 4 batch 0, field 4 batch 1

Positions and lengths are i64; a field without pages of its own (a struct) has zeros. The length counts values, or
offsets for lists. (Spec: legacy files.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lance_core.errors import CorruptFileError
from lance_core.fetch import Buffer

Table = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PageSpot:
    """Where a page is, and how many values it holds."""

    position: int
    length: int


@dataclass(frozen=True, slots=True, eq=False)
class PageTable:
    """`entries` has shape (fields, batches, 2); its first row belongs to field `first_id`."""

    first_id: int
    entries: Table

    def spot(self, field_id: int, batch: int) -> PageSpot:
        """The page of a field in a batch. CorruptFileError when the table has no such entry."""
        row = field_id - self.first_id
        if not 0 <= row < self.entries.shape[0]:
            raise CorruptFileError(f"the page table has no field {field_id}")
        position, length = self.entries[row, batch].tolist()
        if position < 0 or length < 0:
            raise CorruptFileError(
                f"the page of field {field_id} in batch {batch} has a negative position ({position}) or length ({length})"
            )
        return PageSpot(position, length)


def table_size(field_ids: Sequence[int], num_batches: int) -> int:
    """Bytes of the table of these fields."""
    return 16 * (max(field_ids) - min(field_ids) + 1) * num_batches if field_ids else 0


def decode_table(data: Buffer, field_ids: Sequence[int], num_batches: int) -> PageTable:
    """The table in `data` (`table_size` bytes)."""
    first = min(field_ids, default=0)
    entries = np.frombuffer(data, "<i8").reshape(-1, num_batches, 2) if num_batches else np.empty((0, 0, 2), np.int64)
    return PageTable(first, entries)


def encode_table(spots: Mapping[tuple[int, int], PageSpot], field_ids: Sequence[int], num_batches: int) -> bytes:
    """The table of `(field id, batch) -> spot`."""
    first, last = min(field_ids, default=0), max(field_ids, default=-1)
    entries = np.zeros((last - first + 1, num_batches, 2), "<i8")
    for (field_id, batch), spot in spots.items():
        entries[field_id - first, batch] = (spot.position, spot.length)
    return entries.tobytes()
