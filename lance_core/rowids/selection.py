"""Sets of row addresses, grouped by fragment: the answer of an index and the restriction of a scan.

    {0: {1, 5}, 3: all}      rows 1 and 5 of fragment 0, and the whole of fragment 3

The same sets serve for stable row ids; their upper half then means nothing. (Spec: FORMAT E.2.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lance_core.format.address import OFFSET_BITS
from lance_core.rowids.bitmap import (
    BitMap,
    bitmap_array,
    bitmap_of,
    decode_address_map,
    decode_treemap,
    encode_address_map,
    encode_treemap,
)
from lance_core.rowids.segment import UInt64Array

_LOW = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(OFFSET_BITS)


@dataclass(frozen=True, slots=True)
class AddressSet:
    """Row addresses by fragment; None stands for all rows of a fragment."""

    fragments: Mapping[int, BitMap | None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.fragments)

    def __or__(self, other: AddressSet) -> AddressSet:
        merged: dict[int, BitMap | None] = dict(self.fragments)
        for fragment, rows in other.fragments.items():
            mine = merged.get(fragment, BitMap())
            merged[fragment] = None if rows is None or mine is None else mine | rows
        return AddressSet(merged)

    def __and__(self, other: AddressSet) -> AddressSet:
        merged: dict[int, BitMap | None] = {}
        for fragment in self.fragments.keys() & other.fragments.keys():
            mine, rows = self.fragments[fragment], other.fragments[fragment]
            merged[fragment] = rows if mine is None else mine if rows is None else mine & rows
        return AddressSet(_without_empty(merged))

    def __sub__(self, other: AddressSet) -> AddressSet:
        """The rows of this set that are not in `other`. Taking some rows out of "all" needs their number: use `resolved`."""
        merged: dict[int, BitMap | None] = {}
        for fragment, mine in self.fragments.items():
            rows = other.fragments.get(fragment, BitMap())
            if rows is None:
                continue
            if mine is None and len(rows):
                raise ValueError(f"fragment {fragment} is selected whole; call resolved() with its row count first")
            merged[fragment] = None if mine is None else mine - rows
        return AddressSet(_without_empty(merged))

    def resolved(self, num_rows: Mapping[int, int]) -> AddressSet:
        """The set with "all" written out, given the physical rows of each fragment; unknown fragments are left out."""
        resolved: dict[int, BitMap | None] = {}
        for fragment, rows in self.fragments.items():
            if rows is not None:
                resolved[fragment] = rows
            elif fragment in num_rows:
                resolved[fragment] = BitMap(range(num_rows[fragment]))
        return AddressSet(resolved)

    def restricted(self, fragment_ids: Iterable[int]) -> AddressSet:
        """The rows that are in these fragments."""
        keep = set(fragment_ids)
        return AddressSet({fragment: rows for fragment, rows in self.fragments.items() if fragment in keep})

    def mask(self, addresses: UInt64Array) -> npt.NDArray[np.bool_]:
        """For each address whether it is in the set."""
        found = np.zeros(len(addresses), dtype=np.bool_)
        for fragment, here in _grouped(addresses):
            if fragment not in self.fragments:
                continue
            rows = self.fragments[fragment]
            offsets = (addresses[here] & _LOW).astype(np.uint32)
            found[here] = True if rows is None else np.isin(offsets, bitmap_array(rows))
        return found

    def to_array(self) -> UInt64Array:
        """All addresses, ascending, uint64; ValueError when a fragment stands for all its rows."""
        parts = []
        for fragment, rows in sorted(self.fragments.items()):
            if rows is None:
                raise ValueError(f"fragment {fragment} is selected whole; call resolved() first")
            parts.append(bitmap_array(rows).astype(np.uint64) | np.uint64(fragment << OFFSET_BITS))
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.uint64)


def _without_empty(fragments: Mapping[int, BitMap | None]) -> dict[int, BitMap | None]:
    return {fragment: rows for fragment, rows in fragments.items() if rows is None or len(rows)}


def _grouped(addresses: UInt64Array) -> Iterable[tuple[int, npt.NDArray[np.intp]]]:
    """(fragment, positions of its addresses) for each fragment that occurs."""
    owners = addresses >> _SHIFT
    order = np.argsort(owners, kind="stable")
    sorted_owners = owners[order]
    starts = np.concatenate([[0], np.flatnonzero(sorted_owners[1:] != sorted_owners[:-1]) + 1, [len(order)]])
    for begin, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        if begin < end:
            yield int(sorted_owners[begin]), order[begin:end]


def address_set(addresses: UInt64Array | Iterable[int]) -> AddressSet:
    """A set of these addresses."""
    array = np.asarray(addresses if isinstance(addresses, np.ndarray) else list(addresses), dtype=np.uint64)
    ascending = np.sort(array)
    owners = ascending >> _SHIFT
    found: dict[int, BitMap | None] = {}
    begin = 0
    while begin < len(owners):
        end = int(np.searchsorted(owners, owners[begin], side="right"))
        found[int(owners[begin])] = bitmap_of((ascending[begin:end] & _LOW).astype(np.uint32))
        begin = end
    return AddressSet(found)


def decode_address_set(data: bytes | memoryview, *, what: str = "row address map") -> AddressSet:
    """A set from the form that bitmap indices store."""
    return AddressSet(decode_address_map(data, what=what))


def encode_address_set(addresses: AddressSet) -> bytes:
    """The form that bitmap indices store."""
    return encode_address_map(addresses.fragments)


def decode_address_treemap(data: bytes | memoryview, *, what: str = "treemap") -> AddressSet:
    """A set from a portable 64-bit roaring treemap (posting lists, reuse indices)."""
    return AddressSet(dict(decode_treemap(data, what=what)))


def encode_address_treemap(addresses: AddressSet, *, runs: bool = True) -> bytes:
    """A portable 64-bit roaring treemap; ValueError when a fragment stands for all its rows."""
    parts: dict[int, BitMap] = {}
    for fragment, rows in addresses.fragments.items():
        if rows is None:
            raise ValueError(f"fragment {fragment} is selected whole; call resolved() first")
        parts[fragment] = rows
    return encode_treemap(parts, runs=runs)
