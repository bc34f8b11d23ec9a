"""JSON functions in filters and computed columns, judged by the official library."""

from __future__ import annotations

import json
from typing import Any

import lance
import pyarrow as pa
import pytest

from lance_core.dataset.handle.open import dataset
from lance_core.errors import FilterError
from lance_core.expr.json_path import MISSING, parse_path, select

DOCUMENTS: list[Any] = [
    {"b": [{"c": 1}, {"c": 2}], "a": 3}, [1, 2], 5, "x", None, {"": 3}, {"1": 7}, {"a b": 2, "a": 4.5}, {"a": -2.5},
    {"a": "7"},
    {"s": 'é\n"q', "t": "True"}, {"a": True, "t": False}, {"a": None}, {"b": {"c": "deep", "d": [1.0, 1e20, "p"]}}, {},
]  # fmt: skip
VALUES = [
    "json_extract(j,'$.b')", "json_extract(j,'$.b[*].c')", "json_extract(j,'$[0]')", "json_extract(j,'$')",
    "json_extract(j,'b.c')",
    "json_extract(j,'$[\"a b\"]')", "json_extract(j,'$.\"a b\"')", "json_extract(j,'$.*')", "json_extract(j,'$[*]')",
    "json_extract(j,'$.b.d[last]')", "json_extract(j,'$.b.d[1]')", "json_extract(j,'$.s')", "json_get_string(j,'s')",
    "json_get_string(j,'a')", "json_get_int(j,'a')", "json_get_float(j,'a')", "json_get_bool(j,'t')", "json_get_int(j,'1')",
    "json_exists(j,'$.a')", "json_exists(j,'$.b.c')", "json_array_length(j,'$')", "json_array_length(j,'$.b')",
    "json_array_contains(j,'$.b.d','p')", "json_array_contains(j,'$','1')",
]  # fmt: skip


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("json") / "t.lance")
    texts = pa.array([*(json.dumps(value) for value in DOCUMENTS), None], pa.json_())
    lance.write_dataset(pa.table({"x": range(len(texts)), "j": texts}), path)
    return path


@pytest.mark.parametrize("value", VALUES)
def test_values_are_the_official_ones(uri: str, value: str) -> None:
    expected = lance.dataset(uri).scanner(columns={"v": value}).to_table()["v"].to_pylist()
    assert dataset(uri).to_table({"v": value})["v"].to_pylist() == expected


@pytest.mark.parametrize("where", ["json_get_bool(j,'a')", "json_get_int(j,'b') = 1", "json_get_int(j,'s') = 1"])
def test_what_does_not_convert_is_an_error(uri: str, where: str) -> None:
    with pytest.raises(pa.ArrowInvalid):
        lance.dataset(uri).to_table(filter=where)
    with pytest.raises(FilterError, match="cannot be converted"):
        dataset(uri).to_table(filter=where)


@pytest.mark.parametrize("path", ["a.", "$..a", "$.a[", "$[x]", "$a", "[-1]"])
def test_what_is_no_path(uri: str, path: str) -> None:
    with pytest.raises(FilterError, match="not a JSON path"):
        dataset(uri).to_table(filter=f"json_exists(j, '{path}')")


def test_paths() -> None:
    assert parse_path("$.a['b c'][2].d") == ("a", "b c", 2, "d")
    assert select({"a": [1, 2, {"b": 3}]}, parse_path("a[last-1]")) == 2
    assert select({"a": [1]}, parse_path("a[5]")) is MISSING
    assert select({"a": None}, parse_path("a")) is None
