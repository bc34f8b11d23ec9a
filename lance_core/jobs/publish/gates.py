"""Gates: the staged rows are checked before they are published. A refusal leaves readers and staged files as they were.

::

    commit -> fold -> check(what is about to be published)
    GateFailedError: gate 'a month': 3 rows are added, at least 20,000 were wanted

Only the columns that a condition names are read, batch by batch; uniqueness holds the key columns in memory.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from lance_core.dataset.scan.plan import LARGE_BATCH_ROWS, plan_scan
from lance_core.dataset.scan.projection import plan_projection
from lance_core.dataset.scan.sinks import scan
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import GateFailedError, InputError, LanceError
from lance_core.expr import columns_of, evaluate, parse_filter
from lance_core.format.fragment import Fragment
from lance_core.format.manifest import Manifest
from lance_core.format.schema import Schema
from lance_core.io.store import Store
from lance_core.jobs.sources.duckdb_sql import query
from lance_core.jobs.specs.gates import GateSpec
from lance_core.jobs.specs.load_function import load_function
from lance_core.pick import keep
from lance_core.publish.grow import fit_rows
from lance_core.publish.model import StagedTransaction
from lance_core.publish.publisher import Check
from lance_core.publish.staged_properties import new_rows, numbered
from lance_core.table.operations.overwrite import Overwrite
from lance_core.table.transaction import Transaction

log = logging.getLogger(__name__)


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


def require_gates(gates: Sequence[GateSpec], rows: StagedRows, *, where: str, cure: str) -> list[str]:
    """The names of the gates, all of which the rows pass. GateFailedError names the gate that failed, and why."""
    names = [gate.name or f"{number + 1}" for number, gate in enumerate(gates)]
    for name, gate in zip(names, gates, strict=True):
        for condition in _CONDITIONS:
            problem = condition(gate, rows)
            if problem:
                raise GateFailedError(f"{where}: gate {name!r}: {problem}", uri=where.split(" at version ")[0], cure=cure)
        log.info("gate %r passed", name)
    return names


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


def _row_bounds(gate: GateSpec, staged: StagedRows) -> str | None:
    rows, deleted = staged.num_rows, sum(ref.num_deleted_rows for ref in staged.refs)
    counted = f"the table has {rows:,} rows" if staged.is_table else f"{rows:,} rows are added"
    if gate.min_rows is not None and rows < gate.min_rows:
        return f"{counted}, expected at least {gate.min_rows:,}"
    if gate.max_rows is not None and rows > gate.max_rows:
        return f"{counted}, expected at most {gate.max_rows:,}"
    if gate.max_deleted_rows is not None and deleted > gate.max_deleted_rows:
        return f"{deleted:,} rows are deleted, expected at most {gate.max_deleted_rows:,}"
    return None


def _null_rates(gate: GateSpec, staged: StagedRows) -> str | None:
    names = _known(gate, staged, [*gate.max_null_rates])
    if not names:
        return None
    nulls = dict.fromkeys(names, 0)
    for batch in staged.batches(names):
        for name in names:
            nulls[name] += batch.column(name).null_count
    for name, count in nulls.items():
        share = count / max(staged.num_rows, 1)
        if share > gate.max_null_rates[name]:
            return f"column {name!r}: {share:.4g} of the values are null, expected at most {gate.max_null_rates[name]:.4g}"
    return None


def _uniqueness(gate: GateSpec, staged: StagedRows) -> str | None:
    names = _known(gate, staged, gate.unique)
    if not names:
        return None
    keys = pa.Table.from_batches([*staged.batches(names)], schema=pa.schema([staged.schema.field(name) for name in names]))
    counted = keys.drop_null().group_by(names).aggregate([([], "count_all")])
    repeated = counted.filter(pc.greater(counted.column("count_all"), cast("Any", 1)))
    if repeated.num_rows == 0:
        return None
    first = {name: repeated.column(name)[0].as_py() for name in names}
    return f"{repeated.num_rows:,} keys of {', '.join(names)} occur more than once, for example {first}"


def _no_rows(gate: GateSpec, staged: StagedRows) -> str | None:
    if gate.no_rows is None or not staged.parts:
        return None
    expr = parse_filter(gate.no_rows, staged.schema)
    names = list(dict.fromkeys(name.split(".")[0] for name in columns_of(expr)))
    count, first = 0, None
    for batch in staged.batches(names):
        chosen = keep(batch, evaluate(expr, batch).fill_null(False))
        if chosen.num_rows and first is None:
            first = chosen.slice(0, 1).to_pylist()[0]
        count += chosen.num_rows
    return f"{count:,} rows are selected by {gate.no_rows}, for example {first}" if count else None


def _sql(gate: GateSpec, staged: StagedRows) -> str | None:
    if gate.sql is None or not staged.parts:
        return None
    reader = query(
        gate.sql,
        {"staged": staged.reader()},
        what=f"gate {gate.name!r}: its query",
        cure="Install it, or write the gate with no_rows.",
        batch_rows=LARGE_BATCH_ROWS,
    )
    found = reader.read_all()
    return (
        f"the query returned {found.num_rows:,} rows, for example {found.slice(0, 1).to_pylist()[0]}"
        if found.num_rows
        else None
    )


def _function(gate: GateSpec, staged: StagedRows) -> str | None:
    if gate.callable is None:
        return None
    function = load_function(gate.callable)
    try:
        answer = function(staged.reader())
    except LanceError:
        raise
    except Exception as error:
        return f"{gate.callable} raised {type(error).__name__}: {error}"
    if isinstance(answer, str):
        return f"{gate.callable}: {answer}" if answer else None
    return f"{gate.callable} returned false" if answer is False else None


def _known(gate: GateSpec, staged: StagedRows, names: Sequence[str]) -> list[str]:
    if not staged.parts:
        return []
    for name in names:
        if name not in staged.schema.names:
            raise InputError(
                f"gate {gate.name!r}: there is no column {name!r}", cure=f"Columns: {', '.join(staged.schema.names)}."
            )
    return [*names]


_CONDITIONS: tuple[Callable[[GateSpec, StagedRows], str | None], ...] = (
    _row_bounds, _null_rates, _uniqueness, _no_rows, _sql, _function,
)  # fmt: skip
