"""`IN` with many constants is one lookup, and says what DuckDB says; a text made of a list has a limit."""

from __future__ import annotations

import sys
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from lance_core.errors import FilterError
from lance_core.expr import evaluate, list_functions, parse_filter


def _found(text: str, batch: pa.RecordBatch) -> list[bool | None]:
    result: list[bool | None] = evaluate(parse_filter(text, batch.schema), batch).to_pylist()
    return result


def _calls(text: str, batch: pa.RecordBatch) -> int:
    """How many functions of Python are called to evaluate a filter."""
    expr, calls = parse_filter(text, batch.schema), 0

    def count(_: Any, event: str, __: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        evaluate(expr, batch)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("quote", ["", "'"], ids=["numbers", "texts"])
def test_more_values_take_no_more_calls(quote: str) -> None:
    values: Any = [3, 7, None] if not quote else ["3", "7", None]
    batch = pa.record_batch({"a": pa.array(values)})
    few, many = (_calls(f"a IN ({', '.join(f'{quote}{n}{quote}' for n in range(size))})", batch) for size in (10, 5_000))
    assert many < few + 200


@pytest.mark.parametrize("arrow_type", [pa.int8(), pa.uint8(), pa.int32(), pa.int64(), pa.uint64(), pa.float64()], ids=str)
@pytest.mark.parametrize(
    "values",
    [
        "1, 2, 3, 4",
        "1, NULL, 3, 4",
        "300, 5, -1, 100",
        "18446744073709551615, 1, -5, 3",
        "300, 301, 302, 303",
        "1, 1, 1, NULL",
        "1.0, 2.5, 3.0, 4",
        "0.5, NULL, 5.0, 100.25",
        "0.5, 1.5, 2.5, 3.5",
    ],
)
@pytest.mark.parametrize("word", ["IN", "NOT IN"])
def test_numbers_as_duckdb_finds_them(arrow_type: pa.DataType, values: str, word: str) -> None:
    rows = pa.table({"a": pa.array([0, 1, 3, 5, 100, None], arrow_type)})
    expected = [found for (found,) in duckdb.sql(f"SELECT a {word} ({values}) FROM rows").fetchall()]
    assert _found(f"a {word} ({values})", rows.to_batches()[0]) == expected


@pytest.mark.parametrize("arrow_type", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())], ids=str)
@pytest.mark.parametrize("values", ["'a', 'b', '', 'ü'", "'a', NULL, 'b', 'c'", "'x', 'y', 'z', 'w'"])
def test_texts_as_duckdb_finds_them(arrow_type: pa.DataType, values: str) -> None:
    rows = pa.table({"a": pa.array(["a", "", "ü", "q", None], pa.string()).cast(arrow_type)})
    expected = [found for (found,) in duckdb.sql(f"SELECT a IN ({values}) FROM rows").fetchall()]
    assert _found(f"a IN ({values})", rows.to_batches()[0]) == expected


def test_a_text_of_a_list_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_functions, "MAX_TEXT", 10)
    batch = pa.record_batch({"a": pa.array([["aa", "bb", None]])})
    assert _found("array_to_string(a, '-') = 'aa-bb'", batch) == [True]
    assert _found("array_to_string(a, '-', '..') = 'aa-bb-..'", batch) == [True]
    for text in ("array_to_string(a, '1234567') = ''", "array_to_string(a, '', '1234567') = ''"):
        with pytest.raises(FilterError, match="11 characters, the limit is 10"):
            _found(text, batch)
