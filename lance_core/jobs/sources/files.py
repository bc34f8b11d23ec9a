"""Paths of a source -> one pyarrow dataset: files, folders, glob patterns and uris, refused by name when absent."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc_csv
import pyarrow.dataset as ds

from lance_core.errors import InputError, SourceMissingError


def open_dataset(paths: tuple[str, ...], file_format: Any, schema: pa.Schema | None) -> Any:
    """A dataset over all paths. InputError that names the path which is missing or cannot be read."""
    parts = [_part(path, file_format, schema) for path in paths]
    try:
        return parts[0] if len(parts) == 1 else ds.dataset(parts)
    except pa.ArrowInvalid as error:
        raise InputError(f"the files of the source have different schemas: {error}") from None


def csv_dataset(paths: tuple[str, ...], options: dict[str, str], schema: pa.Schema | None) -> Any:
    """CSV as Spark reads it: columns `_c0`, `_c1`, ... without a header, all text unless `inferSchema` or a schema."""
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

    if header:
        found = schema or open_dataset(paths, of(None), None).schema
        return open_dataset(paths, of(None), found if schema or infer else _all_text(found.names))
    if schema is None:
        width = len(open_dataset(paths, of(None), None).schema)
        names = [f"_c{index}" for index in range(width)]
        return open_dataset(paths, of(names), None if infer else _all_text(names))
    return open_dataset(paths, of(schema.names), schema)


def _all_text(names: list[str]) -> pa.Schema:
    return pa.schema([pa.field(name, pa.string()) for name in names])


def _part(path: str, file_format: Any, schema: pa.Schema | None) -> Any:
    where: Any = path if "://" in path else _local_paths(path)
    try:
        part = ds.dataset(where, format=file_format, schema=schema)
    except FileNotFoundError:
        raise SourceMissingError(f"source path {path} does not exist", uri=path) from None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise InputError(f"source path {path} cannot be read: {error}", uri=path) from None
    if not part.files:
        raise SourceMissingError(f"source path {path} contains no file", uri=path)
    return part


def _local_paths(path: str) -> str | list[str]:
    if Path(path).exists():
        return path
    # Path.glob refuses absolute patterns.
    found = sorted(glob.glob(path)) if any(mark in path for mark in "*?[") else []  # noqa: PTH207
    if not found:
        raise SourceMissingError(
            f"source path {path} does not exist", uri=path, cure="Pass a file, a folder or a glob pattern."
        )
    files: list[str] = []
    for item in found:
        inside = [str(file) for file in sorted(Path(item).rglob("*")) if file.is_file()] if Path(item).is_dir() else [item]
        files += [file for file in inside if not Path(file).name.startswith(("_", "."))]
    return files
