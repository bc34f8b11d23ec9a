"""Convert user data to one schema and a stream of record batches.

::

    pa.Table, RecordBatch, RecordBatchReader, pandas or polars frame, pyarrow dataset or scanner, our LanceDataset,
    {"a": [1, 2]}, [{"a": 1}, {"a": 2}], batches with schema=..., anything with __arrow_c_stream__

A generator is streamed, never collected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from lance_core.errors import InputError, SchemaMismatchError, WrongTypeError
from lance_core.shortage import ARROW_ERRORS


class ArrowStream(Protocol):
    """Anything that speaks the Arrow C stream interface: tables, readers, frames of pandas and polars, `LanceDataset`."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A capsule with the stream."""
        ...


ReaderLike = ArrowStream | pa.Table | pa.RecordBatch | pa.RecordBatchReader | Mapping[str, Any] | Iterable[Any]
"""What may be written to a table."""


@dataclass(frozen=True)
class DataSource:
    """Rows to write: their schema, and their batches, to be run through once."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


def open_source(data: Any, schema: pa.Schema | None = None) -> DataSource:
    """Data as a source. `schema` is required for an iterable of batches, and casts or selects columns otherwise.

    Raises InputError for what is no data, SchemaMismatchError when it does not have the schema.
    """
    if schema is not None and not isinstance(schema, pa.Schema):
        raise InputError(f"schema must be a pyarrow.Schema, got {type(schema).__name__}")
    for test, convert in _KINDS:
        if test(data):
            return convert(data, schema)
    raise WrongTypeError(
        f"cannot write {type(data).__name__}",
        cure="Pass a pyarrow Table, batches with a schema, a reader, a pandas frame, a dict of columns or a list of dicts.",
    )


def _table(data: Any, schema: pa.Schema | None) -> DataSource:
    table = data if schema is None or data.schema.equals(schema) else _cast(data, schema)
    return DataSource(table.schema, iter(table.to_batches()))


def _cast(table: pa.Table, schema: pa.Schema) -> pa.Table:
    missing = [name for name in schema.names if name not in table.column_names]
    if missing:
        raise SchemaMismatchError(f"the data has no columns {', '.join(missing)}, which the schema requires")
    try:
        return table.select(schema.names).cast(schema)
    except (*ARROW_ERRORS, ValueError) as error:
        raise SchemaMismatchError(f"the data cannot be cast to the given schema: {error}") from error


def _batch(data: Any, schema: pa.Schema | None) -> DataSource:
    return _table(pa.Table.from_batches([data]), schema)


def _reader(data: Any, schema: pa.Schema | None) -> DataSource:
    if schema is None or data.schema.equals(schema):
        return DataSource(data.schema, _read_all(data))
    return DataSource(schema, (part for batch in _read_all(data) for part in _cast_batch(batch, schema)))


def _read_all(reader: Any) -> Iterator[pa.RecordBatch]:
    yield from reader


def _cast_batch(batch: pa.RecordBatch, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    yield from _cast(pa.Table.from_batches([batch]), schema).to_batches()


def _frame(data: Any, schema: pa.Schema | None) -> DataSource:
    try:
        table = pa.Table.from_pandas(data, schema=schema, preserve_index=False)
    except (*ARROW_ERRORS, TypeError, ValueError) as error:
        raise SchemaMismatchError(f"the pandas frame cannot be written: {error}") from error
    return _table(table.replace_schema_metadata(None if schema is None else schema.metadata), None)


def _mapping(data: Mapping[str, Any], schema: pa.Schema | None) -> DataSource:
    return _table(_converted(lambda: pa.Table.from_pydict(dict(data), schema=schema)), None)


def _records(data: Any, schema: pa.Schema | None) -> DataSource:
    return _table(_converted(lambda: pa.Table.from_pylist(list(data), schema=schema)), None)


def _converted(convert: Callable[[], pa.Table]) -> pa.Table:
    try:
        return convert()
    except (*ARROW_ERRORS, TypeError, ValueError, KeyError) as error:
        raise SchemaMismatchError(f"the values cannot be converted to columns: {error}") from error


def _arrow_dataset(data: Any, schema: pa.Schema | None) -> DataSource:
    return _reader(data.scanner().to_reader(), schema)


def _to_reader(data: Any, schema: pa.Schema | None) -> DataSource:
    return _reader(data.to_reader(), schema)


def _stream(data: Any, schema: pa.Schema | None) -> DataSource:
    return _reader(pa.RecordBatchReader.from_stream(data), schema)


def _batches(data: Iterable[Any], schema: pa.Schema | None) -> DataSource:
    if schema is None:
        raise InputError("an iterable of record batches needs a schema", cure="Pass schema=.")
    wanted = schema
    return DataSource(wanted, (part for item in data for part in _conform(item, wanted)))


def _conform(item: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    if isinstance(item, pa.Table):
        yield from _table(item, schema).batches
        return
    if not isinstance(item, pa.RecordBatch):
        raise InputError(f"expected record batches, got {type(item).__name__}")
    yield from (item,) if item.schema.equals(schema) else _cast_batch(item, schema)


def _is_frame(data: Any) -> bool:
    return type(data).__module__.split(".", 1)[0] == "pandas" and type(data).__name__ == "DataFrame"


def _is_arrow_dataset(data: Any) -> bool:
    return hasattr(data, "scanner") and any(kind.__module__ == "pyarrow._dataset" for kind in type(data).__mro__)


def _is_records(data: Any) -> bool:
    return isinstance(data, list) and bool(data) and isinstance(data[0], Mapping)


_KINDS: tuple[tuple[Callable[[Any], bool], Callable[[Any, pa.Schema | None], DataSource]], ...] = (
    (lambda data: isinstance(data, pa.Table), _table),
    (lambda data: isinstance(data, pa.RecordBatch), _batch),
    (lambda data: isinstance(data, pa.RecordBatchReader), _reader),
    (_is_frame, _frame),
    (_is_arrow_dataset, _arrow_dataset),
    (lambda data: hasattr(data, "to_reader"), _to_reader),
    (lambda data: hasattr(data, "__arrow_c_stream__"), _stream),
    (lambda data: isinstance(data, Mapping), _mapping),
    (_is_records, _records),
    (lambda data: isinstance(data, Iterable) and not isinstance(data, (str, bytes)), _batches),
)
"""In order: the first test that holds decides."""
