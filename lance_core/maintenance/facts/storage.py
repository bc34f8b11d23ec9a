"""The bytes below a table by kind: needed by the newest version, only by older ones, staged, unreferenced, metadata.

One listing of every folder and a look at each manifest; no data file is read. What a listing shows beyond `MAX_FILES` is
counted no more, and `truncated` says so.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from itertools import islice

from lance_core.commit import naming
from lance_core.commit.manifests import OpenVersion, list_versions, open_or_none
from lance_core.commit.references import is_referenced, referenced_files
from lance_core.dataset.versions.cleanup import plan_cleanup
from lance_core.errors import LanceError
from lance_core.io.parallel import each
from lance_core.io.store import Store, StoreEntry
from lance_core.maintenance.facts.writers import Json
from lance_core.publish.attempts import list_staged

MAX_FILES = 200_000
MAX_VERSIONS = 500
LABELS: Mapping[str, str] = {
    "live": "newest version",
    "index": "indices of the newest version",
    "older": "older versions",
    "staged": "staged and running work",
    "stranded": "no version refers to them",
    "metadata": "manifests, transactions, records",
}


def storage_page(
    store: Store, *, keep_seconds: float, keep_versions: int, storage_options: Mapping[str, str] | None = None
) -> Json:
    """Return bytes and files by kind, and how much a cleanup could free now. Raises NotFoundError, StoreError."""
    entries = [*islice(store.list(""), MAX_FILES + 1)]
    truncated = len(entries) > MAX_FILES
    versions = [entry.version for entry in list_versions(store)]
    opened = [item for item in each(store, versions[-MAX_VERSIONS:], open_or_none) if item is not None]
    newest = _paths(opened[-1:])
    older = _paths(opened[:-1])
    attempts = [entry.attempt for entry in list_staged(store)]
    sums = {kind: [0, 0] for kind in LABELS}
    for entry in entries[:MAX_FILES]:
        kind = _kind(entry, newest, older, attempts)
        sums[kind][0] += 1
        sums[kind][1] += entry.size
    return {
        "kinds": [
            {"kind": kind, "label": LABELS[kind], "files": files, "bytes": size} for kind, (files, size) in sums.items()
        ],
        "total_bytes": sum(size for _, size in sums.values()),
        "num_files": len(entries[:MAX_FILES]),
        "truncated": truncated or len(versions) > MAX_VERSIONS,
        "collectable_bytes": _collectable(store, keep_seconds, keep_versions, storage_options),
    }


def _paths(opened: Iterable[OpenVersion]) -> frozenset[str]:
    return frozenset(path for item in opened for path in referenced_files(item.manifest))


def _kind(entry: StoreEntry, newest: frozenset[str], older: frozenset[str], attempts: Iterable[str]) -> str:
    folder = entry.path.partition("/")[0]
    if folder not in (naming.DATA, naming.DELETIONS, naming.INDICES):
        return "metadata"
    if is_referenced(entry.path, newest):
        return "index" if folder == naming.INDICES else "live"
    if is_referenced(entry.path, older):
        return "older"
    return "staged" if any(naming.is_of_attempt(entry.path, attempt) for attempt in attempts) else "stranded"


def _collectable(
    store: Store, keep_seconds: float, keep_versions: int, storage_options: Mapping[str, str] | None
) -> int | None:
    """Bytes that a cleanup by the service levels would free; None if it is unknown."""

    try:
        plan = plan_cleanup(
            store,
            older_than=dt.timedelta(seconds=keep_seconds),
            retain_versions=keep_versions,
            error_if_tagged_old_versions=False,
            storage_options=storage_options,
        )
    except LanceError:
        return None
    return plan.stats.bytes_removed
