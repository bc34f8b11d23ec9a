"""The specs that can only edit their own table: the only ones that are run from a record without a known digest.

::

    {"kind": "delete", "predicate": "day = '2026-01-01'"}                      plain: our own filter over our own rows
    {"kind": "replace_where", "source": {"callable": "os:system"}, ...}        not plain: code
    {"kind": "add_columns", "engine": "spark", "columns": {"a": "reflect(…)"}}   not plain: another engine's SQL
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_REFERENCE = frozenset({"env", "file", "key"})
_MAX_DEPTH = 16


def is_plain(record: Mapping[str, Any]) -> bool:
    """Whether a spec has no callable, no engine's query, no path, and no reference to a variable or a file."""
    allowed = _PLAIN.get(str(record.get("kind")))
    return allowed is not None and allowed(record) and not has_references(record)


def has_references(value: Any, *, depth: int = 0) -> bool:
    """Whether a variable or a file is referred to anywhere in a spec; one that is nested too deeply counts as well."""
    if depth > _MAX_DEPTH:
        return True
    if isinstance(value, Mapping):
        is_reference = bool(value) and _REFERENCE.issuperset(map(str, value)) and ("env" in value or "file" in value)
        return is_reference or any(has_references(item, depth=depth + 1) for item in value.values())
    return isinstance(value, (list, tuple)) and any(has_references(item, depth=depth + 1) for item in value)


def _only(*names: str) -> Callable[[Mapping[str, Any]], bool]:
    known = frozenset({"spec", "kind", "uri", "identity", "properties", "progress_seconds", *names})
    return lambda record: known.issuperset(record)


def _own_columns(record: Mapping[str, Any]) -> bool:
    return record.get("engine", "lance") == "lance" and _only("columns", "rows_per_task", "batch_size", "engine")(record)


_PLAIN: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    "delete": _only("predicate", "rows_per_task"),
    "update": _only("updates", "where", "rows_per_task"),
    "add_columns": _own_columns,
    "compact": _only(
        "target_rows_per_fragment", "max_bytes_per_file", "materialize_deletions_threshold", "max_source_fragments",
        "max_source_rows", "max_source_bytes", "batch_size", "max_bytes_per_group", "max_rows_per_group",
        "groups_per_commit", "groups", "part_of", "dry_run",
    ),
    "merge_column_files": _only("max_files_per_fragment", "enough_files", "rows_per_task", "dry_run"),
    "build_index": _only("column", "index_type", "name", "replace", "parameters", "rows_per_segment"),
    "optimize_indices": _only("index_names", "num_indices_to_merge", "retrain"),
}  # fmt: skip
"""The fields of each kind that are known to be harmless: a field that a later version adds is not, until it is listed."""
