"""What a task says about its work is what a person would count: in the XCom, the event, and the metrics alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_lance.execution import publish as module
from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.compact import LanceCompactOperator
from airflow_lance.operators.delete import LanceDeleteOperator
from airflow_lance.operators.merge import LanceMergeOperator
from airflow_lance.operators.overwrite import LanceOverwriteOperator
from airflow_lance.operators.replace_where import LanceReplaceWhereOperator
from airflow_lance.operators.update import LanceUpdateOperator
from tests.airflow.operator_support import execute, make_table

NAMES = ("rows_inserted", "rows_updated", "rows_deleted", "rows_rewritten", "rows")


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return make_table(tmp_path / "t.lance", 0, 10, 20)


def _source(tmp_path: Path, *numbers: int, day: int = 0) -> dict[str, Any]:
    path = tmp_path / f"rows-{numbers[0]}-{day}.parquet"
    pq.write_table(pa.table({"id": list(numbers), "day": [day] * len(numbers)}), path)
    return {"format": "parquet", "paths": [str(path)]}


def _numbers(operator: Any) -> tuple[int, ...]:
    result = execute(operator, publishes=True)
    assert result["rows_added"] == result["rows_inserted"]
    event = module.event_of(result)
    assert {name: event[name] for name in NAMES} == {name: result[name] for name in NAMES}
    return tuple(result[name] for name in NAMES)


def test_each_kind_of_work_counts_what_a_reader_sees(tmp_path: Path, uri: str) -> None:
    own: dict[str, Any] = {"uri": uri, "execution": "local"}
    rows = _source(tmp_path, 28, 29, 30)
    assert _numbers(LanceMergeOperator(task_id="m", source=rows, on="id", **own)) == (1, 2, 0, 0, 31)
    assert _numbers(LanceUpdateOperator(task_id="u", updates={"day": "9"}, where="id < 4", **own)) == (0, 4, 0, 0, 31)
    assert _numbers(LanceDeleteOperator(task_id="d", predicate="id in (5, 6)", **own)) == (0, 0, 2, 0, 29)
    day = _source(tmp_path, 50, 51, 52, 53, 54, day=9)
    replaced = _numbers(LanceReplaceWhereOperator(task_id="r", predicate="day = 9", source=day, **own))
    assert replaced == (5, 0, 4, 0, 30)
    assert _numbers(LanceAppendOperator(task_id="a", source=_source(tmp_path, 60, 61), **own)) == (2, 0, 0, 0, 32)
    compacted = execute(LanceCompactOperator(task_id="c", **own), publishes=True)
    assert [compacted[name] for name in NAMES] == [0, 0, 0, 32, 32]
    assert compacted["bytes_removed"] > 0
    overwritten = LanceOverwriteOperator(task_id="o", source=_source(tmp_path, 70, 71, 72), **own)
    assert _numbers(overwritten) == (3, 0, 32, 0, 3)
    assert _numbers(overwritten) == (0, 0, 0, 0, 3), "a retry changed nothing, and says so"


def test_metrics_say_the_same(tmp_path: Path, uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, int] = {}
    monkeypatch.setattr(module, "count", lambda name, value: seen.update({name: value}))
    result = execute(LanceDeleteOperator(task_id="d", uri=uri, execution="local", predicate="id < 3"), publishes=True)
    assert {name: seen[f"lance.commit.{name}"] for name in module.COUNTERS} == {n: result[n] for n in module.COUNTERS}
    assert (seen["lance.commit.rows_deleted"], seen["lance.commit.rows_inserted"]) == (3, 0)
