"""Read a whole data file and say what is wrong with it: every page decoded, and compared with what the file claims.

    damages(opened)        Damage("x", "data/a.lance: column 'x', page 2: chunk 7 ends behind the page's data")

One damage for each column at most, so that one bad column does not hide another. Checked are: that every page decodes, that
the values are sound for their type (text is UTF-8, offsets ascend, dictionary keys are in range), that columns have as
many rows as the file says, that fields which are not nullable hold no null, and that the statistics of legacy pages hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from lance_core.arrow.cast import check_nulls
from lance_core.arrow.kinds import as_list, as_struct
from lance_core.errors import CorruptFileError, FormatError, SchemaMismatchError
from lance_core.file.error_location import located
from lance_core.file.open_file import OpenFile
from lance_core.file.v1.reader import LegacyFile
from lance_core.format.schema import Field, Schema
from lance_core.shortage import ARROW_ERRORS

_BATCH_ROWS = 8192
_BATCH_BYTES = 32 << 20
_OLD_BLOB = ("position", "size")


@dataclass(frozen=True, slots=True)
class Damage:
    """What is wrong with one column; `column` is empty when it is the whole file."""

    column: str
    message: str


def damages(opened: OpenFile, schema: Schema | None = None, *, num_rows: int | None = None) -> Iterator[Damage]:
    """Everything that is wrong with the file, one after the other; nothing for a whole one.

    `schema`: the fields to read, as the table has them; the file's own when None. `num_rows`: what the table says of the
    file. Bytes that cannot be reached (StoreError, NotFoundError) are no damage of the file: those errors are raised.
    """
    try:
        known, rows = opened.schema if schema is None else schema, opened.num_rows
    except FormatError as error:
        yield Damage("", str(error))
        return
    if num_rows is not None and rows != num_rows:
        yield Damage("", f"{opened.path}: the file has {rows} rows, expected {num_rows} according to the manifest")
    for field in known.top_level:
        message = _wrong(opened, known.project([field.id]), field, rows)
        if message is not None:
            yield Damage(field.name, message)


def check_file(opened: OpenFile, schema: Schema | None = None, *, num_rows: int | None = None) -> None:
    """CorruptFileError for the first of the `damages`."""
    for damage in damages(opened, schema, num_rows=num_rows):
        raise CorruptFileError(damage.message, cure="Restore the file from a copy, or delete its fragment.")


def _wrong(opened: OpenFile, schema: Schema, field: Field, num_rows: int) -> str | None:
    try:
        with located(opened.path, column=field.name):
            _read(opened, schema, field, num_rows)
            if isinstance(opened, LegacyFile):
                _check_statistics(opened, schema, field)
    except FormatError as error:
        return str(error)
    return None


def _read(opened: OpenFile, schema: Schema, field: Field, num_rows: int) -> None:
    """All rows of one field."""
    read = 0
    # Blobs out of line are read by their descriptors: there is no end to what they may take.
    projection = opened.project(schema, blobs="descriptions")
    for batch in projection.read(batch_size=min(_BATCH_ROWS, projection.rows_within(_BATCH_BYTES))):
        column = batch.column(0)
        last = read + len(column)
        try:
            column.validate(full=True)
        except ARROW_ERRORS as error:
            raise CorruptFileError(f"rows {read} to {last} are not valid values of type {column.type}: {error}") from error
        try:
            check_nulls(column, batch.schema.field(0), path=field.name, first_row=read)
        except SchemaMismatchError as error:
            raise CorruptFileError(str(error)) from error
        _check_places(opened, column)
        read = last
    if read != num_rows:
        raise CorruptFileError(f"{read} rows were read, expected {num_rows} according to the file")


def _check_places(opened: OpenFile, column: pa.Array[Any]) -> None:
    """Whether blobs of files before 2.2 are in their file."""
    if not pa.types.is_struct(column.type) or tuple(column.type.names) != _OLD_BLOB:
        return
    start, size = as_struct(column).flatten()
    ends = pc.if_else(pc.greater(size, pa.scalar(0, size.type)), pc.add(start, size), pa.scalar(0, start.type))
    last = pc.max(ends).as_py() or 0
    if last > opened.file_size:
        raise CorruptFileError(f"a blob ends at byte {last}, the file has {opened.file_size} bytes")


def _check_statistics(opened: LegacyFile, schema: Schema, field: Field) -> None:
    """Lowest and highest value of each batch of a legacy file, which readers use to leave batches out."""
    found = opened.statistics(field.id) if field.id in opened.schema.by_id else None
    if found is None or len(found) == 0:
        return
    starts = opened.tables.metadata.batch_offsets
    for number, bounds in enumerate(cast("list[Any]", as_list(found).to_pylist())):
        (table,) = [pa.Table.from_batches(opened.read(schema, ranges=[(starts[number], starts[number + 1])]))]
        values = table.column(0)
        # Nulls are stored as zeros or empty values, and counted: such values say nothing.
        if bounds["null_count"] or not _is_ordered(values.type):
            continue
        extremes: Any = pc.min_max(values).as_py()
        for name, is_within in (("min", _is_at_most), ("max", _is_at_least)):
            bound, value = bounds[f"{name}_value"], extremes[name]
            if bound is not None and value is not None and not is_within(bound, value):
                raise CorruptFileError(f"batch {number} holds {value!r}, but its statistics state the {name}imum {bound!r}")


def _is_ordered(arrow_type: pa.DataType) -> bool:
    # Texts may be cut, and floats have NaN and two zeros: bounds of whole numbers are exact.
    return bool(pa.types.is_integer(arrow_type))


def _is_at_most(bound: int, value: int) -> bool:
    return bound <= value


def _is_at_least(bound: int, value: int) -> bool:
    return bound >= value
