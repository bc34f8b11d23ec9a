"""`lance doctor URI`: what makes a table slow, large or conflicting; `lance report URI`: the table as one static page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from lance_core.cli.output import Output, say
from lance_core.cli.table import Table, table_command


@table_command("doctor", versioned=False)
@click.option(
    "--deep", is_flag=True, help="Also read every data file and list all files, to find damage and unreferenced bytes."
)
def doctor(table: Table, output: Output, deep: bool) -> None:
    """Examine a table. Each finding has its size, what it costs, and the command that helps.

    Exit code 1 when there is an error among the findings; warnings and notes exit with 0.
    """
    from lance_core.maintenance.doctor import diagnose

    found = diagnose(table.uri, deep=deep, storage_options=table.options)
    if output.as_json:
        output.record({"uri": table.uri, "healthy": not found, "findings": [item.to_dict() for item in found]})
    elif not found:
        output.message(f"{table.uri} is healthy" + ("" if deep else ": all files are there; --deep also reads them"))
    for item in () if output.as_json else found:
        say(f"{item.severity}: {item.title} ({item.extent}) [{item.code}]")
        say(f"    {item.cost}")
        for pair in item.details.get("between", ()):
            mine, other = (_party(pair[name], pair[key]) for name, key in _PARTIES)
            say(f"    {pair['count']} x {mine} met {other}")
        say(f"    {item.cure}")
    if any(item.severity == "error" for item in found):
        raise click.exceptions.Exit(1)


_PARTIES = (("operation", "writer"), ("other_operation", "other_writer"))


def _party(operation: str, writer: Mapping[str, Any] | None) -> str:
    return f"{operation} by {writer['dag_id']}.{writer['task_id']}" if writer else f"{operation} by an unnamed writer"


@table_command("report", versioned=False)
@click.option("--html", "target", required=True, type=click.Path(dir_okay=False, writable=True), help="The file to write.")
@click.option("--deep", is_flag=True, help="Also read every data file and list all files for the findings.")
@click.option(
    "--policy",
    "policy_file",
    type=click.Path(exists=True, dir_okay=False),
    help="Judge the table by this policy, and show what its maintenance did, predicted and real.",
)
def report(table: Table, output: Output, target: str, deep: bool, policy_file: str | None) -> None:
    """Write a static HTML page about a table: health, versions, fragments, indices, staged work. It needs no network."""
    from lance_core.maintenance.policy_file import load_policy
    from lance_core.maintenance.report import table_report
    from lance_core.maintenance.report_html import report_html

    policy = None if policy_file is None else load_policy(policy_file)
    found = table_report(table.uri, policy=policy, storage_options=table.options, deep=deep)
    Path(target).write_text(report_html(found), encoding="utf-8")
    health = "not checked" if found.health is None else found.health
    output.message(f"{target}: health {health}, {len(found.findings)} findings", file=target, health=found.health)


COMMANDS = (doctor, report)
