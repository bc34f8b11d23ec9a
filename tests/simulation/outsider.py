"""A writer outside this project: it knows the format and the official library's rules, but does not know our records.

::

    append, delete, compact     data files, a transaction file, a manifest put only if absent; no identity
    prune                       manifests of old versions, files that only they refer to; others only after seven days

The official library deletes files before it deletes the manifests that name them, in one pass over one listing; so does
this.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import lance_core
from lance_core.commit import naming
from lance_core.commit.manifests import list_versions, open_path
from lance_core.commit.references import is_referenced, referenced_files
from lance_core.errors import NotFoundError
from lance_core.io.store import Store
from tests.simulation.judge import lines
from tests.simulation.model import rows_of_table
from tests.simulation.stores import URI

_UNVERIFIED_SECONDS = 7 * 24 * 3600.0
_FOLDERS = (naming.DATA, naming.DELETIONS, naming.INDICES, naming.TRANSACTIONS)


def append(ids: Sequence[int], value: int = 0) -> None:
    """Add rows, in a version without an identity."""
    lance_core.write_dataset(rows_of_table(ids, value), URI, mode="append")


def delete(item: int) -> None:
    """Delete one row."""
    lance_core.dataset(URI).delete(f"id = {item}")


def compact() -> None:
    """Rewrite all fragments into one."""
    lance_core.dataset(URI).optimize.compact_files(target_rows_per_fragment=1000)


def prune(store: Store, *, now: float, tagged: Collection[int] = ()) -> None:
    """Remove every version but the newest and those with a tag, and what only those refer to."""
    versions = list_versions(store)
    staying = [entry for entry in versions if entry.version in tagged or entry is versions[-1]]
    versions = [entry for entry in versions if entry not in staying]
    if not versions:
        return
    kept = _needed(store, [(entry.version, entry.path) for entry in staying])
    for branch in lines(store)[1:]:
        kept |= _needed(branch, [(entry.version, entry.path) for entry in list_versions(branch)])
    gone = _needed(store, [(entry.version, entry.path) for entry in versions])
    for folder in _FOLDERS:
        for entry in store.list(f"{folder}/"):
            verified = is_referenced(entry.path, gone)
            is_old = entry.modified + _UNVERIFIED_SECONDS < now
            if (verified or is_old) and not is_referenced(entry.path, kept):
                store.delete(entry.path)
    for version in versions:
        store.delete(version.path)


def _needed(store: Store, versions: Sequence[tuple[int, str]]) -> frozenset[str]:
    found: set[str] = set()
    for version, path in versions:
        try:
            found.update(referenced_files(open_path(store, version, path).manifest))
        except NotFoundError:
            continue
    return frozenset(found)
