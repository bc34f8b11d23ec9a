"""The reference of the `lance` command, from the commands themselves; `site.py` writes it into `reference/cli.md`.

::

    python .ci/cli_reference.py        prints it
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from lance_core.cli.main import cli

PLACE = "<!-- commands -->"


def page() -> str:
    """A section for each command."""
    return "\n".join(line for name, command in _leaves(cli, "lance") for line in _section(name, command))


def _leaves(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    for name, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            yield from _leaves(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def _section(name: str, command: click.Command) -> Iterator[str]:
    arguments = " ".join(
        item.make_metavar(click.Context(command)) for item in command.params if isinstance(item, click.Argument)
    )
    yield f"## {name}\n"
    yield f"`{name} {arguments}`\n" if arguments else f"`{name}`\n"
    yield " ".join((command.help or "").split()) + "\n"
    options = [item for item in command.params if isinstance(item, click.Option) and not item.hidden]
    rows = [_row(item) for item in options if "--json" not in item.opts]
    if rows:
        yield "| option | means |\n|---|---|"
        yield "\n".join(rows) + "\n"


def _row(option: click.Option) -> str:
    names = ", ".join([*option.opts, *option.secondary_opts])
    value = "" if option.is_flag else f" {option.type.name.upper()}"
    text = (option.help or "").replace("|", "\\|")
    default = option.default if option.show_default and not option.is_flag else None
    told = f" Default: {default}." if isinstance(default, (str, int, float)) else ""
    many = (
        " May be given again."
        if option.multiple and not {"again", "repeatable"} & set(text.replace(".", " ").split())
        else ""
    )
    return f"| `{names}{value}` | {text}{told}{many} |"


if __name__ == "__main__":
    sys.stdout.write(page())
