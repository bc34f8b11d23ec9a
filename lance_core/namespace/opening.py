"""A catalog by its kind and properties, or by its address alone.

::

    connect("rest", {"uri": "https://catalog:2333", "header.Authorization": "Bearer ..."})
    connect_to("/data/lake")            a directory catalog; an http(s) address is a REST catalog
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lance_core.catalog import requests as spec
from lance_core.catalog.interface import LanceNamespace
from lance_core.catalog.rest import RestNamespace
from lance_core.errors import InputError
from lance_core.io.resolve import scheme_of
from lance_core.namespace.directory import DirectoryNamespace

KINDS = ("dir", "rest")


def connect(impl: str, properties: Mapping[str, str]) -> LanceNamespace:
    """A catalog of a kind, "dir" or "rest". InputError for another kind, and for properties that it does not have."""
    if impl == "dir":
        return DirectoryNamespace(None, **properties)
    if impl == "rest":
        return RestNamespace(None, **properties)
    raise InputError(
        f"{impl!r} is not a kind of catalog that is built in",
        cure="Use dir or rest, or pass a client of the catalog's package.",
    )


def connect_to(
    address: str, *, storage_options: Mapping[str, str] | None = None, token: str | None = None
) -> LanceNamespace:
    """The catalog at an address: a server for http(s), else a folder. The token is for a server only."""
    if scheme_of(address) in ("http", "https"):
        return connect("rest", {"uri": address, **({"header.Authorization": f"Bearer {token}"} if token else {})})
    return connect("dir", {"root": address, **{f"storage.{name}": text for name, text in (storage_options or {}).items()}})


def all_tables(catalog: LanceNamespace, namespace: tuple[str, ...] = ()) -> Iterator[str]:
    """The names of the tables in a namespace, from all pages."""
    token: str | None = None
    while True:
        found = catalog.list_tables(spec.ListTablesRequest(id=namespace, page_token=token))
        yield from found.tables
        if not found.page_token or found.page_token == token:
            return
        token = found.page_token


def all_namespaces(catalog: LanceNamespace, namespace: tuple[str, ...] = ()) -> Iterator[str]:
    """The names of the namespaces in a namespace, from all pages."""
    token: str | None = None
    while True:
        found = catalog.list_namespaces(spec.ListNamespacesRequest(id=namespace, page_token=token))
        yield from found.namespaces
        if not found.page_token or found.page_token == token:
            return
        token = found.page_token
