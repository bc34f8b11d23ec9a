"""The facts about a table that the command line, pages, sensors and triggers show and test.

::

    table_facts("/t.lance")                                -> TableFacts(version=4, num_rows=336776, num_fragments=12, …)
    table_facts("/t.lance", predicates=("delay > 60",))    also counts the rows that match
    table_facts("/nothing.lance")                          -> TableFacts(exists=False)
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lance_core.commit.manifests import find_latest_version
from lance_core.conditions import TableFacts
from lance_core.dataset.refs.tags import list_tags
from lance_core.dataset.scan.plan import LARGE_BATCH_ROWS, plan_scan
from lance_core.dataset.scan.projection import plan_projection
from lance_core.dataset.scan.sinks import count_matching, scan
from lance_core.dataset.snapshot.snapshot import Snapshot, snapshot_of
from lance_core.errors import InputError
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.publish.table_id import table_id_of

SMALL_FRAGMENT_ROWS = 1024
MAX_VALUES = 100_000
"""More values of a column are no partitions."""


def table_facts(
    uri: str | os.PathLike[str],
    storage_options: Mapping[str, str] | None = None,
    *,
    predicates: Sequence[str] = (),
    staged: bool = False,
    counted: tuple[str, str | None] | None = None,
    small_fragment_rows: int = SMALL_FRAGMENT_ROWS,
) -> TableFacts:
    """The facts of the newest version. A table that does not exist is a fact (`exists=False`), not an error.

    `predicates` are filters whose rows to count; `staged` requests the number of staged transactions that wait; `counted` is
    a column whose values to count, and the format of dates and times in it.
    """
    store = resolve_store(uri, storage_options)
    waiting = count_staged(store) if staged else None
    if find_latest_version(store) is None:
        return TableFacts(uri=store.uri, exists=False, num_staged=waiting)
    snapshot = snapshot_of(store, storage_options=storage_options)
    facts = snapshot_facts(snapshot, predicates=predicates, num_staged=waiting, small_fragment_rows=small_fragment_rows)
    return facts if counted is None else replace(facts, value_counts=count_values(snapshot, *counted))


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
        table_id=table_id_of(snapshot.store),
    )


def count_values(snapshot: Snapshot, column: str, key_format: str | None = None) -> dict[str, int]:
    """How many rows have each value of a column, as text; nulls are ignored. InputError for a column of lists or structs."""
    manifest = snapshot.manifest
    plan = plan_scan(manifest.schema, manifest.fragments, plan_projection(manifest.schema, [column]))
    found: Counter[str] = Counter()
    for batch in scan(snapshot, plan, batch_size=LARGE_BATCH_ROWS):
        values: Any = batch.column(0)
        try:
            if key_format is not None and pa.types.is_temporal(values.type):
                values = pc.strftime(values, format=key_format)
            counted = values.drop_null().value_counts()
        except pa.ArrowNotImplementedError as error:
            raise InputError(f"values of column {column!r} ({values.type}) cannot be counted", uri=snapshot.uri) from error
        for value, count in zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True):
            found[value.isoformat() if hasattr(value, "isoformat") else str(value)] += count
        if len(found) > MAX_VALUES:
            raise InputError(
                f"column {column!r} has more than {MAX_VALUES:,} distinct values",
                uri=snapshot.uri,
                cure="Choose a partition column, or a coarser key_format for times.",
            )
    return dict(found)


def count_staged(store: Store) -> int:
    """Staged transactions that wait for their commit, and attempts still at work."""
    from lance_core.publish.attempts import list_staged

    return sum(entry.state != "expired" for entry in list_staged(store))


def _coverage(snapshot: Snapshot, live: Collection[int]) -> dict[str, float]:
    covered: dict[str, set[int]] = {}
    for index in snapshot.manifest.indices:
        if not index.name.startswith("__"):
            covered.setdefault(index.name, set()).update((index.fragment_bitmap or frozenset()) & set(live))
    return {name: len(ids) / len(live) if live else 1.0 for name, ids in covered.items()}
