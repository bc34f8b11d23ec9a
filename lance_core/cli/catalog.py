"""`lance catalog`: the names of tables in a folder, or behind a REST server.

::

    $ lance catalog tables s3://lake sales          name
                                                    sales.orders
    $ lance catalog describe s3://lake sales.orders
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from lance_core.cli.output import Output
from lance_core.cli.table import parse_pairs, storage_option

if TYPE_CHECKING:
    from lance_core.namespace import LanceNamespace

TOKEN_VARIABLE = "LANCE_CATALOG_TOKEN"


@click.group("catalog")
def catalog() -> None:
    """Tables by name: list, describe, register and drop them in a catalog."""


def _catalog_command(name: str) -> Callable[[Callable[..., Any]], click.Command]:
    """A command on a catalog: `CATALOG`, `-o`, `--json`. The token of a server is in the environment."""

    def decorate(function: Callable[..., Any]) -> click.Command:
        def run(catalog: str, storage_option: dict[str, str], as_json: bool, token: str | None, **rest: Any) -> Any:
            from lance_core.namespace import connect_to

            opened = connect_to(catalog, storage_options=storage_option, token=token)
            return function(opened, Output(as_json=as_json), **rest)

        run.__doc__ = function.__doc__
        run.__click_params__ = [*getattr(function, "__click_params__", [])]  # type: ignore[attr-defined]
        command: Any = run
        command = click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)
        command = click.option(
            "--token", envvar=TOKEN_VARIABLE, help=f"Bearer token of a server; better set {TOKEN_VARIABLE}."
        )(command)
        command = storage_option(help="Storage option of a folder; repeatable.")(command)
        command = click.argument("catalog")(command)
        made: click.Command = click.command(name)(command)
        return made

    return decorate


@_catalog_command("tables")
@click.argument("namespace", required=False)
def tables(opened: LanceNamespace, output: Output, namespace: str | None) -> None:
    """The tables in a namespace, by default in the root. CATALOG is a folder, or the address of a REST catalog."""
    from lance_core.namespace import all_tables, format_name

    parts = _parts(namespace)
    output.rows(({"name": format_name((*parts, name))} for name in all_tables(opened, parts)), empty="no tables")


@click.command("tables")
@click.argument("folder")
@storage_option()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def below(folder: str, storage_option: dict[str, str], as_json: bool) -> None:
    """The tables below a FOLDER, however deep; `lance catalog tables` has the names of a catalog."""
    from lance_core.maintenance.find import check_base, find_tables

    check_base(folder)
    found = find_tables(folder, storage_options=storage_option)
    Output(as_json=as_json).rows(({"uri": table.uri} for table in found), empty="no tables")


@_catalog_command("namespaces")
@click.argument("namespace", required=False)
def namespaces(opened: LanceNamespace, output: Output, namespace: str | None) -> None:
    """The namespaces in a namespace, by default in the root."""
    from lance_core.namespace import all_namespaces, format_name

    parts = _parts(namespace)
    output.rows(({"name": format_name((*parts, name))} for name in all_namespaces(opened, parts)), empty="no namespaces")


@_catalog_command("describe")
@click.argument("name")
def describe(opened: LanceNamespace, output: Output, name: str) -> None:
    """Where a table is: its location, as other commands take it."""
    from lance_core.namespace import DescribeTableRequest

    found = opened.describe_table(DescribeTableRequest(id=_parts(name), check_declared=True))
    output.record(
        {
            "name": name,
            "location": found.location,
            "is_only_declared": bool(found.is_only_declared),
            "properties": dict(found.properties or {}),
        }
    )


@_catalog_command("create-namespace")
@click.argument("namespace")
@click.option(
    "--property", "properties", multiple=True, metavar="KEY=VALUE", callback=parse_pairs, help="Property; repeatable."
)
def create_namespace(opened: LanceNamespace, output: Output, namespace: str, properties: dict[str, str]) -> None:
    """Create a namespace in one that exists."""
    from lance_core.namespace import CreateNamespaceRequest

    opened.create_namespace(CreateNamespaceRequest(id=_parts(namespace), properties=properties or None))
    output.message(f"created namespace {namespace}", namespace=namespace)


@_catalog_command("drop-namespace")
@click.argument("namespace")
def drop_namespace(opened: LanceNamespace, output: Output, namespace: str) -> None:
    """Drop an empty namespace."""
    from lance_core.namespace import DropNamespaceRequest

    opened.drop_namespace(DropNamespaceRequest(id=_parts(namespace)))
    output.message(f"dropped namespace {namespace}", namespace=namespace)


@_catalog_command("register")
@click.argument("name")
@click.argument("location")
def register(opened: LanceNamespace, output: Output, name: str, location: str) -> None:
    """Give a name to a table at a location below the catalog's root."""
    from lance_core.namespace import RegisterTableRequest

    opened.register_table(RegisterTableRequest(id=_parts(name), location=location))
    output.message(f"registered {location} as {name}", name=name, location=location)


@_catalog_command("deregister")
@click.argument("name")
def deregister(opened: LanceNamespace, output: Output, name: str) -> None:
    """Forget a name; the table's files stay."""
    from lance_core.namespace import DeregisterTableRequest

    found = opened.deregister_table(DeregisterTableRequest(id=_parts(name)))
    output.message(f"deregistered {name}; its files are at {found.location}", name=name, location=found.location)


@_catalog_command("drop")
@click.argument("name")
def drop(opened: LanceNamespace, output: Output, name: str) -> None:
    """Forget a name and delete the table's files."""
    from lance_core.namespace import DropTableRequest

    found = opened.drop_table(DropTableRequest(id=_parts(name)))
    output.message(f"dropped {name}, which was at {found.location}", name=name, location=found.location)


def _parts(name: str | None) -> tuple[str, ...]:
    from lance_core.namespace import parse_name

    return parse_name(name) if name else ()


for _command in (tables, namespaces, describe, create_namespace, drop_namespace, register, deregister, drop):
    catalog.add_command(_command)

COMMANDS = (catalog, below)
