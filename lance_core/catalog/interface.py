"""What every catalog can do, with the specification's names.

::

    catalog.describe_table(DescribeTableRequest(id=["sales", "orders"])).location

Requests may be this library's records or the models of the package `lance-namespace`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Protocol

from lance_core.catalog import requests as spec


class TableFinder(Protocol):
    """The part of a catalog that opening and writing by name need; other packages' clients have it as well."""

    def describe_table(self, request: Any) -> Any:
        """Where a table is."""

    def declare_table(self, request: Any) -> Any:
        """Reserve a name."""


class LanceNamespace(ABC):
    """A catalog: namespaces with properties, tables with locations. NotFoundError for a name that does not exist,
    AlreadyExistsError for one that does, InputError for one that is refused."""

    @abstractmethod
    def namespace_id(self) -> str:
        """A text that identifies the catalog, without secrets."""

    def vouches_for(self, location: str) -> bool:
        """Whether a location is one that the caller named: below the root that the catalog was opened with."""
        return False

    @abstractmethod
    def list_namespaces(self, request: spec.ListNamespacesRequest) -> spec.ListNamespacesResponse:
        """The namespaces in a namespace."""

    @abstractmethod
    def describe_namespace(self, request: spec.DescribeNamespaceRequest) -> spec.DescribeNamespaceResponse:
        """The properties of a namespace."""

    @abstractmethod
    def create_namespace(self, request: spec.CreateNamespaceRequest) -> spec.CreateNamespaceResponse:
        """Create a namespace in one that exists."""

    @abstractmethod
    def drop_namespace(self, request: spec.DropNamespaceRequest) -> spec.DropNamespaceResponse:
        """Drop an empty namespace. InputError for one with tables or namespaces in it."""

    @abstractmethod
    def namespace_exists(self, request: spec.NamespaceExistsRequest) -> spec.NamespaceExistsResponse:
        """NotFoundError unless it exists."""

    @abstractmethod
    def list_tables(self, request: spec.ListTablesRequest) -> spec.ListTablesResponse:
        """The tables in a namespace."""

    @abstractmethod
    def describe_table(self, request: spec.DescribeTableRequest) -> spec.DescribeTableResponse:
        """Where a table is, and how to reach it."""

    @abstractmethod
    def declare_table(self, request: spec.DeclareTableRequest) -> spec.DeclareTableResponse:
        """Reserve a name before the table is written. Of two that do so at once, one gets AlreadyExistsError."""

    @abstractmethod
    def register_table(self, request: spec.RegisterTableRequest) -> spec.RegisterTableResponse:
        """Give a name to a table that exists."""

    @abstractmethod
    def deregister_table(self, request: spec.DeregisterTableRequest) -> spec.DeregisterTableResponse:
        """Forget a name; the table's files stay."""

    @abstractmethod
    def table_exists(self, request: spec.TableExistsRequest) -> spec.TableExistsResponse:
        """NotFoundError unless the name exists."""

    @abstractmethod
    def drop_table(self, request: spec.DropTableRequest) -> spec.DropTableResponse:
        """Forget a name and delete the table's files."""

    def __repr__(self) -> str:
        return self.namespace_id()


class DynamicContextProvider(ABC):
    """Headers of each request, such as a token that is renewed."""

    @abstractmethod
    def provide_context(self, info: dict[str, str]) -> Mapping[str, str]:
        """{"headers.Authorization": "Bearer ..."} for the operation and the object that `info` names."""
