"""Packed structs: the fields of one are stored together, so a file with one of them has all of them, and all are read.

::

    the table  p struct (packed)  x, y        file  p in one column      requested: p.y
    -> read p with x and y, as the file's own schema lists them; p.x is dropped afterwards

A field that the file packed and the table no longer has is read too, under a name that nobody asks for.
"""

from __future__ import annotations

from dataclasses import replace

from lance_core.arrow.extension import BLOB_V2
from lance_core.arrow.logical import STRUCT
from lance_core.file.convert.tree import is_packed
from lance_core.format.schema import Field, Schema


def is_packed_struct(item: Field) -> bool:
    """Whether a field is a struct whose fields are stored in one column (blobs have readers of their own)."""
    return item.logical_type == STRUCT and item.extension_name != BLOB_V2 and is_packed(item)


def has_packed_structs(schema: Schema) -> bool:
    """Whether any field is a packed struct."""
    return any(is_packed_struct(item) for item in schema.fields)


def with_whole_structs(part: Schema, own: Schema) -> Schema:
    """The part of the table's schema with all the fields that the file, whose schema is `own`, packed with some of it."""
    if not any(is_packed_struct(item) and _ids(part, item.id) != _ids(own, item.id) for item in part.fields):
        return part
    fields: list[Field] = []
    inside: set[int] = set()
    for item in part.fields:
        if item.id in inside:
            continue
        fields.append(item)
        if is_packed_struct(item) and item.id in own.by_id:
            below = [child for child in own.descend(item.id) if child.id != item.id]
            inside.update(child.id for child in part.descend(item.id))
            inside.update(child.id for child in below)
            fields.extend(part.by_id.get(child.id) or _unnamed(child) for child in below)
    return Schema(tuple(fields), part.metadata)


def _ids(schema: Schema, field_id: int) -> list[int]:
    return [item.id for item in schema.descend(field_id)] if field_id in schema.by_id else []


def _unnamed(item: Field) -> Field:
    return replace(item, name=f"\N{MIDDLE DOT}{item.id}")
