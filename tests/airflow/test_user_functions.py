"""A user's function that gives too few rows or a wrong column is named in the error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_lance.compat import AirflowFailException
from airflow_lance.decorators.lance import lance_task
from airflow_lance.operators.add_columns import LanceAddColumnsOperator
from tests.airflow.operator_support import execute, ids, make_table

HERE = "tests.airflow.test_user_functions"


def too_few(batch: pa.RecordBatch) -> pa.RecordBatch:
    """One row less than it was given."""
    return pa.RecordBatch.from_pydict({"twice": pa.array(batch["id"].to_pylist()[1:], pa.int64())})


def other_column(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Another name once there are rows."""
    return pa.RecordBatch.from_pydict({"twice" if batch.num_rows == 0 else "double": pa.array(batch["id"], pa.int64())})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("too_few", r"test_user_functions:too_few returned 9 rows for a batch of 10\. Return one row for each row"),
        ("other_column", r"test_user_functions:other_column returned the columns double, but twice were expected"),
    ],
)
def test_a_function_that_computes_columns(tmp_path: Path, name: str, message: str) -> None:
    uri = make_table(tmp_path / "t.lance", 0)
    operator = LanceAddColumnsOperator(task_id="t", uri=uri, function=f"{HERE}:{name}", reads=["id"], execution="local")
    with pytest.raises(AirflowFailException, match=message):
        execute(operator, publishes=True)
    assert ids(uri) == [*range(10)]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"id": [1]}, "column 'day' is in the table but not in the source"),
        ({"id": [1], "day": [1], "more": [1]}, "column 'more' is in the source but not in the table"),
        ({"id": ["x"], "day": [1]}, "id"),
        ({"id": [1], "day": [1, 2]}, "returned rows that Arrow cannot hold"),
    ],
    ids=["too few", "too many", "type", "lengths"],
)
def test_a_decorated_function(tmp_path: Path, rows: Any, message: str) -> None:
    def load() -> Any:
        return rows

    uri = make_table(tmp_path / "t.lance", 0)
    with pytest.raises(AirflowFailException, match="the function load of task load returned") as error:
        execute(lance_task(load, uri=uri)().operator, publishes=True)
    assert message in str(error.value)
    assert ids(uri) == [*range(10)]
