"""Requests and answers of the Lance Namespace specification, with its names: plain records.

::

    DescribeTableRequest(id=["sales", "orders"])
    DescribeTableResponse(location="s3://lake/77f3a1c2_sales$orders", storage_options={...})

A catalog takes whatever has these attributes, such as the models of the package `lance-namespace`. Storage options may hold
credentials, so that they do not show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Properties = Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class ListNamespacesRequest:
    """The children of a namespace, page by page; `id=[]` is the root."""

    id: Sequence[str] = ()
    page_token: str | None = None
    limit: int | None = None


@dataclass(frozen=True, kw_only=True)
class ListNamespacesResponse:
    """Names, and the token of the next page."""

    namespaces: list[str]
    page_token: str | None = None


@dataclass(frozen=True, kw_only=True)
class DescribeNamespaceRequest:
    """One namespace."""

    id: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class DescribeNamespaceResponse:
    """Its properties."""

    properties: Properties | None = None


@dataclass(frozen=True, kw_only=True)
class CreateNamespaceRequest:
    """A new namespace. `mode`: "create", or "exist_ok"."""

    id: Sequence[str]
    mode: str | None = None
    properties: Properties | None = None


@dataclass(frozen=True, kw_only=True)
class CreateNamespaceResponse:
    """Its properties."""

    properties: Properties | None = None


@dataclass(frozen=True, kw_only=True)
class DropNamespaceRequest:
    """A namespace to drop. `mode`: "fail", or "skip" where it does not exist. `behavior`: "restrict"."""

    id: Sequence[str]
    mode: str | None = None
    behavior: str | None = None


@dataclass(frozen=True, kw_only=True)
class DropNamespaceResponse:
    """Its properties."""

    properties: Properties | None = None


@dataclass(frozen=True, kw_only=True)
class NamespaceExistsRequest:
    """One namespace."""

    id: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class NamespaceExistsResponse:
    """It exists."""


@dataclass(frozen=True, kw_only=True)
class ListTablesRequest:
    """The tables of a namespace, page by page. `include_declared`: those without a version too."""

    id: Sequence[str] = ()
    page_token: str | None = None
    limit: int | None = None
    include_declared: bool | None = True


@dataclass(frozen=True, kw_only=True)
class ListTablesResponse:
    """Names, and the token of the next page."""

    tables: list[str]
    page_token: str | None = None


@dataclass(frozen=True, kw_only=True)
class DescribeTableRequest:
    """One table. `check_declared`: look whether it has a version."""

    id: Sequence[str]
    version: int | None = None
    check_declared: bool | None = None


@dataclass(frozen=True, kw_only=True)
class DescribeTableResponse:
    """Where a table is, and how to reach it."""

    location: str | None
    table: str | None = None
    namespace: list[str] | None = None
    table_uri: str | None = None
    version: int | None = None
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)
    properties: Properties | None = None
    managed_versioning: bool | None = None
    is_only_declared: bool | None = None


@dataclass(frozen=True, kw_only=True)
class DeclareTableRequest:
    """A name to reserve. `location`: where the table is to be, None for a place of the catalog's choice."""

    id: Sequence[str]
    location: str | None = None
    properties: Properties | None = None


@dataclass(frozen=True, kw_only=True)
class DeclareTableResponse:
    """Where the table is to be written."""

    location: str | None
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)
    properties: Properties | None = None
    managed_versioning: bool | None = None


@dataclass(frozen=True, kw_only=True)
class RegisterTableRequest:
    """A name for a table that exists, at a location below the catalog's root."""

    id: Sequence[str]
    location: str
    mode: str | None = None
    properties: Properties | None = None


@dataclass(frozen=True, kw_only=True)
class RegisterTableResponse:
    """The location as it was registered."""

    location: str | None
    properties: Properties | None = None


@dataclass(frozen=True, kw_only=True)
class DeregisterTableRequest:
    """A name to forget; the table's files stay."""

    id: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class DeregisterTableResponse:
    """Where the files are."""

    id: list[str] | None = None
    location: str | None = None
    properties: Properties | None = None


@dataclass(frozen=True, kw_only=True)
class TableExistsRequest:
    """One table."""

    id: Sequence[str]
    version: int | None = None


@dataclass(frozen=True, kw_only=True)
class TableExistsResponse:
    """It exists."""


@dataclass(frozen=True, kw_only=True)
class DropTableRequest:
    """A table to drop, with all of its files."""

    id: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class DropTableResponse:
    """Where the files were."""

    id: list[str] | None = None
    location: str | None = None
    properties: Properties | None = None
