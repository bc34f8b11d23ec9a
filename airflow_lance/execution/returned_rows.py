"""What a function returned, as one Arrow file: batch by batch, so that memory stays bounded for an iterator.

::

    write_rows(pandas.DataFrame(...), path, what="the function load of task load")     -> rows.arrow
    write_rows(3, path, what=...)                                                      -> InputError that names the function
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from lance_core.errors import InputError


def write_rows(rows: Any, path: Path, *, what: str) -> int:
    """Write them; returns how many there were. InputError for what holds no rows, or for batches of several schemas."""
    count, schema, writer = 0, None, None
    try:
        for batch in batches_of(rows, what=what):
            if writer is None or schema is None:
                schema = batch.schema
                writer = pa.ipc.new_file(str(path), schema)
            if not batch.schema.equals(schema):
                raise InputError(
                    f"{what} returned batches with different schemas: first {_shown(schema)}, then {_shown(batch.schema)}",
                    cure="Return the same columns and types in every batch.",
                )
            writer.write_batch(batch)
            count += batch.num_rows
    finally:
        if writer is not None:
            writer.close()
    if writer is None:
        raise InputError(f"{what} returned no rows and no columns", cure="Return an empty table with the columns instead.")
    return count


def batches_of(rows: Any, *, what: str) -> Iterator[pa.RecordBatch]:
    """Record batches of whatever holds rows."""
    table = _whole(rows, what=what)
    if table is not None:
        yield from table.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]
    elif isinstance(rows, ds.Dataset):
        yield from rows.to_batches()
    elif isinstance(rows, pa.RecordBatchReader) or hasattr(rows, "__arrow_c_stream__"):
        reader = rows if isinstance(rows, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(rows)
        empty = True
        for batch in reader:
            empty = False
            yield batch
        if empty:
            yield pa.RecordBatch.from_pylist([], schema=reader.schema)
    elif isinstance(rows, Iterator) or (isinstance(rows, (list, tuple)) and rows):
        for item in rows:
            if isinstance(item, (Iterator, list, tuple)):
                raise _refusal(item, what)
            yield from batches_of(item, what=what)
    else:
        raise _refusal(rows, what)


def _whole(rows: Any, *, what: str) -> pa.Table | None:
    """A table, where the rows are in memory as a whole; None for what is read piece by piece."""
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    try:
        if type(rows).__module__.split(".")[0] == "pandas" and hasattr(rows, "columns"):
            return pa.Table.from_pandas(rows, preserve_index=False).replace_schema_metadata(None)
        if isinstance(rows, Mapping):
            return pa.table(dict(rows))
        if isinstance(rows, list) and rows and all(isinstance(item, Mapping) for item in rows):
            return pa.Table.from_pylist([dict(item) for item in rows])
    except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError) as error:
        raise InputError(f"{what} returned rows that Arrow cannot hold: {error}") from error
    return None


def _refusal(rows: object, what: str) -> InputError:
    return InputError(
        f"{what} returned {'nothing' if rows is None else type(rows).__name__}",
        cure="Return an Arrow table, reader or dataset, a pandas or Polars frame, a list of rows, or an iterator of these.",
    )


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
