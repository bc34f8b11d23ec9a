"""Names that differ by case only on a file system that ignores case: refused or told, and never one for the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_core
from lance_core.catalog import requests as spec
from lance_core.errors import AlreadyExistsError, LanceError, NotFoundError, PreconditionError, StoreRefusedError
from lance_core.namespace.directory import DirectoryNamespace
from tests.security.folded_names import KINDS, folding, mounted

REFUSED = (StoreRefusedError, NotFoundError, AlreadyExistsError)


def _rows(*numbers: int) -> pa.Table:
    return pa.table({"id": pa.array(numbers, pa.int64())})


def _check_branches(lake: Path) -> None:
    """A branch of another spelling is neither read, written, made nor dropped in its place."""
    uri = str(lake / "branches.lance")
    lance_core.write_dataset(_rows(1), uri)
    table: Any = lance_core.dataset(uri)
    side = table.create_branch("side")
    lance_core.write_dataset(_rows(2), side.uri, mode="append")
    lance_core.write_dataset(_rows(3, 4), uri, mode="append")
    table = lance_core.dataset(uri)
    for verb in (
        lambda: table.create_branch("SIDE"),
        lambda: table.create_branch("Side/below"),
        lambda: table.checkout_version(("SIDE", None)).count_rows(),
        lambda: table.branches.delete("SIDE"),
        lambda: table.tags.create("of", ("SIDE", 2)),
    ):
        with pytest.raises(REFUSED):
            verb()
        assert list(table.branches.list()) == ["side"]
        assert table.checkout_version(("side", None)).to_table()["id"].to_pylist() == [1, 2]
        assert lance_core.dataset(uri).to_table()["id"].to_pylist() == [1, 3, 4]
        table.checkout_version(("side", None)).validate(deep=True)
    table.branches.delete("side")
    assert table.create_branch("side").count_rows() == 3


def _check_tags(lake: Path) -> None:
    """A tag of another spelling is neither found, moved nor forgotten in its place."""
    uri = str(lake / "tags.lance")
    lance_core.write_dataset(_rows(1), uri)
    table: Any = lance_core.write_dataset(_rows(2), uri, mode="append")
    table.tags.create("good", 1)
    for verb in (
        lambda: table.tags.create("GOOD", 2),
        lambda: table.tags.update("GOOD", 2),
        lambda: table.tags.replace_metadata("GOOD", {"a": "b"}),
        lambda: table.tags.delete("GOOD"),
        lambda: table.tags.get_version("GOOD"),
        lambda: lance_core.dataset(uri, version="GOOD"),
    ):
        with pytest.raises(REFUSED):
            verb()
        assert {name: tag["version"] for name, tag in table.tags.list().items()} == {"good": 1}
    table.tags.update("good", 2)
    table.tags.delete("good")
    assert not table.tags.list()


def _check_tables(lake: Path) -> None:
    """A name of a catalog; the folder of a table itself is the caller's choice, and one table under any spelling."""
    (lake / "catalog").mkdir()
    catalog = DirectoryNamespace(root=str(lake / "catalog"))
    lance_core.write_dataset(_rows(1), namespace_client=catalog, table_id=["orders"])
    for verb in (
        lambda: catalog.describe_table(spec.DescribeTableRequest(id=["ORDERS"])),
        lambda: catalog.declare_table(spec.DeclareTableRequest(id=["ORDERS"])),
        lambda: catalog.deregister_table(spec.DeregisterTableRequest(id=["ORDERS"])),
        lambda: catalog.drop_table(spec.DropTableRequest(id=["ORDERS"])),
        lambda: lance_core.write_dataset(_rows(2), namespace_client=catalog, table_id=["ORDERS"], mode="overwrite"),
        lambda: lance_core.write_dataset(_rows(2), namespace_client=catalog, table_id=["Orders"]),
    ):
        with pytest.raises(REFUSED):
            verb()
        assert catalog.list_tables(spec.ListTablesRequest(id=[])).tables == ["orders"]
        assert lance_core.dataset(namespace_client=catalog, table_id=["orders"]).to_table()["id"].to_pylist() == [1]
    with pytest.raises(LanceError):
        lance_core.write_dataset(_rows(5), str(lake / "catalog" / "ORDERS.lance"))
    assert lance_core.dataset(str(lake / "catalog" / "Orders.lance")).count_rows() == 1


def _check_indices_and_columns(lake: Path) -> None:
    """They are names inside a manifest, and stay two."""
    uri = str(lake / "names.lance")
    lance_core.write_dataset(pa.table({"id": range(9), "ID": [-number for number in range(9)]}), uri)
    table: Any = lance_core.dataset(uri)
    table.create_scalar_index("id", "BTREE", name="first")
    table.create_scalar_index("ID", "BTREE", name="FIRST")
    assert sorted(index["name"] for index in table.list_indices()) == ["FIRST", "first"]
    assert table.to_table(filter="`ID` = -3")["id"].to_pylist() == [3]
    assert table.to_table(filter="id = 3")["ID"].to_pylist() == [-3]
    table.drop_index("FIRST")
    assert [index["name"] for index in table.list_indices()] == ["first"]
    table.validate(deep=True)


CHECKS = {"branches": _check_branches, "tags": _check_tags, "tables": _check_tables, "names": _check_indices_and_columns}


@pytest.mark.parametrize("what", CHECKS)
def test_on_a_model(tmp_path: Path, what: str) -> None:
    with folding(tmp_path):
        CHECKS[what](tmp_path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", CHECKS)
def test_on_a_file_system(tmp_path: Path, what: str, kind: str) -> None:
    with mounted(kind, tmp_path) as lake:
        if lake is None:
            pytest.skip(f"no {kind} that ignores case can be mounted here")
        try:
            lance_core.write_dataset(_rows(1), str(lake / "t.lance"))
        except PreconditionError as error:
            pytest.skip(f"{kind} can hold no table: {error}")
        CHECKS[what](lake)


def test_where_case_counts_both_are_there(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance_core.write_dataset(_rows(1), uri)
    table: Any = lance_core.dataset(uri)
    for number, name in enumerate(("side", "SIDE", "Side/below")):
        lance_core.write_dataset(_rows(*range(number)), table.create_branch(name).uri, mode="append")
        table.tags.create(name.replace("/", "-"), (name, None))
    assert sorted(table.branches.list()) == ["SIDE", "Side/below", "side"]
    assert [table.checkout_version((name, None)).count_rows() for name in ("side", "SIDE", "Side/below")] == [1, 2, 3]
    table.tags.delete("SIDE")
    table.branches.delete("SIDE")
    assert sorted(table.branches.list()) == ["Side/below", "side"]
