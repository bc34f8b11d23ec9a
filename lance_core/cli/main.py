"""The `lance` command. Every command opens a table by uri, takes `-o key=value` storage options, and prints text or JSON.

::

    lance info /data/flights.lance
    lance head s3://bucket/t.lance -n 5 --where "delay > 60" -o aws_region=eu-central-1
    lance wait /data/flights.lance --version 12 --timeout 600

Exit codes: 0 done, 1 the table or the store said no, 2 wrong usage, 3 a wait ran out of time.
"""

from __future__ import annotations

import io
import sys

import click

from lance_core import __version__
from lance_core.cli import (
    branching,
    catalog,
    declaring,
    doctor,
    editing,
    jobs,
    ledger,
    maintain,
    maintenance,
    reading,
    staging,
    watching,
    writing,
)
from lance_core.cli.output import say
from lance_core.errors import LanceError


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="lance")
def cli() -> None:
    """Look at Lance tables, and look after them."""


for _module in (
    reading,
    editing,
    declaring,
    branching,
    maintenance,
    maintain,
    doctor,
    staging,
    ledger,
    writing,
    jobs,
    watching,
    catalog,
):
    for _command in _module.COMMANDS:
        cli.add_command(_command)


def main() -> None:
    """Entry point: errors of this library become one line and exit code 1."""
    try:
        cli(standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(shown)
        say(shown.getvalue().rstrip("\n"), err=True)
        sys.exit(error.exit_code)
    except click.Abort:
        say("aborted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # `lance head … | head -1`: the reader has seen enough.
        sys.stderr.close()
        sys.exit(0)
    except LanceError as error:
        say(f"{type(error).__name__}: {error}", err=True)
        sys.exit(1)
    except OSError as error:
        # Of a local path that was given: a folder that is not there, a file that may not be written, a full disk.
        place = f": {error.filename}" if error.filename else ""
        what = f"{type(error).__name__}: {error.strerror or error}{place}"
        say(f"{what}. Check that the folder exists, and that you may write there.", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
