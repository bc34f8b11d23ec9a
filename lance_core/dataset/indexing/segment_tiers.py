"""Choose how many of an index's youngest segments go into its next one, by size tiers. Pure.

::

    fanout 8, segments of 1,000 rows each        seven stand side by side; the eighth merges them into one of 8,000
    eight of 8,000                               one of 64,000, and so on: a row is indexed about once per tier
    num_indices_to_merge=None                    every row is indexed again at every step
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from lance_core.format.index import IndexMetadata


def age_of(index: IndexMetadata) -> tuple[int, int]:
    """Sort key of an index's segments, oldest first."""
    return index.dataset_version, index.created_at or 0


def covered_fragments(segments: Sequence[IndexMetadata], live: Set[int]) -> list[frozenset[int]]:
    """Return the fragments of a version, `live`, that each segment covers."""
    return [frozenset(live & (index.fragment_bitmap or frozenset())) for index in segments]


def covered_rows(segments: Sequence[IndexMetadata], rows: Mapping[int, int]) -> list[int]:
    """Return the rows that each segment covers, by the visible `rows` of each fragment of a version."""
    return [sum(rows[number] for number in covered) for covered in covered_fragments(segments, rows.keys())]


def segments_to_merge(sizes: Sequence[int], added: int, *, fanout: int) -> int:
    """Return how many of the youngest segments to merge with each other and with `added` rows that no segment covers.

    `sizes` are rows covered by each segment, oldest first. 0 means that the added rows get a segment of their own, or that
    there is nothing to do when there are none.

    >>> segments_to_merge([1000] * 6, 1000, fanout=8)
    0
    >>> segments_to_merge([1000] * 7, 1000, fanout=8)
    7
    >>> segments_to_merge([8000] * 7 + [1000] * 7, 1000, fanout=8)
    14
    >>> segments_to_merge([1000] * 9, 0, fanout=8)
    9
    """
    merged, rows = 0, added
    while True:
        left = len(sizes) - merged
        tier = _tier(rows, fanout) if rows else _tier(sizes[-1], fanout) if left else 0
        run = 0
        while run < left and _tier(sizes[left - 1 - run], fanout) <= tier:
            run += 1
        if run == 0 or run + (rows > 0) < fanout:
            return merged
        rows += sum(sizes[left - run : left])
        merged += run


def _tier(rows: int, fanout: int) -> int:
    tier = 0
    while rows >= fanout:
        tier, rows = tier + 1, rows // fanout
    return tier
