"""All six sensors in a DAG, poking and deferred: each first looks at a table that is not there yet, and sees it come."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from airflow.sdk import DAG, chain

from airflow_lance.execution import facts
from airflow_lance.sensors import base
from airflow_lance.sensors.health import LanceFragmentHealthSensor
from airflow_lance.sensors.index import LanceIndexCoverageSensor
from airflow_lance.sensors.rows import LanceRowsSensor
from airflow_lance.sensors.staged import LanceStagedSensor
from airflow_lance.sensors.tag import LanceTagSensor
from airflow_lance.sensors.version import LanceVersionSensor
from airflow_lance.triggers import condition as room
from lance_core.conditions import TableFacts
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.spec import AppendSpec, CommitSpec, SourceSpec

IDENTITY = "00000000-0000-4000-8000-000000000001"


class Outside:
    """Somebody else at work on the table: after a look that found a condition unmet, what it waits for happens."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self.seen: list[tuple[str, bool]] = []
        self.do: dict[str, Callable[[], object]] = {
            "version_at_least": lambda: lance.write_dataset(self._rows(0), uri),
            "rows_at_least": lambda: lance.write_dataset(self._rows(10), uri, mode="append"),
            "needs_maintenance": lambda: lance.write_dataset(self._rows(20), uri, mode="append"),
            "index_covers": lambda: lance.dataset(uri).create_scalar_index("id", "BTREE", name="id_idx"),
            "tag_reached": lambda: lance.dataset(uri).tags.create("good", 1),
            "nothing_staged": lambda: run_job(CommitSpec(uri=uri, identities=(IDENTITY,))),
        }

    def look(self, uri: str, *, condition: Any, **arguments: Any) -> TableFacts:
        if condition.kind == "nothing_staged" and not any(kind == condition.kind for kind, _ in self.seen):
            source = SourceSpec(callable=f"{__name__}:more")
            run_job(AppendSpec(uri=uri, identity=IDENTITY, source=source))
        found = facts.look(uri, condition=condition, **arguments)
        self.seen.append((condition.kind, condition.is_met(found)))
        if not self.seen[-1][1]:
            self.do[condition.kind]()
        return found

    @staticmethod
    def _rows(start: int) -> pa.Table:
        return pa.table({"id": list(range(start, start + 10))})


def more() -> pa.Table:
    return pa.table({"id": [100]})


@pytest.mark.slow
@pytest.mark.parametrize("deferrable", [False, True], ids=["poke", "deferred"])
def test_all_of_them(tmp_path: Path, run_dag: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, deferrable: bool) -> None:
    uri = str(tmp_path / "t.lance")
    outside = Outside(uri)
    for module in (base, room):
        monkeypatch.setattr(module, "look", outside.look)
    with DAG(f"sensors_{deferrable}", schedule=None, start_date=datetime(2013, 1, 1, tzinfo=timezone.utc)) as dag:
        wait: dict[str, Any] = {"uri": uri, "deferrable": deferrable, "poke_interval": 0.1, "timeout": 60}
        chain(
            LanceVersionSensor(task_id="version", min_version=1, **wait),
            LanceRowsSensor(task_id="rows", min_rows=20, **wait),
            LanceFragmentHealthSensor(task_id="health", max_small_fragments=2, **wait),
            LanceIndexCoverageSensor(task_id="index", index="id_idx", **wait),
            LanceTagSensor(task_id="tag", tag="good", **wait),
            LanceStagedSensor(task_id="staged", **wait),
        )
    run = run_dag(dag)
    assert run.state == "success"
    assert outside.seen == [(kind, met) for kind in outside.do for met in (False, True)]
    told = [run.get_task_instance("staged").xcom_pull(task_ids=name) for name in ("version", "rows", "staged")]
    assert [(item["version"], item["num_rows"]) for item in told] == [(1, 10), (2, 20), (5, 31)]
