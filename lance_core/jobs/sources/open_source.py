"""A source's rows without Spark: files through pyarrow.dataset, Lance tables, a function that returns Arrow, and SQL over
such sources when DuckDB is installed.

The same `SourceSpec` runs under Spark, so options carry Spark's names and defaults: a CSV has no header unless
`header` says so and its columns are text unless `inferSchema` or `schema` says otherwise. (What `inferSchema` finds may be
wider here than in Spark, int64 for int32; a `schema` is exact.) Nothing is read before `batches()`, except what a schema
needs.

Paths of a source -> one pyarrow dataset: files, folders, glob patterns and uris, refused by name when absent.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc_csv

from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import InputError, SourceMissingError
from lance_core.jobs.sources.duckdb_sql import query
from lance_core.jobs.sources.lance_table import OptionsOf, batches_of, no_options, open_lance
from lance_core.jobs.sources.source_files import SourceFile, data_files, expanded, local_files, remote_files
from lance_core.jobs.sources.spark_ddl import parse_ddl
from lance_core.jobs.sources.text_types import misfit_of, text_types, with_zones
from lance_core.jobs.specs.load_function import load_function
from lance_core.jobs.specs.secret import as_secret
from lance_core.jobs.specs.spec import SourceSpec


@dataclass(frozen=True)
class Listed:
    """A path of a source and the files that it stands for; `where` and `filesystem` as Arrow takes them."""

    path: str
    where: Any
    filesystem: Any
    files: tuple[SourceFile, ...]


def list_path(path: str) -> Listed:
    """What a path stands for now. SourceMissingError for nothing, InputError for what cannot be listed."""
    try:
        if "://" in path:
            filesystem, infos, files = remote_files(path)
            listed = Listed(path, infos, filesystem, files)
        else:
            found = data_files(path)
            listed = Listed(path, path if expanded(path) == [path] else found, None, local_files(found))
    except SourceMissingError:
        raise  # late data, which `on_missing` is for
    except FileNotFoundError:
        raise SourceMissingError(f"source path {path} does not exist", uri=path) from None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise unreadable(error, path=path) from None
    if not listed.files:
        raise SourceMissingError(f"source path {path} contains no file", uri=path)
    return listed


def datasets() -> ModuleType:
    """`pyarrow.dataset`, which imports pandas where that is installed: only who reads through it pays for both."""
    import pyarrow.dataset

    return pyarrow.dataset


def open_dataset(paths: Sequence[Listed], file_format: Any, schema: pa.Schema | None) -> Any:
    """A dataset over all paths. InputError that names the path which cannot be read."""
    parts = [_part(path, file_format, schema) for path in paths]
    try:
        return parts[0] if len(parts) == 1 else datasets().dataset(parts)
    except pa.ArrowInvalid as error:
        raise InputError(f"the files of the source have different schemas: {error}") from None


def csv_dataset(
    paths: Sequence[Listed], options: dict[str, str], schema: pa.Schema | None, table: pa.Schema | None = None
) -> Any:
    """CSV as Spark reads it: columns `_c0`, `_c1`, ... without a header, all text unless `inferSchema`, a schema, or `table`
    says otherwise, which has the types of the table's columns."""
    header = options.pop("header", "false").lower() == "true"
    infer = options.pop("inferSchema", "false").lower() == "true"
    parse = pc_csv.ParseOptions(
        delimiter=options.pop("sep", options.pop("delimiter", ",")), quote_char=options.pop("quote", '"')
    )
    # Spark takes an empty unquoted value for null, whatever nullValue says.
    convert = pc_csv.ConvertOptions(
        null_values=sorted({"", options.pop("nullValue", "")}), strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    encoding = options.pop("encoding", "utf8")

    def of(names: list[str] | None) -> Any:
        read = pc_csv.ReadOptions(
            encoding=encoding, column_names=names, autogenerate_column_names=not header and names is None
        )
        return datasets().CsvFileFormat(parse_options=parse, default_fragment_scan_options=None, read_options=read,
                                convert_options=convert)  # fmt: skip

    def typed(found: pa.Schema) -> pa.Schema:
        return text_types(found if infer else _all_text(found.names), table, name="csv")

    if schema is not None:
        return open_dataset(paths, of(None if header else schema.names), schema)
    inferred = open_dataset(paths, of(None), None).schema
    names = None if header else [f"_c{index}" for index in range(len(inferred))]
    found = inferred if names is None or not infer else open_dataset(paths, of(names), None).schema
    dataset = open_dataset(paths, of(names), typed(found if names is None or infer else _all_text(names)))
    if any(pa.types.is_binary(field.type) for field in inferred):
        _require_text(dataset)
    return dataset


def _require_text(dataset: Any) -> None:
    """SchemaMismatchError names the bytes at the beginning of the files that are no text."""
    try:
        dataset.head(1)
    except pa.ArrowInvalid as error:
        raise unreadable(error, names=dataset.schema.names) from None


def _all_text(names: list[str]) -> pa.Schema:
    return pa.schema([pa.field(name, pa.string()) for name in names])


def _part(listed: Listed, file_format: Any, schema: pa.Schema | None) -> Any:
    path = listed.path
    try:
        part = datasets().dataset(listed.where, filesystem=listed.filesystem, format=file_format, schema=schema)
    except FileNotFoundError:
        raise SourceMissingError(f"source path {path} does not exist", uri=path) from None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise unreadable(error, path=path, names=None if schema is None else schema.names) from None
    if not part.files:
        raise SourceMissingError(f"source path {path} contains no file", uri=path)
    return part


_UNFINISHED = re.compile(
    r"""'(?P<file>[^']+)':\ (?:Invalid:\ )?(?P<why>
        Parquet\ (?:file\ size\ is\ \d+\ bytes|magic\ bytes\ not\ found\ in\ footer)
        | (?:File\ is\ too\ small|Not\ an\ Arrow\ file|File\ size\ too\ small|Invalid\ ORC\ postscript\ length)
        | (?:CSV\ parse\ error:\ Empty\ CSV\ file|Empty\ JSON\ stream)
    )""",
    re.VERBOSE,
)
"""How Arrow says of a file that it has no bytes, or no end: a writer has not finished it."""
_MAGIC = (b"PAR1", b"ARROW1", b"ORC")


def is_unfinished(error: Exception) -> bool:
    """Whether an error of Arrow says that a file has no bytes, or a beginning of its format and no end."""
    found = _UNFINISHED.search(str(error))
    return found is not None and _begins_well(found["file"])


def _begins_well(file: str) -> bool:
    path = Path(file)
    if not path.is_file():
        return True  # of a file elsewhere the end is all that is known
    with path.open("rb") as opened:
        start = opened.read(6)
    return not start or start.startswith(_MAGIC) or any(magic.startswith(start) for magic in _MAGIC)


def unreadable(error: Exception, *, path: str = "", names: list[str] | None = None) -> InputError | SourceMissingError:
    """What an error of Arrow means for whoever waits for a file: it is late, or it is not what it should be. `names`: of the
    columns, which Arrow may count only."""
    found = _UNFINISHED.search(str(error))
    told = misfit_of(error, names or [], path=path)
    if told is not None:
        return told
    if found is None or not _begins_well(found["file"]):
        return InputError(f"{f'source path {path}' if path else 'the source'} cannot be read: {error}", uri=path or None)
    return SourceMissingError(
        f"source file {found['file']} is empty or not finished ({found['why']})",
        uri=path or found["file"],
        cure="Write a file under another name and rename it when it is complete; on_missing says whether the task waits.",
    )


BATCH_ROWS = 65_536
_SNIFFED_ROWS = 1_000
Opener = Callable[..., Any]
LANCE = "lance"


@dataclass(frozen=True)
class LocalSource:
    """Rows to be read. `num_rows` only where the files' own metadata says it cheaply. `tables`: the versions of Lance tables
    that they come from, by the name that a query has for each. `files`: those that they come from.

    `num_tasks`: the rows are the numbers of so many tasks (see `Runner.open_tasks`). What Arrow marks as `not null` here was
    said on purpose.
    """

    schema: pa.Schema
    batches: Callable[[], Iterator[pa.RecordBatch]]
    num_rows: int | None = None
    tables: Mapping[str, Snapshot] = field(default_factory=dict)
    files: tuple[SourceFile, ...] = ()
    num_tasks: int | None = None
    strict_nullability: bool = True

    def reader(self) -> pa.RecordBatchReader:
        """The rows as a stream."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())


def open_local_source(
    spec: SourceSpec, options_of: OptionsOf = no_options, *, table: pa.Schema | None = None
) -> LocalSource:
    """The source a spec describes; `table` has the types of the columns of a text file.

    InputError for a missing path, an unknown format or option, or a bad function.
    """
    if spec.callable:
        function = load_function(spec.callable)
        try:
            rows = function(**spec.kwargs)
        except TypeError as error:
            raise InputError(f"source.callable {spec.callable} does not take these kwargs: {error}") from error
        return source_of(rows, what=f"source.callable {spec.callable}")
    if spec.sql and spec.engine is not None:
        raise InputError(
            "source.sql is Spark's SQL, but this is not a Spark job",
            cure='Run it with Spark (execution="spark-submit" or "spark-connect"), or omit `engine`.',
        )
    if spec.sql:
        return from_sql(spec.sql, spec.views, options_of, what="source.sql")
    return _from_lance(spec, options_of) if str(spec.format).lower() == LANCE else _from_files(spec, table)


def source_of(rows: Any, *, what: str) -> LocalSource:
    """A source from what a function returned: a table, reader, dataset, batches, or any Arrow stream."""
    if isinstance(rows, pa.Table):
        return LocalSource(rows.schema, lambda: iter(rows.to_batches(max_chunksize=BATCH_ROWS)), rows.num_rows)
    if isinstance(rows, pa.RecordBatch):
        return LocalSource(rows.schema, lambda: iter([rows]), rows.num_rows)
    if isinstance(rows, datasets().Dataset):
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
    except (pa.ArrowInvalid, OSError) as error:
        if isinstance(error, pa.ArrowInvalid) or is_unfinished(error):
            raise unreadable(error, names=dataset.schema.names) from None
        raise  # a store that failed: a retry may help


def _from_batches(batches: Iterator[Any], what: str) -> LocalSource:
    first = next(batches, None)
    if not isinstance(first, pa.RecordBatch):
        shown = "nothing" if first is None else type(first).__name__
        raise InputError(f"{what} yielded {shown}", cure="Yield at least one record batch, which may be empty.")

    def again() -> Iterator[pa.RecordBatch]:
        yield first
        yield from batches

    return LocalSource(first.schema, again)


def _from_files(spec: SourceSpec, table: pa.Schema | None) -> LocalSource:
    name = str(spec.format).lower()
    maker = _FORMATS.get(name)
    if maker is None:
        near = difflib.get_close_matches(name, (*_FORMATS, LANCE), n=1)
        guess = f"Did you mean {near[0]!r}? " if near else ""
        raise InputError(
            f"source format {spec.format!r} cannot be read without Spark",
            cure=f"{guess}Run the job with Spark, or use one of {', '.join(sorted((*_FORMATS, LANCE)))}.",
        )
    if not spec.paths:
        raise InputError(f"source.paths is empty for format {name}")
    options = {key: as_secret(value, where=f"source.options.{key}").reveal() for key, value in spec.options.items()}
    listed = [list_path(path) for path in spec.paths]
    dataset = maker(listed, options, parse_ddl(spec.schema) if spec.schema else None, table)
    if options:
        raise InputError(
            f"source option {', '.join(sorted(options))} of {name} is only supported with Spark",
            cure=f"{_meant(options)}Omit it, or run the job with Spark.",
        )
    try:
        num_rows = dataset.count_rows() if name in ("parquet", "orc") else None
    except (pa.ArrowInvalid, OSError) as error:
        if isinstance(error, pa.ArrowInvalid) or is_unfinished(error):
            raise unreadable(error) from None
        raise
    files = tuple(file for item in listed for file in item.files)
    return LocalSource(dataset.schema, lambda: scan(dataset), num_rows, files=files)


_LOCAL_OPTIONS = ("header", "inferSchema", "sep", "delimiter", "quote", "nullValue", "encoding", "multiLine")
"""Options of Spark's readers that are known here, whichever format they are of."""


def _meant(options: Iterable[str]) -> str:
    """The options that were meant by others, as the beginning of a cure; "" where none is like them."""
    near = [name for given in sorted(options) for name in difflib.get_close_matches(given, _LOCAL_OPTIONS, n=1)]
    return f"Did you mean {' and '.join(near)}? " if near else ""


def _from_lance(spec: SourceSpec, options_of: OptionsOf) -> LocalSource:
    if spec.schema:
        raise InputError("source.schema cannot be combined with format lance, whose tables have one")
    options = {key: as_secret(value, where=f"source.options.{key}").reveal() for key, value in spec.options.items()}
    snapshot = open_lance(spec.paths, options, options_of)
    return LocalSource(snapshot.visible_schema, lambda: batches_of(snapshot), snapshot.manifest.num_rows, {"": snapshot})


def from_sql(sql: str, views: Mapping[str, SourceSpec], options_of: OptionsOf, *, what: str) -> LocalSource:
    """The rows of a query over sources. InputError, which names `what` asked, for one that DuckDB refuses."""
    from lance_core.dataset.query.table_view import TableView  # one of `datasets()`

    opened = {name: open_local_source(view, options_of) for name, view in views.items()}
    tables = {name: source.tables[""] for name, source in opened.items() if "" in source.tables}
    reader = query(
        sql,
        {name: TableView(tables[name]) if name in tables else source.reader() for name, source in opened.items()},
        what=what,
        cure='Run the job with Spark, or pip install "airflow-provider-lance[duckdb]", or pass a callable.',
        batch_rows=BATCH_ROWS,
    )
    files = tuple(file for source in opened.values() for file in source.files)
    return LocalSource(reader.schema, lambda: iter(reader), tables=tables, files=files)


def _plain_files(name: str) -> Opener:
    def open_(paths: Sequence[Listed], _: dict[str, str], schema: pa.Schema | None, table: pa.Schema | None = None) -> Any:
        return open_dataset(paths, getattr(datasets(), name)(), schema)

    return open_


def _json(paths: Sequence[Listed], options: dict[str, str], schema: pa.Schema | None, table: pa.Schema | None = None) -> Any:
    if options.pop("multiLine", "false").lower() == "true":
        raise InputError("source option multiLine of json needs Spark", cure="Write one JSON object per line.")
    if schema is None:
        inferred = open_dataset(paths, datasets().JsonFileFormat(), None).schema
        moments = [field.name for field in inferred if pa.types.is_timestamp(field.type)]
        if moments:  # Arrow forgets their zone where it infers them
            texts = pa.schema([pa.field(name, pa.string()) for name in moments])
            inferred = with_zones(inferred, open_dataset(paths, datasets().JsonFileFormat(), texts).head(_SNIFFED_ROWS))
        schema = text_types(inferred, table, name="json")
    return open_dataset(paths, datasets().JsonFileFormat(), schema)


_FORMATS: Mapping[str, Opener] = {
    "arrow": _plain_files("IpcFileFormat"),
    "parquet": _plain_files("ParquetFileFormat"),
    "orc": _plain_files("OrcFileFormat"),
    "csv": csv_dataset,
    "json": _json,
}
"""A format's way from (paths, options, schema, the table's schema) to a dataset. It takes what it knows out of `options`."""
