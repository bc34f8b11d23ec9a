"""`lance staged`: transactions that wait for their commit, running attempts, and files of dead attempts."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import click

from lance_core.cli.ages import age
from lance_core.cli.output import Output, say, size_text
from lance_core.cli.table import Table, table_command, who
from lance_core.errors import NotFoundError, UnsupportedRecordError

if TYPE_CHECKING:
    from lance_core.io.store import Store
    from lance_core.publish.intent import Intent
    from lance_core.publish.model import StagedEntry


@click.group("staged")
def staged() -> None:
    """Staged transactions: list, show, explain, abort, settle, gc, repair."""


def _time(seconds: float) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.timezone.utc).isoformat(timespec="seconds")


@table_command("list", versioned=False)
def list_(table: Table, output: Output) -> None:
    """Every attempt: running, expired (its lease is over), or finished (waits for its commit); and every commit at work."""
    from lance_core.publish.attempts import list_staged
    from lance_core.publish.intent import list_intents

    store = table.store()
    unsupported: list[UnsupportedRecordError] = []
    lines = [_line(entry) for entry in list_staged(store, unsupported=unsupported)]
    try:
        lines += [_intent_line(intent, identity) for intent in list_intents(store) for identity in intent.attempts]
    except UnsupportedRecordError as error:
        unsupported.append(error)
    if lines or not unsupported:
        output.rows(lines, empty="nothing is staged")
    if unsupported:
        raise unsupported[0]


def _intent_line(intent: Intent, identity: str) -> dict[str, Any]:
    """A commit that is at work, or was killed; committing again settles it at once."""
    return {
        "identity": identity,
        "attempt": intent.attempts.get(identity),
        "state": f"in {'an abort' if intent.aborts else 'a commit'}: {intent.commit}",
        "operation": None,
        "rows": None,
        "bytes": None,
        "read_version": None,
        "started": _time(intent.since),
        "lease_until": None,
        **who([]),
    }


def _line(entry: StagedEntry) -> dict[str, Any]:
    from lance_core.commit.identities import Asked

    found = entry.staged
    return {
        "identity": entry.identity,
        "attempt": entry.attempt,
        "state": entry.state,
        "operation": None if found is None else found.operation,
        "rows": None if found is None else found.num_rows,
        "bytes": None if found is None else found.num_bytes,
        "read_version": entry.read_version,
        "started": _time(entry.started),
        "lease_until": _time(entry.lease_until),
        **who([Asked.from_dict(entry.asked)] if entry.asked else []),
    }


def _entries(store: Store, identity: str, attempt: str | None) -> list[StagedEntry]:
    from lance_core.publish.attempts import list_staged

    found = [entry for entry in list_staged(store, identity=identity) if attempt in (None, entry.attempt)]
    if not found:
        raise NotFoundError(f"nothing is staged as {identity}", uri=store.uri, cure=f"See `lance staged list {store.uri}`.")
    return found


@table_command("show", versioned=False)
@click.argument("identity")
def show(table: Table, output: Output, identity: str) -> None:
    """One identity in full: spec, counts, transaction."""
    entries = _entries(table.store(), identity, None)
    if output.as_json:
        output.rows({**_line(entry), "spec": dict(entry.spec), "staged": entry.staged} for entry in entries)
        return
    for entry in entries:
        details = {} if entry.staged is None else entry.staged.to_dict()
        output.record({**_line(entry), **{f"spec {key}": value for key, value in entry.spec.items()}, **details})


@table_command("abort", versioned=False)
@click.argument("identity")
@click.option("--attempt", help="Only this attempt; default is all attempts of the identity.")
@click.option(
    "--certain", is_flag=True, help="Confirm that its rows are not in the table, where the history does not show it."
)
def abort(table: Table, output: Output, identity: str, attempt: str | None, certain: bool) -> None:
    """Remove the files and the record of attempts that were not committed."""
    from lance_core.publish.abort import abort_attempt

    store = table.store()
    removed = [
        path
        for entry in _entries(store, identity, attempt)
        for path in abort_attempt(store, entry.identity, entry.attempt, certain=certain)
    ]
    output.message(f"removed {len(removed)} files", files=removed)


@table_command("settle", versioned=False)
@click.argument("identity")
@click.option("--version", "committed", type=int, required=True, help="The version that added its rows.")
def settle(table: Table, output: Output, identity: str, committed: int) -> None:
    """Record that an identity was committed, after you have checked it, where the history that would show it was removed."""
    from lance_core.publish.decisions import settle_by_hand

    settle_by_hand(table.store(), identity, version=committed)
    output.message(f"{identity} is recorded as committed in version {committed}", identity=identity, version=committed)


@table_command("gc", versioned=False)
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option(
    "--abandon-after",
    callback=age,
    metavar="AGE",
    help="Also abort staged work that has waited longer for its commit, such as 12h, 14d or 2w; default: never.",
)
def gc(table: Table, output: Output, dry_run: bool, abandon_after: dt.timedelta | None) -> None:
    """Remove what dead attempts left: nothing that any version, staged transaction or living lease needs."""
    from lance_core.publish.collect import collect_garbage

    seconds = None if abandon_after is None else abandon_after.total_seconds()
    report = collect_garbage(table.store(), dry_run=dry_run, abandon_after=seconds)
    if output.as_json:
        output.record(report.to_dict())
        return
    verb = "would remove" if dry_run else "removed"
    say(f"{verb} {len(report.files)} files, {size_text(report.bytes)}, of {len(report.attempts)} attempts")
    for identity in report.abandoned:
        say(f"  {'would abort' if dry_run else 'aborted'} {identity}, which waited too long for its commit")
    for identity in report.unknown:
        say(f"  kept {identity}: whether it was committed is unknown; `lance staged explain` says what settles it")
    for path in report.files:
        say(f"  {path}")


@table_command("repair", versioned=False)
@click.option("--dry-run", is_flag=True, help="Only list the damaged records.")
def repair(table: Table, output: Output, dry_run: bool) -> None:
    """Set aside unreadable records of staged work, so that they do not block other work."""
    from lance_core.publish.verify import damaged_records, set_aside

    store = table.store()
    found = damaged_records(store)
    if not dry_run:
        set_aside(store, [item.path for item in found])
    output.rows(({"record": item.path, "why": item.reason} for item in found), empty="every record can be read")


@table_command("explain", versioned=False)
@click.argument("identity")
def explain(table: Table, output: Output, identity: str) -> None:
    """One identity's story: attempts, decisions, intents, versions, and what would settle an unknown."""
    from lance_core.publish.verify import explain as explained

    output.rows(explained(table.store(), identity), empty="nothing is known of it")


for _command in (list_, show, explain, abort, settle, gc, repair):
    staged.add_command(_command)

COMMANDS = (staged,)
