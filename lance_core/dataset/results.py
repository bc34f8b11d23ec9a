"""The plain dicts that methods return: keys and types for editors and type checkers.

::

    ds.delete("id > 3")["num_deleted_rows"]           DeleteResult
    ds.tags.list()["nightly"]["version"]              Tag
"""

from __future__ import annotations

import datetime as dt
from typing import Any, TypedDict


class DeleteResult(TypedDict):
    """What `LanceDataset.delete` did, counted in rows."""

    num_deleted_rows: int


class UpdateResult(TypedDict):
    """What `LanceDataset.update` did, counted in rows."""

    num_rows_updated: int


class ExecuteResult(TypedDict):
    """What `MergeInsertBuilder.execute` did, counted in rows."""

    num_inserted_rows: int
    num_updated_rows: int
    num_deleted_rows: int


class VersionRef(TypedDict):
    """One version by its number alone."""

    version: int


class Version(TypedDict):
    """One version of a table; the timestamp is local time without a zone, the counts of `metadata` are text."""

    version: int
    timestamp: dt.datetime
    metadata: dict[str, str]


class Tag(TypedDict):
    """What a tag points at."""

    version: int
    branch: str | None
    created_at: dt.datetime | None
    updated_at: dt.datetime | None
    manifest_size: int
    metadata: dict[str, Any]


class Branch(TypedDict):
    """Where a branch began; `create_at` in seconds since the epoch."""

    parent_branch: str | None
    branch_identifier: list[Any]
    parent_version: int
    create_at: int
    manifest_size: int
    metadata: dict[str, Any]


class IndexInformation(TypedDict):
    """One index segment, as `LanceDataset.list_indices` describes it."""

    name: str
    type: str
    uuid: str
    fields: list[str]
    version: int
    fragment_ids: set[int]
    base_id: int | None


class DatasetStats(TypedDict):
    """Counts of one version."""

    num_deleted_rows: int
    num_fragments: int
    num_small_files: int


class AutoCleanupConfig(TypedDict, total=False):
    """How often, in commits, a table removes old versions automatically, and how old they must be."""

    interval: int
    older_than_seconds: int


class _AlterColumnPath(TypedDict):
    path: str


class AlterColumn(_AlterColumnPath, total=False):
    """A change to a column (dotted for a field of a struct): a new name, nullability or pyarrow type."""

    name: str | None
    nullable: bool | None
    data_type: Any
