"""One table as its newest manifest, its references and its records tell it: what the table page shows at once.

::

    table_page(store, snapshot, seen) -> {"schema": [...], "fragments": {"tiers": [...], "sizes": [...]}, "indices": [...],
                                            "tags": [...], "branches": [...], "staged": [...], "claims": [...]}
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise

from lance_core.commit.naming import INDEX_CHECKSUMS_HINT
from lance_core.dataset.indexing.describe import IndexDescription, describe
from lance_core.dataset.maintain.compact_plan import bytes_of
from lance_core.dataset.refs.branches import list_branches
from lance_core.dataset.refs.tags import list_tags
from lance_core.dataset.snapshot.snapshot import Snapshot, snapshot_of
from lance_core.format.fragment import Fragment
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.maintenance.facts.history import columns_of
from lance_core.maintenance.facts.writers import Json, place_of, shown, writer_of
from lance_core.maintenance.observe import Observation, observe_snapshot
from lance_core.maintenance.policy import ManagedTable, ServiceLevels
from lance_core.publish.attempts import list_staged
from lance_core.publish.history import in_doubt
from lance_core.publish.intent import list_intents
from lance_core.publish.model import StagedEntry
from lance_core.publish.table_id import table_id_of
from lance_core.table.coverage import SYSTEM_INDICES

MB = 10**6
SIZE_BOUNDS: tuple[tuple[str, int, int | None], ...] = (
    ("< 1 MB", 0, MB),
    ("1-8 MB", MB, 8 * MB),
    ("8-64 MB", 8 * MB, 64 * MB),
    ("64-512 MB", 64 * MB, 512 * MB),
    ("> 512 MB", 512 * MB, None),
)
SMALL_BYTES = 8 * MB
DELETED_BOUNDS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
MOST_DELETED = 20
MAX_STAGED = 500


def observed_page(
    table: ManagedTable,
    levels: ServiceLevels,
    *,
    storage_options: Mapping[str, str] | None = None,
    now: float | None = None,
    file_requests: int = 0,
) -> tuple[Observation, Json]:
    """Return a table's observation and its page; `file_requests` as for `observe`. Raises NotFoundError, StoreError,
    FormatError."""
    store = resolve_store(table.uri, storage_options)
    snapshot = snapshot_of(store, storage_options=storage_options)
    seen = observe_snapshot(table, snapshot, levels, now=now, file_requests=file_requests)
    return seen, table_page(store, snapshot, seen)


def table_page(store: Store, snapshot: Snapshot, seen: Observation) -> Json:
    """Return the facts of a version that was opened and observed. Raises StoreError."""
    manifest = snapshot.manifest
    staged = list_staged(store)[:MAX_STAGED]
    return {
        "file_version": manifest.data_storage_version,
        "stable_row_ids": manifest.uses_stable_row_ids,
        "branch": manifest.branch,
        "config": {name: shown(text) for name, text in {**manifest.config, **manifest.table_metadata}.items()},
        "schema": columns_of(manifest.schema),
        "fragments": fragments_page(list(manifest.fragments), seen),
        "indices": _indices(snapshot, seen),
        "declared": [
            {
                **asdict(column),
                "refreshed_by": place_of(column.refreshed_by),
                "stale_share": column.stale_rows / max(seen.num_rows, 1),
            }
            for column in seen.declared
        ],
        "tags": [
            {"name": name, "version": tag.version, "branch": tag.branch} for name, tag in sorted(list_tags(store).items())
        ],
        "branches": _branches(store),
        "staged": [_staged(entry, seen.observed_at) for entry in staged],
        "table_id": table_id_of(store) or None,
        "in_doubt": _in_doubt(store, staged),
        "claims": [
            {
                "commit": claim.commit,
                "identities": list(claim.attempts)[:50],
                "since": claim.since,
                "age": max(seen.observed_at - claim.since, 0.0),
                "alive": claim.is_alive(seen.observed_at),
            }
            for claim in list_intents(store)[:MAX_STAGED]
        ],
    }


def _in_doubt(store: Store, staged: Sequence[StagedEntry]) -> list[Json]:
    """Finished work of which it is unknown whether it was committed; a person settles it."""
    since = {entry.identity: entry.staged.read_version for entry in staged if entry.staged is not None}
    return [{"identity": identity, "version": version} for identity, version in sorted(in_doubt(store, since).items())]


def fragments_page(fragments: Sequence[Fragment], seen: Observation) -> Json:
    """Return fragments by tier, by size and by share of deleted rows."""
    sizes = [bytes_of(item) for item in fragments]
    num_files = sum(len(item.files) for item in fragments)
    deleted = sorted((item for item in fragments if item.num_deleted_rows), key=lambda item: -item.num_deleted_rows)
    return {
        "tiers": [
            {
                "tier": tier.tier,
                "label": f"tier {tier.tier}" if tier.tier else "target size",
                "fragments": tier.fragments,
                "rows": tier.rows,
                "bytes": tier.bytes,
            }
            for tier in seen.tiers
        ],
        "sizes": [_size_class(label, low, high, sizes) for label, low, high in SIZE_BOUNDS],
        "deletions": _by_deletions(deleted),
        "most_deleted": [
            {
                "id": item.id,
                "physical_rows": item.physical_rows,
                "deleted_rows": item.num_deleted_rows,
                "share": item.num_deleted_rows / max(item.physical_rows, 1),
                "bytes": bytes_of(item),
            }
            for item in deleted[:MOST_DELETED]
        ],
        "num_data_files": num_files,
        "files_per_fragment": num_files / len(fragments) if fragments else 0.0,
    }


def _size_class(label: str, low: int, high: int | None, sizes: Iterable[int]) -> Json:
    inside = [size for size in sizes if low <= size and (high is None or size < high)]
    is_small = high is not None and high <= SMALL_BYTES
    return {"label": label, "min": low, "max": high, "fragments": len(inside), "bytes": sum(inside), "small": is_small}


def _by_deletions(deleted: Sequence[Fragment]) -> list[Json]:
    found: list[Json] = []
    for low, high in pairwise(DELETED_BOUNDS):
        inside = [item for item in deleted if low < item.num_deleted_rows / max(item.physical_rows, 1) <= high]
        if inside:
            rows = sum(item.num_deleted_rows for item in inside)
            found.append({"label": f"{low:.0%} to {high:.0%}", "fragments": len(inside), "deleted_rows": rows})
    return found


def _indices(snapshot: Snapshot, seen: Observation) -> list[Json]:
    sealed: dict[str, bool] = {}
    for index in snapshot.manifest.indices:
        if index.name not in SYSTEM_INDICES:
            sealed[index.name] = sealed.get(index.name, True) and INDEX_CHECKSUMS_HINT in index.metadata
    return [_index(item, snapshot.version, seen, sealed) for item in describe(snapshot)]


def _index(item: IndexDescription, version: int, seen: Observation, sealed: Mapping[str, bool]) -> Json:
    unindexed = seen.unindexed_rows.get(item.name, 0)
    built_on = min((segment.dataset_version_at_last_update for segment in item.segments), default=version)
    created = max((segment.created_at for segment in item.segments if segment.created_at is not None), default=None)
    return {
        "name": item.name,
        "type": item.index_type,
        "columns": item.field_names,
        "segments": len(item.segments),
        "coverage": 1 - unindexed / seen.num_rows if seen.num_rows else 1.0,
        "unindexed_rows": unindexed,
        "num_bytes": item.total_size_bytes,
        "dataset_version": built_on,
        "stale_versions": max(version - built_on, 0),
        "created_at": None if created is None else created / 1000,
        "sealed": sealed.get(item.name, False),
    }


def _branches(store: Store) -> list[Json]:
    return [
        {
            "name": name,
            "parent_branch": branch.parent_branch,
            "parent_version": branch.parent_version,
            "created_at": _seconds(branch.created_at),
        }
        for name, branch in sorted(list_branches(store).items())
    ]


def _seconds(moment: object) -> float | None:
    if isinstance(moment, dt.datetime):
        return moment.timestamp()
    return float(moment) if isinstance(moment, int | float) else None


def _staged(entry: StagedEntry, now: float) -> Json:
    kind = entry.spec.get("kind")
    staged = entry.staged
    operation = staged.operation if staged is not None else None
    return {
        "identity": entry.identity,
        "attempt": entry.attempt,
        "state": entry.state,
        "kind": kind if isinstance(kind, str) else operation,
        "read_version": entry.read_version,
        "started": entry.started or None,
        "lease_until": entry.lease_until or None,
        "age": max(now - entry.started, 0.0) if entry.started else None,
        "rows": None if staged is None else staged.num_rows,
        "bytes": None if staged is None else staged.num_bytes,
        "writer": writer_of(entry.identity, entry.asked),
        "actions": ["abort"] if entry.state != "running" else [],
    }
