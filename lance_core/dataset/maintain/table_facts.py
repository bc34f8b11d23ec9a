"""One look at a table: what CLI, health page, sensors and triggers all show and test.

::

    table_facts("/t.lance")                                -> TableFacts(version=4, num_rows=336776, num_fragments=12, …)
    table_facts("/t.lance", predicates=("delay > 60",))    also counts the rows that match
    table_facts("/nothing.lance")                          -> TableFacts(exists=False)
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence

from lance_core.commit.log.manifests import find_latest_version
from lance_core.commit.registry.incarnation import incarnation_of
from lance_core.conditions import TableFacts
from lance_core.dataset.refs.tags import list_tags
from lance_core.dataset.scan.count import count_matching
from lance_core.dataset.snapshot.snapshot import Snapshot, snapshot_of
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store

SMALL_FRAGMENT_ROWS = 1024


def table_facts(
    uri: str | os.PathLike[str],
    storage_options: Mapping[str, str] | None = None,
    *,
    predicates: Sequence[str] = (),
    staged: bool = False,
    small_fragment_rows: int = SMALL_FRAGMENT_ROWS,
) -> TableFacts:
    """The facts of the newest version. A table that is not there is a fact (`exists=False`), not an error.

    `predicates` are filters whose rows to count; `staged` asks for the number of staged transactions that wait.
    """
    store = resolve_store(uri, storage_options)
    waiting = count_staged(store) if staged else None
    if find_latest_version(store) is None:
        return TableFacts(uri=store.uri, exists=False, num_staged=waiting)
    snapshot = snapshot_of(store, storage_options=storage_options)
    return snapshot_facts(snapshot, predicates=predicates, num_staged=waiting, small_fragment_rows=small_fragment_rows)


def snapshot_facts(
    snapshot: Snapshot,
    *,
    predicates: Sequence[str] = (),
    num_staged: int | None = None,
    small_fragment_rows: int = SMALL_FRAGMENT_ROWS,
) -> TableFacts:
    """The facts of one version."""
    manifest = snapshot.manifest
    fragments = manifest.fragments
    files = [file for fragment in fragments for file in fragment.files]
    return TableFacts(
        uri=snapshot.uri,
        version=manifest.version,
        timestamp=manifest.timestamp_ns / 1e9,
        num_rows=manifest.num_rows,
        physical_rows=sum(fragment.physical_rows for fragment in fragments),
        num_fragments=len(fragments),
        num_small_fragments=sum(fragment.physical_rows < small_fragment_rows for fragment in fragments),
        small_fragment_rows=small_fragment_rows,
        num_data_files=len(files),
        bytes=sum(file.file_size_bytes or 0 for file in files),
        tags={name: tag.version for name, tag in list_tags(snapshot.store).items()},
        index_coverage=_coverage(snapshot, {fragment.id for fragment in fragments}),
        matching_rows={predicate: count_matching(snapshot, predicate) for predicate in predicates},
        num_staged=num_staged,
        incarnation=incarnation_of(snapshot.store),
    )


def count_staged(store: Store) -> int:
    """Staged transactions that wait for their commit, and attempts still at work."""
    from lance_core.commit.registry.attempts import list_staged

    return sum(entry.state != "expired" for entry in list_staged(store))


def _coverage(snapshot: Snapshot, live: Collection[int]) -> dict[str, float]:
    covered: dict[str, set[int]] = {}
    for index in snapshot.manifest.indices:
        if not index.name.startswith("__"):
            covered.setdefault(index.name, set()).update((index.fragment_bitmap or frozenset()) & set(live))
    return {name: len(ids) / len(live) if live else 1.0 for name, ids in covered.items()}
