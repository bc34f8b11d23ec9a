"""Which vector indices may be searched, which of their rows may be trusted, and the search.

::

    served = search_segments(snapshot, segments, query, q, mask)   ->  addresses and distances from what they cover

A row counts when its fragment lives, is in the segment's fragment bitmap, and the row is neither deleted nor filtered out.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_core.dataset.indexing.old_vector_details import with_details
from lance_core.dataset.indexing.vector_build import VECTOR_DETAILS, is_unstorable
from lance_core.dataset.indexing.verify import (
    UNREADABLE,
    ensure_verified,
    may_open,
    opened_from,
    pinned_folder,
    warn_skipped,
)
from lance_core.dataset.scan.index_policy import DEFAULT_POLICY, VERIFIED, IndexPolicy
from lance_core.dataset.scan.nearest_request import NearestQuery
from lance_core.dataset.scan.scored_rows import Scored
from lance_core.dataset.snapshot.fragment_reader import reader_of
from lance_core.dataset.snapshot.row_id_index import row_id_index
from lance_core.dataset.snapshot.snapshot import CacheSlot, KeyedCache, Snapshot
from lance_core.errors import CorruptFileError, UnsupportedFeatureError
from lance_core.format.fragments import FragmentList
from lance_core.format.index import IndexMetadata
from lance_core.format.index_details import Metric, VectorDetails
from lance_core.format.schema import column_of
from lance_core.index.vector.parameters import KINDS
from lance_core.index.vector.searcher import OpenVectorIndex
from lance_core.rowids.index import RowIdIndex
from lance_core.table.coverage import FRAGMENT_REUSE
from lance_core.wire.index import decode_details

_LOG = logging.getLogger("lance_core.index")
NEWEST_VERSION = 2
OLDEST_VERSION = 1
_OPEN_BYTES = 1 << 16


@dataclass(frozen=True)
class VectorSegment:
    """A segment that can be searched, and the live fragments it covers."""

    index: IndexMetadata
    metric: Metric
    coverage: frozenset[int]


def vector_segments(snapshot: Snapshot, column: str, metric: Metric | None) -> tuple[VectorSegment, ...]:
    """The segments of the index to search: of that metric (None: any), of several the one that covers most fragments."""
    manifest = snapshot.manifest
    live = frozenset(FragmentList.of(manifest.fragments).ids)
    deferred = not manifest.uses_stable_row_ids and any(index.name == FRAGMENT_REUSE for index in manifest.indices)
    by_name: dict[str, list[VectorSegment]] = {}
    for index in _indices_on(snapshot, column):
        reason = _unusable(index, deferred=deferred)
        if reason:
            _LOG.info("index %s (%s) is not used: %s", index.name, index.uuid, reason)
            continue
        details = decode_details(index.details) if index.details is not None else None
        assert isinstance(details, VectorDetails)
        coverage = live & (index.fragment_bitmap or frozenset())
        if coverage and (metric is None or details.metric == metric):
            by_name.setdefault(index.name, []).append(VectorSegment(index, details.metric, coverage))
    chosen = max(by_name.values(), key=lambda found: len(frozenset().union(*(item.coverage for item in found))), default=[])
    return tuple(item for item in chosen if item.metric == chosen[0].metric)


def _indices_on(snapshot: Snapshot, column: str) -> Iterator[IndexMetadata]:
    schema = snapshot.manifest.schema
    for entry in snapshot.manifest.indices:
        if len(entry.fields) != 1 or entry.fields[0] not in schema.by_id or column_of(schema, entry.fields[0]) != column:
            continue
        index = with_details(snapshot, entry)
        if index.details is not None and index.details.kind == VECTOR_DETAILS:
            yield index


def metric_of_index(snapshot: Snapshot, column: str) -> Metric | None:
    """The metric of an index on the column, searched here or not: the default metric of a query."""
    for index in _indices_on(snapshot, column):
        details = decode_details(index.details) if index.details is not None else None
        if isinstance(details, VectorDetails):
            return details.metric
    return None


def _unusable(index: IndexMetadata, *, deferred: bool) -> str:
    version = index.index_version or 0
    if version > NEWEST_VERSION:
        return f"its version {version} is newer than {NEWEST_VERSION}"
    if version < OLDEST_VERSION:
        return f"its version {version} has an old layout"
    if index.fragment_bitmap is None:
        return "it has no fragment bitmap"
    return "rows were moved since it was built, and its row addresses were not remapped" if deferred else ""


def is_usable(snapshot: Snapshot, entry: IndexMetadata) -> bool:
    """Whether it is a vector index that can be searched."""
    index = with_details(snapshot, entry)
    is_ours = index.details is not None and index.details.kind == VECTOR_DETAILS
    return is_ours and len(index.fields) == 1 and not _unusable(index, deferred=False)


def vector_title(index: IndexMetadata) -> str:
    """What kind of vector index the manifest says it is: `"IVF_PQ"`."""
    details = decode_details(index.details) if index.details is not None else None
    if not isinstance(details, VectorDetails) or details.quantizer is None:
        return "VECTOR"
    return f"IVF_{'HNSW_' if details.hnsw is not None else ''}{details.quantizer.kind.upper()}"


def open_vector_segment(snapshot: Snapshot, index: IndexMetadata, trust: IndexPolicy = DEFAULT_POLICY) -> OpenVectorIndex:
    """The open segment, shared by all snapshots of the process that have it. Raises LanceError."""
    folder = pinned_folder(snapshot, index, trust)

    def make() -> tuple[OpenVectorIndex, int]:
        opened = OpenVectorIndex(folder)
        return opened, opened.centroids.nbytes * 2 + _OPEN_BYTES

    return opened_from(folder, ("vectors",), make)


@dataclass(frozen=True, eq=False)
class RowMask:
    """Which rows may be in an answer: for each fragment all (-1), none (-2), or bits that start somewhere in `bits`.

    `sizes` are the physical rows of fragments: an index that names a row beyond them is damaged.
    """

    starts: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]
    bits: npt.NDArray[np.bool_]
    ids: RowIdIndex | None = None

    def addresses(self, ids: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        """Where rows are (`MISSING`: nowhere)."""
        return ids if self.ids is None else self.ids.addresses_of(ids)

    def allows(self, ids: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Whether each of the row ids may be in the answer. Raises CorruptFileError for rows that cannot be."""
        addresses = self.addresses(ids)
        fragments = np.minimum(addresses >> np.uint64(32), np.uint64(len(self.starts) - 1)).astype(np.int64)
        offsets = (addresses & np.uint64(0xFFFFFFFF)).astype(np.int64)
        starts = self.starts[fragments]
        kept: npt.NDArray[np.bool_] = starts >= -1
        if (kept & (offsets >= self.sizes[fragments])).any():
            raise CorruptFileError("it points at rows beyond the end of their fragment")
        some = np.flatnonzero(starts >= 0)
        if len(some):
            kept[some] = self.bits[starts[some] + offsets[some]]
        return kept


