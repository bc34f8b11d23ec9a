"""Commands that check a table or prepare this machine: validate, seal-indices, warmup."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from pathlib import Path

import click

from lance_core.cli.output import Output
from lance_core.cli.table import Table, table_command


@table_command("validate")
@click.option("--shallow", is_flag=True, help="Check only the manifest, without opening files.")
@click.option("--deep", is_flag=True, help="Also read every page, and compare every index with its rows.")
@click.option("--indices", is_flag=True, help="Compare every index with the rows it covers, which reads both completely.")
def validate(table: Table, output: Output, shallow: bool, deep: bool, indices: bool) -> None:
    """Check a version: ids, row counts, every data and deletion file. Exit code 1 names the first thing wrong."""
    from lance_core.dataset.indexing.seal import check_indices
    from lance_core.dataset.maintain.validate import check_snapshot

    snapshot = table.open()
    with output.progress("checking") as progress:
        opened = check_snapshot(snapshot, deep=deep or (False if shallow else None), progress=progress)
        if indices and not deep:
            check_indices(snapshot, progress=progress)
    output.message(
        f"version {snapshot.version} of {snapshot.uri} is valid: {snapshot.manifest.num_rows} rows, {opened} files opened",
        version=snapshot.version,
        rows=snapshot.manifest.num_rows,
        files_opened=opened,
        valid=True,
    )


@table_command("seal-indices")
@click.option("--name", "names", multiple=True, help="Only this index; repeatable.")
def seal(table: Table, output: Output, names: tuple[str, ...]) -> None:
    """Write checksums for indices that have none (the official library's), after comparing each with its rows."""
    from lance_core.dataset.indexing.seal import seal_indices

    with output.progress("comparing") as progress:
        sealed = seal_indices(table.open(), names or None, progress=progress)
    output.message(f"{len(sealed)} index segments sealed", sealed=sealed)


@click.command("warmup")
@click.option(
    "--image",
    type=click.Path(file_okay=False),
    help="Compile into this folder, for any machine of the processor family, to be shipped with an image.",
)
@click.option("--cpu", help="With --image: the oldest processor that runs the image, by its LLVM name, such as x86-64-v3.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def warmup(image: str | None, cpu: str | None, as_json: bool) -> None:
    """Compile all kernels now and keep them on disk, so that no job waits for it later."""
    from lance_core import kernels

    if cpu is not None and image is None:
        raise click.UsageError("--cpu requires --image")
    settings = {} if image is None else _for_image(image, cpu or _family())
    began = time.monotonic()
    kernels.load_all()
    from lance_core.kernels import jit

    compiled = jit.warmup()
    seconds = round(time.monotonic() - began, 2)
    lines = "".join(f"\nENV {name}={json.dumps(value)}" for name, value in settings.items())
    Output(as_json=as_json).message(
        f"{compiled} kernels ready after {seconds} s{lines}", kernels=compiled, seconds=seconds, environment=settings
    )


def _family() -> str:
    """The processors that every cloud has: of x86 those since 2013, of others the family as such."""
    return "x86-64-v3" if platform.machine().lower() in ("x86_64", "amd64") else "generic"


def _for_image(folder: str, cpu: str) -> dict[str, str]:
    """Make the folder, set the environment of this process, and return what the image has to set as well."""
    if "numba" in sys.modules:
        raise click.UsageError("numba is already loaded in this process; run the command in a separate process")
    place = Path(folder).absolute()
    place.mkdir(parents=True, exist_ok=True)
    place.chmod(0o755)
    settings = {"NUMBA_CACHE_DIR": str(place), "NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": ""}
    os.environ.update(settings)
    return settings


COMMANDS = (validate, seal, warmup)
