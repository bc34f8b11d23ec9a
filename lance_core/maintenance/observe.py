"""Observe a table from its newest manifest and two listings, whatever its size: no data file and no other manifest is read.

::

    observe(ManagedTable(uri="/t.lance"))
    -> Observation(version=61, num_fragments=60, tiers=(Tier(4, fragments=60, rows=120_000, bytes=...),), ...)
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from lance_core.commit.manifests import list_versions
from lance_core.commit.naming import DATA, data_path
from lance_core.computed.unseen import DeclaredFreshness, declared_freshness
from lance_core.dataset.edit.description import Description, description_of
from lance_core.dataset.indexing.segment_tiers import age_of, covered_rows, segments_to_merge
from lance_core.dataset.maintain.column_merge import plan_snapshot_merges
from lance_core.dataset.maintain.column_merge_plan import ColumnMerge, ColumnMergeOptions
from lance_core.dataset.maintain.compact import plan_snapshot
from lance_core.dataset.maintain.compact_options import CompactionOptions
from lance_core.dataset.maintain.compact_plan import bytes_of
from lance_core.dataset.maintain.compact_tiers import tier_of
from lance_core.dataset.snapshot.snapshot import Snapshot, snapshot_of
from lance_core.errors import LanceError
from lance_core.format.fragments import FragmentList
from lance_core.format.index import IndexMetadata
from lance_core.io.resolve import resolve_store
from lance_core.maintenance.freshness import Freshness, freshness_of
from lance_core.maintenance.policy import ManagedTable, ServiceLevels
from lance_core.maintenance.presence import Presence, check_presence
from lance_core.publish.attempts import list_staged
from lance_core.table.coverage import SYSTEM_INDICES

GB = 10**9
HOURS = 24
DELETED_NEAR_LEVEL = 0.8
MOSTLY_DELETED = 0.5
ENOUGH_OF_ALLOWED = 0.5
MOST_COLUMNS = 200


@dataclass(frozen=True, slots=True)
class Tier:
    """Fragments of one size tier; tier 0 has reached the target size."""

    tier: int
    fragments: int
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class SpreadColumns:
    """Fragments with more data files than the levels allow, and what a merge of their small files takes on: files and
    bytes."""

    fragments: int = 0
    files: int = 0
    bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class Observation:
    """The state of a table. `error` is the reason if nothing else is known.

    `fragments_in` and so on are what a tiered compaction would take on: fragments in and out, rows and bytes. `spread`
    is what a merge of column files would take on, `spread_apart` the part of it that the compaction leaves.
    `unindexed_rows` and `index_segments` are by index name, and so is `index_merges`: how many segments fill a tier.
    `files` compares the files of the version with listings, None where nobody requested it.
    `commits_by_hour` counts those of the last 24 hours, the oldest hour first. `dead_bytes` are in data files that the
    newest version does not refer to, None where the levels do not ask for them. `written_at` is the time of the newest
    commit, `observed_at` that of this look, both in seconds since the epoch. `columns` are the paths of its first fields,
    by which it is found. `declared` says of each declared column how fresh it is known to be. `description` is what people
    say of the table, `freshness` how its own rule compares with its history, None where it has no rule.
    """

    uri: str
    conn_id: str | None = None
    observed_at: float = 0.0
    error: str | None = None
    version: int = 0
    written_at: float = 0.0
    num_rows: int = 0
    physical_rows: int = 0
    num_fragments: int = 0
    num_bytes: int = 0
    tiers: tuple[Tier, ...] = ()
    fragments_in: int = 0
    fragments_out: int = 0
    rows_in: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    spread: SpreadColumns = SpreadColumns()
    spread_apart: SpreadColumns = SpreadColumns()
    unindexed_rows: Mapping[str, int] = field(default_factory=dict)
    index_segments: Mapping[str, int] = field(default_factory=dict)
    index_merges: Mapping[str, int] = field(default_factory=dict)
    num_versions: int = 0
    expired_versions: int = 0
    expired_manifest_bytes: int = 0
    manifest_bytes: int = 0
    dead_bytes: int | None = None
    num_staged: int = 0
    num_dead_attempts: int = 0
    commits_by_hour: tuple[int, ...] = ()
    files: Presence | None = None
    columns: tuple[str, ...] = ()
    declared: tuple[DeclaredFreshness, ...] = ()
    description: Description = field(default_factory=Description)
    freshness: Freshness | None = None

    @property
    def num_small_fragments(self) -> int:
        """Fragments that have not reached the target size."""
        return sum(tier.fragments for tier in self.tiers if tier.tier > 0)

    @property
    def deleted_share(self) -> float:
        """Deleted rows as a share of all physical rows."""
        return (self.physical_rows - self.num_rows) / self.physical_rows if self.physical_rows else 0.0

    @property
    def unindexed_share(self) -> float:
        """The largest share of rows that an index does not cover."""
        return max(self.unindexed_rows.values(), default=0) / self.num_rows if self.num_rows else 0.0

    @property
    def stale_share(self) -> float:
        """The largest share of rows of a declared column that no refresh has seen as they are now."""
        return max((column.stale_rows for column in self.declared), default=0) / self.num_rows if self.num_rows else 0.0

    @property
    def fragments_per_gb(self) -> float:
        """Fragments for each GB of data files."""
        return self.num_fragments / max(self.num_bytes / GB, 1 / GB)

    def to_dict(self) -> dict[str, object]:
        """Plain values."""
        return asdict(self)


def observe(
    table: ManagedTable,
    levels: ServiceLevels | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
    now: float | None = None,
    file_requests: int = 0,
) -> Observation:
    """Return what a table looks like. A store that cannot be reached and a damaged table are observations, too.

    With `file_requests` above 0 its files are compared with listings, too, with at most so many requests more.
    """
    moment = time.time() if now is None else now
    try:
        store = resolve_store(table.uri, storage_options)
        snapshot = snapshot_of(store, storage_options=storage_options)
        return observe_snapshot(table, snapshot, levels, now=moment, file_requests=file_requests)
    except (LanceError, OSError) as error:
        return Observation(
            uri=table.uri, conn_id=table.conn_id, observed_at=moment, error=f"{type(error).__name__}: {error}"
        )


def observe_snapshot(
    table: ManagedTable,
    snapshot: Snapshot,
    levels: ServiceLevels | None = None,
    *,
    now: float | None = None,
    file_requests: int = 0,
) -> Observation:
    """`observe` a table whose newest version is open already. Raises StoreError."""
    levels = levels or ServiceLevels()
    moment = time.time() if now is None else now
    versions = list_versions(snapshot.store)
    waiting = list_staged(snapshot.store)
    fragments = snapshot.manifest.fragments
    physical_rows = sum(item.physical_rows for item in fragments)
    deleted_share = 1 - snapshot.manifest.num_rows / physical_rows if physical_rows else 0.0
    num_bytes = sum(map(bytes_of, fragments))
    plan = plan_snapshot(snapshot, compaction_options(levels, deleted_share=deleted_share, num_bytes=num_bytes))
    rows_in = plan.num_rows
    files_out = [sum(item.num_rows for item in group) // levels.target_rows_per_fragment for group in plan.groups]
    physical_in = sum(item.physical_rows for group in plan.groups for item in group)
    merges = plan_snapshot_merges(snapshot, merge_options(levels)).merges
    rewritten = {item.id for group in plan.groups for item in group}
    unindexed = _unindexed(snapshot)
    expired = versions[: max(0, len(versions) - levels.keep_versions)]
    expired = [entry for entry in expired if entry.modified < moment - levels.keep_seconds]
    return Observation(
        uri=table.uri,
        conn_id=table.conn_id,
        observed_at=moment,
        version=snapshot.version,
        written_at=snapshot.manifest.timestamp_ns / 1e9,
        num_rows=snapshot.manifest.num_rows,
        physical_rows=physical_rows,
        num_fragments=len(fragments),
        num_bytes=num_bytes,
        tiers=_tiers(snapshot, levels),
        fragments_in=sum(map(len, plan.groups)),
        fragments_out=sum(max(1, count) for count in files_out),
        rows_in=rows_in,
        bytes_in=plan.num_bytes,
        bytes_out=int(plan.num_bytes * rows_in / physical_in) if physical_in else 0,
        spread=_spread(merges),
        spread_apart=_spread([merge for merge in merges if merge.fragment.id not in rewritten]),
        unindexed_rows=unindexed,
        index_segments=_segments(snapshot),
        index_merges=_merges(snapshot, unindexed, levels.tier_fanout),
        num_versions=len(versions),
        expired_versions=len(expired),
        manifest_bytes=sum(entry.size for entry in versions),
        expired_manifest_bytes=sum(entry.size for entry in expired),
        dead_bytes=None if levels.max_dead_bytes is None else _dead_bytes(snapshot),
        num_staged=sum(entry.state != "expired" for entry in waiting),
        num_dead_attempts=sum(entry.state == "expired" for entry in waiting),
        commits_by_hour=_by_hour([entry.modified for entry in versions], moment),
        files=check_presence(snapshot, max_requests=file_requests) if file_requests else None,
        columns=tuple(snapshot.manifest.schema.path_of(item.id) for item in snapshot.manifest.schema.fields[:MOST_COLUMNS]),
        declared=declared_freshness(snapshot),
        description=description_of(snapshot.manifest),
        freshness=freshness_of(snapshot, moment),
    )


def compaction_options(levels: ServiceLevels, *, deleted_share: float, num_bytes: int) -> CompactionOptions:
    """The compaction that service levels require, given the share of deleted rows in the whole table and its size.

    Removing deleted rows rewrites those beside them, at a cost of one over the share. As long as the table keeps its level,
    only fragments that are mostly deleted are rewritten for it.
    """
    is_near = deleted_share > DELETED_NEAR_LEVEL * levels.max_deleted_share
    return CompactionOptions(
        strategy="tiered",
        tier_fanout=levels.tier_fanout,
        enough_fragments=int(levels.allowed_fragments(num_bytes) * ENOUGH_OF_ALLOWED),
        target_rows_per_fragment=levels.target_rows_per_fragment,
        materialize_deletions_threshold=levels.max_deleted_share if is_near else MOSTLY_DELETED,
    )


def merge_options(levels: ServiceLevels) -> ColumnMergeOptions:
    """The merge of column files that service levels require. Half of the allowed files are left, so that the next added
    columns do not make the fragment due again at once."""
    most = levels.max_files_per_fragment
    return ColumnMergeOptions(most, max(1, int(most * ENOUGH_OF_ALLOWED)))


def _spread(merges: Sequence[ColumnMerge]) -> SpreadColumns:
    return SpreadColumns(len(merges), sum(len(merge.files) for merge in merges), sum(merge.num_bytes for merge in merges))


def _by_hour(times: Sequence[float], now: float) -> tuple[int, ...]:
    """How many of some moments are in each of the 24 hours before now, the oldest hour first.

    >>> _by_hour([0.0, 3600.0 * 23.5, 3600.0 * 24], 3600.0 * 24)[-2:]
    (0, 2)
    """
    counts = [0] * HOURS
    for moment in times:
        hours_ago = max(int((now - moment) // 3600), 0)
        if hours_ago < HOURS:
            counts[HOURS - 1 - hours_ago] += 1
    return tuple(counts)


def _tiers(snapshot: Snapshot, levels: ServiceLevels) -> tuple[Tier, ...]:
    found: dict[int, list[int]] = {}
    for item in snapshot.manifest.fragments:
        tier = tier_of(item.num_rows, target=levels.target_rows_per_fragment, fanout=levels.tier_fanout)
        sums = found.setdefault(tier, [0, 0, 0])
        for at, value in enumerate((1, item.num_rows, bytes_of(item))):
            sums[at] += value
    return tuple(Tier(tier, *sums) for tier, sums in sorted(found.items()))


def _unindexed(snapshot: Snapshot) -> dict[str, int]:
    covered: dict[str, set[int]] = {}
    for index in snapshot.manifest.indices:
        if index.name not in SYSTEM_INDICES:
            covered.setdefault(index.name, set()).update(index.fragment_bitmap or ())
    rows = {item.id: item.num_rows for item in snapshot.manifest.fragments} if covered else {}
    return {name: sum(count for number, count in rows.items() if number not in ids) for name, ids in covered.items()}


def _segments(snapshot: Snapshot) -> dict[str, int]:
    names = [index.name for index in snapshot.manifest.indices if index.name not in SYSTEM_INDICES]
    return {name: names.count(name) for name in names}


def _merges(snapshot: Snapshot, unindexed: Mapping[str, int], fanout: int) -> dict[str, int]:
    """How many of each index's youngest segments a tiered merge would take, those with none left out."""
    rows = FragmentList.of(snapshot.manifest.fragments).rows_by_id
    segments: dict[str, list[IndexMetadata]] = {}
    for index in sorted(snapshot.manifest.indices, key=age_of):
        if index.name not in SYSTEM_INDICES:
            segments.setdefault(index.name, []).append(index)
    found = {
        name: segments_to_merge(covered_rows(each, rows), unindexed.get(name, 0), fanout=fanout)
        for name, each in segments.items()
    }
    return {name: count for name, count in found.items() if count}


def _dead_bytes(snapshot: Snapshot) -> int:
    live = {data_path(file.path) for item in snapshot.manifest.fragments for file in item.files if file.base_id is None}
    return sum(entry.size for entry in snapshot.store.list(f"{DATA}/") if entry.path not in live)
