"""Properties of a new table in SQL that say how its columns are stored, by the names that lance-spark has for them.

::

    'v.arrow.fixed-size-list.size' = '128'      a vector: ARRAY<FLOAT> or ARRAY<DOUBLE> becomes a list of a fixed size
    'v.arrow.float16' = 'true'                  its numbers are stored in half the width
    'body.arrow.large_var_char' = 'true'        texts with offsets of 64 bits
    'body.lance.compression' = 'zstd'           and compression-level, structural-encoding, rle-threshold, bss
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from lance_core.errors import InputError

_ENCODINGS = {
    "compression": ("zstd", "lz4", "fsst", "none"),
    "compression-level": (),
    "structural-encoding": ("miniblock", "fullzip"),
    "rle-threshold": (),
    "bss": ("off", "on", "auto"),
}
"""Names behind `COLUMN.lance.`, each with the words that it takes; none: a number."""


def with_properties(schema: pa.Schema, properties: dict[str, str]) -> pa.Schema:
    """The columns as their properties have them, which are taken out. InputError for one that does not fit its column."""
    fields = {field.name: field for field in schema}
    for suffix, make in _MAKERS.items():
        for name in [name for name in properties if name.endswith(suffix)]:
            column, value = name.removesuffix(suffix), properties.pop(name)
            made = None if column not in fields else make(fields[column], value.strip())
            if made is None:
                raise InputError(f"property {name!r}: {_EXPECTED[suffix]}, got {value!r}")
            fields[column] = made
    return pa.schema([*fields.values()])


def _sized(field: Any, value: str) -> Any:
    if not pt.is_list(field.type) or not value.isdigit() or not int(value):
        return None
    item: Any = pa.field("item", field.type.value_type)
    return field.with_type(pa.list_(item, int(value)))


def _halved(field: Any, value: str) -> Any:
    kind = field.type
    if value.lower() != "true" or not pt.is_fixed_size_list(kind) or not pt.is_float32(kind.value_type):
        return None
    item: Any = pa.field("item", pa.float16())
    return field.with_type(pa.list_(item, kind.list_size))


def _large(field: Any, value: str) -> Any:
    return field.with_type(pa.large_string()) if value.lower() == "true" and pt.is_string(field.type) else None


def _blob(field: Any, value: str) -> Any:
    return None  # a blob is read as where it is, and SQL has no way to write one


def _encoded(name: str) -> Callable[[Any, str], Any]:
    words = _ENCODINGS[name]

    def make(field: Any, value: str) -> Any:
        fits = value.lower() in words if words else _is_number(value)
        return _noted(field, f"lance-encoding:{name}", value.lower()) if fits else None

    return make


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _noted(field: Any, name: str, value: str) -> Any:
    return field.with_metadata({**(field.metadata or {}), name.encode(): value.encode()})


_MAKERS: Mapping[str, Callable[[Any, str], Any]] = {
    ".arrow.fixed-size-list.size": _sized,
    ".arrow.float16": _halved,
    ".arrow.large_var_char": _large,
    ".lance.encoding": _blob,
    **{f".lance.{name}": _encoded(name) for name in _ENCODINGS},
}
_EXPECTED: Mapping[str, str] = {
    ".arrow.fixed-size-list.size": "expected a column of ARRAY<FLOAT> or ARRAY<DOUBLE> and a size from 1 on",
    ".arrow.float16": "expected a vector of ARRAY<FLOAT> and 'true'",
    ".arrow.large_var_char": "expected a column of STRING and 'true'",
    ".lance.encoding": "Spark's SQL cannot write blobs; leave it out and use BINARY, or make the column with the library",
    **{
        f".lance.{name}": f"expected a column and {' | '.join(words) if words else 'a number'}"
        for name, words in _ENCODINGS.items()
    },
}
