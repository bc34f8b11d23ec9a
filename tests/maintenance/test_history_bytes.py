"""The bytes that the pages show for a version are those of the files that it brought, whoever wrote it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.io.resolve import resolve_store
from lance_core.maintenance.facts.history import schema_page, versions_page

STEPS: dict[str, Callable[[ModuleType, str], object]] = {
    "append": lambda library, uri: library.write_dataset(rows(100, 50), uri, mode="append"),
    "add columns": lambda library, uri: library.dataset(uri).add_columns({"twice": "id * 2"}),
    "add two columns": lambda library, uri: library.dataset(uri).add_columns({"a": "id + 1", "b": "id + 2"}),
    "update": lambda library, uri: library.dataset(uri).update({"text": "'new'"}, where="id < 30"),
    "overwrite": lambda library, uri: library.write_dataset(rows(0, 20), uri, mode="overwrite"),
    "compact": lambda library, uri: library.dataset(uri).optimize.compact_files(),
}


def rows(first: int, count: int) -> pa.Table:
    return pa.table({"id": range(first, first + count), "text": [f"row {number}" for number in range(count)]})


def data_files(uri: str) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in Path(uri, "data").glob("*.lance")}


@pytest.mark.parametrize("library", [lance_core, lance], ids=["ours", "official"])
@pytest.mark.parametrize("step", STEPS)
def test_bytes_are_those_of_the_new_files(library: ModuleType, step: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    library.write_dataset(rows(0, 100), uri, max_rows_per_file=25)
    assert_the_newest_brought_its_files(uri, lambda: STEPS[step](library, uri))


def assert_the_newest_brought_its_files(uri: str, act: Callable[[], object]) -> dict[str, Any]:
    before = data_files(uri)
    act()
    added = sum(size for name, size in data_files(uri).items() if name not in before)
    newest: dict[str, Any] = versions_page(resolve_store(uri))["versions"][0]
    assert added > 0 and newest["bytes_added"] == added
    return newest


def test_a_refresh_is_called_so_and_has_its_bytes(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance_core.write_dataset(rows(0, 100), uri, max_rows_per_file=25)
    lance_core.declare_column(uri, "loud", sql="upper(text)")
    newest = assert_the_newest_brought_its_files(uri, lambda: lance_core.refresh_columns(uri))
    assert newest["kind"] == "refresh"
    updated = assert_the_newest_brought_its_files(
        uri, lambda: lance_core.dataset(uri).update({"text": "'new'"}, where="id < 30")
    )
    assert updated["kind"] == "update"
    assert [step["kind"] for step in schema_page(resolve_store(uri))["evolution"]] == ["columns"]
