"""pyarrow expressions as filters: kept as they are and evaluated by pyarrow; only their columns are determined.

::

    from_pyarrow(pc.field("a") > 3, schema) -> ArrowExpression(<...>, columns=("a",))

pyarrow has no public way to walk an expression. It does say which field it misses when it binds one, so we bind against a
table without each column in turn.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lance_core.errors import FilterError
from lance_core.expr.ast import ArrowExpression
from lance_core.expr.evaluate import type_of
from lance_core.expr.system import SYSTEM_COLUMNS
from lance_core.shortage import ARROW_ERRORS


def from_pyarrow(expression: Any, schema: pa.Schema) -> ArrowExpression:
    """A `pyarrow.compute.Expression` as a filter. Raises FilterError when it does not fit the schema or is not boolean."""
    system = [pa.field(name, kind) for name, kind in SYSTEM_COLUMNS.items() if name not in schema.names]
    known = pa.schema([*schema, *system])
    _bind(expression, known)
    needed = tuple(item.name for item in known if _fails_without(expression, known, item.name))
    found = ArrowExpression(expression, needed)
    if not pa.types.is_boolean(type_of(found, schema)):
        raise FilterError(
            f"the filter {expression} does not return a boolean", cure="Add a comparison, for example `x > 0`."
        )
    return found


def _fails_without(expression: Any, schema: pa.Schema, name: str) -> bool:
    try:
        _bind(expression, schema.remove(schema.get_field_index(name)))
    except FilterError:
        return True
    return False


def _bind(expression: Any, schema: pa.Schema) -> None:
    import pyarrow.dataset as pads

    columns: Any = {"value": expression}
    try:
        pads.Scanner.from_batches(iter(()), schema=schema, columns=columns)
    except (*ARROW_ERRORS, KeyError) as error:
        raise FilterError(f"the expression {expression} cannot be applied to the schema: {error}") from None
