"""A source's rows without Spark: files through pyarrow.dataset, a function that returns Arrow, SQL when DuckDB is installed.

The same `SourceSpec` runs under Spark, so options carry Spark's names and defaults: a CSV has no header unless
`header` says so and its columns are text unless `inferSchema` or `schema` says otherwise. (What `inferSchema` finds may be
wider here than in Spark, int64 for int32; a `schema` is exact.) Nothing is read before `batches()`, except what a schema
needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from lance_core.errors import InputError
from lance_core.jobs.sources.duckdb_sql import query
from lance_core.jobs.sources.files import csv_dataset, open_dataset
from lance_core.jobs.sources.spark_ddl import parse_ddl
from lance_core.jobs.specs.load_function import load_function
from lance_core.jobs.specs.secret import as_secret
from lance_core.jobs.specs.spec import SourceSpec

BATCH_ROWS = 65_536


@dataclass(frozen=True)
class LocalSource:
    """Rows to be read. `num_rows` only where the files' own metadata says it cheaply."""

    schema: pa.Schema
    batches: Callable[[], Iterator[pa.RecordBatch]]
    num_rows: int | None = None


def open_local_source(spec: SourceSpec) -> LocalSource:
    """The source a spec describes. InputError for a missing path, an unknown format or option, or a bad function."""
    if spec.callable:
        function = load_function(spec.callable)
        try:
            rows = function(**spec.kwargs)
        except TypeError as error:
            raise InputError(f"source.callable {spec.callable} does not take these kwargs: {error}") from error
        return source_of(rows, what=f"source.callable {spec.callable}")
    return _from_sql(spec) if spec.sql else _from_files(spec)


def source_of(rows: Any, *, what: str) -> LocalSource:
    """A source from what a function returned: a table, reader, dataset, batches, or any Arrow stream."""
    if isinstance(rows, pa.Table):
        return LocalSource(rows.schema, lambda: iter(rows.to_batches(max_chunksize=BATCH_ROWS)), rows.num_rows)
    if isinstance(rows, pa.RecordBatch):
        return LocalSource(rows.schema, lambda: iter([rows]), rows.num_rows)
    if isinstance(rows, ds.Dataset):
        return LocalSource(rows.schema, lambda: scan(rows))
    if isinstance(rows, pa.RecordBatchReader) or hasattr(rows, "__arrow_c_stream__"):
        reader = rows if isinstance(rows, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(rows)
        return LocalSource(reader.schema, lambda: iter(reader))
    if isinstance(rows, (Iterator, list, tuple)):
        return _from_batches(iter(rows), what)
    raise InputError(
        f"{what} returned {type(rows).__name__}", cure="Return an Arrow table, reader, dataset, or record batches."
    )


def scan(dataset: Any) -> Iterator[pa.RecordBatch]:
    """Batches of a dataset, with little read ahead so that memory stays bounded."""
    try:
        yield from dataset.scanner(batch_size=BATCH_ROWS, batch_readahead=4, fragment_readahead=1).to_batches()
    except pa.ArrowInvalid as error:
        raise InputError(f"the source cannot be read: {error}") from None


def _from_batches(batches: Iterator[Any], what: str) -> LocalSource:
    first = next(batches, None)
    if not isinstance(first, pa.RecordBatch):
        shown = "nothing" if first is None else type(first).__name__
        raise InputError(f"{what} yielded {shown}", cure="Yield at least one record batch, which may be empty.")

    def again() -> Iterator[pa.RecordBatch]:
        yield first
        yield from batches

    return LocalSource(first.schema, again)


def _from_files(spec: SourceSpec) -> LocalSource:
    name = str(spec.format).lower()
    maker = _FORMATS.get(name)
    if maker is None:
        raise InputError(
            f"source format {spec.format!r} cannot be read without Spark",
            cure=f"Run the job with Spark, or use one of {', '.join(sorted(_FORMATS))}.",
        )
    if not spec.paths:
        raise InputError(f"source.paths is empty for format {name}")
    options = {key: as_secret(value, where=f"source.options.{key}").reveal() for key, value in spec.options.items()}
    dataset = maker(spec.paths, options, parse_ddl(spec.schema) if spec.schema else None)
    if options:
        raise InputError(
            f"source option {', '.join(sorted(options))} of {name} is only supported with Spark",
            cure="Omit it, or run the job with Spark.",
        )
    return LocalSource(dataset.schema, lambda: scan(dataset), dataset.count_rows() if name in ("parquet", "orc") else None)


def _from_sql(spec: SourceSpec) -> LocalSource:
    views = {name: open_local_source(view) for name, view in spec.views.items()}
    readers = {name: pa.RecordBatchReader.from_batches(view.schema, view.batches()) for name, view in views.items()}
    reader = query(
        str(spec.sql),
        readers,
        what="source.sql",
        cure="Run the job with Spark, install duckdb, or pass a callable.",
        batch_rows=BATCH_ROWS,
    )
    return LocalSource(reader.schema, lambda: iter(reader))


def _plain_files(file_format: Callable[[], Any]) -> Callable[[tuple[str, ...], dict[str, str], pa.Schema | None], Any]:
    def open_(paths: tuple[str, ...], _: dict[str, str], schema: pa.Schema | None) -> Any:
        return open_dataset(paths, file_format(), schema)

    return open_


def _json(paths: tuple[str, ...], options: dict[str, str], schema: pa.Schema | None) -> Any:
    if options.pop("multiLine", "false").lower() == "true":
        raise InputError("source option multiLine of json needs Spark", cure="Write one JSON object per line.")
    return open_dataset(paths, ds.JsonFileFormat(), schema)


_FORMATS: Mapping[str, Callable[[tuple[str, ...], dict[str, str], Any], Any]] = {
    "arrow": _plain_files(lambda: ds.IpcFileFormat()),
    "parquet": _plain_files(ds.ParquetFileFormat),
    "orc": _plain_files(lambda: ds.OrcFileFormat()),
    "csv": csv_dataset,
    "json": _json,
}
"""A format's way from (paths, options, schema) to a dataset; it takes out of `options` what it understands."""
