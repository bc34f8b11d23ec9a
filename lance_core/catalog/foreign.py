"""Another package's client as one of our catalogs: its models for requests, our errors for its own.

::

    ForeignNamespace(GlueNamespace(region="eu-west-1")).list_tables(ListTablesRequest(id=["sales"]))

Such packages (`lance-namespace-impls` has Glue, Hive and Unity) follow the specification, with the models of the package
`lance-namespace`. A location that they return is vouched for by nobody.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import fields
from typing import Any, cast

from lance_core.catalog import requests as spec
from lance_core.catalog.errors import translated
from lance_core.catalog.interface import LanceNamespace
from lance_core.catalog.names import object_id
from lance_core.errors import LanceError, UnsupportedFeatureError


class ForeignNamespace(LanceNamespace):
    """A client of another package.

    UnsupportedFeatureError for what it does not offer; other errors as those of our own catalogs, where they have a code.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def namespace_id(self) -> str:
        """What the client says; by the specification it holds no secret."""
        return str(self._client.namespace_id())

    def list_namespaces(self, request: spec.ListNamespacesRequest) -> spec.ListNamespacesResponse:
        """The namespaces in a namespace."""
        return cast("spec.ListNamespacesResponse", self._call("list_namespaces", request))

    def describe_namespace(self, request: spec.DescribeNamespaceRequest) -> spec.DescribeNamespaceResponse:
        """The properties of a namespace."""
        return cast("spec.DescribeNamespaceResponse", self._call("describe_namespace", request))

    def create_namespace(self, request: spec.CreateNamespaceRequest) -> spec.CreateNamespaceResponse:
        """Create a namespace."""
        return cast("spec.CreateNamespaceResponse", self._call("create_namespace", request))

    def drop_namespace(self, request: spec.DropNamespaceRequest) -> spec.DropNamespaceResponse:
        """Drop a namespace."""
        return cast("spec.DropNamespaceResponse", self._call("drop_namespace", request))

    def namespace_exists(self, request: spec.NamespaceExistsRequest) -> spec.NamespaceExistsResponse:
        """NotFoundError unless it exists."""
        return cast("spec.NamespaceExistsResponse", self._call("namespace_exists", request))

    def list_tables(self, request: spec.ListTablesRequest) -> spec.ListTablesResponse:
        """The tables in a namespace."""
        return cast("spec.ListTablesResponse", self._call("list_tables", request))

    def describe_table(self, request: spec.DescribeTableRequest) -> spec.DescribeTableResponse:
        """Where a table is."""
        return cast("spec.DescribeTableResponse", self._call("describe_table", request))

    def declare_table(self, request: spec.DeclareTableRequest) -> spec.DeclareTableResponse:
        """Reserve a name in a namespace that exists: the official directory would take any."""
        if len(request.id) > 1:
            with suppress(UnsupportedFeatureError):
                self.namespace_exists(spec.NamespaceExistsRequest(id=list(request.id[:-1])))
        return cast("spec.DeclareTableResponse", self._call("declare_table", request))

    def register_table(self, request: spec.RegisterTableRequest) -> spec.RegisterTableResponse:
        """Give a name to a table that exists."""
        return cast("spec.RegisterTableResponse", self._call("register_table", request))

    def deregister_table(self, request: spec.DeregisterTableRequest) -> spec.DeregisterTableResponse:
        """Forget a name."""
        return cast("spec.DeregisterTableResponse", self._call("deregister_table", request))

    def table_exists(self, request: spec.TableExistsRequest) -> spec.TableExistsResponse:
        """NotFoundError unless the name exists."""
        return cast("spec.TableExistsResponse", self._call("table_exists", request))

    def drop_table(self, request: spec.DropTableRequest) -> spec.DropTableResponse:
        """Forget a name and delete the table's files."""
        return cast("spec.DropTableResponse", self._call("drop_table", request))

    def _call(self, method: str, request: Any) -> Any:
        return ask(self._client, method, request)


def ask(client: Any, method: str, request: Any) -> Any:
    """The answer of another package's client to one of our requests; its errors as ours."""
    name = object_id(request.id) if request.id else "the root"
    try:
        return getattr(client, method)(_theirs(request))
    except LanceError:
        raise
    except NotImplementedError as error:
        raise UnsupportedFeatureError(f"the catalog's client has no {method} for {name}") from error
    except Exception as error:
        ours = translated(error, uri=name)
        if ours is None:
            raise
        raise ours from error


def _theirs(request: Any) -> Any:
    """In the models of their package, where it is imported: a client that takes plain records gets ours."""
    models = sys.modules.get("lance_namespace")
    kind = getattr(models, type(request).__name__, None)
    if kind is None:
        return request
    given = {item.name: getattr(request, item.name) for item in fields(request)}
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}
    return kind(**{name: value for name, value in plain.items() if value is not None})
