"""The canary of a refresh: the first rows are computed, gates look at them, and only then is anything published."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import lance_core
from lance_core.cli.main import cli
from lance_core.errors import GateFailedError, InputError
from lance_core.jobs.gates.measures import drift, norms
from lance_core.jobs.specs.definition import CheckSpec
from lance_core.jobs.specs.gates import GateSpec
from lance_core.jobs.specs.spec import CommitSpec

NAME = "our.models:work"
VECTOR = pa.list_(pa.float32(), 2)


class Work:
    """Answers each number by what it is told to; those in `bad` are refused."""

    def __init__(self, answer: Any = lambda number: float(number), bad: frozenset[int] = frozenset()) -> None:
        self.answer, self.bad = answer, bad
        self.given: list[int] = []

    def __call__(self, batch: pa.RecordBatch) -> list[Any]:
        numbers = batch.column("x").to_pylist()
        self.given += numbers
        if self.bad & {*numbers}:
            raise ValueError("no")
        return [self.answer(number) for number in numbers]


@pytest.fixture
def uri(tmp_path: Path) -> str:
    place = str(tmp_path / "t.lance")
    lance_core.write_dataset(pa.table({"x": range(60)}), place, max_rows_per_file=20)
    return place


def declare(uri: str, name: str = "y", **options: Any) -> None:
    given: dict[str, Any] = {"function": NAME, "inputs": ["x"], "type": pa.float64(), "batch_size": 8, **options}
    lance_core.declare_column(uri, name, **given)


def refresh(uri: str, work: Work, *gates: Any, **options: Any) -> Any:
    return lance_core.refresh_columns(uri, functions={NAME: work}, gates=gates, **options)


def column(uri: str, name: str = "y") -> list[Any]:
    return list(lance_core.dataset(uri).to_table().sort_by("x")[name].to_pylist())


def waiting(uri: str) -> int:
    return len([*Path(uri, "_lance_core", "columns").rglob("results/*.values")])


def refused(uri: str, work: Work, *gates: Any, **options: Any) -> str:
    """The words of the refusal; the table is as it was."""
    before, version = column(uri), lance_core.dataset(uri).version
    with pytest.raises(GateFailedError) as failure:
        refresh(uri, work, *gates, **options)
    assert (column(uri), lance_core.dataset(uri).version, failure.value.retryable) == (before, version, False)
    assert "Nothing was published" in str(failure.value)
    return str(failure.value)


def test_what_a_gate_refuses_is_not_published_and_not_computed_twice(uri: str) -> None:
    declare(uri)
    refresh(uri, Work())
    declare(uri, version="2")
    work = Work(lambda number: None if number < 10 else -1.0)
    told = refused(uri, work, {"name": "nulls", "max_null_rates": {"y": 0.1}}, canary=25)
    assert "t.lance: column 'y', canary of 25 rows: gate 'nulls': column 'y': 0.4 of the values are null" in told
    assert "expected at most 0.1" in told
    assert (work.given, waiting(uri)) == ([*range(25)], 4), "calls of 8 rows in the first fragment, of 4 and 5 rows at ends"
    report = refresh(uri, work, {"max_null_rates": {"y": 0.5}}, canary=25)
    assert (sorted(work.given), waiting(uri)) == ([*range(60)], 0)
    assert (report.canaries, report.columns["y"].reused, report.columns["y"].rows_given) == ({"y": 25}, 25, 35)
    assert column(uri) == [None] * 10 + [-1.0] * 50


def test_a_canary_of_a_function_that_is_not_deterministic_is_computed_again(uri: str) -> None:
    declare(uri, deterministic=False)
    work = Work(lambda number: -1.0)
    refused(uri, work, {"no_rows": "y < 0"}, canary=10)
    work.answer = lambda number: float(number)
    report = refresh(uri, work, {"no_rows": "y < 0"}, canary=10)
    assert (work.given, waiting(uri)) == ([*range(10), *range(10), *range(60)], 0)
    assert (report.canaries, report.columns["y"].reused) == ({"y": 10}, 0)
    assert column(uri) == [*range(60)]


def test_a_canary_of_values_that_are_kept_costs_no_call(uri: str) -> None:
    declare(uri, cache_bytes=1 << 20)
    work = Work()
    refresh(uri, work)
    lance_core.dataset(uri).delete("true")
    lance_core.write_dataset(pa.table({"x": range(60)}), uri, mode="append")
    work.given.clear()
    refused(uri, work, {"no_rows": "y > 5"}, canary=10)
    report = refresh(uri, work, {"no_rows": "y < 0"}, canary=10)
    assert (work.given, report.canaries, column(uri)) == ([], {"y": 10}, [*range(60)])


def test_a_canary_that_passes_costs_no_call(uri: str) -> None:
    declare(uri)
    work = Work()
    report = refresh(uri, work, {"max_null_rates": {"y": 0.0}}, canary=30, concurrency=3)
    assert (sorted(work.given), column(uri)) == ([*range(60)], [float(number) for number in range(60)])
    assert (report.columns["y"].rows_given, report.columns["y"].new, report.num_versions) == (60, 60, 1)
    assert refresh(uri, work, {"max_null_rates": {"y": 0.0}}).stale == 0
    assert len(work.given) == 60


@pytest.mark.parametrize(
    ("answer", "bound", "told"),
    [
        (lambda number: float(number), 0.0, ""),
        (lambda number: float(59 - number), 0.0, ""),
        (lambda number: float(number + 30), 0.4, "its drift from the former values of 60 rows is 0.5, expected at most 0.4"),
        (lambda number: float(number + 30), 0.5, ""),
        (lambda number: math.nan, 0.9, "is 1, expected at most 0.9"),
    ],
)
def test_another_definition_is_compared_with_the_former_values(uri: str, answer: Any, bound: float, told: str) -> None:
    declare(uri)
    gate = {"name": "drift", "max_drift": {"y": bound}}
    refresh(uri, Work(), gate)  # nothing to compare with
    declare(uri, version="2")
    if told:
        assert told in refused(uri, Work(answer), gate)
    else:
        assert refresh(uri, Work(answer), gate).columns["y"].changed == 60


def test_lengths_of_vectors(uri: str) -> None:
    declare(uri, type=VECTOR)
    gate = {"name": "length", "norms": {"y": [0.9, 1.1]}}
    told = refused(uri, Work(lambda number: [3.0, 4.0] if number == 5 else [0.6, 0.8]), gate)
    assert "column 'y': 1 of 60 vectors have another length, for example 5, expected 0.9 to 1.1" in told
    declare(uri, type=VECTOR, version="2")
    assert "for example nan" in refused(uri, Work(lambda _: [math.nan, 0.0]), gate, canary=1)
    declare(uri, type=VECTOR, version="3")
    refresh(uri, Work(lambda number: None if number == 5 else [0.6, 0.8]), gate)
    assert column(uri).count(None) == 1


def test_rows_that_fail_are_null_in_the_canary_and_tried_again_behind_it(uri: str) -> None:
    declare(uri, on_error="skip", batch_size=4)
    work = Work(bad=frozenset({1, 2, 3}))
    assert "0.3 of the values are null" in refused(uri, work, {"max_null_rates": {"y": 0.2}}, canary=10)
    assert lance_core.failed_rows(uri, "y").total == 0, "they are noted with the values"
    report = refresh(uri, Work(), {"max_null_rates": {"y": 0.0}}, canary=10)
    assert (report.columns["y"].reused, report.columns["y"].failed_now, report.columns["y"].rows_given) == (10, 0, 53)
    assert column(uri) == [float(number) for number in range(60)]


def grows(reader: pa.RecordBatchReader) -> str:
    """Why a canary is refused: it sees inputs, new values and former ones."""
    rows = reader.read_all()
    assert rows.column_names == ["x", "y", "y_before"]
    worse = [row for row in rows.to_pylist() if row["y_before"] is not None and row["y"] < row["y_before"]]
    return f"{len(worse)} are smaller" if worse else ""


def test_gates_by_filter_and_by_function_see_inputs_and_former_values(uri: str) -> None:
    declare(uri)
    by_function = {"callable": "tests.computed.test_canary:grows"}
    refresh(uri, Work(), by_function, {"no_rows": "y <> x"})
    declare(uri, version="2")
    assert "20 are smaller" in refused(uri, Work(lambda number: number - 1.0), by_function, canary_fragments=1)
    assert "by y < y_before" in refused(uri, Work(lambda number: number - 1.0), {"no_rows": "y < y_before"}, canary=5)


def test_each_column_has_its_own_canary_and_sql_has_one(uri: str) -> None:
    declare(uri)
    lance_core.declare_column(uri, "twice", sql="y * 2")
    gates = ({"max_null_rates": {"y": 0.0, "twice": 0.0}}, {"no_rows": "y < 0"})
    report = refresh(uri, Work(), *gates, canary=7)
    assert report.canaries == {"y": 7, "twice": 7}
    lance_core.declare_column(uri, "half", sql="CASE WHEN x < 3 THEN NULL ELSE x / 2.0 END")
    with pytest.raises(GateFailedError, match="column 'half', canary of 6 rows"):
        refresh(uri, Work(), {"max_null_rates": {"half": 0.1}}, columns=["half"], canary=6)
    assert column(uri, "half") == [None] * 60


def test_a_budget_that_the_canary_uses_up_ends_the_refresh_and_the_next_one_goes_on(uri: str) -> None:
    declare(uri)
    work = Work()
    gate = {"max_null_rates": {"y": 0.0}}
    report = refresh(uri, work, gate, canary=30, max_rows=10)
    assert (report.stopped, len(work.given), column(uri).count(None)) == ("rows", 10, 60)
    while refresh(uri, work, gate, canary=30, max_rows=10).stopped:
        assert len(work.given) <= 60
    assert (sorted(work.given), column(uri)) == ([*range(60)], [float(number) for number in range(60)])


@pytest.mark.parametrize(
    ("options", "gates", "told"),
    [
        ({"canary": 5}, (), "needs gates"),
        ({"canary": 0}, ({"min_rows": 1},), "between 1 and 50,000"),
        ({"canary": 5, "canary_fragments": 1}, ({"min_rows": 1},), "cannot be combined"),
        ({"canary_fragments": 0}, ({"min_rows": 1},), "at least 1"),
        ({}, ({"norms": {"x": [0, 1]}},), "asks something of 'x', which is not refreshed"),
        ({}, ({"norms": {"y": [1, 0]}},), "the least and the greatest"),
        ({}, ({"max_drift": {"y": 2}},), "between 0 and 1"),
        ({}, ({"max_drifts": {}},), "did you mean 'max_drift'"),
        ({}, ({"norms": {"y": [0, 1]}},), "is no vector"),
    ],
)
def test_what_cannot_be_is_refused(uri: str, options: Any, gates: Any, told: str) -> None:
    declare(uri)
    with pytest.raises(InputError, match=told):
        refresh(uri, Work(), *gates, **options)
    assert column(uri) == [None] * 60


def test_where_nothing_was_before_nothing_can_be_compared() -> None:
    gates = (GateSpec(max_drift={"y": 0.1}),)
    for kind in (CommitSpec, CheckSpec):
        with pytest.raises(InputError, match="max_drift compares with the values that a refresh takes the place of"):
            kind(uri="/t.lance", gates=gates)


def test_measures_agree_with_their_definitions() -> None:
    rng = np.random.default_rng(7)
    for _ in range(20):
        first, second = rng.integers(0, 9, rng.integers(1, 30)), rng.integers(0, 9, rng.integers(1, 30))
        by_place = [abs(float((first <= at).mean()) - float((second <= at).mean())) for at in range(9)]
        assert drift(pa.array(first), pa.array(second)) == pytest.approx(max(by_place))
        by_value = [abs(float((first == at).mean()) - float((second == at).mean())) for at in range(9)]
        words = [pa.array([str(value) for value in found]) for found in (first, second)]
        assert drift(*words) == pytest.approx(sum(by_value) / 2)
        assert drift(words[0].dictionary_encode(), words[1].dictionary_encode()) == pytest.approx(sum(by_value) / 2)
    for kind in (VECTOR, pa.list_(pa.float16()), pa.large_list(pa.int8())):
        assert norms(pa.array([[3, 4], None, [0, 0]], kind)).tolist() == [5.0, 0.0]
    assert drift(pa.array([[3, 4]] * 4, VECTOR), pa.array([[4, 3]] * 4, VECTOR)) == 0.0
    assert drift(pa.array([0, 1], pa.date32()), pa.array([0, 1], pa.date32())) == 0.0
    assert drift(pa.array([True, True]), pa.array([True, False])) == 0.5
    with pytest.raises(InputError, match="cannot be compared"):
        drift(pa.array([{"a": 1}]), pa.array([{"a": 1}]))


def test_a_shell_asks_for_it_too(uri: str) -> None:
    lance_core.declare_column(uri, "y", sql="x + 1")
    gate = '{"no_rows": "y > 5"}'
    refused_one = CliRunner().invoke(cli, ["refresh", uri, "--canary", "9", "--gate", gate])
    assert refused_one.exit_code != 0
    assert "column 'y', canary of 9 rows" in str(refused_one.exception)
    assert CliRunner().invoke(cli, ["refresh", uri, "--gate", "{"]).exit_code == 2
    assert CliRunner().invoke(cli, ["refresh", uri, "--canary", "5", "--gate", gate]).exit_code == 0
    assert column(uri) == [number + 1 for number in range(60)]
