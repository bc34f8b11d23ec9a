"""The output of a scan: each column as an expression over stored and system columns.

::

    ["id", "point.x"]            two outputs; named as asked
    {"double": "2 * x"}          an SQL expression
    None                         every stored column but the evidence of declared ones
    with_row_id=True             _rowid at the end, unless it was requested by name
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from lance_core.arrow import schema_to_arrow
from lance_core.arrow.logical import STRUCT
from lance_core.cached import cached_property
from lance_core.errors import InputError
from lance_core.expr import SYSTEM_COLUMNS, Expr, ast, columns_of, field_of, parse_value, type_of
from lance_core.format.declared import hides_from_all, without_columns
from lance_core.format.schema import Field, Schema

Columns = Sequence[str] | Mapping[str, str] | None


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """One output column: its field, and the expression that makes it."""

    field: pa.Field[Any]
    expr: Expr


@dataclass(frozen=True)
class Projection:
    """The outputs in order. `field_ids` are the fields they need read, `system` the system columns they need."""

    outputs: tuple[OutputColumn, ...]
    field_ids: frozenset[int]
    system: frozenset[str]

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The output schema."""
        return pa.schema([output.field for output in self.outputs])

    @cached_property
    def is_plain(self) -> bool:
        """Whether each output is a stored top-level column under its own name, so that nothing is left to compute."""
        exprs = ((output.expr, output.field.name) for output in self.outputs)
        return not self.system and all(isinstance(expr, ast.Column) and expr.path == (name,) for expr, name in exprs)


@dataclass(frozen=True, slots=True)
class Needs:
    """Fields and system columns an expression reads."""

    field_ids: frozenset[int]
    system: frozenset[str]


def needs_of(schema: Schema, names: Iterable[str]) -> Needs:
    """What dotted names stand for in a table: leaf-and-parent field ids, and system columns."""
    fields: set[int] = set()
    system: set[str] = set()
    for name in names:
        if name in SYSTEM_COLUMNS and not schema.has_column(name):
            system.add(name)
        else:
            fields.update(item.id for item in schema.descend(schema.find(name).id))
    return Needs(frozenset(fields), frozenset(system))


def plan_projection(
    schema: Schema,
    columns: Columns,
    *,
    with_row_id: bool = False,
    with_row_address: bool = False,
    score: str | None = None,
    autoproject: bool = True,
    with_evidence: bool = False,
) -> Projection:
    """The projection for the user's arguments. Raises InputError: no such column, a name twice, a bad expression.

    `with_evidence`: all columns are those too that reads hide, for whoever writes the rows again.
    `score` names a float column that a search adds (`_distance`); it comes last unless it was requested by name, or not at
    all with `autoproject` False.
    """
    if columns is None and not with_evidence:
        hidden = hides_from_all(schema)
        schema = without_columns(schema, hidden) if hidden else schema
    arrow = schema_to_arrow(_named(schema, columns, score))
    if score is not None and score not in arrow.names:
        outputs = _outputs(schema, arrow.append(pa.field(score, pa.float32())), columns)
    else:
        outputs = _outputs(schema, arrow, columns)
    names = [output.field.name for output in outputs]
    if score is not None and score not in names and autoproject:
        outputs.append(OutputColumn(pa.field(score, pa.float32()), ast.Column((score,))))
    for wanted, name in ((with_row_id, "_rowid"), (with_row_address, "_rowaddr")):
        if wanted and name not in names:
            outputs.append(_system_output(name))
    _refuse_duplicates([output.field.name for output in outputs])
    needs = needs_of(schema, {name for output in outputs for name in columns_of(output.expr) if name != score})
    return Projection(tuple(outputs), needs.field_ids, needs.system)


def plan_parts(schema: Schema, columns: Sequence[str], wanted: pa.Schema) -> Projection:
    """The projection of some columns by name, and of their structs only the fields that `wanted` has of them.

    A struct of which it has no field, or one that the table does not have, is read whole.
    """
    whole = plan_projection(schema, columns)
    kept: set[int] = set()
    for name in columns:
        if schema.has_column(name):
            kept.update(_parts(schema, schema.find(name), wanted.field(name).type if name in wanted.names else None))
    arrow = schema_to_arrow(schema.project(kept))
    outputs = [
        replace(output, field=arrow.field(output.field.name)) if output.field.name in arrow.names else output
        for output in whole.outputs
    ]
    return Projection(tuple(outputs), frozenset(kept), whole.system)


def _parts(schema: Schema, field: Field, wanted: Any) -> set[int]:
    """The ids of what a column must have read so that it has the fields of a type."""
    children = {child.name: child for child in schema.children(field.id)}
    is_plain = field.logical_type == STRUCT and not field.extension_name and "ARROW:extension:name" not in field.metadata
    if is_plain and wanted is not None and pa.types.is_struct(wanted):
        asked = [wanted.field(index) for index in range(wanted.num_fields)]
        if asked and all(part.name in children for part in asked):
            return set().union(*(_parts(schema, children[part.name], part.type) for part in asked))
    return {item.id for item in schema.descend(field.id)}


def _named(schema: Schema, columns: Columns, score: str | None) -> Schema:
    """The part of the schema that a list of names refers to; all of it otherwise."""
    if not isinstance(columns, (list, tuple)) or not all(isinstance(name, str) for name in columns):
        return schema
    stored = (name for name in columns if schema.has_column(name) or (name not in SYSTEM_COLUMNS and name != score))
    return schema.project(schema.find(name).id for name in stored)


def _outputs(schema: Schema, arrow: pa.Schema, columns: Columns) -> list[OutputColumn]:
    if columns is None:
        return [OutputColumn(field, ast.Column((field.name,))) for field in arrow]
    if isinstance(columns, Mapping):
        return [_computed(arrow, name, sql) for name, sql in columns.items()]
    if isinstance(columns, (str, bytes)) or not isinstance(columns, Iterable):
        raise InputError(f"columns must be a list of names or a dict of name to SQL, got {columns!r}", cure="Use ['name'].")
    return [_stored(schema, arrow, name) for name in columns]


def _stored(schema: Schema, arrow: pa.Schema, name: str) -> OutputColumn:
    if not isinstance(name, str):
        raise InputError(f"the name of a column must be a string, got {name!r}")
    if name in SYSTEM_COLUMNS and name not in arrow.names:
        return _system_output(name)
    if name in arrow.names and not schema.has_column(name):
        return OutputColumn(arrow.field(name), ast.Column((name,)))
    field = schema.find(name)
    path = [field.name]
    while field.parent_id in schema.by_id:
        field = schema.by_id[field.parent_id]
        path.insert(0, field.name)
    expr = ast.Column(tuple(path))
    stored = arrow.field(name) if name in arrow.names else pa.field(name, type_of(expr, arrow))
    return OutputColumn(stored.with_name(name), expr)


def _computed(arrow: pa.Schema, name: str, sql: str) -> OutputColumn:
    expr = parse_value(sql, arrow)
    if isinstance(expr, ast.Column) and len(expr.path) == 1 and expr.path[0] in arrow.names:
        return OutputColumn(arrow.field(expr.path[0]).with_name(name), expr)
    return OutputColumn(field_of(name, expr, arrow), expr)


def _system_output(name: str) -> OutputColumn:
    return OutputColumn(pa.field(name, SYSTEM_COLUMNS[name]), ast.Column((name,)))


def _refuse_duplicates(names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(
                f"column {name!r} is requested twice", cure="Request each column once; a dict can rename columns."
            )
        seen.add(name)
