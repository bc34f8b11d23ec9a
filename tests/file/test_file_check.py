"""Deep checks of single files: sound ones pass, and each damage is called what it is."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lance_core.arrow import schema_from_arrow
from lance_core.errors import CorruptFileError
from lance_core.file.check import check_file, damages
from lance_core.file.open import ContainerFile
from lance_core.file.v1.reader import LegacyFile
from lance_core.format.version import parse_storage_version
from tests.bytes import byte_files as files

VERSIONS = ("0.1", "2.0", "2.1", "2.2")


def table() -> pa.Table:
    rows = range(3000)
    return pa.table(
        {
            "number": [i * 7919 % 100_003 + 5 for i in rows],
            "text": [f"text {i * 31 % 1009}" for i in rows],
            "list": [[i, i + 1] if i % 3 else [] for i in rows],
        }
    )


def written(root: Path, version: str) -> Path:
    files.write_ours(root, table(), version)
    return root / files.PATH


def patched(path: Path, start: int, data: bytes) -> None:
    raw = bytearray(path.read_bytes())
    raw[start : start + len(data)] = data
    path.write_bytes(raw)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_sound_file_has_no_damage(tmp_path: Path, version: str) -> None:
    written(tmp_path, version)
    assert list(damages(files.open_at(tmp_path), num_rows=3000)) == []
    check_file(files.open_at(tmp_path))


@pytest.mark.parametrize("version", VERSIONS)
def test_other_numbers_of_rows_are_noticed(tmp_path: Path, version: str) -> None:
    written(tmp_path, version)
    (found,) = damages(files.open_at(tmp_path), num_rows=2999)
    assert found.column == ""
    assert "3000 rows, expected 2999" in found.message


def test_every_bad_column_is_named(tmp_path: Path) -> None:
    """Chunk words of two columns overwritten: both are told of, with their page, the third is read."""
    path = written(tmp_path, "2.2")
    opened = files.open_at(tmp_path)
    assert isinstance(opened, ContainerFile)
    number, text, _ = opened.columns([0, 1, 2])
    for column in (number, text):
        patched(path, column.pages[0].buffers[0].start, b"\xff" * 8)
    found = list(damages(files.open_at(tmp_path)))
    assert [item.column for item in found] == ["number", "text"]
    assert all("page 0" in item.message and path.name in item.message for item in found)
    with pytest.raises(CorruptFileError, match="'number'"):
        check_file(files.open_at(tmp_path))


def test_text_that_is_no_text(tmp_path: Path) -> None:
    path = written(tmp_path, "2.0")
    opened = files.open_at(tmp_path)
    assert isinstance(opened, ContainerFile)
    place = path.read_bytes().index(b"text 31")
    patched(path, place, b"\xff\xfe")
    (found,) = damages(files.open_at(tmp_path))
    assert found.column == "text"
    assert "UTF8" in found.message


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_nulls_where_none_may_be(tmp_path: Path, version: str) -> None:
    files.write_ours(tmp_path, pa.table({"a": [1, None, 3], "b": [1, 2, 3]}), version)
    strict = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.int64(), nullable=False)])
    schema = schema_from_arrow(strict, version=parse_storage_version(version))
    (found,) = damages(files.open_at(tmp_path), schema)
    assert found.column == "a"
    assert "row 1" in found.message


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_pages_of_another_type(tmp_path: Path, version: str) -> None:
    """Levels and widths are compared with what the schema says."""
    files.write_ours(tmp_path, pa.table({"a": [1, 2, 3], "l": [[1], [2], []]}), version)
    wrong = pa.schema([("a", pa.int16()), ("l", pa.list_(pa.list_(pa.int64())))])
    schema = schema_from_arrow(wrong, version=parse_storage_version(version))
    assert "a" in [item.column for item in damages(files.open_at(tmp_path), schema)]


def test_statistics_that_do_not_hold(tmp_path: Path) -> None:
    path = written(tmp_path, "0.1")
    opened = files.open_at(tmp_path)
    assert isinstance(opened, LegacyFile)
    bounds = opened.statistics(0)
    assert bounds is not None
    lowest = bounds[0].as_py()["min_value"]
    at = path.read_bytes().rindex(lowest.to_bytes(8, "little"))
    patched(path, at, (lowest + 1).to_bytes(8, "little"))
    (found,) = damages(files.open_at(tmp_path))
    assert found.column == "number"
    assert f"holds {lowest}, but its statistics state the minimum {lowest + 1}" in found.message


def test_a_file_that_is_no_file(tmp_path: Path) -> None:
    path = written(tmp_path, "2.2")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorruptFileError):
        files.open_at(tmp_path)
