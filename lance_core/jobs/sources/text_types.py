"""The types of a text file's columns (CSV, JSON lines): one rule, whoever reads the file afterwards.

::

    the table has the column          its type: "01234" stays text in a column of strings, "7" is a float in one of floats
    it has none                       what the first block of the file looks like; a column without a value is text
    bytes that are no UTF-8           refused by file, row and column; they are never taken for binary

Here a type is only chosen. A value that does not fit it is an error when it is read, with its row and column, never a null.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from lance_core.errors import SchemaMismatchError

Kind = Any  # an Arrow data type, told apart at run time

TEXT_FORMATS = ("csv", "json")


def text_types(inferred: pa.Schema, table: pa.Schema | None, *, name: str) -> pa.Schema:
    """The schema to read a file of the format `name` with: the types of `table` where it has the column, else `inferred`."""
    may_be = _FITS[name]
    fields = []
    for field in inferred:
        known = None if table is None or field.name not in table.names else table.field(field.name).type
        kind = known if known is not None and may_be(field.type, known) else _of_its_own(field.type)
        fields.append(pa.field(field.name, kind))
    return pa.schema(fields)


def with_zones(inferred: pa.Schema, texts: pa.Table) -> pa.Schema:
    """The schema with those timestamps as instants whose `texts` name a zone."""
    fields = []
    for field in inferred:
        column = texts[field.name].to_pylist() if field.name in texts.column_names else []
        has_zone = any(_ZONE.search(text) for text in column if text is not None)
        fields.append(pa.field(field.name, pa.timestamp("us", "UTC")) if has_zone else field)
    return pa.schema(fields)


def _of_its_own(kind: Kind) -> Kind:
    """The type of a column that no table has: binary is text in another encoding, and nothing at all is text, too."""
    return pa.string() if pt.is_null(kind) or pt.is_binary(kind) else kind


def _fits_csv(_: Kind, known: Kind) -> bool:
    return any(test(known) for test in _PARSED)


def _fits_json(inferred: Kind, known: Kind) -> bool:
    if pt.is_null(inferred):
        return any(test(known) for test in _PARSED)
    if pt.is_timestamp(inferred):
        return bool(pt.is_string(known) or (pt.is_timestamp(known) and (known.tz is None) == (inferred.tz is None)))
    return bool(_is_number(inferred) and _is_number(known))


def _is_number(kind: Kind) -> bool:
    return bool(pt.is_integer(kind) or pt.is_float32(kind) or pt.is_float64(kind))


_PARSED: tuple[Callable[[Kind], bool], ...] = (
    _is_number, pt.is_boolean, pt.is_string, pt.is_large_string, pt.is_date, pt.is_decimal128,
    lambda kind: bool(pt.is_timestamp(kind) and kind.tz is None),
)  # fmt: skip
"""Types that the readers of text parse. An instant needs a zone in the text: where the column has one the text decides."""

_ZONE = re.compile(r"\d\d:\d\d.*(?:Z|[+-]\d\d(?::?\d\d)?)$")

_FITS: dict[str, Callable[[Kind, Kind], bool]] = {"csv": _fits_csv, "json": _fits_json}

_CSV = re.compile(
    r"In CSV column #(?P<column>\d+): (?:Row #(?P<row>\d+): )?CSV conversion error to (?P<type>[^:]+): (?P<why>.*)"
)
_CSV_WIDTH = re.compile(r"CSV parse error: (?:Row #(?P<row>\d+): )?(?P<why>Expected \d+ columns, got \d+)")
_JSON = re.compile(
    r"JSON parse error: Column\(/(?P<column>[^)]*)\) changed from (?P<have>\w+) to (?P<want>\w+) in row (?P<row>\d+)"
)
_FILE = re.compile(r"CSV input source '(?P<file>[^']+)'|JSON input source '(?P<json>[^']+)'")


def misfit_of(error: Exception, names: list[str], *, path: str = "") -> SchemaMismatchError | None:
    """What Arrow says of a value that does not fit, by file, row and column; None where it says something else."""
    text = str(error)
    found = _FILE.search(text)
    where = (found["file"] or found["json"]) if found else path
    csv, width, json = _CSV.search(text), _CSV_WIDTH.search(text), _JSON.search(text)
    if csv:
        name = names[int(csv["column"])] if int(csv["column"]) < len(names) else f"number {csv['column']}"
        row = f", line {csv['row']}" if csv["row"] else ""
        if "invalid UTF8" in csv["why"]:
            return SchemaMismatchError(
                f"{where}{row}, column {name!r}: not UTF-8 text",
                uri=where or None,
                cure='Name the encoding of the file, such as "options": {"encoding": "latin1"}, or write it as UTF-8.',
            )
        return _refusal(f"{where}{row}, column {name!r}: {csv['why']}, expected {csv['type']}", where)
    if width:
        row = f", line {width['row']}" if width["row"] else ""
        return SchemaMismatchError(f"{where}{row}: {width['why'].lower()}", uri=where or None, cure="Mend the file.")
    if json:
        at = f"{where}, row {int(json['row']) + 1} of its block, column {json['column']!r}"
        return _refusal(f"{at}: the column has both {json['have']} and {json['want']}", where)
    return None


def _refusal(what: str, where: str) -> SchemaMismatchError:
    return SchemaMismatchError(
        what,
        uri=where or None,
        cure='Mend the value, or name the types of the columns in `schema`, such as "schema": "id BIGINT, city STRING".',
    )
