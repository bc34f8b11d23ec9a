"""What the commands share: the arguments that name a table, and opening it.

::

    @table_command("info")
    def info(table: Table, output: Output) -> None: ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from lance_core.cli.output import Output

if TYPE_CHECKING:
    from lance_core.commit.identities import Asked
    from lance_core.dataset.snapshot.snapshot import Snapshot
    from lance_core.io.store import Store


_SHOWN = 3


@dataclass(frozen=True)
class Table:
    """A table as named on the command line. `version`: None for the newest."""

    uri: str
    options: dict[str, str] = field(repr=False)
    version: int | str | None = None

    def open(self) -> Snapshot:
        """The version, opened. Raises NotFoundError and others."""
        from lance_core.dataset.snapshot.snapshot import open_snapshot

        return open_snapshot(self.uri, version=self.version, storage_options=self.options)

    def store(self) -> Store:
        """Where the table is, whether there is a table or not."""
        from lance_core.io.resolve import resolve_store

        return resolve_store(self.uri, self.options)


def who(asked: Sequence[Asked]) -> dict[str, str | None]:
    """Columns with the tasks that requested some work; more than a few tasks are counted."""
    tasks = [f"{item.task_id}[{item.map_index}]" if item.map_index >= 0 else item.task_id for item in asked]
    tries = [str(item.try_number) for item in asked if item.try_number]
    columns = {"dag": [item.dag_id for item in asked], "run": [item.run_id for item in asked], "task": tasks, "try": tries}
    return {name: _few(values) for name, values in columns.items()}


def _few(values: Sequence[str]) -> str | None:
    distinct = [value for value in dict.fromkeys(values) if value]
    rest = len(distinct) - _SHOWN
    return (", ".join(distinct[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")) or None


def parse_pairs(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Storage options given as `key=value`; click's callback."""
    options = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{value!r} is not key=value")
        options[name] = text
    return options


def storage_option(name: str = "storage_option", *, help: str = "Storage option; repeatable.") -> Callable[[Any], Any]:
    """The option `-o KEY=VALUE`, which every command on a store has; its values are the argument `name`."""
    return click.option("-o", "--storage-option", name, multiple=True, metavar="KEY=VALUE", callback=parse_pairs, help=help)


def _version(_: click.Context, __: click.Parameter, value: str | None) -> int | str | None:
    return int(value) if value is not None and value.isdigit() else value


def table_command(name: str, *, versioned: bool = True) -> Callable[[Callable[..., Any]], click.Command]:
    """A command on one table: `URI`, `-o`, `--json`, and `--version` when it looks at one version."""

    def decorate(function: Callable[..., Any]) -> click.Command:
        def run(uri: str, storage_option: dict[str, str], as_json: bool, **rest: Any) -> Any:
            table = Table(uri, storage_option, rest.pop("version_or_tag", None))
            return function(table, Output(as_json=as_json), **rest)

        run.__doc__ = function.__doc__
        run.__click_params__ = [*getattr(function, "__click_params__", [])]  # type: ignore[attr-defined]
        command: Any = run
        if versioned:
            command = click.option(
                "--version",
                "version_or_tag",
                metavar="N|TAG",
                callback=_version,
                help="Version or tag; default is the newest version.",
            )(command)
        command = click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)
        command = storage_option()(command)
        command = click.argument("uri")(command)
        made: click.Command = click.command(name)(command)
        return made

    return decorate
