"""What a DAG may write as `source`, and the plain data that a job spec takes.

::

    "/raw/flights.csv", Path("/raw/flights.csv")     -> {"format": "csv", "paths": [...], "options": {"header": "true", ...}}
    [ObjectStoragePath("s3://raw/a.parquet"), ...]   -> {"format": "parquet", "paths": ["s3://raw/a.parquet", ...]}
    {"sql": ..., "views": ...}, SourceSpec(...)      -> as it is
    a DataFrame, an Arrow table                      -> InputError, which names `@task.lance`

A path says its format by its suffix; a CSV given so has a header line, and its types are inferred. No IO happens here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any

from airflow_lance.connection import is_object_path, path_text
from lance_core.errors import InputError

LOCAL_FORMATS = ("arrow", "csv", "json", "lance", "orc", "parquet")
"""What a job reads without Spark."""


def plain_source(source: Any) -> dict[str, Any]:
    """A source as plain data, without empty fields. InputError for an invalid source."""
    if isinstance(source, Mapping):
        return _with_text_paths(source)
    if is_dataclass(source) and not isinstance(source, type):
        from lance_core.jobs.specs.spec import to_plain

        return to_plain(source)  # type: ignore[no-any-return]
    if isinstance(source, (str, os.PathLike)) or is_object_path(source):
        return _of_paths([source])
    if isinstance(source, Sequence) and source and all(_is_path(item) for item in source):
        return _of_paths(source)
    raise InputError(
        f"source: expected a mapping, a path or a list of paths, got {_described(source)}",
        cure="To write rows from Python code, return them from a function decorated with `@task.lance(uri, ...)`, "
        'or pass the function: {"callable": "module:function"}.',
    )


def _of_paths(paths: Sequence[Any]) -> dict[str, Any]:
    from lance_core.jobs.specs.paths import source_of_paths

    return source_of_paths([path_text(path) for path in paths])


def _with_text_paths(source: Mapping[str, Any]) -> dict[str, Any]:
    plain = dict(source)
    paths = plain.get("paths")
    if isinstance(paths, (str, os.PathLike)) or is_object_path(paths):
        paths = [paths]
    if isinstance(paths, Sequence):
        plain["paths"] = [path_text(path) if _is_path(path) else path for path in paths]
    views = plain.get("views")
    if isinstance(views, Mapping):
        plain["views"] = {name: plain_source(view) for name, view in views.items()}
    return plain


def _is_path(value: object) -> bool:
    return isinstance(value, (str, os.PathLike)) or is_object_path(value)


def _described(value: object) -> str:
    kind = type(value)
    return (
        f"{kind.__module__.split('.')[0]}'s {kind.__name__}"
        if kind.__module__ != "builtins"
        else f"{kind.__name__} {value!r}"
    )


def check_formats(source: Mapping[str, Any], *, execution: object) -> None:
    """InputError where a source's format needs Spark and the job runs without."""
    for item in (source, *(source.get("views") or {}).values()):
        name = item.get("format")
        without_spark = not str(execution).startswith("spark")
        if without_spark and isinstance(name, str) and "{" not in name and name.lower() not in LOCAL_FORMATS:
            import difflib  # few have it wrong

            near = difflib.get_close_matches(name.lower(), LOCAL_FORMATS, n=1)
            guess = f"Did you mean {near[0]!r}? " if near else ""
            raise InputError(
                f"source format {name!r} cannot be read without Spark",
                cure=f"{guess}Use one of {', '.join(LOCAL_FORMATS)}, or another execution than 'local'.",
            )