_ROW_MASKS = CacheSlot[Snapshot, KeyedCache[frozenset[int], RowMask]](lambda _: KeyedCache(max_items=64))
"""Masks of living rows, by the fragments that a segment covers: without a filter, the same for each search."""


def row_mask(snapshot: Snapshot, coverage: frozenset[int], passing: npt.NDArray[np.uint64] | None) -> RowMask:
    """The mask for rows of some fragments; `passing` are the addresses a prefilter selected (None: no filter)."""
    if passing is not None:
        return _row_mask(snapshot, coverage, passing)
    return snapshot.cached(_ROW_MASKS).get(coverage, lambda: _row_mask(snapshot, coverage, None))


def _row_mask(snapshot: Snapshot, coverage: frozenset[int], passing: npt.NDArray[np.uint64] | None) -> RowMask:
    fragments = [fragment for fragment in snapshot.manifest.fragments if fragment.id in coverage]
    # One entry more than there are fragments: what is beyond falls on it, and is in no answer.
    length = max((fragment.id for fragment in fragments), default=-1) + 2
    starts, sizes = np.full(length, -2, np.int64), np.zeros(length, np.int64)
    pieces: list[npt.NDArray[np.bool_]] = []
    position = 0
    owners = None if passing is None else (passing >> np.uint64(32)).astype(np.int64)
    for fragment in fragments:
        sizes[fragment.id] = fragment.physical_rows
        if passing is None or owners is None:
            deleted = reader_of(snapshot, fragment).deleted
            if len(deleted) == 0:
                starts[fragment.id] = -1
                continue
            piece = np.ones(fragment.physical_rows, np.bool_)
            piece[deleted] = False
        else:
            mine = passing[owners == fragment.id]
            if len(mine) == 0:
                continue
            piece = np.zeros(fragment.physical_rows, np.bool_)
            piece[(mine & np.uint64(0xFFFFFFFF)).astype(np.int64)] = True
        starts[fragment.id] = position
        position += len(piece)
        pieces.append(piece)
    bits = np.concatenate(pieces) if pieces else np.zeros(1, np.bool_)
    return RowMask(starts, sizes, bits, row_id_index(snapshot) if snapshot.manifest.uses_stable_row_ids else None)


