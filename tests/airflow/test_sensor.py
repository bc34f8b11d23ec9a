"""The version sensor: poking, deferring, and the trigger, all over one condition."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSensorTimeout, TaskDeferred

from airflow_lance.sensors.health import LanceFragmentHealthSensor
from airflow_lance.sensors.index import LanceIndexCoverageSensor
from airflow_lance.sensors.rows import LanceRowsSensor
from airflow_lance.sensors.staged import LanceStagedSensor
from airflow_lance.sensors.tag import LanceTagSensor
from airflow_lance.sensors.version import LanceVersionSensor
from airflow_lance.triggers.condition import LanceConditionTrigger
from lance_core import conditions as watch
from lance_core.conditions import TableFacts, VersionAtLeast, VersionChangedSince
from lance_core.errors import CorruptFileError, InputError, LanceError, StoreError

URI = "/data/t.lance"
Looks = Callable[..., None]


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    """`looks(0, 3, StoreError("x"))`: what one look after the other sees, the last one for ever; 0 is no table yet."""

    def see(*versions: int | LanceError) -> None:
        left: Iterator[int | LanceError] = iter(versions)
        last: list[int | LanceError] = [0]

        def look(uri: str, **_: Any) -> TableFacts:
            last[0] = next(left, last[0])
            if isinstance(last[0], LanceError):
                raise last[0]
            return TableFacts(uri=uri, exists=last[0] > 0, version=last[0])

        monkeypatch.setattr("airflow_lance.sensors.base.look", look)
        monkeypatch.setattr("airflow_lance.triggers.condition.look", look)

    return see


def _sensor(**arguments: Any) -> LanceVersionSensor:
    return LanceVersionSensor(task_id="wait", uri=URI, poke_interval=0.01, timeout=5, **arguments)


def _events(trigger: LanceConditionTrigger) -> list[Any]:
    async def collect() -> list[Any]:
        return [event.payload async for event in trigger.run()]

    return asyncio.run(collect())


def test_poking_waits_for_the_version(looks: Looks) -> None:
    looks(0, 1, 3)
    facts = _sensor(min_version=3).execute({})  # type: ignore[typeddict-item]
    assert facts is not None
    assert facts["version"] == 3


def test_without_a_version_it_waits_for_the_table(looks: Looks) -> None:
    looks(0, 0, 1)
    facts = _sensor().execute({})  # type: ignore[typeddict-item]
    assert facts is not None
    assert facts["version"] == 1


def test_it_times_out(looks: Looks) -> None:
    looks(1)
    sensor = LanceVersionSensor(task_id="wait", uri=URI, min_version=2, poke_interval=0.01, timeout=0.05)
    with pytest.raises(AirflowSensorTimeout):
        sensor.execute({})  # type: ignore[typeddict-item]


def test_deferring_hands_the_same_condition_to_the_triggerer(looks: Looks) -> None:
    looks(1, 1, 2)
    sensor = _sensor(min_version="2", deferrable=True)
    with pytest.raises(TaskDeferred) as deferred:
        sensor.execute({})  # type: ignore[typeddict-item]
    trigger = deferred.value.trigger
    assert isinstance(trigger, LanceConditionTrigger)
    path, kwargs = trigger.serialize()
    module, _, name = path.rpartition(".")
    again = getattr(importlib.import_module(module), name)(**kwargs)
    assert again.serialize() == (path, kwargs)
    (event,) = _events(again)
    assert sensor.execute_complete({}, event)["version"] == 2  # type: ignore[typeddict-item]


def test_a_condition_that_is_met_defers_nothing(looks: Looks) -> None:
    looks(5)
    facts = _sensor(min_version=2, deferrable=True).execute({})  # type: ignore[typeddict-item]
    assert facts is not None
    assert facts["version"] == 5


def _waits_for(version: int, **kwargs: Any) -> LanceConditionTrigger:
    condition = watch.VersionAtLeast(version=version).to_dict()
    return LanceConditionTrigger(uri=URI, condition=condition, lance_conn_id="lance_default", **kwargs)


def test_the_triggerer_outlives_a_store_that_fails_for_a_while(looks: Looks) -> None:
    looks(StoreError("throttled"), 1, 4)
    trigger = _waits_for(4, poke_interval=0.01)
    (event,) = _events(trigger)
    assert event["facts"]["version"] == 4


def test_what_waiting_does_not_mend_fails_the_task(looks: Looks) -> None:
    looks(CorruptFileError("the manifest is damaged"))
    (event,) = _events(_waits_for(1))
    with pytest.raises(AirflowFailException, match="manifest is damaged"):
        _sensor(deferrable=True).execute_complete({}, event)  # type: ignore[typeddict-item]
    with pytest.raises(AirflowFailException, match="manifest is damaged"):
        _sensor().execute({})  # type: ignore[typeddict-item]


@pytest.mark.parametrize(
    ("sensor", "arguments", "condition"),
    [
        (LanceRowsSensor, {"min_rows": "7", "filter": "id > 3"}, watch.RowsAtLeast(rows=7, predicate="id > 3")),
        (LanceFragmentHealthSensor, {"max_fragments": 9}, watch.NeedsMaintenance(max_fragments=9)),
        (LanceIndexCoverageSensor, {"index": "i", "min_ratio": 0.5}, watch.IndexCovers(index="i", ratio=0.5)),
        (LanceStagedSensor, {}, watch.StagedAtMost(at_most=0)),
        (LanceTagSensor, {"tag": "t", "min_version": "2"}, watch.TagReached(tag="t", version=2)),
    ],
)
def test_every_sensor_is_a_condition(sensor: Any, arguments: dict[str, Any], condition: watch.Condition) -> None:
    made = sensor(task_id="wait", uri=URI, **arguments)
    assert made.make_condition() == condition
    assert made.make_trigger().condition == condition.to_dict()
    assert all(hasattr(made, field) for field in made.template_fields)


def test_sensors_on_a_real_table(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    waiting = LanceRowsSensor(task_id="wait", uri=uri, min_rows=2, filter="id > 3")
    assert waiting.poke({}) is False  # type: ignore[typeddict-item]
    lance.write_dataset(pa.table({"id": list(range(10))}), uri, max_rows_per_file=2)
    lance.dataset(uri).tags.create("good", 1)
    lance.dataset(uri).delete("id = 9")
    for sensor in (
        waiting,
        LanceRowsSensor(task_id="rows", uri=uri, min_rows=9),
        LanceFragmentHealthSensor(task_id="health", uri=uri, max_small_fragments=3),
        LanceStagedSensor(task_id="staged", uri=uri),
        LanceTagSensor(task_id="tag", uri=uri, tag="good", min_version=1),
        LanceVersionSensor(task_id="version", uri=uri, changed_since=1),
    ):
        assert sensor.poke({}) is True, sensor.task_id  # type: ignore[typeddict-item]
    for sensor in (
        LanceRowsSensor(task_id="rows", uri=uri, min_rows=10),
        LanceFragmentHealthSensor(task_id="health", uri=uri, max_deleted_ratio=0.5),
        LanceTagSensor(task_id="tag", uri=uri, tag="good", min_version=2),
        LanceIndexCoverageSensor(task_id="index", uri=uri, index="none"),
    ):
        assert sensor.poke({}) is False, sensor.task_id  # type: ignore[typeddict-item]


def test_a_health_sensor_needs_a_bound() -> None:
    with pytest.raises(InputError, match="max_fragments"):
        LanceFragmentHealthSensor(task_id="h", uri=URI)


def test_arguments() -> None:
    assert _sensor(min_version="12").make_condition() == VersionAtLeast(version=12)
    assert _sensor(changed_since=7).make_condition() == VersionChangedSince(version=7)
    with pytest.raises(InputError, match="cannot be combined"):
        _sensor(min_version=1, changed_since=1)
    with pytest.raises(InputError, match="expected an integer"):
        _sensor(min_version="latest").make_condition()
