"""Dictionary columns of legacy tables: the manifest carries the values, for this library and the official one."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import CorruptFileError, InputError
from lance_core.format.schema import Field, LegacyDictionary, Schema
from lance_core.wire.manifest_file import encode_dictionaries, with_values

WORDS = ["a", "b", "a", "", "c", "naïve"] * 300
VALUES = {
    "string": pa.array(WORDS).dictionary_encode(),
    "large": pa.array(WORDS, pa.large_string()).dictionary_encode(),
    "binary": pa.array([word.encode() for word in WORDS]).dictionary_encode(),
    "int": pa.array([2**40 * (i % 7) - 3 for i in range(1800)]).dictionary_encode(),
    "narrow": pa.array([i % 5 for i in range(1800)], pa.int8()).dictionary_encode(),
}


def table() -> pa.Table:
    return pa.table({"id": pa.array(range(1800)), **VALUES})


def same_in_both(root: Path) -> pa.Table:
    theirs, ours = lance.dataset(root).to_table(), lance_core.dataset(str(root)).to_table()
    for name in theirs.column_names:
        assert ours.column(name).to_pylist() == theirs.column(name).to_pylist()
    return theirs


def test_ours_is_read_by_the_official_library(tmp_path: Path) -> None:
    lance_core.write_dataset(table(), str(tmp_path), data_storage_version="0.1", max_rows_per_file=1000)
    found = same_in_both(tmp_path)
    for name in ("int", "narrow"):  # empty strings read as null
        assert found.column(name).to_pylist() == table().column(name).to_pylist()
    assert len(list(tmp_path.glob("data/*.lance"))) == 2


@pytest.mark.parametrize("writer", ["ours", "theirs"])
def test_commits_of_both_keep_the_values(tmp_path: Path, writer: str) -> None:
    library = lance_core if writer == "ours" else lance
    library.write_dataset(table(), str(tmp_path), data_storage_version="0.1")
    lance_core.dataset(str(tmp_path)).delete("id % 3 = 1")
    assert same_in_both(tmp_path).num_rows == 1200
    lance.dataset(tmp_path).delete("id % 3 = 2")
    assert same_in_both(tmp_path).num_rows == 600
    lance_core.dataset(str(tmp_path)).optimize.compact_files()
    expected = [value for number, value in enumerate(table().column("int").to_pylist()) if number % 3 == 0]
    assert same_in_both(tmp_path).column("int").to_pylist() == expected


def test_appended_keys_are_the_table_s(tmp_path: Path) -> None:
    lance_core.write_dataset(pa.table({"c": VALUES["string"]}), str(tmp_path), data_storage_version="0.1")
    more = pa.table({"c": pa.array(["c", "b", "b"]).dictionary_encode()})
    lance_core.write_dataset(more, str(tmp_path), mode="append")
    assert same_in_both(tmp_path).column("c").to_pylist()[-3:] == ["c", "b", "b"]
    unknown = pa.table({"c": pa.array(["c", "q"]).dictionary_encode()})
    with pytest.raises(InputError, match=r"'c' holds 'q', which is not in the table's dictionary"):
        lance_core.write_dataset(unknown, str(tmp_path), mode="append")
    assert same_in_both(tmp_path).num_rows == 1803


@pytest.mark.parametrize("values", [[0.5, 1.5], [True, False]])
def test_values_no_reader_knows(tmp_path: Path, values: list[object]) -> None:
    given = pa.table({"c": pa.array(values).dictionary_encode()})
    with pytest.raises((ValueError, OSError), match="do not support data type"):
        lance.write_dataset(given, tmp_path / "theirs", data_storage_version="0.1")
        lance.dataset(tmp_path / "theirs").to_table()
    with pytest.raises(InputError, match=r"'c'.*legacy files cannot hold"):
        lance_core.write_dataset(given, str(tmp_path / "ours"), data_storage_version="0.1")


NULL_ITEMS = {
    "a number": ([None, 7], pa.int64()),
    "a last number": ([7, None, 9], pa.int8()),
    "nothing but null": ([None], pa.int32()),
    "a text": ([None, "a"], pa.string()),
    "a text beside an empty one": (["a", None, ""], pa.large_string()),
    "bytes": ([b"a", None], pa.binary()),
}


@pytest.mark.parametrize("chunks", [1, 3])
@pytest.mark.parametrize("place", ["column", "struct", "list"])
@pytest.mark.parametrize("name", NULL_ITEMS)
def test_nulls_among_the_values_are_what_the_official_library_keeps(
    tmp_path: Path, name: str, place: str, chunks: int
) -> None:
    """A null number is zero, a null text reads as null: never the first of the values."""
    values, kind = NULL_ITEMS[name]
    keys = pa.array([*range(len(values)), None] * 3, pa.int8())
    array = pa.DictionaryArray.from_arrays(keys, pa.array(values, kind))
    if place == "struct":
        array = pa.StructArray.from_arrays([array], names=["x"])
    if place == "list":
        array = pa.ListArray.from_arrays(pa.array(range(len(array) + 1), pa.int32()), array)
    given = pa.table({"c": pa.chunked_array([array.slice(2)] * chunks)})
    found = []
    for library in (lance, lance_core):
        library.write_dataset(given, str(tmp_path / library.__name__), data_storage_version="0.1")
        found += [reader.dataset(str(tmp_path / library.__name__)).to_table().to_pylist() for reader in (lance, lance_core)]
    assert found == found[:1] * 4


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()], ids=str)
def test_keys_that_are_all_null_can_be_read(tmp_path: Path, kind: pa.DataType) -> None:
    """The official library writes such columns of no values and cannot read them back."""
    given = pa.table({"c": pa.DictionaryArray.from_arrays(pa.nulls(3, pa.int8()), pa.array([], kind))})
    lance_core.write_dataset(given, str(tmp_path), data_storage_version="0.1")
    assert same_in_both(tmp_path).column("c").to_pylist() == [0 if kind == pa.int64() else None] * 3


def test_files_that_disagree(tmp_path: Path) -> None:
    parts = [pa.array(["x", "y"]).dictionary_encode(), pa.array(["q", "r"]).dictionary_encode()]
    given = pa.table({"c": pa.chunked_array(parts)})
    with pytest.raises(InputError, match="several dictionaries"):
        lance_core.write_dataset(given, str(tmp_path), data_storage_version="0.1", max_rows_per_file=2)
    assert not list(tmp_path.rglob("*.lance"))
    lance_core.write_dataset(given, str(tmp_path), data_storage_version="0.1")
    assert same_in_both(tmp_path).column("c").to_pylist() == ["x", "y", "q", "r"]


@pytest.mark.parametrize("logical", ["string", "int16"])
def test_positions_that_lie(logical: str) -> None:
    field = Field(0, "c", -1, f"dict:{logical}:int8:false", dictionary=LegacyDictionary(0, 2, (b"ab", b"cd")))
    schema, data = encode_dictionaries(Schema((field,)))
    assert with_values(schema, data).fields[0].dictionary == schema.fields[0].dictionary
    for offset, length in ((-1, 2), (0, 1 << 40), (len(data), 2), (1 << 60, 1), (0, -1)):
        wrong = Schema((Field(0, "c", -1, field.logical_type, dictionary=LegacyDictionary(offset, length)),))
        with pytest.raises(CorruptFileError, match="'c'"):
            with_values(wrong, data)
    if logical == "string":
        with pytest.raises(CorruptFileError, match="outside the file"):
            with_values(schema, b"\xff" * len(data))
