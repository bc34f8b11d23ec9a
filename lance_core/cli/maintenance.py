"""Commands that check a table or prepare this machine: validate, warmup."""

from __future__ import annotations

import time

import click

from lance_core.cli.output import Output
from lance_core.cli.table import Table, table_command


@table_command("validate")
@click.option("--shallow", is_flag=True, help="Look at the manifest only; open no files.")
def validate(table: Table, output: Output, shallow: bool) -> None:
    """Check a version: ids, row counts, every data and deletion file. Exit code 1 names the first thing wrong."""
    from lance_core.dataset.validate import check_snapshot

    snapshot = table.open()
    with output.progress("checking") as progress:
        opened = check_snapshot(snapshot, deep=not shallow, progress=progress)
    output.message(
        f"version {snapshot.version} of {snapshot.uri} is whole: {snapshot.manifest.num_rows} rows, {opened} files opened",
        version=snapshot.version,
        rows=snapshot.manifest.num_rows,
        files_opened=opened,
        valid=True,
    )


@click.command("warmup")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def warmup(as_json: bool) -> None:
    """Compile all kernels now and keep them on disk, so that no job waits for it later."""
    from lance_core import kernels
    from lance_core.kernels import jit

    began = time.monotonic()
    load = getattr(kernels, "load_all", None)
    if load is not None:
        load()
    compiled = jit.warmup()
    seconds = round(time.monotonic() - began, 2)
    Output(as_json=as_json).message(f"{compiled} kernels ready after {seconds} s", kernels=compiled, seconds=seconds)


COMMANDS = (validate, warmup)
