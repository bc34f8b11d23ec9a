"""Commands that show the contents of a table: info, versions, log, schema, head, count, fragments, files, indices, tags."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import click

from lance_core.cli.output import Output, size_text
from lance_core.cli.table import Table, table_command, who


def _utc(seconds: float) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.timezone.utc).isoformat(timespec="seconds")


@table_command("info")
def info(table: Table, output: Output) -> None:
    """What a table is: version, rows, fragments, size, schema, indices, tags."""
    from lance_core.dataset.maintain.table_facts import snapshot_facts

    snapshot = table.open()
    manifest, facts = snapshot.manifest, snapshot_facts(snapshot)
    writer = manifest.writer_version
    output.record(
        {
            "uri": snapshot.uri,
            "version": facts.version,
            "committed": _utc(facts.timestamp),
            "rows": facts.num_rows,
            "deleted_rows": facts.num_deleted_rows,
            "fragments": facts.num_fragments,
            "small_fragments": facts.num_small_fragments,
            "data_files": facts.num_data_files,
            "size": facts.bytes if output.as_json else size_text(facts.bytes),
            "columns": len(manifest.schema.top_level),
            "storage_version": manifest.data_storage_version,
            "stable_row_ids": manifest.uses_stable_row_ids,
            "written_by": None if writer is None else f"{writer.library} {writer.version}",
            "indices": facts.index_coverage,
            "tags": facts.tags,
            "config": dict(manifest.config),
        }
    )


@table_command("versions", versioned=False)
def versions(table: Table, output: Output) -> None:
    """Every version that is kept, oldest first."""
    from lance_core.dataset.versions.history import list_history

    table.open()
    output.rows(
        {
            "version": entry["version"],
            "committed": entry["timestamp"].astimezone(dt.timezone.utc).isoformat(timespec="seconds"),
            **{name: int(entry["metadata"][f"total_{name}"]) for name in ("rows", "fragments", "data_files")},
        }
        for entry in list_history(table.store())
    )


@table_command("log", versioned=False)
@click.option("-n", "--number", default=20, show_default=True, help="Number of versions to show, newest first.")
def log(table: Table, output: Output, number: int) -> None:
    """What was done: the transaction of each version, newest first."""
    from lance_core.dataset.versions.transaction_log import read_log

    table.open()
    output.rows(
        {
            "version": entry.version,
            "committed": _utc(entry.timestamp),
            "operation": entry.operation,
            "read_version": entry.read_version,
            "rows": entry.rows,
            "change": entry.rows_changed,
            **who(entry.asked),
            "uuid": entry.uuid,
            "properties": dict(entry.properties),
        }
        for entry in read_log(table.store(), limit=number)
    )


@table_command("blame")
@click.option("--where", help="SQL filter; default is all rows.")
def blame(table: Table, output: Output, where: str | None) -> None:
    """Which versions wrote the rows, and which dag, run and task requested them."""
    from lance_core.dataset.query.blame import blame as find

    output.rows(
        (
            {
                "version": entry.version,
                "exact": entry.is_exact,
                "committed": None if entry.timestamp is None else _utc(entry.timestamp),
                "operation": entry.operation,
                "rows": entry.num_rows,
                **who(entry.asked),
            }
            for entry in find(table.open(), where=where)
        ),
        empty="no rows",
    )


@table_command("schema")
@click.option("--ids", is_flag=True, help="Show the fields of the Lance schema with their ids.")
def schema(table: Table, output: Output, ids: bool) -> None:
    """The columns."""
    snapshot = table.open()
    if ids:
        output.rows(
            {"id": f.id, "parent": f.parent_id, "name": f.name, "type": f.logical_type, "nullable": f.nullable}
            for f in snapshot.manifest.schema.fields
        )
        return
    output.rows({"name": item.name, "type": str(item.type), "nullable": item.nullable} for item in snapshot.visible_schema)


@table_command("head")
@click.option("-n", "--number", default=10, show_default=True, help="Number of rows.")
@click.option("-c", "--columns", help="Column names, separated by commas; default is all columns.")
@click.option("--where", help="SQL filter.")
def head(table: Table, output: Output, number: int, columns: str | None, where: str | None) -> None:
    """The first rows, of all or of those that match."""
    from lance_core.dataset.query.scanner import LanceScanner
    from lance_core.dataset.scan.request import ScanRequest

    names = None if columns is None else [name.strip() for name in columns.split(",")]
    request = ScanRequest(columns=names, filter=where, limit=number, batch_size=max(1, min(number, 1024)))
    output.rows(LanceScanner(table.open(), request).to_table().to_pylist(), empty="no rows")


@table_command("count")
@click.option("--where", help="SQL filter.")
def count(table: Table, output: Output, where: str | None) -> None:
    """How many rows, all or those that match."""
    from lance_core.dataset.query.scanner import LanceScanner
    from lance_core.dataset.scan.request import ScanRequest

    rows = LanceScanner(table.open(), ScanRequest(filter=where)).count_rows()
    output.message(str(rows), rows=rows)


@table_command("fragments")
def fragments(table: Table, output: Output) -> None:
    """The fragments: rows, deletions, files, size."""
    output.rows(
        (
            {
                "id": fragment.id,
                "rows": fragment.num_rows,
                "physical_rows": fragment.physical_rows,
                "deleted": fragment.num_deleted_rows,
                "files": len(fragment.files),
                "bytes": sum(file.file_size_bytes or 0 for file in fragment.files),
            }
            for fragment in table.open().manifest.fragments
        ),
        empty="no fragments",
    )


@table_command("files")
def files(table: Table, output: Output) -> None:
    """Every file the version needs: data, deletions, indices, transaction."""
    output.rows(_files(table), empty="no files")


def _files(table: Table) -> Iterator[dict[str, Any]]:
    from lance_core.commit.deletion_files import deletion_file_path
    from lance_core.commit.naming import data_path, transaction_path

    manifest = table.open().manifest
    for fragment in manifest.fragments:
        for file in fragment.files:
            note = f"{file.version.text}, {len(file.fields)} columns"
            yield _file("data", data_path(file.path), fragment.id, file.file_size_bytes, note)
        if fragment.deletion_file is not None:
            path = deletion_file_path(fragment.id, fragment.deletion_file)
            yield _file("deletions", path, fragment.id, None, f"{fragment.deletion_file.num_deleted_rows} rows")
    for index in manifest.indices:
        sizes = [item.size_bytes for item in index.files or ()]
        yield _file("index", f"_indices/{index.uuid}/", None, sum(sizes) if sizes else None, index.name)
    if manifest.transaction_file:
        yield _file("transaction", transaction_path(manifest.transaction_file), None, None, "")


def _file(kind: str, path: str, fragment: int | None, size: int | None, note: str) -> dict[str, Any]:
    return {"kind": kind, "path": path, "fragment": fragment, "bytes": size, "note": note}


@table_command("indices")
def indices(table: Table, output: Output) -> None:
    """The indices, a line per segment."""
    from lance_core.dataset.indexing.describe import title_of

    snapshot = table.open()
    live = {fragment.id for fragment in snapshot.manifest.fragments}
    fields = snapshot.manifest.schema
    output.rows(
        (
            {
                "name": index.name,
                "kind": title_of(index),
                "columns": ", ".join(fields.path_of(item) for item in index.fields if item in fields.by_id),
                "covered": None if index.fragment_bitmap is None else f"{len(index.fragment_bitmap & live)}/{len(live)}",
                "version": index.dataset_version,
                "uuid": index.uuid,
            }
            for index in snapshot.manifest.indices
        ),
        empty="no indices",
    )


@table_command("diff", versioned=False)
@click.argument("old")
@click.argument("new", required=False)
def diff(table: Table, output: Output, old: str, new: str | None) -> None:
    """What changed from one version to another (by default the newest): rows, fragments, columns, indices."""
    from dataclasses import asdict

    from lance_core.dataset.versions.manifest_diff import diff_manifests

    first, second = (_at(table, text).open().manifest for text in (old, new))
    found = diff_manifests(first, second)
    output.record({"from": first.version, "to": second.version, **asdict(found)})


def _at(table: Table, text: str | None) -> Table:
    return Table(table.uri, table.options, int(text) if text is not None and text.isdigit() else text)


COMMANDS = (info, versions, log, blame, schema, head, count, fragments, files, indices, diff)
