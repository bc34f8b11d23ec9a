"""Which types files of a version may hold, so that every library opens, scans, takes, appends and compacts them.

::

    map                                     2.2 on
    fixed_size_list<struct>                 2.2 on    alone: beside other columns readers take its items for rows
    list<fixed_size_list<struct>>           2.3       2.2 has no levels for it
    fixed_size_list<string>, of dictionaries   none   no writer but this one ever made pages of them
    fixed_size_binary(0)                    2.2       no bytes to a value: others divide by its width
    fixed_size_list<null>, struct<>         2.0 on

What tables hold from before is read as ever. Whether the *rows* of a column can be stored is asked again where pages are
written (`file.v2.encode21`); here only the type counts, as it does for a table without rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lance_core.arrow.logical import FIXED_SIZE_LIST_OF_STRUCT, LIST_TYPES, MAP, STRUCT, parse_logical
from lance_core.errors import InputError
from lance_core.format.schema import Field, Schema
from lance_core.format.version import FileVersion

_PREFERRED = (FileVersion.V2_2, FileVersion.V2_1, FileVersion.V2_0, FileVersion.V2_3)
"""In which order a version is offered instead: the unstable one last."""

_FLATTEN = "Make it a list, or split the column into several columns."


def check_storable(schema: Schema, version: FileVersion, *, before: Schema | None = None) -> None:
    """InputError, naming the first column that files of the version cannot hold, and the version that can.

    `before` is the schema of the table that columns are added to: columns that it has are left as they are.
    """
    known = before.top_level if before is not None else ()
    for top in schema.top_level:
        if top in known and (len(known) > 1 or {*_scales(schema, top)} == {1}):
            continue
        problem = next(_problems_of_column(schema, top, version), None)
        if problem is not None:
            raise InputError(f"column {problem.path!r} has type {problem.type}: {problem.why}", cure=_cure(schema, top))


def _cure(schema: Schema, top: Field) -> str:
    if {*_scales(schema, top)} != {1}:
        return _FLATTEN  # no version holds it beside other columns
    able = [version for version in _PREFERRED if next(_problems_of_column(schema, top, version), None) is None]
    if able:
        return f"Write the table with data_storage_version={able[0].text!r}."
    return _FLATTEN


def _problems_of_column(schema: Schema, top: Field, version: FileVersion) -> Iterator[_Problem]:
    yield from _problems(schema, top, version)
    if version >= FileVersion.V2_2 and {*_scales(schema, top)} != {1} and _are_uneven(schema, schema.top_level):
        why = "beside other columns, readers take the items of a fixed-size list of structs for rows"
        yield _Problem(top.name, top.logical_type, why)


@dataclass(frozen=True, slots=True)
class _Problem:
    path: str
    type: str
    why: str


def _problems(schema: Schema, field: Field, version: FileVersion, *, in_list: bool = False) -> Iterator[_Problem]:
    logical = field.logical_type
    for why in _reasons(schema, field, version, in_list=in_list):
        yield _Problem(schema.path_of(field.id), logical, why)
    below = in_list or logical in LIST_TYPES or logical == MAP
    for child in schema.children(field.id):
        yield from _problems(schema, child, version, in_list=below)


def _reasons(schema: Schema, field: Field, version: FileVersion, *, in_list: bool) -> Iterator[str]:
    logical = field.logical_type
    if logical == MAP:
        if version < FileVersion.V2_2:
            yield f"{_files(version)} have no maps"
    elif logical.startswith(FIXED_SIZE_LIST_OF_STRUCT):
        yield from _of_structs(field, version, in_list=in_list)
    elif logical == STRUCT:
        children = schema.children(field.id)
        if version.is_legacy and not children:
            yield "legacy files have no structs without fields"
        if version >= FileVersion.V2_2 and _are_uneven(schema, children):
            yield "readers misread the number of rows of a fixed-size list of structs beside other fields"
    elif logical.startswith("fixed_size_list:"):
        yield from _of_values(parse_logical(logical, path=field.name), version)
    elif logical == "fixed_size_binary:0" and version is not FileVersion.V2_2:
        yield f"{_files(version)} have no values without bytes"


def _of_structs(field: Field, version: FileVersion, *, in_list: bool) -> Iterator[str]:
    if version < FileVersion.V2_2:
        yield f"{_files(version)} have no fixed-size lists of structs"
    elif in_list and version is FileVersion.V2_2:
        yield "files of version 2.2 have no fixed-size lists of structs inside of lists"


def _files(version: FileVersion) -> str:
    return "legacy files" if version.is_legacy else f"files of version {version.text}"


def _num_items(field: Field) -> int:
    return int(field.logical_type.removeprefix(FIXED_SIZE_LIST_OF_STRUCT))


def _are_uneven(schema: Schema, fields: Sequence[Field]) -> bool:
    return len({scale for field in fields for scale in _scales(schema, field)}) > 1


def _scales(schema: Schema, field: Field) -> Iterator[int]:
    """How many slots each column below has for one of the field, as far as fixed-size lists of structs multiply them."""
    factor = _num_items(field) if field.logical_type.startswith(FIXED_SIZE_LIST_OF_STRUCT) else 1
    children = schema.children(field.id)
    if field.logical_type in LIST_TYPES or field.logical_type == MAP or not children:
        yield factor
        return
    for child in children:
        yield from (factor * scale for scale in _scales(schema, child))


def _of_values(kind: pa.DataType, version: FileVersion) -> Iterator[str]:
    """Fixed-size lists of values: which items there are."""
    types, item = pa.types, kind
    while types.is_fixed_size_list(item):
        item = item.value_type
    if types.is_dictionary(item):
        yield "there are no fixed-size lists of dictionaries in files of any version"
    elif types.is_fixed_size_binary(item) and not item.byte_width:
        yield "the items of a fixed-size list have at least one byte"
    elif not (types.is_primitive(item) or types.is_decimal(item) or types.is_fixed_size_binary(item) or types.is_null(item)):
        yield "the items of a fixed-size list must have a fixed width"
    elif version.is_legacy and types.is_null(item):
        yield "legacy files have no fixed-size lists of nulls"
