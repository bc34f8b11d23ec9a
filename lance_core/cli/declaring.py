"""Commands for declared columns: refresh them, and take a declaration back.

::

    lance refresh /data/articles.lance --dry-run
    lance refresh /data/articles.lance --column vector --function our_company.models:embed
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from lance_core.cli.output import Output
from lance_core.cli.table import Table, table_command


@table_command("refresh", versioned=False)
@click.option("-c", "--column", "columns", multiple=True, help="A declared column, may be repeated; default is all.")
@click.option(
    "--function",
    "functions",
    multiple=True,
    metavar="MODULE:NAME",
    help="A function that the table declares and that may run here, may be repeated.",
)
@click.option("--commit-every", type=click.IntRange(1), default=16, show_default=True, help="Fragments of one version.")
@click.option("--deep", is_flag=True, help="Read every fragment, also those that were noted as fresh.")
@click.option("--skip-failed", is_flag=True, help="Leave rows alone for which the function failed before.")
@click.option("--max-rows", type=click.IntRange(1), help="End when so many rows were given to functions.")
@click.option("--max-seconds", type=click.FloatRange(0, min_open=True), help="End after so many seconds.")
@click.option("--concurrency", type=click.IntRange(1, 256), default=1, show_default=True, help="Calls at once, in threads.")
@click.option("--canary", type=click.IntRange(1), help="Rows that are computed first, for the gates; default is 1000.")
@click.option(
    "--gate",
    "gates",
    multiple=True,
    metavar="JSON",
    help='What must hold for them before any is published, as \'{"max_null_rates": {"vector": 0.01}}\', may be repeated.',
)
@click.option("--dry-run", is_flag=True, help="Only count the rows that would be computed, and tell their price.")
@click.option("--failed", is_flag=True, help="Only show the rows for which functions failed.")
def refresh(
    table: Table,
    output: Output,
    columns: tuple[str, ...],
    functions: tuple[str, ...],
    commit_every: int,
    deep: bool,
    skip_failed: bool,
    max_rows: int | None,
    max_seconds: float | None,
    concurrency: int,
    canary: int | None,
    gates: tuple[str, ...],
    dry_run: bool,
    failed: bool,
) -> None:
    """Compute the rows of declared columns that are new, changed, failed, written over or of an older definition."""
    from lance_core.jobs.declared_columns import refresh_columns

    if failed:
        _show_failed(table, output, columns)
        return
    report = refresh_columns(
        table.uri,
        [*columns] or None,
        functions=functions,
        commit_every=commit_every,
        dry_run=dry_run,
        deep=deep,
        retry_failed=not skip_failed,
        max_rows=max_rows,
        max_seconds=max_seconds,
        concurrency=concurrency,
        canary=canary,
        gates=[_gate(text) for text in gates],
        storage_options=table.options,
    )
    if output.as_json:
        output.record({**report.to_dict(), "dry_run": dry_run})
        return
    output.rows(
        ({"column": name, "stale": counts.stale, **asdict(counts)} for name, counts in report.columns.items()),
        empty="no column is declared",
    )
    for name, prices in report.estimated.items():
        output.message(f"{name} would cost about {', '.join(f'{price:g} {unit}' for unit, price in prices.items())}")
    left = 0 if dry_run else sum(counts.left for counts in report.columns.values())
    ended = f", {left} are left" if left else ""
    ended += f", because the budget of {report.stopped} is used up" if report.stopped else ""
    done = report.stale - left + sum(counts.unseen for counts in report.columns.values())
    told = "would compute" if dry_run else "computed"
    output.message(f"{told} {done} rows: version {report.version}{ended}")


def _gate(text: str) -> Any:
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"{text!r} is not JSON: {error}", param_hint="--gate") from None


def _show_failed(table: Table, output: Output, columns: Sequence[str]) -> None:
    """The rows that failed, of these columns or of all."""
    from lance_core.dataset.snapshot.snapshot import open_snapshot
    from lance_core.format.declared import declared_fields
    from lance_core.jobs.declared_columns import failed_rows

    schema = open_snapshot(table.uri, storage_options=table.options).manifest.schema
    names = [*columns] or [item.name for item in declared_fields(schema)]
    found = {name: failed_rows(table.uri, name, storage_options=table.options) for name in names}
    rows = [{"column": name, **asdict(row)} for name, rows in found.items() for row in rows.rows]
    output.rows(rows, empty="no row failed")
    left_out = sum(rows.left_out for rows in found.values())
    if left_out and not output.as_json:
        output.message(f"and {left_out} more")


@table_command("undeclare", versioned=False)
@click.argument("column")
def undeclare(table: Table, output: Output, column: str) -> None:
    """Take the declaration of a column back. It keeps its values."""
    from lance_core.jobs.declared_columns import undeclare_column

    version = undeclare_column(table.uri, column, storage_options=table.options)
    output.message(f"column {column} is not declared any more: version {version}", version=version)


COMMANDS = (refresh, undeclare)
