"""Tables by name: catalogs as the Lance Namespace specification defines them, with the official library's names.

::

    catalog = lance_core.namespace.DirectoryNamespace(root="/data/lake")
    catalog.create_namespace(CreateNamespaceRequest(id=["sales"]))
    lance_core.write_dataset(rows, namespace_client=catalog, table_id=["sales", "orders"])
    lance_core.dataset(namespace_client=catalog, table_id=["sales", "orders"])

Nothing is imported before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.lazy import lazy_face

if TYPE_CHECKING:
    from lance_core.catalog.foreign import ForeignNamespace as ForeignNamespace
    from lance_core.catalog.interface import DynamicContextProvider as DynamicContextProvider
    from lance_core.catalog.interface import LanceNamespace as LanceNamespace
    from lance_core.catalog.locate import TableLocation as TableLocation
    from lance_core.catalog.locate import declare_table as declare_table
    from lance_core.catalog.locate import find_or_declare as find_or_declare
    from lance_core.catalog.locate import find_table as find_table
    from lance_core.catalog.names import format_name as format_name
    from lance_core.catalog.names import object_id as object_id
    from lance_core.catalog.names import parse_name as parse_name
    from lance_core.catalog.requests import CreateNamespaceRequest as CreateNamespaceRequest
    from lance_core.catalog.requests import CreateNamespaceResponse as CreateNamespaceResponse
    from lance_core.catalog.requests import DeclareTableRequest as DeclareTableRequest
    from lance_core.catalog.requests import DeclareTableResponse as DeclareTableResponse
    from lance_core.catalog.requests import DeregisterTableRequest as DeregisterTableRequest
    from lance_core.catalog.requests import DeregisterTableResponse as DeregisterTableResponse
    from lance_core.catalog.requests import DescribeNamespaceRequest as DescribeNamespaceRequest
    from lance_core.catalog.requests import DescribeNamespaceResponse as DescribeNamespaceResponse
    from lance_core.catalog.requests import DescribeTableRequest as DescribeTableRequest
    from lance_core.catalog.requests import DescribeTableResponse as DescribeTableResponse
    from lance_core.catalog.requests import DropNamespaceRequest as DropNamespaceRequest
    from lance_core.catalog.requests import DropNamespaceResponse as DropNamespaceResponse
    from lance_core.catalog.requests import DropTableRequest as DropTableRequest
    from lance_core.catalog.requests import DropTableResponse as DropTableResponse
    from lance_core.catalog.requests import ListNamespacesRequest as ListNamespacesRequest
    from lance_core.catalog.requests import ListNamespacesResponse as ListNamespacesResponse
    from lance_core.catalog.requests import ListTablesRequest as ListTablesRequest
    from lance_core.catalog.requests import ListTablesResponse as ListTablesResponse
    from lance_core.catalog.requests import NamespaceExistsRequest as NamespaceExistsRequest
    from lance_core.catalog.requests import NamespaceExistsResponse as NamespaceExistsResponse
    from lance_core.catalog.requests import RegisterTableRequest as RegisterTableRequest
    from lance_core.catalog.requests import RegisterTableResponse as RegisterTableResponse
    from lance_core.catalog.requests import TableExistsRequest as TableExistsRequest
    from lance_core.catalog.requests import TableExistsResponse as TableExistsResponse
    from lance_core.catalog.rest import RestNamespace as RestNamespace
    from lance_core.namespace.directory import DirectoryNamespace as DirectoryNamespace
    from lance_core.namespace.opening import all_namespaces as all_namespaces
    from lance_core.namespace.opening import all_tables as all_tables
    from lance_core.namespace.opening import connect as connect
    from lance_core.namespace.opening import connect_to as connect_to
else:
    __getattr__, __dir__ = lazy_face(
        __name__,
        {
            "CreateNamespaceRequest": "lance_core.catalog.requests",
            "CreateNamespaceResponse": "lance_core.catalog.requests",
            "DeclareTableRequest": "lance_core.catalog.requests",
            "DeclareTableResponse": "lance_core.catalog.requests",
            "DeregisterTableRequest": "lance_core.catalog.requests",
            "DeregisterTableResponse": "lance_core.catalog.requests",
            "DescribeNamespaceRequest": "lance_core.catalog.requests",
            "DescribeNamespaceResponse": "lance_core.catalog.requests",
            "DescribeTableRequest": "lance_core.catalog.requests",
            "DescribeTableResponse": "lance_core.catalog.requests",
            "DirectoryNamespace": "lance_core.namespace.directory",
            "DropNamespaceRequest": "lance_core.catalog.requests",
            "DropNamespaceResponse": "lance_core.catalog.requests",
            "DropTableRequest": "lance_core.catalog.requests",
            "DropTableResponse": "lance_core.catalog.requests",
            "DynamicContextProvider": "lance_core.catalog.interface",
            "ForeignNamespace": "lance_core.catalog.foreign",
            "LanceNamespace": "lance_core.catalog.interface",
            "ListNamespacesRequest": "lance_core.catalog.requests",
            "ListNamespacesResponse": "lance_core.catalog.requests",
            "ListTablesRequest": "lance_core.catalog.requests",
            "ListTablesResponse": "lance_core.catalog.requests",
            "NamespaceExistsRequest": "lance_core.catalog.requests",
            "NamespaceExistsResponse": "lance_core.catalog.requests",
            "RegisterTableRequest": "lance_core.catalog.requests",
            "RegisterTableResponse": "lance_core.catalog.requests",
            "RestNamespace": "lance_core.catalog.rest",
            "TableExistsRequest": "lance_core.catalog.requests",
            "TableExistsResponse": "lance_core.catalog.requests",
            "TableLocation": "lance_core.catalog.locate",
            "all_namespaces": "lance_core.namespace.opening",
            "all_tables": "lance_core.namespace.opening",
            "connect": "lance_core.namespace.opening",
            "connect_to": "lance_core.namespace.opening",
            "declare_table": "lance_core.catalog.locate",
            "find_or_declare": "lance_core.catalog.locate",
            "find_table": "lance_core.catalog.locate",
            "format_name": "lance_core.catalog.names",
            "object_id": "lance_core.catalog.names",
            "parse_name": "lance_core.catalog.names",
        },
    )

__all__ = [
    "CreateNamespaceRequest",
    "CreateNamespaceResponse",
    "DeclareTableRequest",
    "DeclareTableResponse",
    "DeregisterTableRequest",
    "DeregisterTableResponse",
    "DescribeNamespaceRequest",
    "DescribeNamespaceResponse",
    "DescribeTableRequest",
    "DescribeTableResponse",
    "DirectoryNamespace",
    "DropNamespaceRequest",
    "DropNamespaceResponse",
    "DropTableRequest",
    "DropTableResponse",
    "DynamicContextProvider",
    "ForeignNamespace",
    "LanceNamespace",
    "ListNamespacesRequest",
    "ListNamespacesResponse",
    "ListTablesRequest",
    "ListTablesResponse",
    "NamespaceExistsRequest",
    "NamespaceExistsResponse",
    "RegisterTableRequest",
    "RegisterTableResponse",
    "RestNamespace",
    "TableExistsRequest",
    "TableExistsResponse",
    "TableLocation",
    "all_namespaces",
    "all_tables",
    "connect",
    "connect_to",
    "declare_table",
    "find_or_declare",
    "find_table",
    "format_name",
    "object_id",
    "parse_name",
]
