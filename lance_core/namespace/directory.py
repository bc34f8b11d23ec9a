"""The directory catalog: names of tables in a folder of any store, without a server.

::

    catalog = DirectoryNamespace(root="s3://lake")
    catalog.create_namespace(CreateNamespaceRequest(id=["sales"]))
    write_dataset(rows, namespace_client=catalog, table_id=["sales", "orders"])

Read and written as the official library does: entries of the table `__manifest`, and folders `NAME.lance` of the root.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from lance_core.catalog import requests as spec
from lance_core.catalog.interface import LanceNamespace
from lance_core.catalog.names import TableId, as_id, object_id, parts_of, require_inside, require_plain
from lance_core.errors import AlreadyExistsError, InputError, NotFoundError, UnsupportedFeatureError
from lance_core.io.resolve import resolve_store
from lance_core.namespace import listing
from lance_core.namespace.manifest_table import NAMESPACE, TABLE, CatalogEntries, CatalogEntry, ManifestTable

_STORAGE = "storage."


class DirectoryNamespace(LanceNamespace):
    """A catalog in a folder.

    Args:
        root: the folder: a path or a uri.
        session: accepted; it changes nothing here.
        properties: `manifest_enabled` and `dir_listing_enabled` ("true"): whether names are entries of `__manifest`,
            and whether folders of the root are tables; `storage.NAME`: options of the store.
    """

    def __init__(self, session: Any = None, context_provider: Any = None, **properties: Any) -> None:
        given = {str(name): os.fspath(v) if isinstance(v, os.PathLike) else str(v) for name, v in properties.items()}
        options = {n.removeprefix(_STORAGE): v for n, v in given.items() if n.startswith(_STORAGE)}
        unknown = sorted(n for n in given if n not in _PROPERTIES and not n.startswith(_STORAGE))
        if unknown:
            raise InputError(
                f"unknown properties of a directory catalog: {', '.join(unknown)}",
                cure=f"Known: {', '.join(sorted(_PROPERTIES))}, storage.*.",
            )
        root = given.get("root", "")
        if not root.strip():
            raise InputError("a directory catalog needs the property root", cure="Pass a folder, such as s3://bucket/lake.")
        self._store = resolve_store(root, options)
        self._root = (root if "://" in root else self._store.uri).rstrip("/") or root
        self._uses_table = _switch(given, "manifest_enabled")
        self._uses_listing = _switch(given, "dir_listing_enabled")
        if not (self._uses_table or self._uses_listing):
            raise InputError("manifest_enabled and dir_listing_enabled are both disabled, so that there are no names")
        self._options, self._table = options, ManifestTable(self._root, options)

    def namespace_id(self) -> str:
        return f'DirectoryNamespace {{ root: "{self._root}" }}'

    def vouches_for(self, location: str) -> bool:
        # The root was named by the caller, and `require_inside` keeps every location below it.
        return True

    def list_namespaces(self, request: spec.ListNamespacesRequest) -> spec.ListNamespacesResponse:
        entries, parts = self._read(), _id(request, may_be_root=True)
        self._require_namespace(entries, parts)
        names, token = _page(_children(entries, parts, NAMESPACE), request)
        return spec.ListNamespacesResponse(namespaces=names, page_token=token)

    def describe_namespace(self, request: spec.DescribeNamespaceRequest) -> spec.DescribeNamespaceResponse:
        entries, parts = self._read(), _id(request, may_be_root=True)
        found = self._require_namespace(entries, parts)
        return spec.DescribeNamespaceResponse(properties={} if found is None else found.properties)

    def create_namespace(self, request: spec.CreateNamespaceRequest) -> spec.CreateNamespaceResponse:
        parts, mode = _id(request, may_be_root=True), _word(request.mode, "create")
        if mode not in ("create", "existok"):
            raise InputError(
                f"mode={request.mode!r} of a new namespace is not supported", cure='Use "create" or "exist_ok".'
            )
        if not parts:
            raise AlreadyExistsError(f"{self._root}: the root of the catalog exists")
        self._require_table("namespaces")
        require_plain(parts, what="namespace")
        properties = request.properties
        entry = CatalogEntry(object_id(parts), NAMESPACE, None, _as_json(properties))
        try:
            self._table.change(lambda entries: self._added(entries, entry))
        except AlreadyExistsError:
            if mode != "existok" or self._read().by_id[entry.object_id].object_type != NAMESPACE:
                raise
        return spec.CreateNamespaceResponse(properties=properties)

    def drop_namespace(self, request: spec.DropNamespaceRequest) -> spec.DropNamespaceResponse:
        parts = _id(request, may_be_root=True)
        if not parts:
            raise InputError(f"{self._root}: the root of a catalog cannot be dropped")
        if _word(request.behavior, "restrict") != "restrict":
            raise UnsupportedFeatureError("dropping a namespace together with its tables is not implemented")
        self._require_table("namespaces")

        def drop(entries: CatalogEntries) -> Any:
            self._require_namespace(entries, parts)
            inside = sum(name.startswith(f"{object_id(parts)}$") for name in entries.by_id)
            if inside:
                raise InputError(f"{self._name(parts)}: the namespace is not empty: it holds {inside} namespaces and tables")
            return entries.without(object_id(parts))

        try:
            self._table.change(drop)
        except NotFoundError:
            if _word(request.mode, "fail") != "skip":
                raise
        return spec.DropNamespaceResponse()

    def namespace_exists(self, request: spec.NamespaceExistsRequest) -> spec.NamespaceExistsResponse:
        self._require_namespace(self._read(), _id(request, may_be_root=True))
        return spec.NamespaceExistsResponse()

    def list_tables(self, request: spec.ListTablesRequest) -> spec.ListTablesResponse:
        entries, parts = self._read(), _id(request, may_be_root=True)
        self._require_namespace(entries, parts)
        names = {*_children(entries, parts, TABLE)}
        if not parts and self._uses_listing:
            taken = {entry.location for entry in entries.by_id.values()}
            names |= {name for name in listing.listed_tables(self._store) if listing.folder_of(name) not in taken}
        if request.include_declared is False:
            names = {name for name in names if self._is_written(entries, (*parts, name))}
        found, token = _page(names, request)
        return spec.ListTablesResponse(tables=found, page_token=token)

    def describe_table(self, request: spec.DescribeTableRequest) -> spec.DescribeTableResponse:
        parts = _id(request)
        folder, entry = self._find(self._read(), parts)
        is_checked = bool(request.check_declared)
        uri = f"{self._root}/{folder}"
        return spec.DescribeTableResponse(
            location=uri,
            table=parts[-1],
            namespace=list(parts[:-1]),
            table_uri=uri,
            properties=None if entry is None else entry.properties,
            is_only_declared=not listing.is_written(self._store, folder) if is_checked else None,
        )

    def declare_table(self, request: spec.DeclareTableRequest) -> spec.DeclareTableResponse:
        parts = _id(request)
        folder = self._new_folder(parts)
        asked = request.location
        if asked is not None and asked.rstrip("/") != f"{self._root}/{folder}":
            raise InputError(
                f"{self._name(parts)}: the location {asked!r} is not one that this catalog chooses", cure="Omit it."
            )
        if self._uses_table:
            entry = CatalogEntry(object_id(parts), TABLE, folder, _as_json(request.properties))
            self._table.change(lambda entries: self._added(entries, entry, is_listed=self._is_listed(parts)))
            listing.mark(self._store, folder, listing.RESERVED)
        elif self._is_listed(parts) or not listing.mark(self._store, folder, listing.RESERVED):
            raise self._exists(parts)
        return spec.DeclareTableResponse(location=f"{self._root}/{folder}", properties=request.properties)

    def register_table(self, request: spec.RegisterTableRequest) -> spec.RegisterTableResponse:
        parts = _id(request)
        require_plain(parts, what="table")
        self._require_table("registered tables")
        location = require_inside(request.location.rstrip("/"), uri=self._name(parts))
        if _word(request.mode, "create") != "create":
            raise InputError(f"mode={request.mode!r} of a registration is not supported", cure='Use "create".')
        if not listing.is_written(self._store, location):
            raise NotFoundError(f"{self._root}/{location}: there is no table to register", uri=f"{self._root}/{location}")
        entry = CatalogEntry(object_id(parts), TABLE, location, _as_json(request.properties))
        same = len(parts) == 1 and location == listing.folder_of(parts[0])
        self._table.change(lambda entries: self._added(entries, entry, is_listed=not same and self._is_listed(parts)))
        self._store.delete(f"{location}/{listing.DEREGISTERED}")
        return spec.RegisterTableResponse(location=location, properties=request.properties)

    def deregister_table(self, request: spec.DeregisterTableRequest) -> spec.DeregisterTableResponse:
        parts = _id(request)
        folder = self._forget(parts)
        if folder.endswith(listing.SUFFIX) and "/" not in folder:
            listing.mark(self._store, folder, listing.DEREGISTERED)
        return spec.DeregisterTableResponse(id=list(parts), location=f"{self._root}/{folder}")

    def table_exists(self, request: spec.TableExistsRequest) -> spec.TableExistsResponse:
        self._find(self._read(), _id(request))
        return spec.TableExistsResponse()

    def drop_table(self, request: spec.DropTableRequest) -> spec.DropTableResponse:
        parts = _id(request)
        folder, _ = self._find(self._read(), parts)
        # Files first: a drop that is killed is found under its name, and can be repeated.
        listing.remove_all(self._store, folder, self._options)
        self._forget(parts, may_be_gone=True)
        return spec.DropTableResponse(id=list(parts), location=f"{self._root}/{folder}")

    def _read(self) -> CatalogEntries:
        return self._table.read() if self._uses_table else CatalogEntries.none()

    def _name(self, parts: Sequence[str]) -> str:
        return f"{self._root}: {object_id(parts)!r}"

    def _exists(self, parts: Sequence[str]) -> AlreadyExistsError:
        return AlreadyExistsError(f"{self._name(parts)}: a table or namespace of this name exists", uri=self._root)

    def _require_table(self, what: str) -> None:
        if not self._uses_table:
            raise UnsupportedFeatureError(f"{self._root}: a catalog with manifest_enabled=false has no {what}")

    def _require_namespace(self, entries: CatalogEntries, parts: TableId) -> CatalogEntry | None:
        """NotFoundError unless the namespace exists; the root does, without an entry."""
        found = entries.by_id.get(object_id(parts)) if parts else None
        if parts and (found is None or found.object_type != NAMESPACE):
            raise NotFoundError(f"{self._name(parts)}: there is no such namespace", uri=self._root)
        return found

    def _is_listed(self, parts: TableId) -> bool:
        return self._uses_listing and len(parts) == 1 and listing.is_listed(self._store, listing.folder_of(parts[0]))

    def _is_written(self, entries: CatalogEntries, parts: TableId) -> bool:
        try:
            return listing.is_written(self._store, self._find(entries, parts)[0])
        except InputError:
            return False  # a location that is refused

    def _find(self, entries: CatalogEntries, parts: TableId) -> tuple[str, CatalogEntry | None]:
        """The folder of a table, and its entry. NotFoundError without one, InputError for a place outside of the root."""
        entry = entries.by_id.get(object_id(parts))
        if entry is not None and entry.object_type == TABLE and parts_of(entry.object_id) == parts:
            return require_inside(entry.location or "", uri=self._name(parts)), entry
        if entry is None and len(parts) == 1 and self._uses_listing:
            folder = require_inside(listing.folder_of(parts[0]), uri=self._name(parts))
            if "/" not in folder and listing.is_listed(self._store, folder):
                return folder, None
        self._require_namespace(entries, parts[:-1])
        raise NotFoundError(
            f"{self._name(parts)}: there is no such table",
            uri=self._root,
            cure=f"`lance catalog tables {self._root}` has the names.",
        )

    def _new_folder(self, parts: TableId) -> str:
        require_plain(parts, what="table")
        if len(parts) > 1:
            self._require_table("namespaces")
        folder = listing.folder_of(parts[0])
        if len(parts) == 1 and self._uses_listing and not listing.is_deregistered(self._store, folder):
            return folder
        if not self._uses_table:
            raise self._exists(parts)
        return f"{secrets.token_hex(4)}_{object_id(parts)}"

    def _added(self, entries: CatalogEntries, entry: CatalogEntry, *, is_listed: bool = False) -> Any:
        parts = parts_of(entry.object_id)
        self._require_namespace(entries, parts[:-1])
        if entry.object_id in entries.by_id or is_listed:
            raise self._exists(parts)
        return entries.with_entry(entry)

    def _forget(self, parts: TableId, *, may_be_gone: bool = False) -> str:
        """Remove the entry; the folder that the name had."""
        found: list[str] = []

        def forget(entries: CatalogEntries) -> Any:
            folder, entry = self._find(entries, parts)
            found[:] = [folder]
            if entry is None:
                raise _NothingToWriteError
            return entries.without(entry.object_id)

        _unless_nothing(
            lambda: self._table.change(forget) if self._uses_table else forget(CatalogEntries.none()), may_be_gone
        )
        return found[0] if found else ""


class _NothingToWriteError(Exception):
    """The name has no entry: only its folder counts."""


def _unless_nothing(action: Callable[[], Any], may_be_gone: bool) -> None:
    try:
        action()
    except _NothingToWriteError:
        return
    except NotFoundError:
        if not may_be_gone:
            raise


_PROPERTIES = frozenset({"root", "manifest_enabled", "dir_listing_enabled"})


def _switch(given: dict[str, str], name: str) -> bool:
    text = given.get(name, "true").lower()
    if text not in ("true", "false"):
        raise InputError(f"{name}={given[name]!r} of a directory catalog is not a boolean", cure='Write "true" or "false".')
    return text == "true"


def _id(request: Any, *, may_be_root: bool = False) -> TableId:
    parts = as_id(None if request.id is None else list(request.id), what="id", may_be_root=may_be_root)
    if any("$" in part for part in parts):
        raise InputError(f"{list(parts)!r} has a part with a $, which separates parts")
    return parts


def _word(text: str | None, default: str) -> str:
    return (text or default).lower().replace("_", "")


def _as_json(properties: Any) -> str | None:
    return json.dumps(dict(properties), separators=(",", ":")) if properties else None


def _children(entries: CatalogEntries, parts: TableId, kind: str) -> Iterable[str]:
    for entry in entries.by_id.values():
        found = parts_of(entry.object_id)
        if entry.object_type == kind and found[:-1] == parts:
            yield found[-1]


def _page(names: Iterable[str], request: Any) -> tuple[list[str], str | None]:
    """A page of sorted names after the token, which is the last name of the page before."""
    limit, token = request.limit, request.page_token
    if limit is not None and limit <= 0:
        raise InputError(f"limit={limit} of a listing is not positive")
    rest = sorted(name for name in names if token is None or name > token)
    if limit is None or len(rest) <= limit:
        return rest, None
    return rest[:limit], rest[limit - 1]
