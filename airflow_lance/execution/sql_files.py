"""SQL from files beside the DAG: an argument that is SQL may be the path of a `.sql` file instead.

::

    LanceReplaceWhereOperator(predicate="sql/day.sql", source={"sql": "sql/load.sql", "views": {...}}, ...)

The files are found as Airflow finds its templates (beside the DAG file, and in `template_searchpath`), are read when the DAG
is parsed, and may hold templates. Paths of data are not affected, because only
arguments that are SQL are resolved.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lance_core.errors import InputError

SUFFIX = ".sql"
_FIELDS = (
    "sql", "predicate", "where", "filter", "when_matched_condition", "when_not_matched_by_source_condition",
)  # fmt: skip
_MAPPINGS = ("updates", "columns")
"""Arguments that map a column to SQL."""
_SOURCE_KEYS = ("sql",)
_GATE_KEYS = ("sql", "no_rows")


def resolve_sql_files(task: Any) -> None:
    """Put the contents of `.sql` files in the place of their paths. InputError for a file that is not there."""
    for name in _FIELDS:
        _replace(task, name, lambda value: _content(task, value))
    for name in _MAPPINGS:
        _replace(task, name, lambda value: _of_mapping(task, value, keys=None))
    _replace(task, "source", lambda value: _of_source(task, value))
    for name in ("gates", "checks"):
        _replace(task, name, lambda value: _of_gates(task, value))


def _replace(task: Any, name: str, change: Any) -> None:
    before = getattr(task, name, None)
    after = change(before)
    if after is not before:
        setattr(task, name, after)


def _of_mapping(task: Any, value: Any, *, keys: tuple[str, ...] | None) -> Any:
    """The mapping with its SQL values read; the same object where none is a file."""
    if not isinstance(value, Mapping):
        return value
    read = {key: _content(task, item) if keys is None or key in keys else item for key, item in value.items()}
    return read if any(read[key] is not value[key] for key in read) else value


def _of_source(task: Any, source: Any) -> Any:
    found = _of_mapping(task, source, keys=_SOURCE_KEYS)
    if isinstance(found, Mapping) and isinstance(found.get("views"), Mapping):
        views = {name: _of_source(task, view) for name, view in found["views"].items()}
        if any(views[name] is not found["views"][name] for name in views):
            return {**found, "views": views}
    return found


def _of_gates(task: Any, gates: Any) -> Any:
    if not isinstance(gates, (list, tuple)):
        return gates
    read = [_of_mapping(task, gate, keys=_GATE_KEYS) for gate in gates]
    return read if any(new is not old for new, old in zip(read, gates, strict=True)) else gates


def _content(task: Any, value: Any) -> Any:
    """What is in the file that a text names; anything else as it is."""
    if not isinstance(value, str) or not value.endswith(SUFFIX) or any(char.isspace() for char in value):
        return value
    environment = task.get_template_env()
    loader = environment.loader
    if loader is None:  # a task without a DAG, which knows no folder
        return value
    try:
        return loader.get_source(environment, value)[0]
    except Exception as error:
        raise InputError(
            f"{task.task_id}: there is no SQL file {value!r} beside the DAG file or in its template_searchpath",
            cure="Name the file by a path relative to the DAG file, or write the SQL itself.",
        ) from error
