"""Commands that change a table: delete, restore, compact, merge column files, cleanup, tags."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any

import click

from lance_core.cli.ages import age
from lance_core.cli.output import Output, size_text
from lance_core.cli.table import Table, parse_pairs, table_command


@table_command("delete", versioned=False)
@click.option("--where", required=True, help="SQL filter of the rows to delete.")
@click.option("--dry-run", is_flag=True, help="Only count the rows.")
def delete(table: Table, output: Output, where: str, dry_run: bool) -> None:
    """Delete the rows that match."""
    from lance_core.dataset.edit.delete import delete_rows
    from lance_core.dataset.scan.sinks import count_matching

    snapshot = table.open()
    if dry_run:
        rows = count_matching(snapshot, where)
        output.message(f"would delete {rows} of {snapshot.manifest.num_rows} rows", num_deleted_rows=rows, dry_run=True)
        return
    with output.progress("searching rows") as progress:
        committed, result = delete_rows(snapshot, where, progress=progress)
    version = committed.version
    output.message(f"deleted {result['num_deleted_rows']} rows: version {version}", version=version, **result)


@table_command("restore", versioned=False)
@click.argument("version")
def restore(table: Table, output: Output, version: str) -> None:
    """Make an old version (a number or a tag) the newest again, as a new version."""
    from lance_core.dataset.versions.restore import restore_snapshot

    old = Table(table.uri, table.options, int(version) if version.isdigit() else version).open()
    committed = restore_snapshot(old)
    output.message(
        f"version {committed.version} has the rows of version {old.version}", version=committed.version, restored=old.version
    )


@table_command("compact", versioned=False)
@click.option("--target-rows", type=int, help="Target number of rows per fragment; default 1,048,576.")
@click.option("--max-bytes", type=int, help="Maximum bytes per file.")
@click.option("--max-source-bytes", type=int, help="Maximum bytes to read in one run.")
@click.option(
    "--deleted-share",
    type=float,
    default=0.1,
    show_default=True,
    help="Rewrite fragments with a larger share of deleted rows.",
)
@click.option(
    "--strategy",
    type=click.Choice(["adjacent", "tiered"]),
    default="adjacent",
    show_default=True,
    help="adjacent: merge every small fragment with its neighbours; tiered: rewrite a size tier when it is full.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be rewritten, and why the rest would not.")
def compact(
    table: Table,
    output: Output,
    target_rows: int | None,
    max_bytes: int | None,
    max_source_bytes: int | None,
    deleted_share: float,
    strategy: str,
    dry_run: bool,
) -> None:
    """Rewrite small fragments and those with many deleted rows into fewer ones."""
    from lance_core.dataset.maintain.compact import compact_files, plan_snapshot
    from lance_core.dataset.maintain.compact_options import TARGET_ROWS, CompactionOptions

    options = CompactionOptions(
        target_rows_per_fragment=TARGET_ROWS if target_rows is None else target_rows,
        max_bytes_per_file=max_bytes,
        max_source_bytes=max_source_bytes,
        materialize_deletions_threshold=deleted_share,
        strategy=strategy,
    )
    snapshot = table.open()
    if dry_run:
        plan = plan_snapshot(snapshot, options)
        groups = [[fragment.id for fragment in group] for group in plan.groups]
        fragments, size = sum(len(group) for group in groups), size_text(plan.num_bytes)
        text = f"would rewrite {fragments} fragments in {len(groups)} groups, {plan.num_rows} rows, {size}"
        values = {"groups": groups, "rows": plan.num_rows, "bytes": plan.num_bytes}
        _show_plan(output, text, values, skipped=plan.skipped, empty="every fragment would be rewritten")
        return
    with output.progress("compacting") as progress:
        committed, done = compact_files(snapshot, options, progress=progress)
    output.message(
        f"{done.fragments_removed} fragments became {done.fragments_added}: version {committed.version}",
        version=committed.version,
        fragments_removed=done.fragments_removed,
        fragments_added=done.fragments_added,
    )


@table_command("merge-column-files", versioned=False)
@click.option(
    "--max-files",
    type=click.IntRange(min=1),
    default=16,
    show_default=True,
    help="Data files that a fragment may have; the small files of one with more are merged.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be merged, and why the rest would not.")
def merge_column_files(table: Table, output: Output, max_files: int, dry_run: bool) -> None:
    """Merge small data files of fragments whose columns are spread over many; no row moves."""
    from lance_core.dataset.maintain.column_merge import merge_column_files as merge
    from lance_core.dataset.maintain.column_merge import plan_snapshot_merges
    from lance_core.dataset.maintain.column_merge_plan import ColumnMergeOptions

    options = ColumnMergeOptions(max_files)
    snapshot = table.open()
    if dry_run:
        merges = plan_snapshot_merges(snapshot, options)
        text = f"would merge {merges.num_files} files of {len(merges.merges)} fragments, {size_text(merges.num_bytes)}"
        fragments = [merge.fragment.id for merge in merges.merges]
        values = {"fragments": fragments, "files": merges.num_files, "bytes": merges.num_bytes}
        _show_plan(output, text, values, skipped=merges.skipped, empty="no other fragment has too many files")
        return
    with output.progress("merging column files") as progress:
        committed, done = merge(snapshot, options, progress=progress)
    output.message(
        f"{done.files_removed} files became {done.files_added}: version {committed.version}",
        version=committed.version,
        fragments=done.fragments,
        files_removed=done.files_removed,
        files_added=done.files_added,
    )


@table_command("describe", versioned=False)
@click.option("--description", help="What a row of the table is; an empty text takes it away.")
@click.option("--owner", help="Who answers questions about the table.")
@click.option("--fresh-within", metavar="DURATION", help="Rows shall change within that time, such as 26h or 2days.")
@click.option(
    "--column", "columns", multiple=True, metavar="PATH=TEXT", callback=parse_pairs, help="What a column is; repeatable."
)
@click.option(
    "--column-owner", "owners", multiple=True, metavar="PATH=OWNER", callback=parse_pairs, help="Whose a column is."
)
def describe(
    table: Table,
    output: Output,
    description: str | None,
    owner: str | None,
    fresh_within: str | None,
    columns: Mapping[str, str],
    owners: Mapping[str, str],
) -> None:
    """Say what a table and its columns are, and whose; without an option, show what is said."""
    from lance_core.dataset.edit import description as said

    snapshot = table.open()
    of_columns = {
        path: said.Description(text=columns.get(path), owner=owners.get(path)) for path in dict.fromkeys((*columns, *owners))
    }
    of_table = said.Description(text=description, owner=owner, fresh_within=fresh_within)
    if of_columns or of_table != said.Description():
        snapshot = said.describe(snapshot, of_table, of_columns)
    now = said.description_of(snapshot.manifest)
    schema = snapshot.manifest.schema
    described = [(schema.path_of(item.id), said.description_of_field(item)) for item in schema.fields]
    output.record(
        {
            "version": snapshot.version,
            "description": now.text,
            "owner": now.owner,
            "fresh_within": now.fresh_within,
            "columns": {
                path: {"description": words.text, "owner": words.owner}
                for path, words in described
                if words.text or words.owner
            },
        }
    )


def _show_plan(
    output: Output, text: str, values: Mapping[str, object], *, skipped: Iterable[tuple[int, str]], empty: str
) -> None:
    """What a rewrite would do, and why it leaves the `skipped` fragments alone; `empty` is said when it leaves none."""
    reasons = [{"fragment": number, "why": reason} for number, reason in skipped]
    output.message(text, **values, skipped=reasons, dry_run=True)
    if not output.as_json:
        output.rows(reasons, empty=empty)


@table_command("cleanup", versioned=False)
@click.option(
    "--older-than",
    callback=age,
    metavar="AGE",
    help="Minimum age of versions to remove, such as 30m, 12h, 14d or 2w; default 14d.",
)
@click.option("--retain", type=int, help="Number of newest versions to keep.")
@click.option("--keep-tagged", is_flag=True, help="Keep tagged versions instead of failing.")
@click.option("--delete-unverified", is_flag=True, help="Also remove unreferenced files that are younger than 7 days.")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
def cleanup(
    table: Table,
    output: Output,
    older_than: dt.timedelta | None,
    retain: int | None,
    keep_tagged: bool,
    delete_unverified: bool,
    dry_run: bool,
) -> None:
    """Remove old versions and the files only they need."""
    from lance_core.dataset.versions.cleanup import plan_cleanup, run_cleanup

    snapshot = table.open()
    store = snapshot.store
    plan = plan_cleanup(
        store,
        older_than=older_than,
        retain_versions=retain,
        delete_unverified=delete_unverified,
        error_if_tagged_old_versions=not keep_tagged,
        root=snapshot.root,
        storage_options=snapshot.storage_options,
    )
    with output.progress("removing") as progress:
        stats = plan.stats if dry_run else run_cleanup(store, plan, progress=progress)
    facts: dict[str, Any] = {
        "versions": [entry.version for entry in plan.versions],
        "files": [item.path for item in plan.files],
        "bytes": stats.bytes_removed,
        "kept": [{"version": number, "why": reason} for number, reason in plan.kept],
        "dry_run": dry_run,
    }
    verb = "would remove" if dry_run else "removed"
    output.message(
        f"{verb} {stats.old_versions} versions, {len(plan.files)} files, {size_text(stats.bytes_removed)}", **facts
    )


@click.group("tags")
def tags() -> None:
    """Names for versions: list, create, update, delete."""


@table_command("list", versioned=False)
def list_tags(table: Table, output: Output) -> None:
    """All tags and the versions they point at."""
    from lance_core.dataset.refs.tags import list_tags as read_all

    found = read_all(table.open().store).values()
    output.rows(({"tag": tag.name, "version": tag.version, "updated": tag.updated_at} for tag in found), empty="no tags")


@table_command("create", versioned=False)
@click.argument("name")
@click.argument("version", type=int, required=False)
def create_tag(table: Table, output: Output, name: str, version: int | None) -> None:
    """Name a version, by default the newest."""
    from lance_core.dataset.refs.tags import create_tag as create

    snapshot = table.open()
    tag = create(snapshot.store, name, snapshot.version if version is None else version)
    output.message(f"{name} is version {tag.version}", tag=name, version=tag.version)


@table_command("update", versioned=False)
@click.argument("name")
@click.argument("version", type=int)
def update_tag(table: Table, output: Output, name: str, version: int) -> None:
    """Point a tag at another version."""
    from lance_core.dataset.refs.tags import update_tag as update

    tag = update(table.open().store, name, version)
    output.message(f"{name} is version {tag.version}", tag=name, version=tag.version)


@table_command("delete", versioned=False)
@click.argument("name")
def delete_tag(table: Table, output: Output, name: str) -> None:
    """Forget a tag; the version stays."""
    from lance_core.dataset.refs.tags import delete_tag as remove

    remove(table.open().store, name)
    output.message(f"deleted tag {name}", tag=name)


for _command in (list_tags, create_tag, update_tag, delete_tag):
    tags.add_command(_command)

COMMANDS = (delete, restore, compact, merge_column_files, cleanup, describe, tags)
