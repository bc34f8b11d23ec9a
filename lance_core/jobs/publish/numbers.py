"""The changes of a publication: inserted, updated, deleted and rewritten rows, added and removed bytes.

::

    an upsert of 100 known and 50 new keys     rows_inserted 50, rows_updated 100, rows_deleted 0, rows_rewritten 0
    a compaction of 20,038 rows                rows_inserted 0, ..., rows_rewritten 20038
    an overwrite of 30 rows by 10              rows_inserted 10, rows_deleted 30
    rows 336776                                the table's rows at that version

The format stores an update as deleted and added rows, so the kind of each piece of work says what its counts mean. A number
that cannot be known is None, never a guess: several kinds in one commit of which some was done again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lance_core.commit.manifests import open_version, version_numbers
from lance_core.errors import NotFoundError
from lance_core.format.manifest import Manifest
from lance_core.io.store import Store

Counts = tuple[int, int, int, int]
"""Rows inserted, updated, deleted, rewritten."""

NAMES = ("rows_inserted", "rows_updated", "rows_deleted", "rows_rewritten")


def published_numbers(
    store: Store, result: Mapping[str, Any], references: Sequence[Mapping[str, Any]]
) -> dict[str, int | None]:
    """The numbers of a commit's result. `references` are what staging returned."""
    try:
        after = open_version(store, int(result["version"])).manifest
    except NotFoundError:
        # The work was committed before, and a cleanup has removed that version since.
        changed = None if result["num_versions"] else 0
        return {"rows": None, **dict.fromkeys((*NAMES, "bytes_added", "bytes_removed"), changed)}
    before = _before(store, result)
    committed = [item for item in references if result["identities"].get(str(item["identity"])) == "committed"]
    counts = _counts(committed, result, replaced=0 if before is None else before.num_rows)
    added, removed = _bytes(before, after, result)
    return {"rows": after.num_rows, **counts, "bytes_added": added, "bytes_removed": removed}


def _counts(committed: Sequence[Mapping[str, Any]], result: Mapping[str, Any], *, replaced: int) -> dict[str, int | None]:
    """By the names of `NAMES`."""
    kinds = {str(item.get("operation")) for item in committed}
    if len(kinds) == 1:
        # The commit's own counts also hold for work that it did again.
        counted: Sequence[tuple[str, Any, Any]] = [(kinds.pop(), result["rows_added"], result["rows_deleted"])]
    elif result.get("re_executed"):
        return dict.fromkeys(NAMES)
    else:
        counted = [(str(item.get("operation")), item["num_rows"], item.get("num_deleted_rows", 0)) for item in committed]
    parts = [_MEANING.get(kind, _as_written)(int(rows), int(deleted), replaced) for kind, rows, deleted in counted]
    return {name: sum(part[index] for part in parts) for index, name in enumerate(NAMES)}


def _as_written(rows: int, deleted: int, _: int) -> Counts:
    return rows, 0, deleted, 0


def _upserted(rows: int, deleted: int, _: int) -> Counts:
    # Each updated row is one deleted and one written; what is written beyond that is new, what is deleted beyond it is gone.
    updated = min(rows, deleted)
    return rows - updated, updated, deleted - updated, 0


_MEANING: Mapping[str, Callable[[int, int, int], Counts]] = {
    "append": _as_written,
    "delete": _as_written,
    "replace_where": _as_written,
    "overwrite": lambda rows, _, replaced: (rows, 0, replaced, 0),
    "update": lambda rows, _, __: (0, rows, 0, 0),
    "merge": _upserted,
    "compact": lambda rows, _, __: (0, 0, 0, rows),
    "add_columns": lambda rows, _, __: (0, rows, 0, 0),
    "merge_column_files": lambda *_: (0, 0, 0, 0),
    "build_index": lambda *_: (0, 0, 0, 0),
    "optimize_indices": lambda *_: (0, 0, 0, 0),
}


def _before(store: Store, result: Mapping[str, Any]) -> Manifest | None:
    """The version before this publication; None when there was none, or it is not kept."""
    number = int(result["version"]) - int(result["num_versions"])
    if not result["num_versions"] or number < 1 or number not in set(version_numbers(store)):
        return None
    return open_version(store, number).manifest


def _bytes(before: Manifest | None, after: Manifest, result: Mapping[str, Any]) -> tuple[int, int | None]:
    if not result["num_versions"]:
        return 0, 0
    if before is None:
        return int(result["bytes_added"]), 0 if int(result["version"]) == int(result["num_versions"]) else None
    old, new = _files(before), _files(after)
    return int(result["bytes_added"]), sum(size for path, size in old.items() if path not in new)


def _files(manifest: Manifest) -> dict[str, int]:
    return {file.path: file.file_size_bytes or 0 for fragment in manifest.fragments for file in fragment.files}
