"""Detect stale staged work: another writer has since added rows that it should have known.

::

    replace_where of a day, and somebody appended to that day    -> staged again, so that those rows go as well
    merge by id, and somebody inserted one of its ids            -> staged again, so that the id is there once

To the format an append and such an Update do not conflict. The commit asks for each version between the one that the work
was planned on and the one it writes, right before it writes: so two commits at once are as right as one after the other.
Only what a version brought is read; what a compaction wrote again is not new.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lance_core.commit.identities import ASSUMES_PROPERTY
from lance_core.commit.manifests import OpenVersion
from lance_core.dataset.scan.plan import LARGE_BATCH_ROWS, plan_scan
from lance_core.dataset.scan.projection import plan_projection
from lance_core.dataset.scan.sinks import count_matching, scan, scan_table
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.format.fragment import Fragment
from lance_core.io.store import Store
from lance_core.publish.members import Loaded
from lance_core.publish.preconditions import Concerns
from lance_core.publish.staged_properties import new_rows
from lance_core.table.operations import Append, Merge, Overwrite, Update, UpdateMode
from lance_core.table.operations.base import Operation
from lance_core.table.transaction import Transaction


def make_concerns(store: Store, options: Mapping[str, str]) -> Concerns:
    """What the commit service asks about versions of others."""
    mine: dict[str, pa.Table] = {}

    def concerns(item: Loaded, theirs: Transaction, opened: OpenVersion) -> bool:
        assumed = _assumed(item)
        if not assumed:
            return False
        added = _brought(theirs)
        if not added:
            return False
        snapshot = _snapshot_of(store, opened, added, options)
        if "predicate" in assumed:
            return count_matching(snapshot, str(assumed["predicate"])) > 0
        keys = [str(name) for name in assumed.get("keys", ())]
        if assumed.get("all_rows") or item.ref.creates:
            return True
        if item.ref.identity not in mine:
            written = _snapshot_of(store, opened, _new_fragments(item.transaction.operation), options)
            schema = written.manifest.schema
            plan = plan_scan(schema, written.manifest.fragments, plan_projection(schema, keys))
            mine[item.ref.identity] = scan_table(written, plan)
        return _meets(mine[item.ref.identity], snapshot, keys)

    return concerns


def _assumed(item: Loaded) -> Mapping[str, Any]:
    found = json.loads(item.transaction.properties.get(ASSUMES_PROPERTY, "{}"))
    return found if isinstance(found, Mapping) else {}


def _brought(theirs: Transaction) -> Sequence[Fragment]:
    """Fragments whose rows, or whose values, a version brought. A Rewrite holds the rows that were there."""
    operation = theirs.operation
    if isinstance(operation, (Append, Overwrite)):
        return operation.fragments
    if isinstance(operation, Merge):
        return new_rows(theirs)
    if isinstance(operation, Update):
        changed = operation.updated_fragments if operation.update_mode is UpdateMode.REWRITE_COLUMNS else ()
        return (*operation.new_fragments, *changed)
    return ()


def _new_fragments(operation: Operation) -> Sequence[Fragment]:
    return operation.new_fragments if isinstance(operation, Update) else ()


def _snapshot_of(store: Store, opened: OpenVersion, fragments: Sequence[Fragment], options: Mapping[str, str]) -> Snapshot:
    numbered = tuple(
        item if item.deletion_file is not None else replace(item, id=_FREE + number) for number, item in enumerate(fragments)
    )
    return Snapshot(store, replace(opened.manifest, fragments=numbered), options)


_FREE = 1 << 31
"""New fragments have no ids yet; they get some that no fragment with a deletion file has."""


def _meets(mine: pa.Table, theirs: Snapshot, keys: Sequence[str]) -> bool:
    """Whether a key of mine is among the rows of theirs, which are read batch by batch."""
    if not mine.num_rows:
        return False
    schema = theirs.manifest.schema
    plan = plan_scan(schema, theirs.manifest.fragments, plan_projection(schema, [*keys]))
    for batch in scan(theirs, plan, batch_size=LARGE_BATCH_ROWS):
        table = pa.Table.from_batches([batch])
        if len(keys) == 1:
            if pc.any(pc.is_in(table.column(keys[0]), value_set=mine.column(keys[0]), skip_nulls=True)).as_py():
                return True
        elif table.join(mine, keys=[*keys], join_type="inner").num_rows:
            return True
    return False
