"""What tasks return is bounded, however much there is to say: every operator that returns lists, with very long ones."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import lance_core
from airflow_lance.execution.results import bounded, in_short
from airflow_lance.operators.garbage import LanceGarbageOperator
from airflow_lance.operators.missing_partitions import LanceMissingPartitionsOperator
from airflow_lance.operators.query import LanceQueryOperator
from airflow_lance.operators.table_config import LanceTableConfigOperator
from lance_core.io.resolve import resolve_store
from lance_core.jobs.specs.definition import RESULT_BYTES
from lance_core.publish.stage import begin_attempt
from tests.airflow.operator_support import execute

MANY = 900


@pytest.fixture
def uri(tmp_path: Path) -> str:
    place = str(tmp_path / "t.lance")
    lance_core.write_dataset(pa.table({"id": range(3000), "text": ["x" * 60] * 3000, "day": ["2013-01-01"] * 3000}), place)
    return place


def size(result: object) -> int:
    return len(json.dumps(result).encode())


def test_attempts_that_died(uri: str) -> None:
    store = resolve_store(uri)
    for number in range(50):
        name = f"{number:08}-0000-4000-8000-000000000000"
        begin_attempt(store, identity=name, read_version=1, spec={"kind": "append"}, lease_seconds=0.0)
    result = execute(LanceGarbageOperator(task_id="gc", uri=uri))
    assert (len(result["attempts"]), size(result) <= RESULT_BYTES) == (50, True)
    line = in_short(result)
    assert "50 attempts" in line and len(line) < 300, "the log counts them"


def test_a_long_configuration(uri: str) -> None:
    values = {f"key-{number:05}": "v" * 50 for number in range(MANY)}
    result = execute(LanceTableConfigOperator(task_id="c", uri=uri, values=values))
    assert size(result) <= RESULT_BYTES
    assert len(result["config"]) + result["left_out"]["config"] == MANY
    assert len(lance_core.dataset(uri).config()) == MANY, "the table has all of it"


def test_missing_partitions(uri: str, caplog: pytest.LogCaptureFixture) -> None:
    span = {"start": "2013-01-01T00", "end": "2013-12-31T23", "step": "hour"}
    result = execute(LanceMissingPartitionsOperator(task_id="m", uri=uri, column="day", **span))
    assert (len(result), size(result) <= RESULT_BYTES) == (1000, True)
    shorter = LanceMissingPartitionsOperator(task_id="m", uri=uri, column="day", max_keys=3, **span)
    assert len(execute(shorter)) == 3


def test_rows_of_a_query(uri: str) -> None:
    result = execute(LanceQueryOperator(task_id="q", uri=uri, limit=1000))
    assert size(result["rows"]) <= RESULT_BYTES
    assert result["left_out"]["rows"] == 1000 - len(result["rows"])


def test_what_fits_is_left_as_it_is() -> None:
    whole = {"version": 3, "attempts": ["a"], "config": {"k": "v"}}
    assert bounded(whole) == whole
    long = {"version": 3, "names": tuple("ab" * 5), "text": "x" * 300}
    cut = bounded(long, most=100)
    assert cut == {"version": 3, "names": ["a", "b"] * 3, "text": "x" * 300, "left_out": {"names": 4}}
