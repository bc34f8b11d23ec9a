"""Gates: the staged rows are checked before they are published. A refusal leaves readers and staged files as they were.

::

    commit -> fold -> check(what is about to be published)
    GateFailedError: gate 'a month': 3 rows are added, at least 20,000 were wanted

Only the columns that a condition names are read, batch by batch; uniqueness holds the key columns in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lance_core.dataset.scan.plan import LARGE_BATCH_ROWS, plan_scan
from lance_core.dataset.scan.projection import plan_projection
from lance_core.dataset.scan.sinks import scan
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.format.fragment import Fragment
from lance_core.format.manifest import Manifest
from lance_core.format.schema import Schema
from lance_core.io.store import Store
from lance_core.jobs.gates.conditions import require_gates
from lance_core.jobs.specs.gates import GateSpec
from lance_core.publish.merge import fit_rows
from lance_core.publish.model import StagedTransaction
from lance_core.publish.publisher import Check
from lance_core.publish.staged_properties import new_rows, numbered
from lance_core.table.operations.overwrite import Overwrite
from lance_core.table.transaction import Transaction


@dataclass(frozen=True)
class StagedRows:
    """The rows that staged transactions add, as if they were small tables; nothing is read before it is requested."""

    refs: tuple[StagedTransaction, ...]
    parts: tuple[Snapshot, ...]
    is_table: bool = False
    """They are all rows of a version that exists, not rows that are about to be added."""

    @property
    def schema(self) -> pa.Schema:
        """Columns of the rows."""
        return self.parts[0].arrow_schema if self.parts else pa.schema([])

    @property
    def num_rows(self) -> int:
        """How many there are."""
        return sum(part.manifest.num_rows for part in self.parts)

    @property
    def num_deleted(self) -> int:
        """How many rows the transactions delete or move."""
        return sum(ref.num_deleted_rows for ref in self.refs)

    @property
    def counted(self) -> str:
        """A sentence with their number."""
        return "the table has {rows:,} rows" if self.is_table else "{rows:,} rows are added"

    @property
    def former(self) -> None:
        """Nothing: they are new."""
        return None

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Some columns of all rows."""
        for part in self.parts:
            schema = part.manifest.schema
            plan = plan_scan(schema, part.manifest.fragments, plan_projection(schema, [*columns]))
            yield from scan(part, plan, batch_size=LARGE_BATCH_ROWS)

    def reader(self) -> pa.RecordBatchReader:
        """All columns of all rows, as a stream."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches(self.schema.names))


def make_check(gates: Sequence[GateSpec], store: Store, *, storage_options: Mapping[str, str]) -> Check:
    """What the commit service calls before it publishes. The check raises GateFailedError, or InputError for a gate that
    cannot be applied (no such column, no DuckDB)."""

    def check(items: Sequence[tuple[StagedTransaction, Transaction]], newest: Manifest | None) -> None:
        staged = staged_rows(items, newest, store, storage_options=storage_options)
        cure = "Nothing was published. Fix the rows and clear the tasks that staged them, or change the gate."
        require_gates(gates, staged, where=store.uri, cure=cure)

    return check


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
        schema, base = own or table, None if own else newest
        if schema is None or not rows:
            continue
        like = Manifest(schema, (), version) if base is None else base
        manifest = Manifest(
            schema=schema,
            fragments=numbered(rows, first=0),
            version=version,
            data_storage_version=like.data_storage_version,
            base_paths=like.base_paths,
        )
        parts.append(Snapshot(store, manifest, storage_options))
    return StagedRows(tuple(ref for ref, _ in items), tuple(parts))
