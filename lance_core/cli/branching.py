"""`lance branches`: list, create, delete.

::

    $ lance branches list s3://bucket/t      branch  parent  version  created
                                             exp     main    7        2026-11-21 12:00:00
"""

from __future__ import annotations

import datetime as dt

import click

from lance_core.cli.output import Output
from lance_core.cli.table import Table, table_command


@click.group("branches")
def branches() -> None:
    """Lines of versions beside the main one: list, create, delete."""


@table_command("list", versioned=False)
def list_all(table: Table, output: Output) -> None:
    """All branches and the versions they began from."""
    from lance_core.dataset.refs.branches import MAIN, list_branches

    found = list_branches(table.open().root).values()
    output.rows(
        (
            {
                "branch": item.name,
                "parent": item.parent_branch or MAIN,
                "version": item.parent_version,
                "created": dt.datetime.fromtimestamp(item.created_at, dt.timezone.utc),
            }
            for item in found
        ),
        empty="no branches",
    )


@table_command("create", versioned=False)
@click.argument("name")
@click.argument("version", type=int, required=False)
def create(table: Table, output: Output, name: str, version: int | None) -> None:
    """Create a branch from a version, by default the newest."""
    from lance_core.dataset.versions.clone import create_branch

    snapshot = table.open()
    made = create_branch(snapshot if version is None else snapshot.at(version), name)
    output.message(
        f"created branch {name} with version {made.version} at {made.uri}", branch=name, version=made.version, uri=made.uri
    )


@table_command("delete", versioned=False)
@click.argument("name")
def delete(table: Table, output: Output, name: str) -> None:
    """Remove a branch and its files; fails while a tag or another branch refers to it."""
    from lance_core.dataset.versions.clone import delete_branch

    delete_branch(table.open().root, name)
    output.message(f"deleted branch {name}", branch=name)


for _command in (list_all, create, delete):
    branches.add_command(_command)

COMMANDS = (branches,)
