"""`lance job`: run a job spec in this process, as Airflow and Spark do. `lance commit`: publish staged transactions.
`lance sql`: one statement over several tables.

::

    lance job '{"kind": "append", "uri": "/t.lance", "source": {"format": "parquet", "paths": ["new.parquet"]}}' --commit
    lance job merge.json --json
    lance commit /t.lance
    lance sql 'SELECT u.name, sum(o.price) AS paid FROM o JOIN u USING (id) GROUP BY 1' -t o=/orders.lance -t u=/users.lance
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from lance_core.cli.output import Output
from lance_core.cli.table import Table, parse_pairs, storage_option, table_command
from lance_core.errors import InputError


@click.command("job")
@click.argument("spec")
@click.option("--commit", is_flag=True, help="Publish the staged transaction at once.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def job(spec: str, commit: bool, as_json: bool) -> None:
    """Run a job SPEC: JSON text, a file that holds it, or - for standard input.

    A staging job prints the reference to what it staged; `identity` in the spec makes a second run add nothing.
    """
    from lance_core.jobs.kinds import spec_from_json
    from lance_core.jobs.run import run_job
    from lance_core.jobs.specs.spec import CommitSpec
    from lance_core.publish.model import StagedTransaction

    parsed = spec_from_json(_text(spec))
    result: Any = run_job(parsed)
    if commit and isinstance(result, StagedTransaction):
        result = run_job(CommitSpec.of([result], uri=parsed.uri, storage_options=parsed.storage_options))
    Output(as_json=as_json).record(result.to_dict())


@table_command("commit", versioned=False)
@click.argument("identities", nargs=-1)
@click.option(
    "--no-re-execute", is_flag=True, help="Fail if another writer made the work invalid, instead of re-executing it."
)
def commit(table: Table, output: Output, identities: tuple[str, ...], no_re_execute: bool) -> None:
    """Publish staged work: of the IDENTITIES, or all that waits."""
    from lance_core.jobs import api
    from lance_core.jobs.specs.spec import CommitSpec

    spec = CommitSpec(uri=table.uri, identities=identities, re_execute=not no_re_execute)
    output.record(api.run(spec, options=table.options))


_NO_BOUND = 1 << 62
"""A shell keeps no result: its rows are printed."""


@click.command("sql")
@click.argument("statement")
@click.option(
    "-t", "--table", "tables", multiple=True, metavar="NAME=URI", callback=parse_pairs, help="A table; repeatable."
)
@storage_option()
@click.option("--max-rows", default=1000, show_default=True, help="Refuse a result of more rows.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def sql(statement: str, tables: dict[str, str], storage_option: dict[str, str], max_rows: int, as_json: bool) -> None:
    """Run one SQL STATEMENT over tables: a SELECT, or INSERT, UPDATE, DELETE or MERGE, which change one. Needs DuckDB."""
    from lance_core.jobs import api
    from lance_core.jobs.run import run_job
    from lance_core.jobs.specs.spec import CommitSpec
    from lance_core.jobs.specs.sql import lance_source, sql_spec
    from lance_core.publish.model import StagedTransaction

    sources = {name: lance_source(uri) for name, uri in tables.items()}
    spec = api.with_options(
        sql_spec(statement, sources, result={"max_rows": max_rows, "max_bytes": _NO_BOUND}), storage_option
    )
    result: Any = run_job(spec)
    output = Output(as_json=as_json)
    if isinstance(result, StagedTransaction):
        result = run_job(CommitSpec.of([result], uri=spec.uri, storage_options=spec.storage_options))
        output.record(result.to_dict())
    else:
        output.rows(result.to_dict()["rows"], empty="no rows")


def _text(spec: str) -> str:
    if spec == "-":
        return sys.stdin.read()
    if spec.lstrip().startswith("{"):
        return spec
    path = Path(spec)
    if not path.is_file():
        raise InputError(f"the job spec {spec!r} is neither JSON nor a file")
    return path.read_text(encoding="utf-8")


COMMANDS = (job, commit, sql)
