"""The conditions of gates, and what they look at: staged rows, the rows of a version, or the canary of a refresh.

::

    GateFailedError: /t.lance: gate 'a month': 3 rows are added, expected at least 20,000

Only the columns that a condition names are read, batch by batch; uniqueness holds the key columns in memory.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, cast

import pyarrow as pa
import pyarrow.compute as pc

from lance_core.dataset.scan.plan import LARGE_BATCH_ROWS
from lance_core.errors import GateFailedError, InputError, LanceError
from lance_core.expr import columns_of, evaluate, parse_filter
from lance_core.jobs.gates.measures import drift, norms
from lance_core.jobs.sources.duckdb_sql import query
from lance_core.jobs.specs.gates import GateSpec, refuse_drift
from lance_core.jobs.specs.load_function import load_function
from lance_core.pick import keep

log = logging.getLogger(__name__)


class GatedRows(Protocol):
    """The rows that a gate looks at."""

    @property
    def schema(self) -> pa.Schema:
        """Their columns; none where there are no rows and no table."""

    @property
    def num_rows(self) -> int:
        """How many there are."""

    @property
    def num_deleted(self) -> int:
        """How many others are deleted or moved."""

    @property
    def counted(self) -> str:
        """A sentence with their number, `{rows}`."""

    @property
    def former(self) -> tuple[str, str] | None:
        """A column and the one that holds its former values, None where there are none."""

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Some columns of all rows."""

    def reader(self) -> pa.RecordBatchReader:
        """All columns of all rows, as a stream."""


def require_gates(gates: Sequence[GateSpec], rows: GatedRows, *, where: str, cure: str, uri: str = "") -> list[str]:
    """The names of the gates, all of which the rows pass. GateFailedError names the gate that failed, and why."""
    names = [gate.name or f"{number + 1}" for number, gate in enumerate(gates)]
    for name, gate in zip(names, gates, strict=True):
        for condition in _CONDITIONS:
            problem = condition(gate, rows)
            if problem:
                raise GateFailedError(
                    f"{where}: gate {name!r}: {problem}", uri=uri or where.split(" at version ")[0], cure=cure
                )
        log.info("gate %r passed", name)
    return names


def _row_bounds(gate: GateSpec, staged: GatedRows) -> str | None:
    rows, deleted = staged.num_rows, staged.num_deleted
    counted = staged.counted.format(rows=rows)
    if gate.min_rows is not None and rows < gate.min_rows:
        return f"{counted}, expected at least {gate.min_rows:,}"
    if gate.max_rows is not None and rows > gate.max_rows:
        return f"{counted}, expected at most {gate.max_rows:,}"
    if gate.max_deleted_rows is not None and deleted > gate.max_deleted_rows:
        return f"{deleted:,} rows are deleted, expected at most {gate.max_deleted_rows:,}"
    return None


def _null_rates(gate: GateSpec, staged: GatedRows) -> str | None:
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


def _uniqueness(gate: GateSpec, staged: GatedRows) -> str | None:
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


def _norms(gate: GateSpec, staged: GatedRows) -> str | None:
    for name in _known(gate, staged, [*gate.norms]):
        low, high = gate.norms[name]
        outside, total, first = 0, 0, None
        for batch in staged.batches([name]):
            found = norms(batch.column(name))
            wrong = found[~((found >= low) & (found <= high))]  # NaN is in no interval
            outside, total = outside + len(wrong), total + len(found)
            first = float(wrong[0]) if first is None and len(wrong) else first
        if outside:
            return (
                f"column {name!r}: {outside:,} of {total:,} vectors have another length, for example {first:.4g}, "
                f"expected {low:.4g} to {high:.4g}"
            )
    return None


def _drift(gate: GateSpec, staged: GatedRows) -> str | None:
    if gate.max_drift and staged.former is None:
        refuse_drift([gate], "gate")
    if not gate.max_drift or staged.former is None:
        return None
    name, former = staged.former
    rows = pa.Table.from_batches([*staged.batches([name, former])])
    both = rows.filter(pc.and_(rows.column(name).is_valid(), rows.column(former).is_valid()))
    if not both.num_rows:
        log.info("gate %r: no row of column %r has a former value to compare with", gate.name, name)
        return None
    found = drift(both.column(former), both.column(name))
    if found <= gate.max_drift[name]:
        return None
    return (
        f"column {name!r}: its drift from the former values of {both.num_rows:,} rows is {found:.4g}, expected at most "
        f"{gate.max_drift[name]:.4g}"
    )


def _no_rows(gate: GateSpec, staged: GatedRows) -> str | None:
    if gate.no_rows is None or not staged.schema.names:
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


def _sql(gate: GateSpec, staged: GatedRows) -> str | None:
    if gate.sql is None or not staged.schema.names:
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


def _function(gate: GateSpec, staged: GatedRows) -> str | None:
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


def _known(gate: GateSpec, staged: GatedRows, names: Sequence[str]) -> list[str]:
    if not staged.schema.names:
        return []
    for name in names:
        if name not in staged.schema.names:
            raise InputError(
                f"gate {gate.name!r}: there is no column {name!r}", cure=f"Columns: {', '.join(staged.schema.names)}."
            )
    return [*names]


_CONDITIONS: tuple[Callable[[GateSpec, GatedRows], str | None], ...] = (
    _row_bounds, _null_rates, _norms, _drift, _uniqueness, _no_rows, _sql, _function,
)  # fmt: skip
