"""What happens to index entries when fragments and fields change (FORMAT D.5).

    fragment 3 got a new column file for field 7     ->  3 leaves the bitmaps of indices on field 7
    fragments 1, 2 became fragment 9 (same rows)     ->  {0, 1, 2} becomes {0, 9}, if the index can follow

A bitmap of None means that nobody knows which fragments an index covers; such entries are left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace

from lance_core.errors import InputError
from lance_core.format.index import IndexMetadata

FRAGMENT_REUSE = "__lance_frag_reuse"
MEM_WAL = "__lance_mem_wal"
SYSTEM_INDICES = (FRAGMENT_REUSE, MEM_WAL)
# These speak of addresses even when the table has stable row ids; a B-tree does from index version 1 on.
_ADDRESS_BASED = {"ZoneMapIndexDetails": 0, "BloomFilterIndexDetails": 0, "BTreeIndexDetails": 1}


def is_address_based(index: IndexMetadata) -> bool:
    """Whether it refers to row addresses whatever the table does."""
    if index.details is None or index.details.kind not in _ADDRESS_BASED:
        return False
    return (index.index_version or 0) >= _ADDRESS_BASED[index.details.kind]


def fields_of(indices: Iterable[IndexMetadata]) -> frozenset[int]:
    """Fields that any of the indices keys or carries."""
    return frozenset(field for index in indices for field in (*index.fields, *index.covering_fields))


def depends_on(index: IndexMetadata, fields: Set[int]) -> bool:
    """Whether the index keys or carries one of the fields."""
    return not fields.isdisjoint(index.fields) or not fields.isdisjoint(index.covering_fields)


def without_fragments(index: IndexMetadata, fragment_ids: Set[int]) -> IndexMetadata:
    """The index with those fragments taken out of its bitmap."""
    if index.fragment_bitmap is None or index.fragment_bitmap.isdisjoint(fragment_ids):
        return index
    return replace(index, fragment_bitmap=index.fragment_bitmap - fragment_ids)


def prune_fields(indices: Iterable[IndexMetadata], fragment_ids: Set[int], fields: Set[int]) -> list[IndexMetadata]:
    """Take fragments out of the bitmaps of all indices that depend on the fields."""
    return [without_fragments(index, fragment_ids) if depends_on(index, fields) else index for index in indices]


def prune_changed_files(
    indices: Iterable[IndexMetadata],
    before: Mapping[int, Mapping[int, str]],
    after: Mapping[int, Mapping[int, str]],
) -> list[IndexMetadata]:
    """Take a fragment out of a bitmap when the file that holds an indexed field of it is another one.

    `before` and `after`: fragment id -> field id -> path of the file that holds it.
    """
    pruned = []
    for index in indices:
        keyed = (*index.fields, *index.covering_fields)
        changed = {
            fragment_id
            for fragment_id in index.fragment_bitmap or ()
            if fragment_id in before
            and any(before[fragment_id].get(field) != after.get(fragment_id, {}).get(field) for field in keyed)
        }
        pruned.append(without_fragments(index, changed))
    return pruned


def extend_coverage(
    indices: Iterable[IndexMetadata], new_ids: Set[int], source_ids: Set[int], fields: Set[int]
) -> list[IndexMetadata]:
    """Moved rows stay indexed where their values did not change and all the fragments they came from were covered."""
    extended = []
    for index in indices:
        bitmap = index.fragment_bitmap
        follows = bitmap is not None and source_ids <= bitmap and not depends_on(index, fields)
        if bitmap is not None and follows and not is_address_based(index):
            extended.append(replace(index, fragment_bitmap=bitmap | new_ids))
        else:
            extended.append(index)
    return extended


def after_rewrite(
    index: IndexMetadata,
    old_ids: Set[int],
    new_ids: Set[int],
    *,
    is_rewritten: bool,
    is_deferred: bool,
    stable_row_ids: bool,
) -> IndexMetadata:
    """The entry after the rows of `old_ids` moved into `new_ids`.

    A segment follows when its addresses were translated, or when it refers to stable ids. With stable ids, one that speaks
    of addresses and was not translated loses the old fragments; without, only its live fragments count. When translating is
    deferred, segments that cover all of the old fragments follow: they are read through the reuse index from then on.
    """
    bitmap = index.fragment_bitmap
    if index.name in SYSTEM_INDICES or (bitmap is None and not is_rewritten):
        return index
    if is_rewritten or (stable_row_ids and not is_address_based(index)):
        return replace(index, fragment_bitmap=_moved(index, old_ids, new_ids))
    if is_deferred and bitmap is not None and old_ids <= bitmap:
        return replace(index, fragment_bitmap=(bitmap - old_ids) | new_ids)
    return without_fragments(index, old_ids) if stable_row_ids else index


def _moved(index: IndexMetadata, old_ids: Set[int], new_ids: Set[int]) -> frozenset[int]:
    bitmap = index.fragment_bitmap
    if bitmap is None:
        raise InputError(
            f"index {index.name!r} ({index.uuid}) has no fragment bitmap, so it cannot be remapped by a rewrite"
        )
    covered = bitmap & old_ids
    if not covered:
        return bitmap
    if covered != old_ids:
        missing = sorted(old_ids - bitmap)
        raise InputError(
            f"a rewrite group mixes fragments that index {index.name!r} covers with {missing}, which it does not",
            cure="Plan groups that are completely inside or completely outside every index.",
        )
    return (bitmap - old_ids) | new_ids


def retain_relevant(indices: Sequence[IndexMetadata], *, field_ids: Set[int], fragment_ids: Set[int]) -> list[IndexMetadata]:
    """Drop indices on vanished fields, and segments that cover nothing while another one of that name does."""
    live = [index for index in indices if index.name in SYSTEM_INDICES or all(field in field_ids for field in index.fields)]
    by_name: dict[str, list[IndexMetadata]] = {}
    for index in live:
        by_name.setdefault(index.name, []).append(index)
    keep: set[str] = set()
    for name, segments in by_name.items():
        keep.update(index.uuid for index in (segments if name in SYSTEM_INDICES else _worth_keeping(segments, fragment_ids)))
    return [index for index in live if index.uuid in keep]


def _worth_keeping(segments: Sequence[IndexMetadata], fragment_ids: Set[int]) -> Sequence[IndexMetadata]:
    filled = [index for index in segments if index.fragment_bitmap and not index.fragment_bitmap.isdisjoint(fragment_ids)]
    if filled:
        return filled
    # An index that covers nothing still says how to build itself again.
    return (min(segments, key=lambda index: index.dataset_version),)
