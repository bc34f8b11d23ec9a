"""Partitions: events that say which keys they are about, and which keys of a range a table lacks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from airflow.sdk import DAG

from airflow_lance.assets import create_asset
from airflow_lance.execution.partitions import add_partitions, keys_of_range, plain_keys
from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.missing_partitions import LanceMissingPartitionsOperator
from airflow_lance.operators.replace_where import LanceReplaceWhereOperator
from airflow_lance.operators.transaction import LanceTransaction
from airflow_lance.sensors.partitions import LancePartitionsSensor
from lance_core.conditions import PartitionsPresent, condition_from_dict
from lance_core.errors import InputError

RunDag = Callable[..., Any]


@pytest.fixture
def january(tmp_path: Path) -> str:
    """Rows of the 1st, the 2nd (twice) and the 4th; null somewhere."""
    uri = str(tmp_path / "t.lance")
    days = [date(2013, 1, 1), date(2013, 1, 2), date(2013, 1, 2), date(2013, 1, 4), None]
    times = [None if day is None else datetime(day.year, day.month, day.day, 7, 30) for day in days]
    lance.write_dataset(
        pa.table({"day": days, "at": pa.array(times, pa.timestamp("us")), "name": ["a", "b", "b", "c", "d"]}), uri
    )
    return uri


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        ({"column": "day", "start": "2013-01-01", "end": "2013-01-05"}, ["2013-01-03", "2013-01-05"]),
        ({"column": "at", "start": "2013-01-01", "end": "2013-01-04"}, ["2013-01-03"]),
        (
            {"column": "at", "start": "2013-01-04T06", "end": "2013-01-04T08", "step": "hour"},
            ["2013-01-04T06", "2013-01-04T08"],
        ),
        ({"column": "day", "start": "2012-12", "end": "2013-02", "step": "month"}, ["2012-12", "2013-02"]),
        ({"column": "day", "start": "2013-01-01", "end": "2013-01-02", "min_rows": 2}, ["2013-01-01"]),
        ({"column": "day", "start": "2013-01-01", "end": "2013-01-03", "key_format": "%d"}, ["03"]),
        ({"column": "name", "keys": ["a", "z", "c"]}, ["z"]),
        ({"column": "name", "keys": "a, y,b,z"}, ["y", "z"]),
        ({"column": "day", "keys": ["2013-01-04", "2013-01-05"]}, ["2013-01-05"]),
    ],
)
def test_missing_partitions_of_a_range(january: str, arguments: dict[str, Any], missing: list[str]) -> None:
    context: Any = {}
    assert LanceMissingPartitionsOperator(task_id="missing", uri=january, **arguments).execute(context) == missing
    sensor = LancePartitionsSensor(task_id="wait", uri=january, **arguments)
    assert sensor.poke(context) is False
    condition = sensor.make_condition()
    assert condition_from_dict(condition.to_dict()) == condition
    assert sensor.make_trigger().condition["kind"] == "partitions_present"


def test_the_sensor_is_done_when_all_are_there(january: str) -> None:
    sensor = LancePartitionsSensor(task_id="wait", uri=january, column="name", keys=["a", "b", "c"])
    assert sensor.poke({}) is True  # type: ignore[typeddict-item]


def test_a_table_that_is_not_there_lacks_all(tmp_path: Path) -> None:
    operator = LanceMissingPartitionsOperator(task_id="m", uri=str(tmp_path / "no.lance"), column="day", keys=["1", "2"])
    assert operator.execute({}) == ["1", "2"]  # type: ignore[typeddict-item]


def test_arguments_are_checked_when_the_dag_is_parsed(tmp_path: Path) -> None:
    for arguments in ({}, {"keys": ["1"], "start": "2013-01-01", "end": "2013-01-02"}, {"start": "2013-01-01"}):
        with pytest.raises(InputError, match="either keys, or start and end"):
            LancePartitionsSensor(task_id="w", uri=str(tmp_path), column="day", **arguments)
    with pytest.raises(InputError, match="step must be one of"):
        LancePartitionsSensor(task_id="w", uri=str(tmp_path), column="day", start="1", end="2", step="week")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="start must be a date or a time"):
        keys_of_range("soon", "2013-01-01")
    with pytest.raises(InputError, match="before it starts"):
        keys_of_range("2013-01-02", "2013-01-01")


def test_explanations_name_a_few() -> None:
    from lance_core.conditions import TableFacts

    condition = PartitionsPresent(column="day", keys=tuple("abcdefgh"))
    facts = TableFacts(uri="/t", value_counts={"a": 1})
    assert condition.explain(facts) == "7 of 8 partitions of day are missing: b, c, d, e, f and 2 more"


def _events(dag_id: str) -> list[tuple[str | None, Any]]:
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session

    with create_session() as session:
        found = session.query(AssetEvent).filter_by(source_dag_id=dag_id).order_by(AssetEvent.id)
        return [(event.partition_key, event.extra.get("partitions")) for event in found]


def test_events_carry_the_keys_that_a_dag_names(january: str, run_dag: RunDag, tmp_path: Path) -> None:
    source = {"format": "parquet", "paths": [str(tmp_path / "new.parquet")]}
    pq.write_table(lance.dataset(january).to_table(limit=1), tmp_path / "new.parquet")
    shared: dict[str, Any] = {"uri": january, "source": source, "execution": "local"}
    with DAG("partition_keys", schedule=None, start_date=datetime(2013, 1, 1, tzinfo=timezone.utc)) as dag:
        replace = LanceReplaceWhereOperator(
            task_id="replace",
            predicate="day = date '2013-01-01'",
            partitions="{{ '2013-01-01' }}",
            outlets=[create_asset(uri=january)],
            **shared,
        )
        with LanceTransaction("both", outlets=[create_asset(uri=january)]) as both:
            for key in ("x", "y"):
                LanceAppendOperator(task_id=key, partitions=[key], **shared)
        plain = LanceAppendOperator(task_id="plain", outlets=[create_asset(uri=january)], **shared)
        replace >> both >> plain
    run = run_dag(dag)
    assert run.state == "success"
    replaced, *others, last = _events("partition_keys")
    assert replaced == ("2013-01-01", ["2013-01-01"])
    assert sorted(others) == [("x", ["x", "y"]), ("y", ["x", "y"])]
    assert last == (None, None), "who waits for the plain asset hears an event without a key"


def test_an_airflow_without_partitions_says_so(caplog: pytest.LogCaptureFixture) -> None:
    import logging

    add_partitions(object(), ["a"], log=logging.getLogger("test"))
    assert "cannot emit partition keys" in caplog.text
    assert plain_keys(None) == []
