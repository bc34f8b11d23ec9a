"""A version of a table as DuckDB reads it: only the columns and rows that a query asks for, as often as it asks.

::

    connection.register("orders", TableView(snapshot))
    SELECT sum(price) FROM orders WHERE customer = 7      -> scan(columns=["price"], filter="customer = 7")

DuckDB passes the columns and the filters that it pushes down to `scanner`, as it does for pyarrow's datasets.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from lance_core.dataset.query.named_columns import named_columns
from lance_core.dataset.query.scanner import LanceScanner
from lance_core.dataset.scan.request import ScanRequest
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import LanceError
from lance_core.shortage import ARROW_ERRORS

_COMPARISON = re.compile(r"\(([A-Za-z_]\w*) (==|<=|>=|<|>) (-?\d{1,18}|\"[^\"\\]*\")\)")
_COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt,
}  # fmt: skip


class TableView(ds.Dataset):
    """One version, with some of its columns. Two scans of a query see the same rows.

    `failure` is the error that ended a scan: the engine reports it without its type.
    """

    def __init__(self, snapshot: Snapshot, *, columns: Sequence[str] | None = None) -> None:
        # Not the base's: it stands for a dataset of pyarrow's own.
        self._snapshot = snapshot
        self._columns = [*snapshot.visible_schema.names] if columns is None else [*columns]
        self.failure: LanceError | None = None

    def narrowed(self, sql: str) -> TableView:
        """With the columns that a query may want."""
        return TableView(self._snapshot, columns=named_columns(sql, self._columns))

    @property
    def schema(self) -> pa.Schema:
        """The columns that a query may name."""
        return self._scan(self._columns, None).projected_schema

    def scanner(  # type: ignore[override]
        self, columns: Sequence[str] | None = None, filter: Any = None, **_: Any
    ) -> _Rows:
        """What the engine calls for each scan, with the columns that it needs and the conditions that rows must meet."""
        return _Rows(self, self._scan(self._columns if columns is None else [*columns], filter))

    def _scan(self, columns: list[str], condition: Any) -> LanceScanner:
        told = None if condition is None else as_sql(condition, self._snapshot.arrow_schema) or condition
        return LanceScanner(self._snapshot, ScanRequest(columns=columns, filter=told))


class _Rows:
    """The scan of an engine; it notes the error that ends it."""

    def __init__(self, view: TableView, scan: LanceScanner) -> None:
        self._view = view
        self._scan = scan

    @property
    def projected_schema(self) -> pa.Schema:
        """The columns of the rows."""
        return self._scan.projected_schema

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream."""
        return pa.RecordBatchReader.from_batches(self._scan.projected_schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._scan.to_batches()
        except LanceError as error:
            self._view.failure = error
            raise


def as_sql(condition: Any, schema: pa.Schema) -> str | None:
    """A pyarrow condition as our SQL, which indices and statistics understand; None where it is not known to be the same.

    pyarrow has no way to walk an expression, so its text is read, and the expression that this gives must equal it.
    """
    found = _COMPARISON.findall(str(condition))
    again: Any = None
    parts = []
    for name, sign, literal in found:
        index = schema.get_field_index(name)
        if index < 0:
            return None
        try:
            value = pa.scalar(literal[1:-1] if literal.startswith('"') else int(literal), schema.field(index).type)
        except (*ARROW_ERRORS, TypeError, OverflowError):
            return None
        one = _COMPARE[sign](pc.field(name), value)
        again = one if again is None else again & one
        text = literal if not literal.startswith('"') else "'" + literal[1:-1].replace("'", "''") + "'"
        parts.append(f"`{name}` {'=' if sign == '==' else sign} {text}")
    return " AND ".join(parts) if again is not None and again.equals(condition) else None
