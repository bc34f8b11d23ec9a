"""Gates on the canary of a refresh: those that concern a column look at its first new values before any is published.

::

    refresh vector and label, gates=[{"norms": {"vector": [0.9, 1.1]}}, {"max_drift": {"label": 0.2}}]
    canary of vector -> {"norms": {"vector": [0.9, 1.1]}}         canary of label -> {"max_drift": {"label": 0.2}}

The rows of a gate are the inputs, the new value, and beside it the former one as `vector_before`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import pyarrow as pa

from lance_core.computed.canary import Canary, CanaryRows
from lance_core.errors import InputError
from lance_core.jobs.gates.conditions import require_gates
from lance_core.jobs.specs.columns import DEFAULT_CANARY_ROWS, MAX_CANARY_ROWS, check_canary
from lance_core.jobs.specs.gates import GateSpec

_BY_COLUMN = ("max_null_rates", "norms", "max_drift")


def make_canary(
    rows: int | None, fragments: int | None, gates: Sequence[GateSpec], columns: Collection[str]
) -> Canary | None:
    """The canary of a refresh of these columns, None without gates. InputError for a gate on another column."""
    check_canary(rows, fragments, has_gates=bool(gates))
    if not gates:
        return None
    for number, gate in enumerate(gates):
        for name in dict.fromkeys(name for condition in _BY_COLUMN for name in getattr(gate, condition)):
            if name not in columns:
                raise InputError(
                    f"gate {gate.name or number + 1!r} asks something of {name!r}, which is not refreshed",
                    cure=f"Columns that are: {', '.join(columns)}.",
                )
    most = (MAX_CANARY_ROWS if fragments else DEFAULT_CANARY_ROWS) if rows is None else rows
    return Canary(lambda found: _check(gates, found), most, fragments)


def _check(gates: Sequence[GateSpec], found: CanaryRows) -> None:
    """GateFailedError for the first gate that the canary does not pass."""
    mine = [narrow for number, gate in enumerate(gates) if (narrow := _narrowed(gate, number, found.column)) is not None]
    require_gates(
        mine,
        _Rows(found),
        where=f"{found.uri}: column {found.column!r}, canary of {found.table.num_rows:,} rows",
        cure="Nothing was published: the former values stay, and the new ones wait, so they are not computed again. Change "
        "the gate, or mend the function and declare the column with another version.",
        uri=found.uri,
    )


def _narrowed(gate: GateSpec, number: int, column: str) -> GateSpec | None:
    """What a gate asks of one column; None for nothing. What names no column by itself is asked of each."""
    kept = {name: {key: value for key, value in getattr(gate, name).items() if key == column} for name in _BY_COLUMN}
    if not any((*kept.values(), gate.min_rows, gate.max_rows, gate.unique, gate.no_rows, gate.sql, gate.callable)):
        return None
    narrow: GateSpec = replace(gate, name=gate.name or f"{number + 1}", **cast("dict[str, Any]", kept))
    return narrow


@dataclass(frozen=True)
class _Rows:
    """A canary as the conditions of gates see rows."""

    found: CanaryRows
    counted: str = "the canary has {rows:,} rows"
    num_deleted: int = 0

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""
        return self.found.table.schema

    @property
    def num_rows(self) -> int:
        """How many rows it has."""
        return self.found.table.num_rows

    @property
    def former(self) -> tuple[str, str]:
        """The refreshed column, and the one with its former values."""
        return self.found.column, self.found.before

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Some columns of all rows."""
        yield from self.found.table.select([*columns]).to_batches()

    def reader(self) -> pa.RecordBatchReader:
        """All columns of all rows, as a stream."""
        return self.found.table.to_reader()
