"""Merges by keys alone, of some columns, and by keys in dictionaries: what the official library makes of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import SchemaMismatchError

ACTIONS: dict[str, Callable[[Any], Any]] = {
    "update": lambda merge: merge.when_matched_update_all(),
    "update where": lambda merge: merge.when_matched_update_all(condition="target.x > 4"),
    "delete": lambda merge: merge.when_matched_delete(),
    "delete others": lambda merge: merge.when_not_matched_by_source_delete(),
    "insert": lambda merge: merge.when_not_matched_insert_all(),
    "upsert": lambda merge: merge.when_matched_update_all().when_not_matched_insert_all(),
}
SOURCES = {
    "keys": pa.table({"k": [2, 9]}),
    "some columns": pa.table({"k": [2, 9], "x": [50, 90]}),
    "matching only": pa.table({"k": [3], "x": [70]}),
}


def _outcome(library: Any, uri: str, action: str, source: pa.Table, on: str = "k") -> object:
    try:
        ACTIONS[action](library.dataset(uri).merge_insert(on)).execute(source)
    except (OSError, ValueError) as error:
        return "refused" if isinstance(error, SchemaMismatchError) or "chema" in str(error) else repr(error)
    return sorted(map(str, lance.dataset(uri).to_table().to_pylist()))


@pytest.mark.parametrize("strict_key", [False, True])
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("action", ACTIONS)
def test_columns_that_may_not_be_null_may_be_missing_where_no_row_is_new(
    tmp_path: Path, action: str, source: str, strict_key: bool
) -> None:
    fields = [pa.field("k", pa.int64(), nullable=not strict_key), pa.field("x", pa.int64())]
    schema = pa.schema([*fields, pa.field("n", pa.string(), nullable=False)])
    rows = pa.table([[1, 2, 3], [4, 5, 6], ["a", "b", "c"]], schema=schema)
    outcomes = []
    for library in (lance_core, lance):
        uri = str(tmp_path / library.__name__)
        lance.write_dataset(rows, uri)
        outcomes.append(_outcome(library, uri, action, SOURCES[source]))
    assert outcomes[0] == outcomes[1]


def _dictionary(numbers: list[int | None], values: list[str]) -> pa.Array[Any]:
    return pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), pa.array(values))


@pytest.mark.parametrize("action", ["update", "delete", "delete others", "insert", "upsert"])
@pytest.mark.parametrize("keys", [(["q", "z"], [0, 1]), (["z", "c", "a"], [1, 0]), (["c", "q"], [0, None])], ids=str)
def test_dictionaries_of_fragments_and_of_the_source_may_differ(
    tmp_path: Path, action: str, keys: tuple[list[str], list[int | None]]
) -> None:
    values, numbers = keys
    source = pa.table({"k": _dictionary(numbers, values), "x": pa.array([20, 30][: len(numbers)])})
    outcomes = []
    for library in (lance_core, lance):
        uri = str(tmp_path / library.__name__)
        first = pa.table({"k": _dictionary([0, 1, 2, None], ["a", "b", "p"]), "x": [1, 2, 3, 4]})
        lance.write_dataset(first, uri)
        second = pa.table({"k": _dictionary([0, 1], ["q", "c"]), "x": [7, 8]})
        lance.write_dataset(second, uri, mode="append")
        outcomes.append(_outcome(library, uri, action, source))
    assert outcomes[0] == outcomes[1]
