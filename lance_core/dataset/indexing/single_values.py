"""Fragments whose rows all have one value, as far as zone maps tell: none of their rows is read.

::

    zones of fragment 3    [7, 7] [7, 7], no nulls     ->  fragment 3 has 7
    zones of fragment 4    [7, 7] [7, 8]               ->  nothing is said of fragment 4

Zones were made of the rows that lived then; those deleted since take nothing away from what is said of the others. A
segment counts for the fragments of its bitmap, which the column has not changed in.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from lance_core.dataset.indexing.scalar_search import Segment, open_segment, usable_segments
from lance_core.dataset.indexing.verify import UNREADABLE, ensure_verified, may_open, warn_skipped
from lance_core.dataset.scan.index_policy import DEFAULT_POLICY, IndexPolicy
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.index.scalar.zone_map import ZoneMap

_MOST_BYTES = 16 << 20
"""Of a segment; a zone takes about 50, and all of them are checked."""


def single_values(
    snapshot: Snapshot, columns: Collection[str], *, trust: IndexPolicy = DEFAULT_POLICY
) -> Mapping[str, Mapping[int, Any]]:
    """Column -> fragment id -> the value of all its rows, never null; only what is known, so columns may be absent.

    What a segment without checksums says counts as the policy has it: whoever relies on it compares the rows.
    """
    found: dict[str, dict[int, Any]] = {}
    for column, segments in usable_segments(snapshot).items():
        if column not in columns:
            continue
        for segment in segments:
            found.setdefault(column, {}).update(_of_segment(snapshot, segment, trust))
    return {column: values for column, values in found.items() if values}


def _of_segment(snapshot: Snapshot, segment: Segment, trust: IndexPolicy) -> Mapping[int, Any]:
    if segment.kind.open is not ZoneMap or sum(file.size_bytes for file in segment.index.files) > _MOST_BYTES:
        return {}
    try:
        if not may_open(snapshot, segment.index, segment.coverage, trust):
            return {}
        opened = open_segment(snapshot, segment, trust)
        ensure_verified(snapshot, segment.index, segment.coverage, opened, trust)
    except UNREADABLE as error:
        warn_skipped(snapshot, segment.index, error, trust)
        return {}
    values = opened.single_values() if isinstance(opened, ZoneMap) else {}
    return {fragment: value for fragment, value in values.items() if fragment in segment.coverage}
