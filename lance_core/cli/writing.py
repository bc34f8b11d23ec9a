"""Commands that bring rows and indices into a table, each in one commit: `lance write`, `lance index`.

::

    lance write /data/flights.lance january.csv february.csv
    lance write /data/flights.lance all.parquet --mode overwrite
    lance index build /data/flights.lance carrier BTREE
    lance index build /data/texts.lance embedding IVF_PQ -p num_partitions=16 -p metric=cosine
    lance index optimize /data/texts.lance
    lance index drop /data/flights.lance carrier_idx
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click

from lance_core.cli.output import Output
from lance_core.cli.table import Table, parse_pairs, table_command


@table_command("write", versioned=False)
@click.argument("paths", nargs=-1, required=True)
@click.option(
    "--mode",
    type=click.Choice(["append", "overwrite"]),
    default="append",
    show_default=True,
    help="append: add the rows, to a new table where there is none; overwrite: replace all rows and the columns.",
)
@click.option("--schema-drift", default="fail", show_default=True, help="What to do when the columns are not the table's.")
@click.option("--allow-empty", is_flag=True, help="Let an overwrite with no rows empty the table.")
@click.option("--identity", default="", metavar="UUID", help="The work that this is: given again, nothing is added.")
def write(
    table: Table,
    output: Output,
    paths: tuple[str, ...],
    mode: str,
    schema_drift: str,
    allow_empty: bool,
    identity: str,
) -> None:
    """Write the rows of files, PATHS of one format: .parquet, .orc, .csv, .json, .jsonl, .arrow or .lance."""
    from lance_core.jobs.specs.paths import source_of_paths

    empty = {"allow_empty": allow_empty} if mode == "overwrite" else {}
    spec = {"source": source_of_paths(paths), "schema_drift": schema_drift, "identity": identity, **empty}
    output.record(_carry_out(table, mode, spec))


@click.group("index")
def index() -> None:
    """Indices: build, drop and optimize them; `lance indices` lists them."""


@table_command("build", versioned=False)
@click.argument("column")
@click.argument("kind")
@click.option("--name", help="The index's name; default is the column's with _idx.")
@click.option(
    "-p",
    "--parameter",
    "parameters",
    multiple=True,
    metavar="KEY=VALUE",
    callback=parse_pairs,
    help="What that kind takes, such as num_partitions=16; repeatable.",
)
@click.option("--no-replace", is_flag=True, help="Fail where there is an index of that name.")
def build(
    table: Table, output: Output, column: str, kind: str, name: str | None, parameters: dict[str, str], no_replace: bool
) -> None:
    """Build an index of a KIND, such as BTREE or IVF_PQ, on a COLUMN."""
    given = {key: _value(text) for key, text in parameters.items()}
    spec = {"column": column, "index_type": kind, "name": name, "parameters": given, "replace": not no_replace}
    output.record(_carry_out(table, "build_index", spec))


@table_command("optimize", versioned=False)
@click.argument("names", nargs=-1)
@click.option("--retrain", is_flag=True, help="Build everything again, the centroids too.")
def optimize(table: Table, output: Output, names: tuple[str, ...], retrain: bool) -> None:
    """Index the rows that came since, of the indices NAMES or of all."""
    output.record(_carry_out(table, "optimize_indices", {"index_names": [*names], "retrain": retrain}))


@table_command("drop", versioned=False)
@click.argument("name")
def drop(table: Table, output: Output, name: str) -> None:
    """Drop an index by its NAME. The rows stay."""
    from lance_core.dataset.indexing.build import drop_index

    version = drop_index(table.open(), name).version
    output.message(f"index {name} is gone: version {version}", version=version)


def _value(text: str) -> Any:
    """A number, a list, true: as JSON has it; any other text is itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _carry_out(table: Table, kind: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Stage and publish; what the commit says."""
    from lance_core.jobs import api
    from lance_core.jobs.kinds import spec_from_plain
    from lance_core.jobs.run import run_job
    from lance_core.jobs.specs.spec import CommitSpec
    from lance_core.publish.model import StagedTransaction

    given = {name: value for name, value in fields.items() if value is not None}
    spec = api.with_options(spec_from_plain({"kind": kind, "uri": table.uri, **given}), table.options)
    result: Any = run_job(spec)
    if isinstance(result, StagedTransaction):
        result = run_job(CommitSpec.of([result], uri=spec.uri, storage_options=spec.storage_options))
    done: Mapping[str, Any] = result.to_dict()
    return done


for _command in (build, optimize, drop):
    index.add_command(_command)

COMMANDS = (write, index)
