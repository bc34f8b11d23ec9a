"""Convert fragments that were written for one schema to the field ids of another. Pure.

::

    staged for a table to be     id 0 "a" int64, id 1 "b" string
    the table there is           id 0 "b" string, id 4 "a" int64
    DataFile.fields (0, 1)       -> (4, 0); the file itself is not touched: readers go by the manifest's mapping
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lance_core.errors import SchemaMismatchError
from lance_core.format.fragment import Fragment
from lance_core.format.schema import Field, Schema


class _UnfitError(ValueError):
    """Why staged columns do not fit the table."""


def adopt_fragments(
    fragments: Sequence[Fragment], *, staged: Schema, table: Schema, happened: str = "created the table"
) -> tuple[Fragment, ...]:
    """The fragments with their files' field ids translated from `staged` to `table`, matched by path.

    `happened`: what another writer did since they were staged, for the message.

    Raises SchemaMismatchError when a staged column is not in the table, has another type, may hold nulls where the table
    may not, or when a column of the table that may not be null is missing.
    """
    try:
        ids = _match(staged, table)
    except _UnfitError as error:
        raise SchemaMismatchError(
            f"another writer {happened} in the meantime, and {error}",
            cure="Abort this staged transaction and stage it again with the table's schema.",
        ) from None
    if all(old == new for old, new in ids.items()):
        return tuple(fragments)
    return tuple(_translated(fragment, ids) for fragment in fragments)


def _match(staged: Schema, table: Schema) -> dict[int, int]:
    by_path = {table.path_of(field.id): field for field in table.fields}
    ids = {}
    for field in staged.fields:
        path = staged.path_of(field.id)
        ids[field.id] = _fitting(path, field, by_path.get(path)).id
    missing = [field.name for field in table.top_level if not field.nullable and field.id not in ids.values()]
    if missing:
        raise _UnfitError(f"the staged data has no column {missing}, which is not nullable")
    return ids


def _fitting(path: str, field: Field, found: Field | None) -> Field:
    if found is None:
        raise _UnfitError(f"the staged column {path!r} is not in the table")
    if found.logical_type != field.logical_type:
        raise _UnfitError(
            f"column {path!r} is {found.logical_type} in the table and {field.logical_type} in the staged data"
        )
    if field.nullable and not found.nullable:
        raise _UnfitError(f"column {path!r} is not nullable in the table, but nullable in the staged data")
    return found


def _translated(fragment: Fragment, ids: dict[int, int]) -> Fragment:
    files = tuple(replace(file, fields=tuple(ids.get(item, item) for item in file.fields)) for file in fragment.files)
    return replace(fragment, files=files)
