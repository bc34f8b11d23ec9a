"""Row addresses: `fragment_id << 32 | offset`. An address is where a row is; compaction moves it."""

from __future__ import annotations

OFFSET_BITS = 32
OFFSET_MASK = (1 << OFFSET_BITS) - 1


def row_address(fragment_id: int, offset: int) -> int:
    """The address of the row at `offset` (physical, deleted rows count) of a fragment.

    >>> row_address(2, 5)
    8589934597
    """
    return (fragment_id << OFFSET_BITS) | offset


def split_address(address: int) -> tuple[int, int]:
    """(fragment id, offset) of an address."""
    return address >> OFFSET_BITS, address & OFFSET_MASK
