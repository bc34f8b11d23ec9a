"""Use indices to answer parts of a filter before any row is read.

::

    a = 3 AND b > 1, an index on a over fragments 0, 1 of 0, 1, 2
    fragment 0   rows {17} may match, b > 1 is left to test       fragment 1   nothing, it is not read
    fragment 2   not covered: scanned with the whole filter

Only what is in a segment's fragment bitmap is trusted, and only of fragments that live; deleted rows are masked by the
scan. A segment that cannot be read is left out with a warning, or is an error on request (`IndexPolicy.strict`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from lance_core.arrow.to_arrow import value_type_of
from lance_core.dataset.indexing.fragment_reuse import moves_of
from lance_core.dataset.indexing.old_vector_details import with_details
from lance_core.dataset.indexing.served import Served, Use
from lance_core.dataset.indexing.verify import (
    UNREADABLE,
    ensure_verified,
    may_open,
    opened_from,
    pinned_folder,
    recheck_rows,
    warn_skipped,
)
from lance_core.dataset.scan.index_policy import DEFAULT_POLICY, IndexPolicy
from lance_core.dataset.scan.plan import FragmentTask, Picked, ScanPlan, plan_scan
from lance_core.dataset.snapshot.fragment_reader import reader_of
from lance_core.dataset.snapshot.row_id_index import row_id_index
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import CorruptFileError, FilterError
from lance_core.expr import Expr, ast
from lance_core.format.fragment import Fragment
from lance_core.format.fragments import FragmentList
from lance_core.format.index import IndexMetadata
from lance_core.format.schema import column_of
from lance_core.index.base import Answer, IndexKind, OpenIndex
from lance_core.index.over_json import is_searched, may_hold_ids
from lance_core.index.registry import KINDS, holds_list_elements, kind_by_details
from lance_core.index.scalar.btree import BTree
from lance_core.index.scalar.zones import Zoned
from lance_core.rowids.bitmap import bitmap_array
from lance_core.rowids.index import MISSING
from lance_core.rowids.selection import AddressSet, address_set
from lance_core.table.coverage import FRAGMENT_REUSE, SYSTEM_INDICES, is_address_based

_LOG = logging.getLogger("lance_core.index")


@dataclass(frozen=True)
class _Found:
    """What is known about a test: `rows` of the `coverage` may pass it, no others of it do."""

    coverage: frozenset[int]
    rows: AddressSet
    is_exact: bool
    uses: tuple[Use, ...] = ()


@dataclass(frozen=True)
class Segment:
    """A segment that can be searched."""

    index: IndexMetadata
    kind: IndexKind
    coverage: frozenset[int]


def usable_segments(snapshot: Snapshot) -> dict[str, list[Segment]]:
    """Column -> segments over live fragments that this release can search. The rest is skipped with a log line."""
    manifest = snapshot.manifest
    live = frozenset(FragmentList.of(manifest.fragments).ids)
    deferred = any(index.name == FRAGMENT_REUSE for index in manifest.indices) and moves_of(snapshot) is None
    found: dict[str, list[Segment]] = {}
    for entry in manifest.indices:
        index = with_details(snapshot, entry) if entry.details is None else entry
        reason, kind = _unusable(index, deferred=deferred, stable=manifest.uses_stable_row_ids)
        if index.name in SYSTEM_INDICES or kind is None or reason:
            if reason and not _is_of_vectors(index):
                _LOG.info("index %s (%s) is not used: %s", index.name, index.uuid, reason)
            continue
        coverage = live & (index.fragment_bitmap or frozenset())
        if coverage and index.fields[0] in manifest.schema.by_id:
            segment = Segment(index, kind, coverage)
            found.setdefault(column_of(manifest.schema, index.fields[0]), []).append(segment)
    return found


def _is_of_vectors(index: IndexMetadata) -> bool:
    """Those serve `nearest`, not filters: nothing to tell."""
    return index.details is not None and index.details.kind == "VectorIndexDetails"


def _unusable(index: IndexMetadata, *, deferred: bool, stable: bool) -> tuple[str, IndexKind | None]:
    if index.name in SYSTEM_INDICES:
        return "", None
    kind = kind_by_details(index.details.kind) if index.details is not None else None
    if kind is None or index.details is None:
        return f"its type {index.details.kind if index.details else 'unknown'} is not supported", None
    if (index.index_version or 0) > kind.version:
        return f"its version {index.index_version} is newer than {kind.version}", kind
    if len(index.fields) != 1 or index.fragment_bitmap is None:
        return "it is on several fields or has no fragment bitmap", kind
    if not is_searched(index.details):
        return "it is over JSON, with a target index that is not supported", kind
    if holds_list_elements(index.details):
        return "its documents are elements of lists, which is not supported", kind
    if stable and not may_hold_ids(index.details):
        return "it may hold row addresses although the table has stable row ids", kind
    if deferred and (is_address_based(index) or not stable):
        return "rows were moved since it was built, and its row addresses were not remapped", kind
    return "", kind


def open_segment(snapshot: Snapshot, segment: Segment, trust: IndexPolicy = DEFAULT_POLICY) -> OpenIndex:
    """The open segment, shared by all snapshots of the process that have it. Raises LanceError."""
    index, schema = segment.index, snapshot.manifest.schema
    folder = pinned_folder(snapshot, index, trust)
    item = schema.by_id[index.fields[0]]
    path = tuple(column_of(schema, item.id).split("."))

    def make() -> tuple[OpenIndex, int]:
        return segment.kind.open(folder, value_type_of(schema, item), path), sum(folder.sizes.values()) // 8 + 4096

    return opened_from(folder, ("open", path), make)


@dataclass
class _Search:
    snapshot: Snapshot
    segments: Mapping[str, Sequence[Segment]]
    trust: IndexPolicy
    unplaced: set[int] = field(default_factory=set)
    """Fragments that some segment covers and does not answer for."""

    def ask(self, part: Expr) -> _Found | None:
        """What indices know about a test, however it is put together."""
        columns = ast.columns_of(part)
        if len(columns) == 1 and columns[0] in self.segments:
            found = self._ask_column(part, columns[0])
            if found is not None:
                return found
        if isinstance(part, ast.Or):
            return _either([self.ask(item) for item in part.items])
        if isinstance(part, ast.And):
            return _both([self.ask(item) for item in part.items])
        return None

    def ask_whole(self, part: Expr) -> _Found | None:
        """What one index of the only column knows about a test as a whole."""
        (column,) = ast.columns_of(part)
        return self._ask_column(part, column)

    def _ask_column(self, part: Expr, column: str) -> _Found | None:
        by_name: dict[str, list[Segment]] = {}
        for kind in KINDS:
            for segment in self.segments[column]:
                if segment.kind is kind and kind.can_answer(part):
                    by_name.setdefault(segment.index.name, []).append(segment)
        for name, segments in by_name.items():
            found = [answered for segment in segments if (answered := self._answer(segment, part)) is not None]
            if found:
                return _merged(name, column, found)
        return None

    def _answer(self, segment: Segment, part: Expr) -> tuple[Segment, Answer] | None:
        """What a segment finds, and for which fragments."""
        index = segment.index
        try:
            if not may_open(self.snapshot, index, segment.coverage, self.trust):
                return None
            opened = open_segment(self.snapshot, segment, self.trust)
            answer = opened.search(part)
            if answer is None:
                return None
            segment = self._held(segment, opened)
            is_known = ensure_verified(self.snapshot, index, segment.coverage, opened, self.trust)
            rows = answer.rows
            if not is_known:
                self._check_fragments(rows, index)
            if self.snapshot.manifest.uses_stable_row_ids and not is_address_based(index):
                rows = self._translated(rows)
            elif (moves := moves_of(self.snapshot)) is not None:
                rows = moves.rows(rows)
            rows = rows.restricted(segment.coverage)
            self._check(rows)
            is_exact = answer.is_exact and (is_known or recheck_rows(self.snapshot, part, rows))
            return segment, Answer(rows, is_exact)
        except FilterError:
            return None
        except UNREADABLE as error:
            warn_skipped(self.snapshot, index, error, self.trust)
            return None

    def _held(self, segment: Segment, opened: OpenIndex) -> Segment:
        """The segment without fragments whose rows it does not hold, whatever its bitmap says."""
        if not isinstance(opened, (Zoned, BTree)):
            return segment
        fragments = FragmentList.of(self.snapshot.manifest.fragments).pick(segment.coverage)
        if isinstance(opened, BTree):
            live = sum(fragment.num_rows for fragment in fragments.values())
            if opened.num_rows < live:
                raise CorruptFileError(f"it holds {opened.num_rows} rows, the fragments that it covers have {live}")
            return segment
        missing = {number for number, fragment in fragments.items() if not self._reaches(opened, fragment)}
        if missing:
            self.unplaced |= missing
            told = "index %s (%s) is not used for %d fragments: its zones end before their rows, or may have counted others"
            _LOG.info(told, segment.index.name, segment.index.uuid, len(missing))
        return replace(segment, coverage=segment.coverage - missing)

    def _reaches(self, opened: Zoned, fragment: Fragment) -> bool:
        """Whether the zones of a fragment are where they say, up to its last row."""
        end = opened.ends.get(fragment.id, 0)
        if end >= fragment.physical_rows or not opened.are_offsets:
            return end == fragment.physical_rows
        deleted = reader_of(self.snapshot, fragment).deleted
        return int((deleted >= end).sum()) == fragment.physical_rows - end

    def _check_fragments(self, rows: AddressSet, index: IndexMetadata) -> None:
        """No row is in a fragment that there never was; row ids have no fragments."""
        manifest = self.snapshot.manifest
        most = max(rows.fragments, default=0)
        by_address = not manifest.uses_stable_row_ids or is_address_based(index)
        if by_address and manifest.max_fragment_id is not None and most > manifest.max_fragment_id:
            raise CorruptFileError(
                f"it points at a row of fragment {most}, but the largest fragment id is {manifest.max_fragment_id}"
            )

    def _check(self, rows: AddressSet) -> None:
        named = FragmentList.of(self.snapshot.manifest.fragments).pick(rows.fragments.keys())
        sizes = {number: fragment.physical_rows for number, fragment in named.items()}
        for fragment, here in rows.fragments.items():
            if here is not None and len(here) and here.max() >= sizes[fragment]:
                raise CorruptFileError(
                    f"it points at row {here.max()} of fragment {fragment}, which has only {sizes[fragment]} rows"
                )

    def _translated(self, rows: AddressSet) -> AddressSet:
        """Addresses of stable row ids; ids of rows that are gone are left out."""
        addresses = row_id_index(self.snapshot).addresses_of(rows.to_array())
        return address_set(addresses[addresses != MISSING])


def _merged(name: str, column: str, found: Sequence[tuple[Segment, Answer]]) -> _Found:
    coverage, rows, is_exact = frozenset[int](), AddressSet(), True
    for segment, answer in found:
        coverage |= segment.coverage
        rows = rows | answer.rows
        is_exact = is_exact and answer.is_exact
    use = Use(name, found[0][0].kind.title, (column,), is_exact, coverage)
    return _Found(coverage, rows, is_exact, (use,))


def _either(items: Sequence[_Found | None]) -> _Found | None:
    known = [item for item in items if item is not None]
    if len(known) < len(items):
        return None
    coverage = frozenset.intersection(*(item.coverage for item in known))
    rows = AddressSet()
    for item in known:
        rows = rows | item.rows
    return _found(coverage, rows, known, is_exact=all(item.is_exact for item in known))


def _both(items: Sequence[_Found | None]) -> _Found | None:
    known = [item for item in items if item is not None]
    if not known:
        return None
    coverage = frozenset.intersection(*(item.coverage for item in known))
    rows = known[0].rows
    for item in known[1:]:
        rows = rows & item.rows
    return _found(coverage, rows, known, is_exact=len(known) == len(items) and all(item.is_exact for item in known))


def _found(coverage: frozenset[int], rows: AddressSet, parts: Sequence[_Found], *, is_exact: bool) -> _Found | None:
    if not coverage:
        return None
    uses = tuple(use for part in parts for use in part.uses)
    return _Found(coverage, rows.restricted(coverage), is_exact, uses)


def searched(snapshot: Snapshot, plan: ScanPlan, *, trust: IndexPolicy, fast: bool) -> Served:
    """The plan with what indices know of its filter; the same plan when no index helps.

    `fast` skips fragments that the indices used do not cover, unless no index helps.
    """
    segments = usable_segments(snapshot)
    if plan.filter is None or not segments:
        return Served(plan)
    search = _Search(snapshot, segments, trust)
    parts = [pair for group in _by_column(ast.conjuncts(plan.filter), segments) for pair in _asked(search, group)]
    known = [found for _, found in parts if found is not None]
    if not known:
        return Served(plan)
    plans: dict[tuple[bool, ...], ScanPlan] = {}
    tasks: list[FragmentTask] = []
    covered = frozenset[int].intersection(*(found.coverage for found in known)) | search.unplaced
    for task in plan.tasks:
        if not fast or task.fragment.id in covered:
            tasks.extend(_with_rows(snapshot, plan, task, parts, plans))
    return Served(replace(plan, tasks=tuple(tasks)), tuple(use for found in known for use in found.uses))


def _by_column(parts: Sequence[Expr], segments: Mapping[str, object]) -> list[list[Expr]]:
    """Tests of one indexed column together (`a >= 1 AND a < 5` is one look-up), others alone."""
    groups: dict[str, list[Expr]] = {}
    alone: list[list[Expr]] = []
    for part in parts:
        columns = ast.columns_of(part)
        if len(columns) == 1 and columns[0] in segments:
            groups.setdefault(columns[0], []).append(part)
        else:
            alone.append([part])
    return [*groups.values(), *alone]


def _asked(search: _Search, group: Sequence[Expr]) -> list[tuple[Expr, _Found | None]]:
    if len(group) > 1:
        whole = ast.And(tuple(group))
        found = search.ask_whole(whole)
        if found is not None:
            return [(whole, found)]
    return [(part, search.ask(part)) for part in group]


def _with_rows(
    snapshot: Snapshot,
    plan: ScanPlan,
    task: FragmentTask,
    parts: Sequence[tuple[Expr, _Found | None]],
    plans: dict[tuple[bool, ...], ScanPlan],
) -> Sequence[FragmentTask]:
    """The task restricted to rows that may match: itself when nothing is known, nothing when there are none."""
    here = task.fragment.id
    left = tuple(found is None or here not in found.coverage or not found.is_exact for _, found in parts)
    rows = AddressSet({here: None})
    is_known = False
    for _, found in parts:
        if found is not None and here in found.coverage:
            is_known = True
            rows = rows & found.rows
    if not is_known:
        return (task,)
    if here not in rows.fragments:
        return ()
    picked = rows.fragments[here]
    if picked is None:
        return (task,)
    if left not in plans:
        residual = tuple(part for (part, _), stays in zip(parts, left, strict=True) if stays)
        expr = ast.And(residual) if len(residual) > 1 else residual[0] if residual else None
        plans[left] = plan_scan(snapshot.manifest.schema, (), plan.projection, filter=expr)
    offsets = bitmap_array(picked).astype(np.int64)
    return (replace(task, picked=Picked(offsets, plans[left])),)
