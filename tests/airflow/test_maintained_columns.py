"""Columns that a task adds and keeps: declared and refreshed in one, and a fill of what is declared so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_core
from airflow_lance.compat import AirflowFailException
from airflow_lance.operators.add_columns import LanceAddColumnsOperator
from lance_core.errors import InputError
from tests.airflow.operator_support import execute

SHOUT, TWICE = "tests.airflow.test_maintained_columns:shout", "tests.airflow.test_maintained_columns:two_columns"
GIVEN: list[int] = []


def shout(batch: pa.RecordBatch, mark: str = "!") -> pa.RecordBatch:
    """A column of its own name; it notes how many rows it is given."""
    GIVEN.append(batch.num_rows)
    loud = [None if word is None else word.upper() + mark for word in batch["word"].to_pylist()]
    return pa.record_batch({"loud": pa.array(loud, pa.string())})


def two_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    """More than a declaration can say."""
    return pa.record_batch({"a": batch["word"], "b": batch["word"]})


@pytest.fixture
def uri(tmp_path: Path) -> str:
    place = str(tmp_path / "t.lance")
    lance_core.write_dataset(pa.table({"id": [1, 2, 3], "word": ["one", None, "three"]}), place)
    return place


def add(uri: str, *, run_id: str = "r", publishes: bool = False, **given: Any) -> dict[str, Any]:
    task = LanceAddColumnsOperator(task_id="add", uri=uri, execution="local", **given)
    return dict(execute(task, run_id=run_id, publishes=publishes))


def column(uri: str, name: str) -> list[Any]:
    return list(lance.dataset(uri).to_table(columns=["id", name]).sort_by("id")[name].to_pylist())


def test_sql_is_declared_once_and_kept_true(uri: str) -> None:
    first = add(uri, columns={"size": "length(word)", "next": "id + 1"}, maintained=True)
    assert (first["columns"]["size"]["new"], first["columns"]["next"]["new"]) == (3, 3)
    assert (column(uri, "size"), column(uri, "next")) == ([3, None, 5], [2, 3, 4])
    lance_core.write_dataset(pa.table({"id": [4], "word": ["four"]}), uri, mode="append")
    lance_core.dataset(uri).update({"word": "'seven'"}, where="id = 1")
    second = add(uri, run_id="r2", columns={"size": "length(word)", "next": "id + 1"}, maintained=True)
    counts = second["columns"]["size"]
    assert (counts["new"] + counts["changed"], counts["fresh"]) == (2, 2)
    assert column(uri, "size") == [5, None, 5, 4]
    before = lance_core.dataset(uri).version
    third = add(uri, run_id="r3", columns={"size": "length(word)", "next": "id + 1"}, maintained=True)
    assert (third["version"], lance_core.dataset(uri).version) == (before, before), "nothing to do makes no version"


def test_a_function_is_given_what_is_new_and_no_null_twice(uri: str) -> None:
    """A null that it answered is a value: `fill` of a column that is not declared would ask for it in each run."""
    GIVEN.clear()
    task = {"function": SHOUT, "reads": ["word"], "function_kwargs": {"mark": "?"}}
    add(uri, **task, maintained=True)
    assert column(uri, "loud") == ["ONE?", None, "THREE?"]
    lance_core.write_dataset(pa.table({"id": [4], "word": ["four"]}), uri, mode="append")
    GIVEN.clear()
    add(uri, run_id="r2", **task, if_exists="fill", publishes=True)
    assert column(uri, "loud") == ["ONE?", None, "THREE?", "FOUR?"]
    assert sum(GIVEN) == 1, "fill refreshes what is declared as it computes it"
    assert lance_core.refresh_columns(uri, functions=[SHOUT]).stale == 0


def test_the_same_identity_does_nothing_twice(uri: str) -> None:
    GIVEN.clear()
    for _ in range(2):
        result = add(uri, function=SHOUT, reads=["word"], maintained=True)
        assert result["columns"]["loud"]["new"] == 3
    assert sum(GIVEN) == 3


def test_another_definition_is_an_error_that_changes_nothing(uri: str) -> None:
    add(uri, columns={"size": "length(word)"}, maintained=True)
    before = lance_core.dataset(uri).version
    for number, wrong in enumerate(
        (
            {"columns": {"size": "length(word) + 1"}, "maintained": True},
            {"columns": {"size": "length(word) + 1"}, "if_exists": "fill"},
            {"columns": {"word": "'x'"}, "maintained": True},
            {"function": TWICE, "reads": ["word"], "maintained": True},
        )
    ):
        with pytest.raises(AirflowFailException, match=r"declared|a function of its own"):
            add(uri, run_id=f"w{number}", **wrong)
    assert lance_core.dataset(uri).version == before


@pytest.mark.parametrize(
    "wrong",
    [
        {"commit": "later"},
        {"gates": [{"kind": "min_rows", "value": 1}]},
        {"if_exists": "fill"},
        {"engine": "spark"},
        {"columns": None, "function": SHOUT},
    ],
)
def test_what_cannot_be_combined_is_refused(uri: str, wrong: dict[str, Any]) -> None:
    with pytest.raises((InputError, AirflowFailException)):
        add(uri, **{"columns": {"size": "length(word)"}, "maintained": True, **wrong})
    assert lance_core.dataset(uri).version == 1
