"""Odd names at every door that names something: refused and nothing changed, or taken and used by the official library."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core import namespace as ns
from lance_core.errors import InputError, LanceError, NotFoundError, StoreRefusedError
from lance_core.format.schema import RESERVED_NAMES, unusable_name

NAMES = [
    "", " ", "  x", "x ", ".", "..", "a.b", ".a", "a.", "a..b", "../x", "`", "``", "`a`", "a`b", "'a'", '"a"', '"', "\\",
    "/", "a/b", "a\0b", "\n", "\t", "x" * 300, "_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_distance",
    "_score", "select", "NULL", "é", "日本", "😀", "A", "a b", "1a", "-", ";", "$x", "%", "item", "true", "CON", "~",
    "{x}", ".lock", "main",
]  # fmt: skip
ROWS = pa.table({"a": [1, 2], "s": [{"x": 1, "y": 2}, {"x": 3, "y": 4}]})
SEARCHED = pa.table(
    {"a": [1, 2], "t": ["quick fox", "dog"], "v": pa.array([[1.0, 1.0], [2.0, 0.0]], pa.list_(pa.float32(), 2))}
)

COLUMN_DOORS: dict[str, Callable[[str, str], Any]] = {
    "create": lambda uri, name: lance_core.write_dataset(pa.table({name: [1, 2]}), uri + "-new"),
    "overwrite": lambda uri, name: lance_core.write_dataset(pa.table({name: [1, 2]}), uri, mode="overwrite"),
    "add sql": lambda uri, name: lance_core.dataset(uri).add_columns({name: "a + 1"}),
    "add field": lambda uri, name: lance_core.dataset(uri).add_columns(pa.field(name, pa.int64())),
    "add rows": lambda uri, name: lance_core.dataset(uri).add_columns(pa.table({name: [1, 2]}).to_reader()),
    "add function": lambda uri, name: lance_core.dataset(uri).add_columns(
        lambda batch: pa.record_batch([batch.column("a")], names=[name])
    ),
    "rename": lambda uri, name: lance_core.dataset(uri).alter_columns({"path": "a", "name": name}),
    "rename and retype": lambda uri, name: lance_core.dataset(uri).alter_columns(
        {"path": "a", "name": name, "data_type": pa.int32()}
    ),
    "join": lambda uri, name: lance_core.dataset(uri).merge(pa.table({"a": [1, 2], name: [5, 6]}), "a"),
}


def _files(uri: str) -> set[str]:
    return {path.name for path in Path(uri).parent.rglob("*") if path.is_file()}


@pytest.mark.parametrize("door", COLUMN_DOORS)
def test_a_column_that_is_taken_can_be_used_by_the_official_library(tmp_path: Path, door: str) -> None:
    for number, name in enumerate(NAMES):
        uri = str(tmp_path / str(number) / "t.lance")
        lance_core.write_dataset(ROWS, uri)
        before = _files(uri)
        try:
            COLUMN_DOORS[door](uri, name)
        except InputError:
            # The first of a table's two same names is refused for another reason.
            assert unusable_name(name) or name in ("a", "s"), name
            assert _files(uri) == before, name
            assert lance_core.dataset(uri).to_table().equals(ROWS)
            continue
        assert not unusable_name(name), name
        _is_usable(uri + "-new" if door == "create" else uri, name)


def _is_usable(uri: str, name: str) -> None:
    for library in (lance_core, lance):
        ds = library.dataset(uri)
        values = ds.to_table(columns=[name])[name].to_pylist()
        assert ds.to_table()[name].to_pylist() == values
        assert ds.count_rows(f"`{name}` is not null") == sum(value is not None for value in values), name
    rows = lance.dataset(uri).to_table()
    lance.write_dataset(rows, uri, mode="append")
    lance.dataset(uri).optimize.compact_files()
    assert lance_core.dataset(uri).to_table().equals(pa.concat_tables([rows, rows]).combine_chunks())


@pytest.mark.parametrize("name", ["`", "a`b", ""])
def test_a_table_that_has_such_a_column_already_is_read_and_written(tmp_path: Path, name: str) -> None:
    uri = str(tmp_path / "t.lance")
    rows = pa.table({name: [1, 2], "b": [3, 4]})
    lance.write_dataset(rows, uri)
    lance_core.write_dataset(rows, uri, mode="append")
    ds = lance_core.dataset(uri)
    ds.delete("b = 3")
    ds.add_columns({"c": "b + 1"})
    ds.optimize.compact_files()
    assert lance_core.dataset(uri).to_table().to_pylist() == [{name: 2, "b": 4, "c": 5}] * 2
    ds.alter_columns({"path": name, "name": "good"} if name else {"path": "b", "name": "good"})
    assert "good" in lance_core.dataset(uri).schema.names


def test_system_columns_are_unusable_names() -> None:
    assert all(unusable_name(name) for name in RESERVED_NAMES)


def _tagged(uri: str, name: str) -> Any:
    lance_core.dataset(uri).tags.create(name, 1)
    return lance.dataset(uri, version=name).version


def _branched(uri: str, name: str) -> Any:
    lance_core.dataset(uri).create_branch(name)
    return lance.dataset(uri).checkout_version((name, None)).version


def _indexed(uri: str, name: str) -> Any:
    lance_core.dataset(uri).create_scalar_index("a", "BTREE", name=name)
    return _is_index_of(uri, name or "a_idx", filter="a = 2")  # no name, as if none were given


def _text_indexed(uri: str, name: str) -> Any:
    lance_core.dataset(uri).create_scalar_index("t", "INVERTED", name=name)
    return _is_index_of(uri, name or "t_idx", full_text_query="fox")


def _vector_indexed(uri: str, name: str) -> Any:
    lance_core.dataset(uri).create_index("v", "IVF_FLAT", name=name, num_partitions=1)
    return _is_index_of(uri, name or "v_idx", nearest={"column": "v", "q": [1.0, 1.0], "k": 1})


def _is_index_of(uri: str, name: str, **question: Any) -> int:
    """Searched, told, extended and dropped under its name by the official library, told and compared by this one."""
    assert name in [index["name"] for index in lance.dataset(uri).list_indices()]
    assert lance_core.dataset(uri).index_statistics(name)["num_indexed_rows"] == 2
    assert lance.dataset(uri).stats.index_stats(name)["num_indexed_rows"] == 2
    assert lance.dataset(uri).to_table(**question).num_rows == 1
    assert lance_core.dataset(uri).check_indices([name]) == 1
    lance.dataset(uri).optimize.optimize_indices(index_names=[name])
    lance.dataset(uri).drop_index(name)
    return 1


OTHER_DOORS = [_tagged, _branched, _indexed, _text_indexed, _vector_indexed]


@pytest.mark.parametrize("door", OTHER_DOORS)
def test_other_names_that_are_taken_are_known_to_the_official_library(
    tmp_path: Path, door: Callable[[str, str], Any]
) -> None:
    taken = []
    lance_core.write_dataset(SEARCHED, tmp_path / "made")
    for number, name in enumerate(NAMES):
        uri = str(tmp_path / str(number) / "t.lance")
        shutil.copytree(tmp_path / "made", uri)
        before = _files(uri)
        try:
            version = door(uri, name)
        except (InputError, StoreRefusedError):  # the latter: a file cannot have a name so long
            assert _files(uri) == before, name
            continue
        assert version == 1, name
        taken.append(name)
    assert "A" in taken
    assert "1a" in taken


def _new_namespace(catalog: ns.LanceNamespace, name: str) -> list[str]:
    catalog.create_namespace(ns.CreateNamespaceRequest(id=[name]))
    lance_core.write_dataset(ROWS, table_id=[name, "t"], namespace_client=catalog)
    return [name, "t"]


def _new_table(catalog: ns.LanceNamespace, name: str) -> list[str]:
    lance_core.write_dataset(ROWS, table_id=["known", name], namespace_client=catalog)
    return ["known", name]


def _new_table_of_the_root(catalog: ns.LanceNamespace, name: str) -> list[str]:
    lance_core.write_dataset(ROWS, table_id=[name], namespace_client=catalog)
    return [name]


def _declared_table(catalog: ns.LanceNamespace, name: str) -> list[str]:
    location = catalog.declare_table(ns.DeclareTableRequest(id=["known", name])).location
    lance.write_dataset(ROWS, location)
    return ["known", name]


def _registered_table(catalog: ns.LanceNamespace, name: str) -> list[str]:
    catalog.register_table(ns.RegisterTableRequest(id=["known", name], location="elsewhere/t"))
    return ["known", name]


@pytest.mark.parametrize("door", [_new_namespace, _new_table, _new_table_of_the_root, _declared_table, _registered_table])
def test_names_of_a_catalog_that_are_taken_are_known_to_the_official_one(
    tmp_path: Path, door: Callable[[ns.LanceNamespace, str], list[str]]
) -> None:
    import lance_namespace as official
    from lance.namespace import DirectoryNamespace as OfficialDirectory

    made = tmp_path / "made"
    ns.DirectoryNamespace(root=str(made)).create_namespace(ns.CreateNamespaceRequest(id=["known"]))
    lance_core.write_dataset(ROWS, made / "elsewhere" / "t")
    taken = []
    for number, name in enumerate(NAMES):
        root = tmp_path / str(number) / "catalog"
        shutil.copytree(made, root)
        before = _files(str(root))
        try:
            table_id = door(ns.DirectoryNamespace(root=str(root)), name)
        except InputError:
            assert _files(str(root)) == before, name
            continue
        theirs = OfficialDirectory(root=str(root))
        assert table_id[-1] in theirs.list_tables(official.ListTablesRequest(id=table_id[:-1])).tables
        location = theirs.describe_table(official.DescribeTableRequest(id=table_id)).location
        assert lance.dataset(location).to_table().equals(ROWS), name
        if door is _registered_table:  # dropping one in a folder of a folder is an internal error there
            theirs.deregister_table(official.DeregisterTableRequest(id=table_id))
        else:
            theirs.drop_table(official.DropTableRequest(id=table_id))
        with pytest.raises(NotFoundError):
            lance_core.dataset(table_id=table_id, namespace_client=ns.DirectoryNamespace(root=str(root)))
        taken.append(name)
    assert {"A", "1a", "select"} <= {*taken}
    assert not {"", "..", "../x", "a/b", "a\0b"} & {*taken}


ABSENT_DOORS: dict[str, Callable[[Any, str], Any]] = {
    "scan": lambda ds, name: ds.to_table(columns=[name]),
    "scan, quoted": lambda ds, name: ds.to_table(columns=[f"`{name}`"]),
    "filter": lambda ds, name: ds.to_table(filter=f"`{name}` IS NOT NULL"),
    "order": lambda ds, name: ds.scanner(order_by=[name]).to_table(),
    "take": lambda ds, name: ds.take([0], columns=[name]),
    "delete": lambda ds, name: ds.delete(f"`{name}` = 1"),
    "update": lambda ds, name: ds.update({name: "1"}),
    "update from": lambda ds, name: ds.update({"a": f"`{name}` + 1"}),
    "merge on": lambda ds, name: ds.merge_insert(name).when_not_matched_insert_all().execute(SEARCHED),
    "join on": lambda ds, name: ds.merge(SEARCHED, name),
    "drop column": lambda ds, name: ds.drop_columns([name]),
    "rename column": lambda ds, name: ds.alter_columns({"path": name, "name": "fresh"}),
    "index": lambda ds, name: ds.create_scalar_index(name, "BTREE"),
    "text index": lambda ds, name: ds.create_scalar_index(name, "INVERTED"),
    "vector index": lambda ds, name: ds.create_index(name, "IVF_FLAT", num_partitions=1),
    "nearest": lambda ds, name: ds.to_table(nearest={"column": name, "q": [1.0, 1.0], "k": 1}),
    "search": lambda ds, name: ds.to_table(full_text_query={"columns": [name], "query": "fox"}),
    "checkout": lambda ds, name: ds.checkout_version(name),
    "checkout branch": lambda ds, name: ds.checkout_version((name, None)),
    "drop tag": lambda ds, name: ds.tags.delete(name),
    "move tag": lambda ds, name: ds.tags.update(name, 1),
    "drop branch": lambda ds, name: ds.branches.delete(name),
    "drop index": lambda ds, name: ds.drop_index(name),
    "warm index": lambda ds, name: ds.prewarm_index(name),
    "tell index": lambda ds, name: ds.index_statistics(name),
    "compare index": lambda ds, name: ds.check_indices([name]),
    "extend index": lambda ds, name: ds.optimize.optimize_indices(index_names=[name]),
}
_OF_SYSTEM = {"scan", "scan, quoted", "filter", "order", "take", "delete", "update from", "update"}


@pytest.mark.parametrize("door", ABSENT_DOORS)
def test_a_name_that_is_not_there_is_a_typed_error_and_changes_nothing(tmp_path: Path, door: str) -> None:
    uri = str(tmp_path / "t.lance")
    ds = lance_core.write_dataset(SEARCHED, uri)
    before = _files(uri)
    known = {"main", "a", "A", *(RESERVED_NAMES if door in _OF_SYSTEM else ())}
    taken = []
    for name in NAMES:
        try:
            ABSENT_DOORS[door](ds, name)
        except LanceError:
            assert _files(uri) == before, name
        else:
            taken.append(name)
            before = _files(uri)
    assert {*taken} <= known
