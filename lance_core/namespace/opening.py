"""A catalog by its kind and properties, or by its address alone.

::

    connect("rest", {"uri": "https://catalog:2333", "header.Authorization": "Bearer ..."})
    connect_to("/data/lake")            a directory catalog; an http(s) address is a REST catalog
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from lance_core.catalog import requests as spec
from lance_core.catalog.interface import LanceNamespace
from lance_core.catalog.rest import RestNamespace
from lance_core.errors import InputError, StoreError
from lance_core.io.resolve import scheme_of
from lance_core.namespace.directory import DirectoryNamespace

MAX_PAGES = 10_000
"""A server that never ends a listing would keep a task busy for ever."""


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
    """The names of the tables in a namespace, from all pages. StoreError for pages without an end."""

    def page(token: str | None) -> tuple[list[str], str | None]:
        found = catalog.list_tables(spec.ListTablesRequest(id=namespace, page_token=token))
        return found.tables, found.page_token

    return _all_pages(page)


def all_namespaces(catalog: LanceNamespace, namespace: tuple[str, ...] = ()) -> Iterator[str]:
    """The names of the namespaces in a namespace, from all pages. StoreError for pages without an end."""

    def page(token: str | None) -> tuple[list[str], str | None]:
        found = catalog.list_namespaces(spec.ListNamespacesRequest(id=namespace, page_token=token))
        return found.namespaces, found.page_token

    return _all_pages(page)


def _all_pages(page: Callable[[str | None], tuple[list[str], str | None]]) -> Iterator[str]:
    token: str | None = None
    for _ in range(MAX_PAGES):
        names, following = page(token)
        yield from names
        if not following or following == token:
            return
        token = following
    raise StoreError(f"the catalog's listing has more than {MAX_PAGES} pages")
