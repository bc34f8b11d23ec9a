"""Dictionaries below structs and lists, whose items hold nulls: Arrow does not join them as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import InputError
from lance_core.file.convert.assemble import concat, plain_dictionaries

WORDS = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None, 1, 0], pa.int8()), pa.array(["a", None, "b"]))
OTHERS = pa.DictionaryArray.from_arrays(pa.array([1, 0, 0, 0, None, 1], pa.int8()), pa.array(["c", None]))


def shapes(words: Any) -> dict[str, Any]:
    ends, mask = pa.array([0, 2, 4, 6], pa.int32()), pa.array([False, True, False])
    struct = pa.StructArray.from_arrays([words], ["x"])
    return {
        "struct": struct,
        "list": pa.ListArray.from_arrays(ends, words),
        "list of structs": pa.ListArray.from_arrays(ends, struct),
        "vectors": pa.FixedSizeListArray.from_arrays(words, 2),
        "struct of lists": pa.StructArray.from_arrays([pa.ListArray.from_arrays(ends, words)], ["l"], mask=mask),
        "map": pa.MapArray.from_arrays(ends, pa.array([*"klmnop"]), words),
        "without": pa.array([1, None]),
    }


@pytest.mark.parametrize("name", shapes(WORDS))
def test_dictionaries_are_joined(name: str) -> None:
    first, second = shapes(WORDS)[name], shapes(OTHERS)[name]
    for array in (first, first.slice(1), first.slice(0, 0)):
        plain = plain_dictionaries(array)
        plain.validate(full=True)
        assert plain.type == array.type
        assert plain.to_pylist() == array.to_pylist()
    if name in ("struct", "without"):
        joined = concat([first, second], first.type)
        assert joined.to_pylist() == first.to_pylist() + second.to_pylist()


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_a_null_in_a_packed_struct_is_refused_in_words(version: str, tmp_path: Path) -> None:
    packed = {"lance-encoding:packed": "true"}
    batches = [pa.StructArray.from_arrays([words], ["x"]) for words in (WORDS, OTHERS)]
    schema = pa.schema([pa.field("s", batches[0].type, metadata=packed)])
    table = pa.Table.from_batches([pa.record_batch([batch], schema=schema) for batch in batches])
    try:
        lance_core.write_dataset(table, tmp_path, data_storage_version=version)
    except InputError as error:
        assert "packed struct" in str(error)
    else:
        assert lance_core.dataset(str(tmp_path)).to_table().to_pylist() == table.to_pylist()


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("nested", [False, True])
def test_items_beyond_the_keys_are_left_out(version: str, nested: bool, tmp_path: Path) -> None:
    keys = pa.array([number % 7 if number % 3 else None for number in range(5000)], pa.uint8())
    words: Any = pa.DictionaryArray.from_arrays(keys, pa.array([f"word {number}" for number in range(300)]))
    if nested:
        words = pa.ListArray.from_arrays(pa.array(range(0, 5001, 10), pa.int32()), words)
    table = pa.table({"a": words})
    lance.write_dataset(table, tmp_path / "theirs", data_storage_version=version)
    lance_core.write_dataset(table, tmp_path / "ours", data_storage_version=version)
    for name in ("theirs", "ours"):
        for library in (lance, lance_core):
            assert library.dataset(str(tmp_path / name)).to_table().to_pylist() == table.to_pylist(), (
                name,
                library.__name__,
            )
