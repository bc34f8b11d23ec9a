"""Check data against the schema of a table. Columns are matched by name in any order; nullable columns may be missing.

table  a: int64 (id 0), b: string (id 1)
data   b: string                            -> the table's field b (id 1); a will read as null
data   a: int32                             -> SchemaMismatchError: column 'a': expected int64, got int32
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lance_core.arrow.logical import BLOB_V2
from lance_core.errors import SchemaMismatchError
from lance_core.format.schema import NO_PARENT, Field, Schema


def check_compatible(table_schema: Schema, data_schema: Schema, *, partial: bool = False) -> Schema:
    """The table's fields that the data provides, with the table's ids, in the order of the data.

    That is the schema to write the data's files with. Types must be equal (views and extension wrappers were resolved by
    `schema_from_arrow`); whether a field may hold nulls is decided by the values, not by the data's schema. With `partial`
    columns that may not be null may be missing, because the rows have them already.
    Raises SchemaMismatchError listing every column that does not fit, what was expected and what was found.
    """
    problems: list[str] = []
    fields = list(_match(table_schema, NO_PARENT, data_schema, NO_PARENT, "", problems, partial=partial))
    if problems:
        raise SchemaMismatchError(
            f"the data does not match the schema of the table: {'; '.join(problems)}",
            cure="Select, rename or cast the columns before writing.",
        )
    return replace(table_schema, fields=tuple(fields))


def _match(
    table: Schema,
    table_parent: int,
    data: Schema,
    data_parent: int,
    prefix: str,
    problems: list[str],
    *,
    partial: bool = False,
) -> Iterator[Field]:
    expected = {item.name: item for item in table.children(table_parent)}
    got = data.children(data_parent)
    for item in got:
        path = prefix + item.name
        field = expected.pop(item.name, None)
        if field is None:
            known = ", ".join(known.name for known in table.children(table_parent))
            problems.append(f"column {path!r} is not in the table (it has {known})")
        elif not _same_type(field, item):
            problems.append(f"column {path!r}: expected {_describe(field)}, got {_describe(item)}")
        else:
            yield field
            yield from _match_children(table, field, data, item, path, problems)
    for field in expected.values():
        if not field.nullable and not partial:
            problems.append(f"column {prefix + field.name!r} ({_describe(field)}, not nullable) is missing from the data")


def _match_children(
    table: Schema, field: Field, data: Schema, item: Field, path: str, problems: list[str]
) -> Iterator[Field]:
    if field.extension_name == BLOB_V2:
        # A blob's children describe how it is stored, which may differ from writer to writer.
        yield from (child for child in table.descend(field.id) if child.id != field.id)
        return
    yield from _match(table, field.id, data, item.id, f"{path}.", problems)


def _same_type(field: Field, item: Field) -> bool:
    # "list" and "list.struct" say the same thing twice; the child decides.
    same = field.logical_type.removesuffix(".struct") == item.logical_type.removesuffix(".struct")
    return same and (field.extension_name == BLOB_V2) == (item.extension_name == BLOB_V2)


def _describe(field: Field) -> str:
    return f"{field.logical_type} ({field.extension_name})" if field.extension_name == BLOB_V2 else field.logical_type
