"""Calls bounded in bytes and tokens: how rows are cut, what a function counts, what is refused, what concurrency keeps."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.arrow.row_sizes import row_sizes
from lance_core.computed.call_sizes import CallSizes
from lance_core.computed.declaration import declaration_of, find_declared
from lance_core.errors import InputError
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.columns import DeclareColumnSpec
from tests.computed.work import declare, write_numbers
from tests.computed.work import refresh as refresh_numbers

TEXTS = "our.texts:count"


def test_rows_are_cut_by_every_bound() -> None:
    sizes = np.array([10, 10, 90, 200, 10, 0, 0])
    every = np.arange(len(sizes))
    for bounds, expected in (
        (CallSizes(3), [[0, 1, 2], [3, 4, 5], [6]]),
        (CallSizes(100, [(sizes, 100)]), [[0, 1], [2], [3], [4, 5, 6]]),
        (CallSizes(2, [(sizes, 100)]), [[0, 1], [2], [3], [4, 5], [6]]),
        (CallSizes(100, [(sizes, 100), (np.ones(7, np.int64), 2)]), [[0, 1], [2], [3], [4, 5], [6]]),
        (CallSizes(100, [(sizes, 1)]), [[0], [1], [2], [3], [4], [5, 6]]),
    ):
        assert [part.tolist() for part in bounds.cut(every)] == expected
        assert bounds.cut(every[:0]) == []


def test_some_of_the_rows_need_no_more_calls_than_all() -> None:
    """So what is left of a wave of n calls is given in n calls at most."""
    draw = random.Random(3)
    for _ in range(300):
        costs = [(np.array([draw.randrange(9) for _ in range(20)]), draw.randrange(1, 15)) for _ in range(2)]
        sizes = CallSizes(draw.randrange(1, 6), costs)
        every = np.arange(20)
        wave = np.concatenate(sizes.cut(every)[2:5])
        some = wave[[draw.random() < 0.6 for _ in wave]]
        parts = sizes.cut(some)
        assert len(parts) <= 3
        assert np.concatenate([some[:0], *parts]).tolist() == some.tolist()


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array(["a", None, "four"]), [1, 0, 4]),
        (pa.array(["a", "bcd", "four"])[1:], [3, 4]),
        (pa.array([b"12", b""], pa.large_binary()), [2, 0]),
        (pa.array(["a", "four"], pa.string_view()), [1, 4]),
        (pa.array(["aa", "b", "aa"]).dictionary_encode(), [2, 1, 2]),
        (pa.array([1, None], pa.int32()), [4, 4]),
        (pa.array([True, False]), [1, 1]),
        (pa.array([[1, 2], [], None, [3]], pa.list_(pa.int64()))[1:], [0, 0, 8]),
        (pa.array([["a", "bc"], ["def"]], pa.large_list(pa.string())), [3, 3]),
        (pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.float32(), 2))[1:], [8, 8]),
        (pa.array([{"x": 1, "s": "abc"}, None], pa.struct({"x": pa.int8(), "s": pa.string()})), [4, 1]),
        (pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int32())), [5, 0]),
        (pa.nulls(2), [0, 0]),
        (pa.array([1, 2], pa.decimal128(10)), [16, 16]),
        (pa.array(["x"], pa.string())[:0], []),
    ],
)
def test_bytes_of_rows(array: Any, expected: list[int]) -> None:
    assert row_sizes(array).tolist() == expected


class Texts:
    """Keeps what each call was given."""

    def __init__(self, counts: Any = None) -> None:
        self.calls: list[list[Any]] = []
        self._counts = counts

    def __call__(self, batch: pa.RecordBatch) -> list[int]:
        self.calls.append(batch.column("s").to_pylist())
        return [len(text or "") for text in self.calls[-1]]

    def tokens(self, batch: pa.RecordBatch) -> Any:
        """A token is a word."""
        if self._counts is not None:
            return self._counts(batch)
        return [len((text or "").split()) for text in batch.column("s").to_pylist()]


def declare_texts(uri: str, **options: Any) -> None:
    given = {"function": TEXTS, "inputs": ["s"], "type": pa.int64(), **options}
    lance_core.declare_column(uri, "n", **given)


def write_texts(folder: Path, texts: list[Any]) -> str:
    place = str(folder / "t.lance")
    lance_core.write_dataset(pa.table({"s": pa.array(texts, pa.string())}), place)
    return place


WORDS = ["one", "two words", "a b c d e f", "x", None, "y z", "seven"]


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({"batch_tokens": 3}, [WORDS[:2], WORDS[2:3], [*WORDS[3:6]], WORDS[6:]]),
        ({"batch_bytes": 12}, [WORDS[:2], [*WORDS[2:5]], WORDS[5:]]),
        ({"batch_bytes": 12, "batch_tokens": 3, "batch_size": 2}, [WORDS[:2], WORDS[2:3], WORDS[3:5], WORDS[5:]]),
    ],
)
@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_function_is_given_what_the_declaration_allows(
    tmp_path: Path, bounds: dict[str, int], expected: list[list[Any]], concurrency: int
) -> None:
    uri, texts = write_texts(tmp_path, WORDS), Texts()
    declare_texts(uri, **bounds)
    report = lance_core.refresh_columns(uri, functions={TEXTS: texts}, concurrency=concurrency)
    assert sorted(texts.calls, key=str) == sorted(expected, key=str)
    assert report.columns["n"].calls == len(expected)
    assert lance_core.dataset(uri).to_table()["n"].to_pylist() == [len(text or "") for text in WORDS]
    declared = declaration_of(find_declared(lance_core.dataset(uri).snapshot.manifest.schema, "n"))
    assert {name: getattr(declared, name) for name in bounds} == bounds


def test_other_bounds_make_no_row_stale(tmp_path: Path) -> None:
    uri, texts = write_texts(tmp_path, WORDS), Texts()
    declare_texts(uri, batch_tokens=3)
    lance_core.refresh_columns(uri, functions={TEXTS: texts})
    declare_texts(uri, batch_bytes=100)
    assert lance_core.refresh_columns(uri, functions={TEXTS: texts}).stale == 0


def test_a_plain_function_counts_by_an_attribute_with_its_arguments(tmp_path: Path) -> None:
    calls = list[int]()

    def count(batch: pa.RecordBatch, *, weight: int) -> list[int]:
        calls.append(batch.num_rows)
        return [weight] * batch.num_rows

    def tokens(batch: pa.RecordBatch, *, weight: int) -> Any:
        return pa.array([weight] * batch.num_rows)

    count.tokens = tokens  # type: ignore[attr-defined]
    uri = write_texts(tmp_path, WORDS)
    declare_texts(uri, batch_tokens=10, arguments={"weight": 4}, functions={TEXTS: count})
    lance_core.refresh_columns(uri, functions={TEXTS: count})
    assert calls == [2, 2, 2, 1]


def test_a_function_without_a_counter_is_refused(tmp_path: Path) -> None:
    uri = write_texts(tmp_path, WORDS)
    with pytest.raises(InputError, match=r"our\.texts:count has no tokens\(batch\)"):
        declare_texts(uri, batch_tokens=10, functions={TEXTS: len})
    declare_texts(uri, batch_tokens=10)
    with pytest.raises(InputError, match=r"our\.texts:count has no tokens\(batch\)"):
        lance_core.refresh_columns(uri, functions={TEXTS: len})


NO_COUNTS = ([1], [-1] * 7, ["a"] * 7, [float("nan")] * 7, 3)


@pytest.mark.parametrize("counts", [lambda batch, told=told: told for told in NO_COUNTS])
def test_what_is_no_count_is_refused(tmp_path: Path, counts: Any) -> None:
    uri = write_texts(tmp_path, WORDS)
    declare_texts(uri, batch_tokens=10)
    with pytest.raises(InputError, match=r"count\.tokens returned .* for 7 rows, which is no number for each"):
        lance_core.refresh_columns(uri, functions={TEXTS: Texts(counts)})


@pytest.mark.parametrize("name", ["batch_size", "batch_bytes", "batch_tokens"])
@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "10"])
def test_bounds_that_are_none_are_refused(tmp_path: Path, name: str, bad: Any) -> None:
    uri = write_texts(tmp_path, WORDS)
    with pytest.raises(InputError, match=f"{name} must be at least 1, got"):
        declare_texts(uri, **{name: bad})
    with pytest.raises(InputError, match=f"{name} must be at least 1, got"):
        DeclareColumnSpec(uri=uri, column="n", function=TEXTS, inputs=("s",), **{name: bad})


@pytest.mark.parametrize("name", ["batch_bytes", "batch_tokens"])
def test_sql_has_no_calls_to_bound(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="batch_bytes and batch_tokens are of functions, not of sql"):
        lance_core.declare_column(write_texts(tmp_path, WORDS), "n", sql="octet_length(s)", **{name: 5})


def test_a_job_keeps_bounds_and_declares_again_where_they_differ(tmp_path: Path) -> None:
    uri = write_texts(tmp_path, WORDS)
    plain: dict[str, Any] = {"uri": uri, "column": "n", "function": TEXTS, "inputs": ("s",), "data_type": "bigint"}
    for bounds, declared in (((100, 7), True), ((100, 7), False), ((100, 8), True)):
        done: Any = run_job(DeclareColumnSpec(**plain, batch_bytes=bounds[0], batch_tokens=bounds[1]))
        assert done.to_dict()["declared"] is declared


def test_answers_behind_a_call_that_failed_are_kept(tmp_path: Path) -> None:
    """Three calls at once: one fails. The others are paid for: the next refresh uses what they answered."""
    uri, given, answered = write_numbers(tmp_path), list[int](), threading.Barrier(3)

    def work(batch: pa.RecordBatch) -> Any:
        numbers = batch.column("x").to_pylist()
        given.extend(numbers)
        answered.wait(timeout=30)
        if 0 in numbers:
            raise OSError("the endpoint is gone")
        return [number * 2 for number in numbers]

    declare(uri)
    with pytest.raises(OSError, match="the endpoint is gone"):
        refresh_numbers(uri, work, concurrency=3)
    assert sorted(given) == [*range(10)]
    later = list[int]()

    def goes_on(batch: pa.RecordBatch) -> Any:
        later.extend(batch.column("x").to_pylist())
        return [number * 2 for number in batch.column("x").to_pylist()]

    report = refresh_numbers(uri, goes_on, concurrency=3)
    assert sorted(later) == [*range(4), *range(10, 20)]
    assert report.columns["y"].reused == 6
    assert lance_core.dataset(uri).to_table()["y"].to_pylist() == [number * 2 for number in range(20)]
