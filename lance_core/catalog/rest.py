"""The client of a REST catalog, as the Lance Namespace specification defines its routes.

::

    catalog = RestNamespace(uri="https://catalog:2333", **{"header.Authorization": "Bearer ..."})
    catalog.list_tables(ListTablesRequest(id=["sales"])).tables

One request an operation, with the standard library's HTTP; requests that only read are repeated when the server is not to
be reached, or says that it has too much to do.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote, urlencode

from lance_core.catalog import requests as spec
from lance_core.catalog.http import HttpClient, Tls
from lance_core.catalog.interface import DynamicContextProvider, LanceNamespace
from lance_core.catalog.names import DELIMITER, as_id
from lance_core.commit.backoff import Backoff
from lance_core.errors import InputError, StoreError, UnsupportedFeatureError

READ_TRIES = 3
_HEADER, _CONTEXT = "header.", "headers."


class RestNamespace(LanceNamespace):
    """A catalog behind a REST server.

    Args:
        uri: the server's address.
        context_provider: gives more headers for each request, such as a token that is renewed.
        properties: `delimiter` ("$"); `header.NAME`; `tls.cert_file`, `tls.key_file`, `tls.ssl_ca_cert`,
            `tls.assert_hostname`; `timeout` in seconds (30).
    """

    def __init__(self, context_provider: DynamicContextProvider | None = None, **properties: str) -> None:
        given = {str(name): str(value) for name, value in properties.items()}
        self._headers = _printable({n.removeprefix(_HEADER): v for n, v in given.items() if n.startswith(_HEADER)})
        self._delimiter = given.get("delimiter") or DELIMITER
        self._provider = context_provider
        known = {"uri", "delimiter", "timeout", "tls.cert_file", "tls.key_file", "tls.ssl_ca_cert", "tls.assert_hostname"}
        unknown = sorted(name for name in given if name not in known and not name.startswith(_HEADER))
        if unknown:
            raise InputError(
                f"unknown properties of a REST catalog: {', '.join(unknown)}",
                cure=f"Known: {', '.join(sorted(known))}, header.*.",
            )
        tls = Tls(
            ca_file=given.get("tls.ssl_ca_cert", ""),
            cert_file=given.get("tls.cert_file", ""),
            key_file=given.get("tls.key_file", ""),
            assert_hostname=given.get("tls.assert_hostname", "true").lower() != "false",
        )
        self._http = HttpClient(given.get("uri", ""), seconds=_seconds(given.get("timeout", "30")), tls=tls)

    def namespace_id(self) -> str:
        return f'RestNamespace {{ endpoint: "{self._http.base}", delimiter: "{self._delimiter}" }}'

    def list_namespaces(self, request: spec.ListNamespacesRequest) -> spec.ListNamespacesResponse:
        found = self._list(f"namespace/{self._path(request.id)}/list", "list_namespaces", request, {})
        return spec.ListNamespacesResponse(namespaces=_texts(found, "namespaces"), page_token=_text(found, "page_token"))

    def describe_namespace(self, request: spec.DescribeNamespaceRequest) -> spec.DescribeNamespaceResponse:
        found = self._namespace("describe", request, {}, is_read=True)
        return spec.DescribeNamespaceResponse(properties=_map(found, "properties"))

    def create_namespace(self, request: spec.CreateNamespaceRequest) -> spec.CreateNamespaceResponse:
        found = self._namespace("create", request, {"mode": request.mode, "properties": request.properties})
        return spec.CreateNamespaceResponse(properties=_map(found, "properties"))

    def drop_namespace(self, request: spec.DropNamespaceRequest) -> spec.DropNamespaceResponse:
        found = self._namespace("drop", request, {"mode": request.mode, "behavior": request.behavior})
        return spec.DropNamespaceResponse(properties=_map(found, "properties"))

    def namespace_exists(self, request: spec.NamespaceExistsRequest) -> spec.NamespaceExistsResponse:
        self._namespace("exists", request, {}, is_read=True)
        return spec.NamespaceExistsResponse()

    def list_tables(self, request: spec.ListTablesRequest) -> spec.ListTablesResponse:
        kinds = {"include_declared": "false"} if request.include_declared is False else {}
        found = self._list(f"namespace/{self._path(request.id)}/table/list", "list_tables", request, kinds)
        return spec.ListTablesResponse(tables=_texts(found, "tables"), page_token=_text(found, "page_token"))

    def describe_table(self, request: spec.DescribeTableRequest) -> spec.DescribeTableResponse:
        checks = {"check_declared": "true"} if request.check_declared else {}
        found = self._table("describe", request, {"version": request.version}, query=checks, is_read=True)
        return spec.DescribeTableResponse(
            location=_text(found, "location"),
            table=_text(found, "table"),
            namespace=_texts(found, "namespace"),
            table_uri=_text(found, "table_uri"),
            version=_number(found, "version"),
            storage_options=_map(found, "storage_options"),
            properties=_map(found, "properties"),
            managed_versioning=found.get("managed_versioning") is True,
            is_only_declared=found.get("is_only_declared"),
        )

    def declare_table(self, request: spec.DeclareTableRequest) -> spec.DeclareTableResponse:
        self._require_parent(request)
        found = self._table("declare", request, {"location": request.location, "properties": request.properties})
        return spec.DeclareTableResponse(
            location=_text(found, "location"),
            storage_options=_map(found, "storage_options"),
            properties=_map(found, "properties"),
            managed_versioning=found.get("managed_versioning") is True,
        )

    def register_table(self, request: spec.RegisterTableRequest) -> spec.RegisterTableResponse:
        body = {"location": request.location, "mode": request.mode, "properties": request.properties}
        found = self._table("register", request, body)
        return spec.RegisterTableResponse(location=_text(found, "location"), properties=_map(found, "properties"))

    def deregister_table(self, request: spec.DeregisterTableRequest) -> spec.DeregisterTableResponse:
        found = self._table("deregister", request, {})
        return spec.DeregisterTableResponse(
            id=_texts(found, "id"), location=_text(found, "location"), properties=_map(found, "properties")
        )

    def table_exists(self, request: spec.TableExistsRequest) -> spec.TableExistsResponse:
        self._table("exists", request, {"version": request.version}, is_read=True)
        return spec.TableExistsResponse()

    def drop_table(self, request: spec.DropTableRequest) -> spec.DropTableResponse:
        found = self._ask("POST", f"table/{self._path(as_id(request.id))}/drop", "drop_table", self._key(request), None)
        return spec.DropTableResponse(
            id=_texts(found, "id"), location=_text(found, "location"), properties=_map(found, "properties")
        )

    def _require_parent(self, request: Any) -> None:
        """NotFoundError for a table in a namespace that does not exist: there are servers that would make it, unlisted."""
        parts = as_id(request.id, what="id")
        if len(parts) > 1:
            with suppress(UnsupportedFeatureError):  # a server without the question answers the declaration itself
                self.namespace_exists(spec.NamespaceExistsRequest(id=parts[:-1]))

    def _list(self, path: str, operation: str, request: Any, more: Mapping[str, str]) -> Mapping[str, Any]:
        pairs = {"page_token": request.page_token, "limit": request.limit, **more}
        return self._ask("GET", path, operation, self._key(request), None, query=pairs, is_read=True)

    def _namespace(self, verb: str, request: Any, body: Mapping[str, Any], *, is_read: bool = False) -> Mapping[str, Any]:
        path = f"namespace/{self._path(request.id)}/{verb}"
        return self._ask("POST", path, f"{verb}_namespace", self._key(request), self._body(request, body), is_read=is_read)

    def _table(
        self,
        verb: str,
        request: Any,
        body: Mapping[str, Any],
        *,
        query: Mapping[str, Any] | None = None,
        is_read: bool = False,
    ) -> Mapping[str, Any]:
        path = f"table/{self._path(as_id(request.id))}/{verb}"
        sent = self._body(request, body)
        return self._ask("POST", path, f"{verb}_table", self._key(request), sent, query=query, is_read=is_read)

    def _ask(
        self,
        method: str,
        path: str,
        operation: str,
        key: str,
        body: Mapping[str, Any] | None,
        *,
        query: Mapping[str, Any] | None = None,
        is_read: bool = False,
    ) -> Mapping[str, Any]:
        pairs = {name: str(value) for name, value in (query or {}).items() if value is not None}
        if self._delimiter != DELIMITER:
            pairs["delimiter"] = self._delimiter
        route = f"/v1/{path}" + (f"?{urlencode(pairs)}" if pairs else "")
        backoff = Backoff()
        for tries_left in reversed(range(READ_TRIES if is_read else 1)):
            began = time.monotonic()
            try:
                found = self._http.ask(method, route, body=body, headers=self._sent(operation, key))
            except StoreError as error:
                if not error.retryable or not tries_left:
                    raise
                backoff.wait(try_seconds=max(0.1, time.monotonic() - began))
            else:
                return found if isinstance(found, dict) else {}
        raise StoreError(f"{self._http.base}: the catalog did not answer")

    def _sent(self, operation: str, key: str) -> dict[str, str]:
        if self._provider is None:
            return self._headers
        more = self._provider.provide_context({"operation": operation, "object_id": key})
        found = {str(n)[len(_CONTEXT) :]: str(v) for n, v in more.items() if str(n).startswith(_CONTEXT)}
        return {**self._headers, **_printable(found)}

    def _key(self, request: Any) -> str:
        return self._delimiter.join(request.id or ())

    def _path(self, parts: Sequence[str] | None) -> str:
        """The parts in a path; the delimiter alone is the root. InputError for a part that holds the delimiter."""
        found = as_id(list(parts or ()), what="id", may_be_root=True)
        if any(self._delimiter in part or part in (".", "..") for part in found):
            raise InputError(f"{list(found)!r} has a part that is not a name", cure=f"A name has no {self._delimiter}.")
        return quote(self._delimiter.join(found) if found else self._delimiter, safe="")

    def _body(self, request: Any, more: Mapping[str, Any]) -> dict[str, Any]:
        sent = {"id": list(request.id or ()), **more}
        return {
            name: dict(value) if isinstance(value, Mapping) else value for name, value in sent.items() if value is not None
        }


def _printable(headers: Mapping[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not name or any(ord(char) < 32 or ord(char) > 126 for char in f"{name}{value}"):
            raise InputError(f"the header {name!r} of a REST catalog holds characters that cannot be sent")
    return dict(headers)


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found <= 3600:
        raise InputError(f"timeout={text!r} of a REST catalog is not a number of seconds between 0 and 3600")
    return found


def _text(found: Mapping[str, Any], name: str) -> str | None:
    value = found.get(name)
    return value if isinstance(value, str) else None


def _number(found: Mapping[str, Any], name: str) -> int | None:
    value = found.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _texts(found: Mapping[str, Any], name: str) -> list[str]:
    value = found.get(name)
    return [str(item) for item in value] if isinstance(value, list) else []


def _map(found: Mapping[str, Any], name: str) -> dict[str, str] | None:
    value = found.get(name)
    return {str(key): str(item) for key, item in value.items()} if isinstance(value, dict) else None
