"""Values of dictionary columns in the manifests of legacy (0.1) tables, which keep them in front of the sections.

    "abc" | i64 0 1 2 3 | ...            field c: dictionary {offset 3, length 3} -> values a, b, c

Strings and bytes come first and are found by their offsets, which count from the start of the file and are what the field
points at; numbers are there themselves. Every version of the table carries the values again. (Spec: legacy files.)
"""

from __future__ import annotations

import itertools
import struct
from dataclasses import replace

from lance_core.errors import CorruptFileError
from lance_core.format.schema import Field, LegacyDictionary, Schema

_VARIABLE = frozenset({"string", "large_string", "binary", "large_binary"})
_WIDTHS = {f"{sign}int{bits}": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)}


def _value_type(field: Field) -> str:
    """What a dictionary holds: `dict:string:int8:false` -> `string`."""
    return field.logical_type.removeprefix("dict:").rsplit(":", 2)[0]


def with_values(schema: Schema, data: bytes) -> Schema:
    """The schema with the values its dictionaries point at in `data`, the whole file. CorruptFileError when they do not."""
    if all(field.dictionary is None for field in schema.fields):
        return schema
    return Schema(tuple(_with_values(field, data) for field in schema.fields), schema.metadata)


def _with_values(field: Field, data: bytes) -> Field:
    if field.dictionary is None:
        return field
    offset, length = field.dictionary.offset, field.dictionary.length
    kind = _value_type(field)
    width = 8 if kind in _VARIABLE else _WIDTHS.get(kind, 0)
    if not width:
        return field
    size = width * (length + 1 if kind in _VARIABLE else length)
    if offset < 0 or length < 0 or offset + size > len(data):
        raise CorruptFileError(
            f"the dictionary of field {field.name!r} declares {length} values at byte {offset}, "
            f"the file has {len(data)} bytes"
        )
    if kind not in _VARIABLE:
        values = tuple(data[at : at + width] for at in range(offset, offset + size, width))
    else:
        ends = struct.unpack_from(f"<{length + 1}q", data, offset)
        if any(not 0 <= start <= end <= len(data) for start, end in itertools.pairwise(ends)):
            raise CorruptFileError(f"the dictionary of field {field.name!r} has values outside the file")
        values = tuple(data[start:end] for start, end in itertools.pairwise(ends))
    return replace(field, dictionary=replace(field.dictionary, values=values))


def encode_dictionaries(schema: Schema) -> tuple[Schema, bytes]:
    """The schema as a new file says it, and the bytes that this file begins with.

    A dictionary whose values are not known is left out: what it pointed at was another file.
    """
    if all(field.dictionary is None for field in schema.fields):
        return schema, b""
    parts = bytearray()
    fields = []
    for field in schema.fields:
        found = field.dictionary
        if found is None or found.values is None:
            fields.append(field if found is None else replace(field, dictionary=None))
            continue
        start = len(parts)
        parts += b"".join(found.values)
        if _value_type(field) in _VARIABLE:
            ends = [start]
            for value in found.values:
                ends.append(ends[-1] + len(value))
            start = len(parts)
            parts += struct.pack(f"<{len(ends)}q", *ends)
        fields.append(replace(field, dictionary=LegacyDictionary(start, len(found.values), found.values)))
    return Schema(tuple(fields), schema.metadata), bytes(parts)
