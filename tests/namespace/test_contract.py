"""What every catalog does, the directory and, through the official server, the REST one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_core
from lance_core import namespace as ns
from lance_core.errors import AlreadyExistsError, InputError, NotFoundError
from lance_core.namespace import LanceNamespace
from tests.namespace.support import ROWS, catalog_of


class CatalogContract:
    """Inherited by one class for each kind."""

    kind = ""

    @pytest.fixture
    def opened(self, tmp_path: Path) -> Iterator[tuple[LanceNamespace, dict[str, str]]]:
        with catalog_of(self.kind, tmp_path) as found:
            found[0].create_namespace(ns.CreateNamespaceRequest(id=["sales"], properties={"team": "a"}))
            yield found

    @pytest.fixture
    def catalog(self, opened: tuple[LanceNamespace, dict[str, str]]) -> LanceNamespace:
        return opened[0]

    @pytest.fixture
    def named(self, opened: tuple[LanceNamespace, dict[str, str]]) -> dict[str, Any]:
        return {"namespace_client": opened[0], "storage_options": opened[1]}

    def test_namespaces_are_created_described_listed_and_dropped(self, catalog: LanceNamespace) -> None:
        catalog.create_namespace(ns.CreateNamespaceRequest(id=["sales", "eu"]))
        assert catalog.describe_namespace(ns.DescribeNamespaceRequest(id=["sales"])).properties == {"team": "a"}
        assert catalog.list_namespaces(ns.ListNamespacesRequest(id=[])).namespaces == ["sales"]
        assert catalog.list_namespaces(ns.ListNamespacesRequest(id=["sales"])).namespaces == ["eu"]
        catalog.namespace_exists(ns.NamespaceExistsRequest(id=["sales", "eu"]))
        with pytest.raises(InputError, match=r"(contains|holds) 1"):
            catalog.drop_namespace(ns.DropNamespaceRequest(id=["sales"]))
        catalog.drop_namespace(ns.DropNamespaceRequest(id=["sales", "eu"]))
        with pytest.raises(NotFoundError):
            catalog.namespace_exists(ns.NamespaceExistsRequest(id=["sales", "eu"]))
        catalog.drop_namespace(ns.DropNamespaceRequest(id=["sales"]))
        assert catalog.list_namespaces(ns.ListNamespacesRequest(id=[])).namespaces == []

    def test_a_name_that_exists_or_does_not_is_a_typed_error(self, catalog: LanceNamespace) -> None:
        with pytest.raises(AlreadyExistsError):
            catalog.create_namespace(ns.CreateNamespaceRequest(id=["sales"]))
        with pytest.raises(NotFoundError):
            catalog.create_namespace(ns.CreateNamespaceRequest(id=["no", "child"]))
        with pytest.raises(NotFoundError):
            catalog.describe_table(ns.DescribeTableRequest(id=["sales", "no"]))
        with pytest.raises(NotFoundError):
            catalog.drop_table(ns.DropTableRequest(id=["sales", "no"]))
        with pytest.raises(NotFoundError):
            catalog.deregister_table(ns.DeregisterTableRequest(id=["sales", "no"]))
        with pytest.raises(NotFoundError):
            catalog.declare_table(ns.DeclareTableRequest(id=["no", "orders"]))
        catalog.declare_table(ns.DeclareTableRequest(id=["sales", "orders"]))
        with pytest.raises(AlreadyExistsError):
            catalog.declare_table(ns.DeclareTableRequest(id=["sales", "orders"]))

    @pytest.mark.parametrize("table_id", [["orders"], ["sales", "orders"]], ids="/".join)
    def test_a_table_is_created_read_appended_and_dropped_by_name(
        self, catalog: LanceNamespace, named: dict[str, Any], table_id: list[str]
    ) -> None:
        made = lance_core.write_dataset(ROWS, table_id=table_id, **named)
        assert made.to_table().equals(ROWS)
        lance_core.write_dataset(ROWS, table_id=table_id, mode="append", **named)
        found = lance_core.dataset(table_id=table_id, **named)
        assert (found.count_rows(), found.version, found.uri) == (4, 2, made.uri)
        assert lance_core.dataset(table_id=table_id, version=1, **named).count_rows() == 2
        assert catalog.list_tables(ns.ListTablesRequest(id=table_id[:-1])).tables == ["orders"]
        with pytest.raises(InputError, match="already a table"):
            lance_core.write_dataset(ROWS, table_id=table_id, **named)
        lance_core.write_dataset(ROWS.slice(1), table_id=table_id, mode="overwrite", **named)
        assert lance_core.dataset(table_id=table_id, **named).count_rows() == 1
        catalog.drop_table(ns.DropTableRequest(id=table_id))
        assert not Path(made.uri).exists()
        with pytest.raises(NotFoundError):
            lance_core.dataset(table_id=table_id, **named)

    def test_appending_to_a_name_that_does_not_exist_is_an_error(self, named: dict[str, Any]) -> None:
        with pytest.raises(NotFoundError):
            lance_core.write_dataset(ROWS, table_id=["sales", "typo"], mode="append", **named)

    def test_a_table_is_registered_and_deregistered(
        self, catalog: LanceNamespace, named: dict[str, Any], tmp_path: Path
    ) -> None:
        lance_core.write_dataset(ROWS, tmp_path / "old" / "t")
        catalog.register_table(ns.RegisterTableRequest(id=["sales", "old"], location="old/t"))
        assert lance_core.dataset(table_id=["sales", "old"], **named).count_rows() == 2
        with pytest.raises(AlreadyExistsError):
            catalog.register_table(ns.RegisterTableRequest(id=["sales", "old"], location="old/t"))
        catalog.deregister_table(ns.DeregisterTableRequest(id=["sales", "old"]))
        assert catalog.list_tables(ns.ListTablesRequest(id=["sales"])).tables == []
        assert lance_core.dataset(tmp_path / "old" / "t").count_rows() == 2

    @pytest.mark.parametrize("location", ["../t", "/etc", "s3://bucket/t", "a/../../t", "file:///etc"])
    def test_no_location_outside_of_the_root_is_registered(self, catalog: LanceNamespace, location: str) -> None:
        with pytest.raises(InputError):
            catalog.register_table(ns.RegisterTableRequest(id=["sales", "t"], location=location))

    def test_listings_come_in_pages(self, catalog: LanceNamespace) -> None:
        for name in "abcde":
            catalog.declare_table(ns.DeclareTableRequest(id=["sales", name]))
        first = catalog.list_tables(ns.ListTablesRequest(id=["sales"], limit=2))
        assert (first.tables, first.page_token is not None) == (["a", "b"], True)
        rest = catalog.list_tables(ns.ListTablesRequest(id=["sales"], page_token=first.page_token))
        assert rest.tables == ["c", "d", "e"]
        assert [*ns.all_tables(catalog, ("sales",))] == [*"abcde"]

    def test_a_table_that_is_declared_only_is_told_apart(self, catalog: LanceNamespace, named: dict[str, Any]) -> None:
        catalog.declare_table(ns.DeclareTableRequest(id=["sales", "later"]))
        request = ns.DescribeTableRequest(id=["sales", "later"], check_declared=True)
        assert catalog.describe_table(request).is_only_declared is True
        lance_core.write_dataset(ROWS, table_id=["sales", "later"], **named)  # as after a kill between the two
        assert catalog.describe_table(request).is_only_declared is False

    def test_of_writers_that_create_one_name_at_once_one_wins(self, catalog: LanceNamespace, named: dict[str, Any]) -> None:
        def create(number: int) -> str:
            try:
                lance_core.write_dataset(pa.table({"id": [number]}), table_id=["sales", "race"], **named)
            except (lance_core.LanceError, AlreadyExistsError) as error:
                return type(error).__name__
            return "won"

        with ThreadPoolExecutor(4) as pool:
            outcomes = [*pool.map(create, range(4))]
        assert outcomes.count("won") == 1, outcomes
        assert lance_core.dataset(table_id=["sales", "race"], **named).count_rows() == 1
        assert catalog.list_tables(ns.ListTablesRequest(id=["sales"])).tables == ["race"]


class TestDirectory(CatalogContract):
    kind = "dir"


class TestRest(CatalogContract):
    kind = "rest"


class TestForeign(CatalogContract):
    """The official library's own client."""

    kind = "foreign"
