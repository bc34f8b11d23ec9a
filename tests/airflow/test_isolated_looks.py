"""A trigger counts rows in a process of its own: what ends that process ends neither the triggerer nor other triggers."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_core
from airflow_lance.triggers.condition import LanceConditionTrigger
from lance_core.conditions import PartitionsPresent, RowsAtLeast, VersionAtLeast
from lance_core.maintenance.isolated import shared_checks
from tests.maintenance.library_abort import abort_in

pytestmark = pytest.mark.airflow


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("AIRFLOW_CONN_LANCE_DEFAULT", "lance://")
    uri = str(tmp_path / "t.lance")
    lance_core.write_dataset(pa.table({"id": range(10), "day": ["a"] * 10}), uri)
    yield uri
    shared_checks().close()


def _trigger(uri: str, condition: Any) -> LanceConditionTrigger:
    plain = condition.to_dict()
    return LanceConditionTrigger(uri=uri, condition=plain, lance_conn_id="lance_default", poke_interval=0.01)


async def _event(trigger: LanceConditionTrigger) -> Any:
    async for event in trigger.run():
        return event.payload
    return None


def test_rows_are_counted_elsewhere_and_manifests_read_here(table: str) -> None:
    facts = asyncio.run(_event(_trigger(table, VersionAtLeast(version=1))))["facts"]
    assert (facts["version"], shared_checks().pids()) == (1, {})
    facts = asyncio.run(_event(_trigger(table, RowsAtLeast(rows=3, predicate="id < 5"))))["facts"]
    assert (facts["matching_rows"], list(shared_checks().pids())) == ({"id < 5": 5}, [table])
    facts = asyncio.run(_event(_trigger(table, PartitionsPresent(column="day", keys=("a",)))))["facts"]
    assert facts["value_counts"] == {"a": 10}


def test_an_abort_fails_its_trigger_alone(table: str) -> None:
    async def everything() -> list[Any]:
        first = await _event(_trigger(table, RowsAtLeast(rows=3, predicate="id < 5")))
        (pid,) = shared_checks().pids().values()
        os.kill(pid, signal.SIGSTOP)
        asked = asyncio.create_task(_event(_trigger(table, RowsAtLeast(rows=3, predicate="id < 6"))))
        while shared_checks().pids():
            await asyncio.sleep(0.001)
        abort_in(pid)
        others = await asyncio.gather(asked, _event(_trigger(table, VersionAtLeast(version=1))))
        return [first, *others]

    first, aborted, other = asyncio.run(everything())
    assert first["facts"]["num_rows"] == 10
    assert aborted["error"].startswith(f"CheckEndedError: the check (facts) of {table} ended with SIGABRT")
    assert other["facts"]["version"] == 1
