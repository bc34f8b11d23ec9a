"""`lance wait`: the conditions of sensors and triggers, from a shell."""

from __future__ import annotations

import sys
import time

import click

from lance_core.cli.output import Output, say
from lance_core.cli.table import Table, table_command
from lance_core.conditions import (
    Condition,
    RowsAtLeast,
    StagedAtMost,
    TableFacts,
    TagReached,
    VersionAtLeast,
    VersionChangedSince,
)

TIMED_OUT = 3


@table_command("wait", versioned=False)
@click.option("--version", "version", type=int, help="Wait until the table has this version or a later one.")
@click.option("--changed-since", type=int, help="Wait until its version differs from this one.")
@click.option("--rows", type=int, help="Wait until it has this many rows (with --where: matching rows).")
@click.option("--where", help="SQL filter for --rows.")
@click.option("--tag", help="Wait until this tag exists.")
@click.option("--nothing-staged", is_flag=True, help="Wait until no staged transaction is left.")
@click.option("--timeout", type=float, default=None, help="Maximum seconds to wait; default is no limit.")
@click.option("--interval", type=float, default=2.0, show_default=True, help="Seconds between two checks.")
def wait(table: Table, output: Output, timeout: float | None, interval: float, **wanted: object) -> None:
    """Wait until a table is as it should be; exit code 3 when the time runs out. A table may not exist yet."""
    conditions = _conditions(**wanted)  # type: ignore[arg-type]
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        facts = _look(table, conditions)
        pending = [condition for condition in conditions if not condition.is_met(facts)]
        if not pending:
            output.message(f"version {facts.version}, {facts.num_rows} rows", **facts.to_dict())
            return
        if deadline is not None and time.monotonic() >= deadline:
            say("; ".join(condition.explain(facts) for condition in pending), err=True)
            sys.exit(TIMED_OUT)
        left = interval if deadline is None else min(interval, max(deadline - time.monotonic(), 0.0))
        time.sleep(left)


def _look(table: Table, conditions: list[Condition]) -> TableFacts:
    from lance_core.dataset.maintain.table_facts import table_facts

    return table_facts(
        table.uri,
        table.options,
        predicates=[predicate for condition in conditions for predicate in condition.predicates],
        staged=any(condition.needs_staged for condition in conditions),
    )


def _conditions(
    *,
    version: int | None,
    changed_since: int | None,
    rows: int | None,
    where: str | None,
    tag: str | None,
    nothing_staged: bool,
) -> list[Condition]:
    found: list[Condition] = []
    if version is not None:
        found.append(VersionAtLeast(version))
    if changed_since is not None:
        found.append(VersionChangedSince(changed_since))
    if rows is not None:
        found.append(RowsAtLeast(rows, where))
    elif where is not None:
        raise click.UsageError("--where needs --rows")
    if tag is not None:
        found.append(TagReached(tag))
    if nothing_staged:
        found.append(StagedAtMost())
    if not found:
        raise click.UsageError("pass a condition: --version, --changed-since, --rows, --tag or --nothing-staged")
    return found


COMMANDS = (wait,)
