"""A searchable column of strings: the partitions of its index, and the rows that no segment covers.

::

    column = text_column(snapshot, "text", segments)
    column.indexed      [(partition, addresses of its documents: MISSING where the row is gone or not covered), ...]
    column.others       the same for rows that are not indexed, cut and counted here; None with fast_search

What was worked out is kept with the snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from lance_core.arrow.to_arrow import value_type_of
from lance_core.cached import cached_property
from lance_core.dataset.indexing.folder import training_batches
from lance_core.dataset.indexing.fragment_reuse import moves_of
from lance_core.dataset.indexing.scalar_search import Segment, open_segment
from lance_core.dataset.indexing.verify import UNREADABLE, ensure_verified, may_open, warn_skipped
from lance_core.dataset.scan.index_policy import IndexPolicy
from lance_core.dataset.snapshot.fragment_reader import reader_of
from lance_core.dataset.snapshot.row_id_index import row_id_index
from lance_core.dataset.snapshot.snapshot import CacheSlot, KeyedCache, Snapshot
from lance_core.errors import CorruptFileError, InputError
from lance_core.format.index_details import InvertedDetails
from lance_core.index.text.inverted import Inverted, accepts
from lance_core.index.text.matching import Documents
from lance_core.index.text.params import TextParams, params_of_details
from lance_core.index.text.tokenize import Tokenizer, tokenizer_of
from lance_core.index.text.unindexed import MemoryPartition
from lance_core.rowids.index import MISSING
from lance_core.wire.index import decode_details


@dataclass(frozen=True, eq=False)
class Searched:
    """Documents, and how the ids of their rows become addresses (None: they are addresses)."""

    documents: Documents
    locate: Callable[[Any], Any] | None = None

    def at(self, documents: Any) -> Any:
        """The addresses of some documents; those of all are worked out when many are requested. Raises CorruptFileError."""
        if self.locate is None or "addresses" in self.__dict__ or len(documents) * _MANY > len(self.documents.ids):
            return self.addresses[documents]
        return self.locate(self.documents.ids[documents])

    @cached_property
    def addresses(self) -> Any:
        """The addresses of all documents."""
        return self.documents.ids if self.locate is None else self.locate(self.documents.ids)


_MANY = 4


_OthersKey = tuple[str, TextParams, frozenset[int]]
_INDEXED = CacheSlot[Snapshot, dict[str, tuple[Inverted, tuple[Searched, ...]]]](lambda _: {})
_OTHERS = CacheSlot[Snapshot, KeyedCache[_OthersKey, MemoryPartition]](lambda _: KeyedCache(max_items=4))
"""Rows without an index, tokenized and counted."""


@dataclass(frozen=True, eq=False)
class TextColumn:
    """All there is to search in a column. `index` is the name of its index, None when it has none."""

    name: str
    index: str | None
    tokenizer: Tokenizer
    indexed: tuple[Searched, ...]
    others: Searched | None
    covered: frozenset[int]
    has_places: bool


def text_column(
    snapshot: Snapshot,
    name: str,
    segments: Sequence[Segment],
    *,
    fast: bool,
    trust: IndexPolicy,
    params: TextParams | None = None,
) -> TextColumn:
    """Open the segments of a column; unreadable ones are skipped with a warning, an error when strict."""
    if not accepts(value_type_of(snapshot.manifest.schema, snapshot.manifest.schema.find(name))):
        raise InputError(
            f"column {name!r} has no strings to search", cure="Search a column of strings or of lists of strings."
        )
    opened: list[tuple[Segment, Inverted, tuple[Searched, ...]]] = []
    for segment in segments:
        try:
            if not may_open(snapshot, segment.index, segment.coverage, trust):
                continue
            index = open_segment(snapshot, segment, trust)
            assert isinstance(index, Inverted)
            ensure_verified(snapshot, segment.index, segment.coverage, index, trust)
            opened.append((segment, index, _indexed(snapshot, segment, index)))
        except UNREADABLE as error:
            warn_skipped(snapshot, segment.index, error, trust)
    covered = frozenset(fragment for segment, _, _ in opened for fragment in segment.coverage)
    params = opened[0][1].params if opened else params or _stored_params(snapshot, segments)
    tokenizer = tokenizer_of(params)
    return TextColumn(
        name=name,
        index=opened[0][0].index.name if opened else None,
        tokenizer=tokenizer,
        indexed=tuple(item for _, _, items in opened for item in items),
        others=None if fast else _others(snapshot, name, params, tokenizer, covered),
        covered=covered,
        has_places=all(part.has_places for _, index, _ in opened for part in index.partitions),
    )


def restricted(column: TextColumn, allowed: Any) -> TextColumn:
    """The column with only the rows at some addresses (ascending): others are never found."""

    def only(item: Searched, documents: Documents) -> Searched:
        def locate(ids: Any) -> Any:
            found = ids if item.locate is None else item.locate(ids)
            return np.where(np.isin(found, allowed), found, MISSING)

        return Searched(documents, locate)

    others = column.others
    if others is not None:
        assert isinstance(others.documents, MemoryPartition)
        others = only(others, others.documents.among(allowed))
    return replace(column, indexed=tuple(only(item, item.documents) for item in column.indexed), others=others)


def _stored_params(snapshot: Snapshot, segments: Sequence[Segment]) -> TextParams:
    """How the words of an index that cannot be read were cut, as far as the manifest tells."""
    for segment in segments:
        details = decode_details(segment.index.details) if segment.index.details is not None else None
        if isinstance(details, InvertedDetails):
            return params_of_details(details)
    return TextParams.unindexed()


def _indexed(snapshot: Snapshot, segment: Segment, index: Inverted) -> tuple[Searched, ...]:
    known = snapshot.cached(_INDEXED)
    found = known.get(segment.index.uuid)
    if found is None or found[0] is not index:
        parts = tuple(Searched(part, partial(_addresses, snapshot, segment)) for part in index.partitions)
        found = known[segment.index.uuid] = (index, parts)
    return found[1]


def _addresses(snapshot: Snapshot, segment: Segment, ids: Any) -> Any:
    """Where documents are; MISSING for rows that are deleted, moved or not of the segment's fragments."""
    addresses = ids
    if snapshot.manifest.uses_stable_row_ids:
        addresses = row_id_index(snapshot).addresses_of(ids)
    elif (moves := moves_of(snapshot)) is not None:
        addresses = moves.array(ids)
    fragments = [fragment for fragment in snapshot.manifest.fragments if fragment.id in segment.coverage]
    # Physical rows of each covered fragment; all others are one past the last, where no row is.
    rows = np.zeros(max((fragment.id for fragment in fragments), default=-1) + 2, np.uint64)
    rows[[fragment.id for fragment in fragments]] = [fragment.physical_rows for fragment in fragments]
    is_covered = np.zeros(len(rows), np.bool_)
    is_covered[[fragment.id for fragment in fragments]] = True
    owners = np.minimum(addresses >> np.uint64(32), np.uint64(len(rows) - 1)).astype(np.intp)
    living = is_covered[owners]
    if (living & (addresses & np.uint64(0xFFFFFFFF) >= rows[owners])).any():
        raise CorruptFileError("it points at rows that its fragments do not have")
    for fragment in fragments:
        if fragment.deletion_file is not None:
            mine = owners == fragment.id
            deleted = reader_of(snapshot, fragment).deleted
            living[mine] &= ~np.isin(addresses[mine] & np.uint64(0xFFFFFFFF), deleted.astype(np.uint64))
    return np.where(living, addresses, MISSING)


def _others(
    snapshot: Snapshot, name: str, params: TextParams, tokenizer: Tokenizer, covered: frozenset[int]
) -> Searched | None:
    fragments = [fragment for fragment in snapshot.manifest.fragments if fragment.id not in covered]
    if not fragments:
        return None
    found = snapshot.cached(_OTHERS).get(
        (name, params, covered),
        lambda: MemoryPartition(tokenizer, training_batches(snapshot, name, fragments, "_rowaddr")),
    )
    return Searched(found)
