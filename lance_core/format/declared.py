"""Columns that are declared: what their fields say about them, and which hidden column stands beside them.

::

    field 4  "doubled"       {"computed_column": "true", ".kind": "sql", ".expression": "x * 2", ".inputs": "[\"x\"]", ...}
    field 5  "_evidence_4"   {"lance_core.evidence_of": "4:9f2c..."}     hidden: the evidence of field 4, by its id

The first four keys are LanceDB's own (0.40), so that it shows what is declared and refuses what it must; what they cannot
say stands in ours. A field is evidence only of the field with the id that it names, and only while that field carries
the declaration's own id: a column that was cast, or a table that was written again, has no evidence left.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from lance_core.errors import UnknownColumnError
from lance_core.format.schema import NO_PARENT, Field, Schema

DECLARED = "computed_column"
KIND = "computed_column.kind"
EXPRESSION = "computed_column.expression"
INPUTS = "computed_column.inputs"
ID = "lance_core.column.id"
DEFINITION = "lance_core.column.definition"
EVIDENCE_OF = "lance_core.evidence_of"
OWN_KEYS = (DECLARED, KIND, EXPRESSION, INPUTS, ID, DEFINITION)
_ID = re.compile(r"[0-9a-f]{16}")
OTHERS_PREFIX = "computed_refresh."
"""LanceDB's notes about what it computed."""


def text_of(metadata: Mapping[str, bytes], key: str) -> str:
    """The value of a key of a field's metadata, "" where there is none or it is no text."""
    return metadata.get(key, b"").decode("utf-8", "replace")


def is_declared(field: Field) -> bool:
    """Whether the values of a column come from a declaration, ours or LanceDB's."""
    return text_of(field.metadata, DECLARED) == "true"


def is_evidence(field: Field) -> bool:
    """Whether a column is the evidence beside another one, which reads of all columns leave out."""
    return EVIDENCE_OF in field.metadata


def is_filled_by_refresh(metadata: Mapping[bytes, bytes]) -> bool:
    """Whether an Arrow field is of a declared column, or of the evidence beside one: rows that are written have neither."""
    return metadata.get(DECLARED.encode()) == b"true" or EVIDENCE_OF.encode() in metadata


def hides_from_all(schema: Schema) -> frozenset[str]:
    """The names of the columns that a read of all columns leaves out."""
    return frozenset(item.name for item in schema.fields if item.metadata and is_evidence(item))


def without_columns(schema: Schema, names: frozenset[str]) -> Schema:
    """The schema without some of its columns, which have no fields below them."""
    return replace(
        schema, fields=tuple(item for item in schema.fields if item.parent_id != NO_PARENT or item.name not in names)
    )


def declared_fields(schema: Schema) -> Iterator[Field]:
    """The columns that are declared, in the order of the table."""
    return (item for item in schema.fields if item.metadata and item.parent_id == NO_PARENT and is_declared(item))


def is_column_id(text: str) -> bool:
    """Whether a text from a table's metadata is an id of a declaration, which becomes part of a path."""
    return _ID.fullmatch(text) is not None


def column_ids(schema: Schema) -> frozenset[str]:
    """The ids of the declarations in a schema."""
    return frozenset(found for item in declared_fields(schema) if is_column_id(found := text_of(item.metadata, ID)))


def inputs_of(field: Field) -> tuple[str, ...]:
    """The columns, by dotted path, that a declaration reads; () where its metadata does not say so."""
    try:
        told = json.loads(text_of(field.metadata, INPUTS) or "[]")
    except ValueError:
        return ()
    return tuple(told) if isinstance(told, list) and all(isinstance(item, str) for item in told) else ()


def evidence_of(schema: Schema, field: Field) -> Field | None:
    """The evidence of a declared column; None when it has none."""
    mark = f"{field.id}:{text_of(field.metadata, ID)}"
    found = (item for item in schema.fields if item.metadata and text_of(item.metadata, EVIDENCE_OF) == mark)
    return next((item for item in found if item.logical_type == f"fixed_size_binary:{EVIDENCE_SIZE}"), None)


EVIDENCE_SIZE = 12
"""Bytes of evidence for a row."""


def has_path(schema: Schema, path: str) -> bool:
    """Whether a dotted path leads to a field."""
    try:
        schema.find(path)
    except UnknownColumnError:
        return False
    return True


def readers_of(schema: Schema, name: str) -> list[str]:
    """The declared columns that read a column, or a field of it, by name."""
    top = name.partition(".")[0]
    return [item.name for item in declared_fields(schema) if any(path.partition(".")[0] == top for path in inputs_of(item))]
