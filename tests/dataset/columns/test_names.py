"""Odd names at every door that names something: refused and nothing changed, or taken and used by the official library."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import InputError, StoreRefusedError
from lance_core.format.schema import RESERVED_NAMES, unusable_name

NAMES = [
    "", " ", "  x", "x ", ".", "..", "a.b", ".a", "a.", "a..b", "../x", "`", "``", "`a`", "a`b", "'a'", '"a"', '"', "\\",
    "/", "a/b", "a\0b", "\n", "\t", "x" * 300, "_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_distance",
    "_score", "select", "NULL", "é", "日本", "😀", "A", "a b", "1a", "-", ";", "$x", "%", "item", "true", "CON", "~",
    "{x}", ".lock", "main",
]  # fmt: skip
ROWS = pa.table({"a": [1, 2], "s": [{"x": 1, "y": 2}, {"x": 3, "y": 4}]})

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
    name = name or "a_idx"  # as if none were given
    assert name in [index["name"] for index in lance.dataset(uri).list_indices()]
    assert lance.dataset(uri).to_table(filter="a = 2").num_rows == 1
    lance.dataset(uri).drop_index(name)
    return 1


@pytest.mark.parametrize("door", [_tagged, _branched, _indexed])
def test_other_names_that_are_taken_are_known_to_the_official_library(
    tmp_path: Path, door: Callable[[str, str], Any]
) -> None:
    taken = []
    for number, name in enumerate(NAMES):
        uri = str(tmp_path / str(number) / "t.lance")
        lance_core.write_dataset(ROWS, uri)
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
