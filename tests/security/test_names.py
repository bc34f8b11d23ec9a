"""Names at their extremes: of 255 bytes and more, in both Unicode forms, with characters that are none."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import InputError, LanceError, StoreRefusedError

ROWS = pa.table({"id": [1, 2]})
NO_TEXT = "a\udcff"
"""What Python makes of a byte that is no UTF-8."""


def _verbs(table: Any, name: str) -> dict[str, Callable[[], object]]:
    return {
        "tag": lambda: table.tags.create(name, 1),
        "branch": lambda: table.create_branch(name),
        "column": lambda: table.add_columns({name: "id + 1"}),
        "index": lambda: table.create_scalar_index("id", "BTREE", name=name),
        "setting": lambda: table.update_config({name: "x"}),
        "value": lambda: table.update_config({"x": name}),
        "filter": lambda: table.to_table(filter=f"CAST(id AS STRING) = '{name}'"),
        "update": lambda: table.update({"id": f"length('{name}')"}),
        "version": lambda: lance_core.dataset(table.uri, version=name),
        "projection": lambda: table.to_table(columns=[name]),
        "drop": lambda: table.drop_columns([name]),
        "rename": lambda: table.alter_columns({"path": "id", "name": name}),
    }


@pytest.mark.parametrize(
    "name",
    [NO_TEXT, "\0", "", ".", "..", "x" * 255, "x" * 256, "x" * 5000, "\u202e", "a\nb", "a/b", "\u00e9", "e\u0301", "%00"],
)
def test_every_name_ends_typed_and_leaves_the_table_as_it_was(tmp_path: Path, name: str) -> None:
    uri = str(tmp_path / "t")
    for verb in _verbs(lance_core.write_dataset(ROWS, uri), name):
        table: Any = lance_core.write_dataset(ROWS, uri, mode="overwrite")
        try:
            _verbs(table, name)[verb]()
        except LanceError:
            assert lance_core.dataset(uri).version == table.version, verb
        lance_core.dataset(uri).validate()


@pytest.mark.parametrize("size", [250, 255, 256, 5000])
def test_the_folder_of_a_table(tmp_path: Path, size: int) -> None:
    uri = f"{tmp_path}/{'x' * size}"
    if size <= 255:
        assert lance_core.write_dataset(ROWS, uri).count_rows() == 2
        return
    with pytest.raises(StoreRefusedError, match=r"(?i)name too long"):
        lance_core.write_dataset(ROWS, uri)


def test_two_forms_of_one_word_are_two_names(tmp_path: Path) -> None:
    """They are compared as they were given, as the official library does."""
    table: Any = lance_core.write_dataset(ROWS, str(tmp_path / "t"))
    for form in ("NFC", "NFD"):
        table.add_columns({unicodedata.normalize(form, "\u00e9"): f"{len(form)} + id"})
    assert [len(name) for name in table.schema.names] == [2, 1, 2]


@pytest.mark.parametrize("uri", ["/tmp/a\0b", "s3://b/a\0b", "memory://a\0"])
def test_a_nul_in_a_uri(uri: str) -> None:
    with pytest.raises(InputError, match="NUL"):
        lance_core.dataset(uri)


def test_a_text_that_is_none_is_not_shown(tmp_path: Path) -> None:
    table: Any = lance_core.write_dataset(ROWS, str(tmp_path / "t"))
    with pytest.raises(InputError, match="no character") as told:
        table.update_config({"x": f"password{NO_TEXT}"})
    assert "password" not in str(told.value)
