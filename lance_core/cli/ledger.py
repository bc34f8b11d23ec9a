"""`lance ledger`: the table's records of committed work."""

from __future__ import annotations

import datetime as dt
from typing import Any

import click

from lance_core.cli.ages import age
from lance_core.cli.output import Output
from lance_core.cli.table import Table, table_command
from lance_core.errors import NotFoundError


@click.group("ledger")
def ledger() -> None:
    """Committed work: show, verify, forget, repair, fold."""


@table_command("show", versioned=False)
@click.option("--identity", help="Only this identity.")
def show(table: Table, output: Output, identity: str | None) -> None:
    """Which work was committed, in which version, and the task that requested it."""
    from lance_core.commit.identities import Asked
    from lance_core.publish.decisions import CommittedWork, look
    from lance_core.publish.verify import list_ledger

    store = table.store()
    one = None if identity is None else look(store, identity).committed
    commits = list_ledger(store) if identity is None else [one] if one is not None else []

    def line(item: CommittedWork) -> dict[str, Any]:
        asked = Asked.from_dict(item.asked)
        return {
            "identity": item.identity,
            "version": item.version,
            "digest": item.digest,
            "requested_by": str(asked) if item.asked else None,
            "host": asked.host or None,
            "log": asked.log_url or None,
        }

    output.rows(
        (line(item) for item in commits), empty="the ledger has no record of it" if identity else "nothing is committed"
    )


@table_command("verify", versioned=False)
def verify(table: Table, output: Output) -> None:
    """Name the records that do not count: damaged, or of a table that was here before."""
    from lance_core.publish.verify import void_records

    found = void_records(table.store())
    output.rows(({"record": item.path, "why": item.reason} for item in found), empty="every record is valid")


@table_command("repair", versioned=False)
def repair(table: Table, output: Output) -> None:
    """Set aside the records that `verify` names."""
    from lance_core.publish.verify import set_aside, void_records

    store = table.store()
    found = void_records(store)
    set_aside(store, [item.path for item in found])
    output.rows(({"record": item.path, "why": item.reason} for item in found), empty="every record is valid")


@table_command("forget", versioned=False)
@click.argument("identity")
def forget(table: Table, output: Output, identity: str) -> None:
    """Set aside the record of one identity, so that its work may be committed again while the history does not show it."""
    from lance_core.publish.decisions import look
    from lance_core.publish.verify import forget as forget_decisions

    store = table.store()
    committed = look(store, identity).committed
    moved = forget_decisions(store, identity)
    if not moved:
        raise NotFoundError(f"the ledger has no record of {identity}", uri=store.uri, cure="See `lance ledger show`.")
    version = None if committed is None else committed.version
    output.message(
        f"removed the record of {identity} (it was committed as version {version})", identity=identity, version=version
    )


@table_command("fold", versioned=False)
@click.option(
    "--older-than",
    callback=age,
    metavar="AGE",
    help="Minimum age of records to fold, such as 12h, 30d or 8w; default 30d.",
)
def fold(table: Table, output: Output, older_than: dt.timedelta | None) -> None:
    """Gather old records in a few sorted segments.

    From then on the cleanup of this table does so, too, once a thousand have come together.
    """
    from lance_core.publish.folding import DEFAULT_FOLD_AGE, fold_ledger

    store = table.store()
    done = fold_ledger(store, older_than=DEFAULT_FOLD_AGE if older_than is None else older_than)
    output.message(
        f"folded {done.folded} records; the segments have {done.total}",
        folded=done.folded,
        removed=done.removed,
        total=done.total,
        generation=done.generation,
    )


for _command in (show, verify, repair, forget, fold):
    ledger.add_command(_command)

COMMANDS = (ledger,)
