"""What stands behind a table's name in SQL: its versions, fragments, indices, files, tags and branches, as rows.

::

    SELECT version, operation FROM lake.sales.orders.versions ORDER BY version DESC LIMIT 3

    metadata_table("versions", {"path": "s3://lake/orders.lance"})  ->  {"schema": <Spark's JSON>, "rows": [[1, ...], ...]}

Times are microseconds since the epoch, as Spark holds them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_core.commit.manifests import open_or_none, version_numbers
from lance_core.commit.transactions import transaction_of
from lance_core.errors import FormatError
from lance_core.io.parallel import each
from lance_core.io.store import Store
from lance_core.spark.options import parse_options

if TYPE_CHECKING:
    from lance_core.dataset import LanceDataset

Rows = list[list[Any]]


def metadata_table(name: str, options: Mapping[str, str]) -> Mapping[str, Any] | None:
    """The columns and rows of one of them at the newest version; None for another name."""
    known = _TABLES.get(name)
    if known is None:
        return None
    from lance_core.dataset import dataset
    from lance_core.spark.types import spark_schema

    parsed = parse_options(options)
    columns, rows = known
    schema = spark_schema(pa.schema([pa.field(column, kind) for column, kind in columns.items()]))
    return {"schema": schema.json(), "rows": rows(dataset(parsed.uri, storage_options=dict(parsed.storage)))}


def _versions(table: LanceDataset) -> Rows:
    store = table.snapshot.store
    return [row for row in each(store, [*version_numbers(store)], _version) if row is not None]


def _version(store: Store, number: int) -> list[Any] | None:
    opened = open_or_none(store, number)
    if opened is None:  # removed in the meantime
        return None
    manifest = opened.manifest
    try:
        transaction = transaction_of(store, opened)
    except FormatError:  # the version is whole, only its transaction is damaged or too new
        transaction = None
    files = [file for fragment in manifest.fragments for file in fragment.files]
    operation = None if transaction is None else transaction.operation.name
    return [number, manifest.timestamp_ns // 1000, operation, manifest.num_rows, len(manifest.fragments), _size(files)]


def _fragments(table: LanceDataset) -> Rows:
    return [
        [item.id, item.num_rows, item.physical_rows, item.num_deleted_rows, len(item.files), _size(item.files)]
        for item in table.snapshot.manifest.fragments
    ]


def _files(table: LanceDataset) -> Rows:
    return [
        [item.id, file.path, f"{file.file_major_version}.{file.file_minor_version}", file.file_size_bytes, [*file.fields]]
        for item in table.snapshot.manifest.fragments
        for file in item.files
    ]


def _size(files: Sequence[Any]) -> int | None:
    sizes = [file.file_size_bytes for file in files]
    return None if None in sizes else sum(sizes)


def _indices(table: LanceDataset) -> Rows:
    """A row for each segment; what an index covers is that of its segments together."""
    rows = {item.id: item.num_rows for item in table.snapshot.manifest.fragments}
    segments = table.list_indices()
    covered: dict[str, set[int]] = {}
    for item in segments:
        covered.setdefault(item["name"], set()).update(number for number in item["fragment_ids"] if number in rows)
    return [
        [
            item["name"],
            item["type"],
            [*item["fields"]],
            str(item["uuid"]),
            int(item["version"]),
            sorted(item["fragment_ids"]),
            len(covered[item["name"]]),
            sum(rows[number] for number in covered[item["name"]]),
            len(rows) - len(covered[item["name"]]),
            sum(count for number, count in rows.items() if number not in covered[item["name"]]),
        ]
        for item in segments
    ]


def _tags(table: LanceDataset) -> Rows:
    return [
        [name, int(item["version"]), item["branch"], _micros(item["created_at"])] for name, item in table.tags.list().items()
    ]


def _branches(table: LanceDataset) -> Rows:
    return [
        [name, item["parent_branch"], item["parent_version"], int(item["create_at"]) * 1_000_000]
        for name, item in table.branches.list().items()
    ]


def _micros(moment: dt.datetime | None) -> int | None:
    """Of a moment; one without a zone is of this machine's, as the official library has it."""
    if moment is None:
        return None
    since = moment.astimezone(dt.timezone.utc) - dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
    return since // dt.timedelta(microseconds=1)


_LONG, _TEXT, _MOMENT = pa.int64(), pa.string(), pa.timestamp("us", "UTC")
_LONGS, _TEXTS = pa.list_(pa.int64()), pa.list_(pa.string())

_TABLES: Mapping[str, tuple[Mapping[str, pa.DataType], Callable[[Any], Rows]]] = {
    "versions": ({
        "version": _LONG, "committed_at": _MOMENT, "operation": _TEXT, "num_rows": _LONG, "num_fragments": _LONG,
        "num_bytes": _LONG,
    }, _versions),
    "fragments": ({
        "id": _LONG, "num_rows": _LONG, "physical_rows": _LONG, "num_deleted_rows": _LONG, "num_files": _LONG,
        "num_bytes": _LONG,
    }, _fragments),
    "files": ({
        "fragment_id": _LONG, "path": _TEXT, "file_version": _TEXT, "num_bytes": _LONG, "field_ids": _LONGS,
    }, _files),
    "indices": ({
        "name": _TEXT, "type": _TEXT, "columns": _TEXTS, "uuid": _TEXT, "version": _LONG, "fragment_ids": _LONGS,
        "num_indexed_fragments": _LONG, "num_indexed_rows": _LONG, "num_unindexed_fragments": _LONG,
        "num_unindexed_rows": _LONG,
    }, _indices),
    "tags": ({"name": _TEXT, "version": _LONG, "branch": _TEXT, "created_at": _MOMENT}, _tags),
    "branches": ({
        "name": _TEXT, "parent_branch": _TEXT, "parent_version": _LONG, "created_at": _MOMENT,
    }, _branches),
}  # fmt: skip
"""Name -> types of its columns, and what makes its rows."""
