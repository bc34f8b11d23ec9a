"""Paths of a source -> one pyarrow dataset: files, folders, glob patterns and uris, refused by name when absent."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc_csv
import pyarrow.dataset as ds

from lance_core.errors import InputError, SourceMissingError
from lance_core.jobs.sources.source_files import SourceFile, data_files, expanded, local_files, remote_files
from lance_core.jobs.sources.text_types import misfit_of, text_types


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


def open_dataset(paths: Sequence[Listed], file_format: Any, schema: pa.Schema | None) -> Any:
    """A dataset over all paths. InputError that names the path which cannot be read."""
    parts = [_part(path, file_format, schema) for path in paths]
    try:
        return parts[0] if len(parts) == 1 else ds.dataset(parts)
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
        return ds.CsvFileFormat(parse_options=parse, default_fragment_scan_options=None, read_options=read,
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
        part = ds.dataset(listed.where, filesystem=listed.filesystem, format=file_format, schema=schema)
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
