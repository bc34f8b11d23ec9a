"""The primary key of a table, which nothing enforces: set by metadata of its fields, once, as the official library does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.dataset.handle.dataset import LanceDataset
from lance_core.errors import InputError
from lance_core.format.schema import CLUSTERING_KEY, PRIMARY_KEY, primary_key

ROWS = pa.table(
    {"id": [1, 2, 3], "k": [1, 2, 3], "v": ["a", "b", "c"], "l": [[1], [2], [3]]},
    schema=pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            pa.field("k", pa.int64(), nullable=False),
            ("v", pa.string()),
            pa.field("l", pa.list_(pa.int64()), nullable=False),
        ]
    ),
)
PLACE = f"{PRIMARY_KEY}:position"
HISTORIES: list[list[tuple[dict[str, Any], bool]]] = [
    [({"id": {PRIMARY_KEY: "true"}}, False), ({"id": {"x": "y"}}, False), ({"k": {"x": "1"}}, True)],
    [({"id": {PRIMARY_KEY: "true", PLACE: "2"}, "k": {PRIMARY_KEY: "1", PLACE: "1"}}, False)],
    [({"id": {PLACE: "2"}}, False)],
    [({"v": {CLUSTERING_KEY: "true"}}, False), ({"v": {CLUSTERING_KEY: "true", f"{CLUSTERING_KEY}:position": "1"}}, False)],
]
REFUSED = [
    {"id": {PRIMARY_KEY: None}},
    {"k": {PRIMARY_KEY: "true"}},
    {"id": {PRIMARY_KEY: "false"}},
]
POSITIONS = re.compile(r"unenforced_\w+_key_position: \w+(?:\(\d+\))?")


def _opened(tmp_path: Path) -> tuple[LanceDataset, lance.LanceDataset]:
    for name in ("ours", "theirs"):
        lance.write_dataset(ROWS, tmp_path / name)
    return lance_core.dataset(tmp_path / "ours"), lance.dataset(tmp_path / "theirs")


def _keys(table: Path) -> list[list[str]]:
    """What the official library sees of the keys."""
    schema = lance.dataset(table).lance_schema
    return [POSITIONS.findall(str(schema.field(name))) for name in ("id", "k", "v")]


@pytest.mark.parametrize("history", HISTORIES)
def test_both_libraries_set_the_same_keys(tmp_path: Path, history: list[tuple[dict[str, Any], bool]]) -> None:
    ours, theirs = _opened(tmp_path)
    for updates, replace in history:
        ours.update_field_metadata(updates, replace=replace)
        theirs.update_field_metadata(updates, replace=replace)
        assert _keys(tmp_path / "ours") == _keys(tmp_path / "theirs"), updates
        also = lance_core.dataset(tmp_path / "theirs").snapshot.manifest.schema
        found = lance_core.dataset(tmp_path / "ours").snapshot.manifest.schema
        assert [item.name for item in primary_key(found)] == [item.name for item in primary_key(also)]


@pytest.mark.parametrize("updates", REFUSED)
def test_a_key_is_set_once(tmp_path: Path, updates: dict[str, Any]) -> None:
    ours, theirs = _opened(tmp_path)
    for table in (ours, theirs):
        table.update_field_metadata({"id": {PRIMARY_KEY: "true"}})
    with pytest.raises(InputError, match=r"the primary key of the table is \(id\) and cannot be changed"):
        ours.update_field_metadata(updates)
    with pytest.raises(OSError, match="cannot be changed once set"):
        theirs.update_field_metadata(updates)
    assert lance_core.dataset(tmp_path / "ours").version == 2


@pytest.mark.parametrize(("column", "why"), [("v", "may be null"), ("l", "has fields below it")])
def test_a_key_is_of_plain_columns_without_nulls(tmp_path: Path, column: str, why: str) -> None:
    ours, theirs = _opened(tmp_path)
    with pytest.raises(InputError, match=why):
        ours.update_field_metadata({column: {PRIMARY_KEY: "true"}})
    with pytest.raises(Exception, match="Primary key column"):
        theirs.update_field_metadata({column: {PRIMARY_KEY: "true"}})


def test_a_merge_without_key_columns_goes_by_the_key(tmp_path: Path) -> None:
    new = pa.table({"id": [3, 4], "k": [9, 9], "v": ["x", "y"], "l": [[9], [9]]}, schema=ROWS.schema)
    ours, theirs = _opened(tmp_path)
    with pytest.raises(InputError, match="primary key"):
        ours.merge_insert()
    for table in (ours, theirs):
        table.update_field_metadata({"k": {PRIMARY_KEY: "true", PLACE: "2"}, "id": {PRIMARY_KEY: "true", PLACE: "1"}})
        table.merge_insert(None).when_matched_update_all().when_not_matched_insert_all().execute(new)
    found = lance_core.dataset(tmp_path / "ours").to_table().sort_by([("id", "ascending"), ("k", "ascending")])
    assert found.column("id").to_pylist() == [1, 2, 3, 3, 4]
    assert found == lance.dataset(tmp_path / "theirs").to_table().sort_by([("id", "ascending"), ("k", "ascending")])