def search_segment(
    snapshot: Snapshot, segment: VectorSegment, query: NearestQuery, q: Any, mask: RowMask, *, k: int, trust: IndexPolicy
) -> Scored | None:
    """The nearest rows of a segment; None (with a warning) when it cannot be read. CorruptFileError on request."""
    index = segment.index
    try:
        if not may_open(snapshot, index, segment.coverage, trust):
            return None
        opened = open_vector_segment(snapshot, index, trust)
        if opened.metric != segment.metric:
            raise CorruptFileError(f"its file has the metric {opened.metric}, the manifest {segment.metric}")
        if is_unstorable(query.element, opened.metric, KINDS[opened.kind][0]):
            raise CorruptFileError(
                "it stores int8 vectors scaled to length one, which whole numbers cannot hold",
                cure="Drop it, or build an IVF_PQ or IVF_SQ index in its place.",
            )
        ensure_verified(snapshot, index, segment.coverage, opened, trust)
        ids, values = opened.search(
            np.ascontiguousarray(q, np.float32),
            k=k,
            min_probes=query.min_probes,
            max_probes=query.max_probes,
            ef=query.ef,
            low=query.low,
            high=query.high,
            allow=mask.allows,
        )
        return Scored(mask.addresses(ids), values)
    except UNREADABLE as error:
        warn_skipped(snapshot, index, error, trust)
        return None


def vector_statistics(snapshot: Snapshot, index: IndexMetadata) -> dict[str, Any]:
    """The description of a segment; nothing when it is of a version this release does not read."""
    return {} if _unusable(index, deferred=False) else open_vector_segment(snapshot, index, DEFAULT_POLICY).statistics()


def prewarm_vectors(snapshot: Snapshot, name: str, uuids: set[str] | None) -> None:
    """Read the segments of an index whole, and compare those without checksums, so that the first search need not."""
    live = frozenset(FragmentList.of(snapshot.manifest.fragments).ids)
    for entry in snapshot.manifest.indices:
        index = with_details(snapshot, entry)
        wanted = index.name == name and (uuids is None or index.uuid in uuids)
        is_ours = index.details is not None and index.details.kind == VECTOR_DETAILS
        if wanted and is_ours and not _unusable(index, deferred=False):
            opened = open_vector_segment(snapshot, index, VERIFIED)
            with suppress(UnsupportedFeatureError):
                # Codes that are searched and cannot be compared.
                ensure_verified(snapshot, index, live & (index.fragment_bitmap or frozenset()), opened, VERIFIED)
            opened.prewarm()
