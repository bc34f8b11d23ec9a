"""Tables by name: the catalog of a `lance` connection, and what a name means in it.

::

    {"conn_type": "lance", "extra": {"catalog_uri": "s3://lake"}}                      a directory
    {"conn_type": "lance", "extra": {"catalog_uri": "https://catalog:2333", "catalog_token": "..."}} a REST one
    {"conn_type": "lance", "extra": {"catalog_kind": "glue", "catalog_uri": "glue://eu-west-1", "catalog_properties": {...}}}
                                                                                  a class that the deployment allows

A name is resolved by the task that uses it, on its worker: `sales.orders` to the table's location, and to the options to
open it with. A DAG that is parsed asks no catalog.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow_lance.compat import configured
from lance_core.errors import InputError, NotFoundError

if TYPE_CHECKING:
    from lance_core.namespace import LanceNamespace, TableLocation

KINDS = ("dir", "rest")
_CLASSES = "catalog_classes"
"""The deployment's option that names further kinds: `glue=lance_namespace_impls.glue:GlueNamespace`."""
_SECRET_WORDS = ("secret", "token", "password", "key", "credential", "auth")
_MARGIN_SECONDS = 60.0
"""Credentials that expire sooner are requested again."""
_MAX_DEPTH = 8


@dataclass(frozen=True)
class CatalogSettings:
    """A connection's catalog. `token` and `properties` may hold secrets."""

    kind: str
    uri: str
    token: str = field(default="", repr=False)
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values to mask: the token, headers, and what a client of the deployment calls a secret."""
        headers = [value for name, value in self.properties.items() if name.startswith("header.") or self._is_secret(name)]
        return tuple(text for value in (self.token, *headers) for text in {value, value.rpartition(" ")[2]} if text)

    def _is_secret(self, name: str) -> bool:
        return self.kind not in KINDS and any(word in name.lower() for word in _SECRET_WORDS)


def catalog_settings(
    *, kind: str, uri: str, token: str, properties: Mapping[str, str], where: str
) -> CatalogSettings | None:
    """The catalog of these fields, None without one. InputError for a kind that does not exist, or without an address."""
    if not (kind or uri):
        return None
    is_address = uri.startswith(("http://", "https://"))
    kind = kind or ("rest" if is_address else "dir")
    if kind not in KINDS:
        _class_of(kind, where=where)
        if not uri or token:
            raise InputError(
                f"{where}: a catalog of kind {kind!r} needs a catalog_uri and takes no catalog_token",
                cure="catalog_uri says in identities which catalog it is; the client gets catalog_properties.",
            )
        return CatalogSettings(kind, uri, "", properties)
    if not uri or is_address != (kind == "rest"):
        expected = "the http(s) address of its server" if kind == "rest" else "its folder, such as s3://lake"
        raise InputError(f"{where}: a catalog of kind {kind!r} needs as catalog_uri {expected}")
    return CatalogSettings(kind, uri, token, properties)


def _class_of(kind: str, *, where: str) -> str:
    """`module:class` of a kind that the deployment allows: a connection alone must not choose what is imported."""
    allowed = dict(item.partition("=")[::2] for item in configured(_CLASSES).replace(" ", "").split(",") if item)
    if kind not in allowed:
        raise InputError(
            f"{where}: catalog_kind must be one of {', '.join((*KINDS, *sorted(allowed)))}, got {kind!r}",
            cure=f"For another kind, the deployment names its class: [lance] {_CLASSES} = {kind}=module:class.",
        )
    return allowed[kind]


def _client_of(settings: CatalogSettings) -> Any:
    module, _, name = _class_of(settings.kind, where="the connection").partition(":")
    try:
        made = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(
            f"the class of catalogs of kind {settings.kind!r} cannot be imported: {error}",
            cure=f"Install its package on the workers, and check [lance] {_CLASSES}.",
        ) from error
    return made(**settings.properties)


def open_catalog(settings: CatalogSettings, storage_options: Mapping[str, str]) -> LanceNamespace:
    """The catalog; built-in kinds send no request. InputError for unknown properties, or a class that is not there."""
    from lance_core.namespace import ForeignNamespace, connect

    if settings.kind not in KINDS:
        return ForeignNamespace(_client_of(settings))
    if settings.kind == "dir":
        stored = {f"storage.{name}": text for name, text in storage_options.items()}
        return connect("dir", {"root": settings.uri, **stored, **settings.properties})
    token = {"header.Authorization": f"Bearer {settings.token}"} if settings.token else {}
    return connect("rest", {"uri": settings.uri, **token, **settings.properties})


class NamedTables:
    """The tables of one catalog, by name. A name is resolved once, until its credentials are about to expire."""

    def __init__(self, settings: CatalogSettings, storage_options: Mapping[str, str], *, base_uri: str) -> None:
        self._settings = settings
        self.catalog = open_catalog(settings, storage_options)
        bases = (storage_options.get("allowed_bases", ""), base_uri if settings.kind != "dir" else "")
        allowed = " ".join(base for base in bases if base)
        self._options = {**storage_options, **({"allowed_bases": allowed} if allowed else {})}
        self._found: dict[str, TableLocation] = {}

    def locate(self, name: str, *, declare: bool = False) -> TableLocation:
        """Where a table is. `declare` reserves a name that is new; else NotFoundError."""
        from lance_core.namespace import find_or_declare, find_table

        table, branch = _split(name)
        known = self._found.get(table)
        if known is None or (known.expires_at is not None and known.expires_at < time.time() + _MARGIN_SECONDS):
            known = (find_or_declare if declare and not branch else find_table)(self.catalog, parts_of(table), self._options)
            self._found[table] = known
        return replace(known, uri=known.uri + branch)

    def forget(self, name: str) -> None:
        """Remove a name from the catalog whose table was dropped."""
        from lance_core.namespace import DeregisterTableRequest, DropTableRequest

        parts = parts_of(name)
        try:
            if self._settings.kind == "dir":
                self.catalog.drop_table(DropTableRequest(id=parts))
            else:
                self.catalog.deregister_table(DeregisterTableRequest(id=parts))
        except NotFoundError:
            return
        finally:
            self._found.pop(name, None)

    def stable_uri(self, name: str) -> str:
        """A uri that says the same of a table wherever it is: identities of writes are made of it."""
        from lance_core.namespace import object_id

        place, (table, branch) = quote(self._settings.uri.rstrip("/"), safe=""), _split(name)
        return f"lance+catalog://{self._settings.kind}/{place}/{object_id(parts_of(table))}{branch}"

    def tables(self, namespace: str = "") -> list[str]:
        """The names of all tables in a namespace and in those below it."""
        return sorted(self._tables(parts_of(namespace) if namespace else (), 0))

    def namespaces(self, namespace: str = "") -> list[str]:
        """The names of the namespaces in a namespace."""
        from lance_core.namespace import all_namespaces, format_name

        parts = parts_of(namespace) if namespace else ()
        return sorted(format_name((*parts, name)) for name in all_namespaces(self.catalog, parts))

    def describe(self, name: str) -> dict[str, Any]:
        """A table's name, location and properties, and whether it was only declared."""
        from lance_core.namespace import DescribeTableRequest

        found = self.catalog.describe_table(DescribeTableRequest(id=parts_of(name), check_declared=True))
        return {
            "name": name,
            "uri": self.locate(name).uri,
            "properties": dict(found.properties or {}),
            "is_only_declared": bool(found.is_only_declared),
        }

    def _tables(self, parts: tuple[str, ...], depth: int) -> Iterator[str]:
        from lance_core.namespace import all_namespaces, all_tables, format_name

        for name in all_tables(self.catalog, parts):
            yield format_name((*parts, name))
        if depth < _MAX_DEPTH:
            for name in all_namespaces(self.catalog, parts):
                yield from self._tables((*parts, name), depth + 1)


def _split(name: str) -> tuple[str, str]:
    """A table's name, and the branch that follows it as in uris: `sales.orders/tree/day`. InputError for another place."""
    table, mark, branch = name.strip().partition("/tree/")
    if mark and (not branch or any(part in ("", ".", "..") for part in branch.split("/"))):
        raise InputError(f"{name!r} does not name a branch", cure="Write namespace.table/tree/branch.")
    return table, mark + branch


def parts_of(name: str) -> tuple[str, ...]:
    """The parts of a name. InputError for a path."""
    from lance_core.namespace import parse_name

    if "/" in name or "\\" in name:
        raise InputError(
            f"{name!r} is a path, but the connection has a catalog", cure="Write the table's name, such as sales.orders."
        )
    return parse_name(name)
