"""Consistency rules for the fields of a table's schema.

::

    contradiction([id 0 "a", id 1 "a"])         "two columns are named 'a'"
    contradiction([id 0 "a" int64, id 1 "b" below 0])    "field 1 ('b') is below field 0 ('a'), which is of type int64"

Ids and the names of columns say which values are meant: one that occurs twice says nothing. Names may differ by their case
alone, and children of one struct may share a name, as the official library has it: children are distinguished by their ids.
"""

from __future__ import annotations

from collections.abc import Sequence

from lance_core.format.schema import NO_PARENT, Field

_LEAVES = frozenset({
    "null", "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "halffloat", "float", "double",
    "string", "large_string", "binary", "large_binary", "json", "date32", "date64", "time32", "time64", "duration",
    "timestamp", "decimal", "dict", "fixed_size_binary",
})  # fmt: skip
"""The kinds of values that hold no fields. What this release does not know may hold some."""


RESERVED_NAMES = frozenset({"_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"})
"""Columns that every table has without storing them. Where one is stored, the official library reads the table no more."""


_MARKS = {
    ".": "a dot leads to a field of a struct",
    "`": "backticks are around names in filters",
    "\0": "other libraries end a name at its zero character",
}
"""What would make a name one that nobody can select."""


def contradiction(fields: Sequence[Field]) -> str:
    """What is wrong with the columns of a table as a sentence without its full stop; "" when nothing is.

    That ids occur once and that parents exist is checked wherever a schema is decoded, in data files too.
    """
    if len({item.name for item in fields if item.id >= 0 and item.parent_id == NO_PARENT}) == len(fields):
        return ""  # columns without children, with names of their own: a table has thousands of them
    names: set[str] = set()
    parents: dict[int, Field] = {}
    for item in fields:
        if item.id < 0:
            return f"field {item.name!r} of the schema has the negative id {item.id}"
        if item.parent_id == NO_PARENT:
            if item.name in names:
                return f"two columns are named {item.name!r}"
            names.add(item.name)
        parent = parents.get(item.parent_id)
        if parent is not None and parent.logical_type.partition(":")[0] in _LEAVES:
            return (
                f"field {item.id} ({item.name!r}) is below field {parent.id} ({parent.name!r}) of type {parent.logical_type}"
            )
        parents[item.id] = item
    return ""


def unusable_name(name: str) -> str:
    """Why a new column of a table cannot have a name, as a sentence without its full stop; "" when it can.

    Columns that have such a name already stay readable. Fields of structs may have any.
    """
    if not name:
        return "a column needs a name, got an empty one"
    if name in RESERVED_NAMES:
        return f"no column can be named {name!r}, which every table has without storing it"
    found = next((mark for mark in _MARKS if mark in name), None)
    return "" if found is None else f"no column can be named {name!r}: {_MARKS[found]}"
