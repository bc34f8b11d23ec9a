"""The fragment reuse index: the new addresses of rows after compactions that did not remap the indices.

::

    group {0, 1} -> {4}, living old addresses 0:1 0:2 1:0      0:1 -> 4:0   0:2 -> 4:1   1:0 -> 4:2      others are gone
    moves = moves_of(snapshot)      moves.array(addresses)      moves.rows(address set)

Its coverage half is read when a manifest is decoded; this is the half about addresses. (Spec: FORMAT D.5, E.2.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lance_core.commit.naming import index_uuid as new_index_uuid
from lance_core.dataset.snapshot.deletion_vectors import living_offsets
from lance_core.dataset.snapshot.snapshot import CacheSlot, Snapshot
from lance_core.errors import CorruptFileError
from lance_core.format.fragment import Fragment
from lance_core.format.index import IndexMetadata
from lance_core.format.index_details import FragmentDigest, ReuseDetails, ReuseGroup, ReuseVersion
from lance_core.rowids.index import MISSING
from lance_core.rowids.selection import AddressSet, address_set, decode_address_treemap, encode_address_treemap
from lance_core.table.coverage import FRAGMENT_REUSE, SYSTEM_INDICES
from lance_core.table.moment import now_ns
from lance_core.table.operations.rewrite import RewriteGroup
from lance_core.wire.index import decode_details, encode_details

_SHIFT, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


@dataclass(frozen=True, eq=False)
class _Move:
    """One group: old fragments, the old addresses of rows that were kept (ascending), and their new ones.

    `version` is the table's before they moved, `firsts` where in `new` each new fragment begins.
    """

    version: int
    firsts: dict[int, int]
    old: Any
    old_sizes: dict[int, int]
    kept: Any
    new: Any


@dataclass(frozen=True, eq=False)
class Moves:
    """All moves, the oldest first."""

    steps: tuple[_Move, ...]

    def array(self, addresses: Any) -> Any:
        """The current addresses; MISSING for rows that a compaction dropped."""
        found = addresses
        for step in self.steps:
            moved = np.isin(found >> _SHIFT, step.old)
            if not moved.any():
                continue
            wanted = found[moved]
            places = np.minimum(np.searchsorted(step.kept, wanted), max(len(step.kept) - 1, 0))
            known = step.kept[places] == wanted if len(step.kept) else np.zeros(len(wanted), np.bool_)
            targets = np.full(len(wanted), MISSING, np.uint64)
            targets[known] = step.new[places[known]]
            found = found.copy()
            found[moved] = targets
        return found

    def before(self, addresses: Any, version: int) -> Any:
        """The addresses that rows of today had in a version: where a segment built of it has them."""
        found = addresses
        for step in reversed(self.steps):
            if step.version < version:
                continue
            for fragment, first in step.firsts.items():
                moved = found >> _SHIFT == fragment
                if moved.any():
                    found = found.copy()
                    found[moved] = step.kept[first + (found[moved] & _LOW).astype(np.int64)]
        return found

    def rows(self, rows: AddressSet) -> AddressSet:
        """The same rows at their addresses of today."""
        for step in self.steps:
            held = {fragment: part for fragment, part in rows.fragments.items() if fragment in step.old_sizes}
            if not held:
                continue
            stays = AddressSet({fragment: part for fragment, part in rows.fragments.items() if fragment not in held})
            moved = Moves((step,)).array(AddressSet(held).resolved(step.old_sizes).to_array())
            rows = stays | address_set(moved[moved != MISSING])
        return rows


def reuse_index(snapshot: Snapshot) -> IndexMetadata | None:
    """The entry of the reuse index, if the version has one."""
    return next((index for index in snapshot.manifest.indices if index.name == FRAGMENT_REUSE), None)


def reuse_details(snapshot: Snapshot) -> ReuseDetails | None:
    """The content of the reuse index; None when there is none, or it is in a file or a form this release does not read."""
    index = reuse_index(snapshot)
    details = decode_details(index.details) if index is not None and index.details is not None else None
    if not isinstance(details, ReuseDetails) or details.external is not None or details.transitions:
        return None
    return details


def moves_of(snapshot: Snapshot) -> Moves | None:
    """Where rows went; None if it is unknown. Raises CorruptFileError."""
    return snapshot.cached(_MOVES)


def _read_moves(snapshot: Snapshot) -> Moves | None:
    details = reuse_details(snapshot)
    if details is None:
        return None
    return Moves(tuple(_move(group, item.dataset_version) for item in details.versions for group in item.groups))


_MOVES = CacheSlot(_read_moves)


def _move(group: ReuseGroup, version: int) -> _Move:
    moved = decode_address_treemap(group.changed_row_addresses, what="a group of the reuse index")
    sizes = [item.physical_rows for item in group.new_fragments]
    num_moved = sum(0 if rows is None else len(rows) for rows in moved.fragments.values())
    if sum(sizes) != num_moved:  # before memory is taken for a claim
        raise CorruptFileError(f"the fragment reuse index moves {num_moved} rows into fragments of {sum(sizes)} rows")
    kept = moved.to_array()
    parts = [np.arange(item.physical_rows, dtype=np.uint64) | np.uint64(item.id << 32) for item in group.new_fragments]
    new = np.concatenate(parts) if parts else np.empty(0, np.uint64)
    old_sizes = {item.id: item.physical_rows for item in group.old_fragments}
    ends = np.cumsum([0, *sizes]).tolist()
    firsts = {item.id: first for item, first in zip(group.new_fragments, ends, strict=False)}
    return _Move(version, firsts, np.array(sorted(old_sizes), np.uint64), old_sizes, kept, new)


def deferred_index(snapshot: Snapshot, groups: Sequence[RewriteGroup]) -> IndexMetadata:
    """The reuse index extended by the groups."""
    before = reuse_details(snapshot)
    old = reuse_index(snapshot)
    if old is not None and before is None:
        raise CorruptFileError("the fragment reuse index of this version has a layout that this release cannot extend")
    written = tuple(_group(snapshot, group) for group in groups)
    versions = (*(before.versions if before is not None else ()), ReuseVersion(snapshot.version, written))
    bitmap = {fragment.id for group in groups for fragment in group.new_fragments}
    if old is not None and old.fragment_bitmap is not None:
        gone = {fragment.id for group in groups for fragment in group.old_fragments}
        bitmap |= old.fragment_bitmap - gone
    return _entry(snapshot, ReuseDetails(versions), frozenset(bitmap))


def _entry(snapshot: Snapshot, details: ReuseDetails, bitmap: frozenset[int]) -> IndexMetadata:
    return IndexMetadata(
        uuid=new_index_uuid(None),
        name=FRAGMENT_REUSE,
        fields=(),
        dataset_version=snapshot.version,
        fragment_bitmap=bitmap,
        details=encode_details(details),
        index_version=0,
        created_at=now_ns() // 1_000_000,
    )


def _group(snapshot: Snapshot, group: RewriteGroup) -> ReuseGroup:
    parts = [
        living_offsets(snapshot, fragment).astype(np.uint64) | np.uint64(fragment.id << 32)
        for fragment in group.old_fragments
    ]
    changed = encode_address_treemap(address_set(np.concatenate(parts)), runs=True)
    return ReuseGroup(changed, _digests(group.old_fragments), _digests(group.new_fragments))


def _digests(fragments: Sequence[Fragment]) -> tuple[FragmentDigest, ...]:
    return tuple(FragmentDigest(item.id, item.physical_rows, item.physical_rows - item.num_rows) for item in fragments)


def behind(snapshot: Snapshot, index: IndexMetadata) -> bool:
    """Whether a segment was built before rows moved that only the reuse index can follow."""
    details = reuse_details(snapshot)
    if details is None or index.name in SYSTEM_INDICES:
        return False
    return any(index.dataset_version <= version.dataset_version for version in details.versions)


def trimmed(snapshot: Snapshot, remaining: Sequence[IndexMetadata]) -> IndexMetadata | None:
    """The reuse index without the moves that all remaining indices were built after; None when none is left."""
    details, old = reuse_details(snapshot), reuse_index(snapshot)
    if details is None or old is None:
        return old
    oldest = min((index.dataset_version for index in remaining if index.name not in SYSTEM_INDICES), default=None)
    versions = tuple(item for item in details.versions if oldest is not None and oldest <= item.dataset_version)
    if not versions:
        return None
    return (
        old if versions == details.versions else _entry(snapshot, ReuseDetails(versions), old.fragment_bitmap or frozenset())
    )
