"""Commands for declared columns: refresh them, and take a declaration back.

::

    lance refresh /data/articles.lance --dry-run
    lance refresh /data/articles.lance --column vector --function our_company.models:embed
"""

from __future__ import annotations

from dataclasses import asdict

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
@click.option("--dry-run", is_flag=True, help="Only count the rows that would be computed.")
def refresh(
    table: Table,
    output: Output,
    columns: tuple[str, ...],
    functions: tuple[str, ...],
    commit_every: int,
    deep: bool,
    dry_run: bool,
) -> None:
    """Compute the rows of declared columns that are new, changed, failed, written over or of an older definition."""
    from lance_core.jobs.declared_columns import refresh_columns

    report = refresh_columns(
        table.uri,
        [*columns] or None,
        functions=functions,
        commit_every=commit_every,
        dry_run=dry_run,
        deep=deep,
        storage_options=table.options,
    )
    if output.as_json:
        output.record({**asdict(report), "stale": report.stale, "dry_run": dry_run})
        return
    output.rows(
        ({"column": name, "stale": counts.stale, **asdict(counts)} for name, counts in report.columns.items()),
        empty="no column is declared",
    )
    output.message(f"{'would compute' if dry_run else 'computed'} {report.stale} rows: version {report.version}")


@table_command("undeclare", versioned=False)
@click.argument("column")
def undeclare(table: Table, output: Output, column: str) -> None:
    """Take the declaration of a column back. It keeps its values."""
    from lance_core.jobs.declared_columns import undeclare_column

    version = undeclare_column(table.uri, column, storage_options=table.options)
    output.message(f"column {column} is not declared any more: version {version}", version=version)


COMMANDS = (refresh, undeclare)
