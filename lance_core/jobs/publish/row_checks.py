"""What a commit asks of rows before it publishes: gates over those that it adds, and whether it is stale.

::

    commit -> fold -> check(what is about to be published)
    GateFailedError: gate 'a month': 3 rows are added, at least 20,000 were wanted

    replace_where of a day, and somebody appended to that day    -> staged again, so that those rows go as well
    merge by id, and somebody inserted one of its ids            -> staged again, so that the id is there once

A refusal of a gate leaves readers and staged files as they were. Only the columns that a condition names are read, batch by
batch; uniqueness holds the key columns in memory.

To the format an append and such an Update do not conflict. The commit asks for each version between the one that the work
was planned on and the one it writes, right before it writes: so two commits at once are as right as one after the other.
Only what a version brought is read; what a compaction wrote again is not new.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lance_core.commit.identities import ASSUMES_PROPERTY
from lance_core.commit.manifests import OpenVersion
from lance_core.dataset.scan.plan import LARGE_BATCH_ROWS, ScanPlan, plan_scan
from lance_core.dataset.scan.projection import plan_projection
from lance_core.dataset.scan.sinks import count_matching, scan, scan_table
from lance_core.dataset.snapshot.snapshot import Snapshot, open_snapshot
from lance_core.format.fragment import Fragment
from lance_core.format.manifest import Manifest
from lance_core.format.schema import Schema
from lance_core.io.store import Store
from lance_core.jobs.gates.conditions import require_gates
from lance_core.jobs.runtime.protocols import Report, Runner
from lance_core.jobs.specs.definition import CheckSpec
from lance_core.jobs.specs.gates import GateSpec
from lance_core.publish.fold import fit_rows
from lance_core.publish.members import Loaded
from lance_core.publish.model import StagedTransaction
from lance_core.publish.publisher import Check, Concerns
from lance_core.publish.staged_properties import new_rows, numbered
from lance_core.table.operations import Append, Merge, Overwrite, Update, UpdateMode
from lance_core.table.transaction import Transaction

_FREE = 1 << 31
"""New fragments have no ids yet; they get some that no fragment with a deletion file has."""


@dataclass(frozen=True)
class StagedRows:
    """`GatedRows` that staged transactions add, as if they were small tables; nothing is read before it is requested."""

    refs: tuple[StagedTransaction, ...]
    parts: tuple[Snapshot, ...]
    is_table: bool = False
    """They are all rows of a version that exists, not rows that are about to be added."""

    @property
    def schema(self) -> pa.Schema:
        return self.parts[0].arrow_schema if self.parts else pa.schema([])

    @property
    def num_rows(self) -> int:
        return sum(part.manifest.num_rows for part in self.parts)

    @property
    def num_deleted(self) -> int:
        """How many rows the transactions delete or move."""
        return sum(ref.num_deleted_rows for ref in self.refs)

    @property
    def counted(self) -> str:
        return "the table has {rows:,} rows" if self.is_table else "{rows:,} rows are added"

    @property
    def former(self) -> None:
        """Nothing: they are new."""
        return None

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for part in self.parts:
            yield from scan(part, _plan(part, columns), batch_size=LARGE_BATCH_ROWS)

    def reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self.schema, self.batches(self.schema.names))


def check(spec: CheckSpec, runner: Runner | None = None) -> Report:
    """Apply the gates of a commit to all rows of an existing version.

    Report {"version", "num_rows", "gates"}: the names of those that passed. GateFailedError for one that did not.
    """
    snapshot = open_snapshot(spec.uri, version=spec.version, storage_options=spec.resolved_options())
    names = require_gates(
        spec.gates,
        StagedRows((), (snapshot,), is_table=True),
        where=f"{spec.uri} at version {snapshot.version}",
        cure="Correct the rows, restore an earlier version, or change the gate.",
    )
    facts = {"version": snapshot.version, "num_rows": snapshot.manifest.num_rows, "gates": names}
    return Report(spec.kind, facts)


def make_check(gates: Sequence[GateSpec], store: Store, *, storage_options: Mapping[str, str]) -> Check:
    """What the commit service calls before it publishes. The check raises GateFailedError, or InputError for a gate that
    cannot be applied (no such column, no DuckDB)."""

    def checked(items: Sequence[tuple[StagedTransaction, Transaction]], newest: Manifest | None) -> None:
        staged = staged_rows(items, newest, store, storage_options=storage_options)
        cure = "Nothing was published. Fix the rows and clear the tasks that staged them, or change the gate."
        require_gates(gates, staged, where=store.uri, cure=cure)

    return checked


def staged_rows(
    items: Sequence[tuple[StagedTransaction, Transaction]],
    newest: Manifest | None,
    store: Store,
    *,
    storage_options: Mapping[str, str],
) -> StagedRows:
    """The rows that the transactions add; a compaction adds none, and neither do new columns."""
    table = None if newest is None else newest.schema
    added: list[tuple[int, Schema | None, Sequence[Fragment]]] = []
    for _, transaction in items:
        operation, rows = transaction.operation, new_rows(transaction)
        if isinstance(operation, Overwrite):
            added.append((transaction.read_version, operation.schema, rows))
            continue
        if table is not None:
            table, rows = fit_rows(transaction, rows, table, first_id=table.max_field_id + 1)
        added.append((transaction.read_version, None, rows))
    parts = []
    for version, own, rows in added:
        schema = own or table
        if schema is None or not rows:
            continue
        like = Manifest(schema, (), version) if own or newest is None else newest
        fragments, stored_as = numbered(rows, first=0), like.data_storage_version
        manifest = Manifest(schema, fragments, version, data_storage_version=stored_as, base_paths=like.base_paths)
        parts.append(Snapshot(store, manifest, storage_options))
    return StagedRows(tuple(ref for ref, _ in items), tuple(parts))


def make_concerns(store: Store, options: Mapping[str, str]) -> Concerns:
    """What the commit service asks about versions of others."""
    mine: dict[str, pa.Table] = {}

    def concerns(item: Loaded, theirs: Transaction, opened: OpenVersion) -> bool:
        assumed = _assumed(item)
        added = _brought(theirs) if assumed else ()
        if not added:
            return False
        snapshot = _snapshot_of(store, opened, added, options)
        if "predicate" in assumed:
            return count_matching(snapshot, str(assumed["predicate"])) > 0
        keys = [str(name) for name in assumed.get("keys", ())]
        if assumed.get("all_rows") or item.ref.creates:
            return True
        if item.ref.identity not in mine:
            operation = item.transaction.operation
            fragments = operation.new_fragments if isinstance(operation, Update) else ()
            written = _snapshot_of(store, opened, fragments, options)
            mine[item.ref.identity] = scan_table(written, _plan(written, keys))
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


def _snapshot_of(store: Store, opened: OpenVersion, fragments: Sequence[Fragment], options: Mapping[str, str]) -> Snapshot:
    placed = tuple(
        item if item.deletion_file is not None else replace(item, id=_FREE + number) for number, item in enumerate(fragments)
    )
    return Snapshot(store, replace(opened.manifest, fragments=placed), options)


def _meets(mine: pa.Table, theirs: Snapshot, keys: Sequence[str]) -> bool:
    """Whether a key of mine is among the rows of theirs, which are read batch by batch."""
    if not mine.num_rows:
        return False
    for batch in scan(theirs, _plan(theirs, keys), batch_size=LARGE_BATCH_ROWS):
        table = pa.Table.from_batches([batch])
        if len(keys) == 1:
            if pc.any(pc.is_in(table.column(keys[0]), value_set=mine.column(keys[0]), skip_nulls=True)).as_py():
                return True
        elif table.join(mine, keys=[*keys], join_type="inner").num_rows:
            return True
    return False


def _plan(snapshot: Snapshot, columns: Sequence[str]) -> ScanPlan:
    schema = snapshot.manifest.schema
    return plan_scan(schema, snapshot.manifest.fragments, plan_projection(schema, [*columns]))
