"""Maintenance by policy, on real tables: what is due, what it costs, what is done, and the evidence that remains."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_core
from lance_core.maintenance.evidence import (
    DONE,
    FAILED,
    Evidence,
    history,
    last_upkeep,
    measured,
    record,
    spent_today,
)
from lance_core.maintenance.observe import observe
from lance_core.maintenance.plan import plan_maintenance
from lance_core.maintenance.policy import Budget, ManagedTable, Policy, ServiceLevels, TableRule
from lance_core.maintenance.price import Cost, Measured, learn
from lance_core.maintenance.run import Maintainer


def table(path: Path, *, appends: int = 10, rows: int = 50) -> str:
    uri = str(path)
    for number in range(appends):
        data = pa.table({"id": range(number * rows, (number + 1) * rows), "text": ["x" * 20] * rows})
        lance_core.write_dataset(data, uri, mode="append" if number else "create")
    return uri


def policy(tmp_path: Path, **fields: Any) -> Policy:
    levels = ServiceLevels(min_fragments=8, target_rows_per_fragment=1000, max_versions=5, keep_versions=2, keep_seconds=0)
    return Policy(base_uri=str(tmp_path), **{"levels": levels, "budget": Budget(backoff_seconds=0), **fields})


def plan_for(chosen: Policy, *uris: str, now: float | None = None, **more: Any) -> Any:
    moment = time.time() + 5 if now is None else now
    return plan_maintenance(
        [observe(ManagedTable(uri=uri), chosen.levels, now=moment) for uri in uris], chosen, now=moment, **more
    )


def test_a_full_tier_and_old_versions_are_due_and_done(tmp_path: Path) -> None:
    uri = table(tmp_path / "t.lance")
    chosen = policy(tmp_path)
    plan = plan_for(chosen, uri)
    assert sorted(step.action for step in plan.steps) == ["cleanup", "compact"]
    rows = Maintainer(chosen, run="r1").carry_out(plan)
    assert {row.action: row.outcome for row in rows if row.outcome in (DONE, FAILED)} == {"compact": DONE, "cleanup": DONE}
    after = lance_core.dataset(uri)
    assert (after.count_rows(), len(after.get_fragments()), len(after.versions())) == (500, 1, 2)
    compacted = next(row for row in rows if row.action == "compact")
    assert (compacted.fragments_before, compacted.fragments_after) == (10, 1)
    assert compacted.bytes_read == compacted.bytes_before and compacted.bytes_written == compacted.bytes_after
    assert plan_for(chosen, uri).steps == ()


def test_a_failed_step_does_not_stop_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = table(tmp_path / "t.lance")
    chosen = policy(tmp_path)

    def broken(*_: object, **__: object) -> None:
        raise lance_core.errors.StoreError("no space left")

    monkeypatch.setattr("lance_core.jobs.plans.compact.rewrite_group", broken)
    rows = Maintainer(chosen).carry_out(plan_for(chosen, uri))
    outcome = {row.action: row for row in rows if row.outcome in (DONE, FAILED)}
    assert outcome["compact"].outcome == FAILED and "no space left" in str(outcome["compact"].error)
    assert outcome["cleanup"].outcome == DONE
    assert lance_core.dataset(uri).count_rows() == 500


def test_evidence_is_a_table_and_teaches_the_planner(tmp_path: Path) -> None:
    chosen = policy(tmp_path)
    uris = [table(tmp_path / f"t{number}.lance") for number in range(4)]
    rows = Maintainer(chosen, run="r").carry_out(plan_for(chosen, *uris))
    record(chosen.evidence_uri, rows)
    read = history(chosen.evidence_uri, since=time.time() - 600)
    assert {(row.uri, row.action, row.outcome) for row in read} == {(row.uri, row.action, row.outcome) for row in rows}
    assert set(last_upkeep(read)) == set(uris)
    spent = spent_today(read, max(row.at for row in read))
    assert spent.bytes_read == sum(row.bytes_read for row in read if row.outcome == DONE)
    rates = learn(measured(read))
    assert rates.per_second["compact"] != learn([]).per_second["compact"]
    assert history(chosen.evidence_uri, table=uris[0]) == [row for row in read if row.uri == uris[0]]
    assert lance_core.dataset(chosen.evidence_uri).count_rows(filter="outcome = 'done'") >= 8
    assert policy(tmp_path).for_table(ManagedTable(uri=chosen.evidence_uri)) is None


def test_the_budget_postpones_work_but_never_housekeeping(tmp_path: Path) -> None:
    uri = table(tmp_path / "t.lance")
    chosen = policy(tmp_path, budget=Budget(bytes_per_day=10, backoff_seconds=0))
    plan = plan_for(chosen, uri)
    assert [step.action for step in plan.steps] == ["cleanup"]
    assert ("compact", "today's budget of bytes is not sufficient") in [(item.action, item.reason) for item in plan.skipped]
    free = policy(tmp_path, budget=Budget(bytes_per_day=10**9, backoff_seconds=0))
    assert [step.action for step in plan_for(free, uri, spent=Cost(10**9)).steps] == ["cleanup"]


def test_the_foreground_goes_first(tmp_path: Path) -> None:
    uri = table(tmp_path / "t.lance")
    chosen = policy(tmp_path, budget=Budget(backoff_seconds=3600))
    plan = plan_for(chosen, uri)
    assert plan.steps == ()
    assert "another writer committed a moment ago" in {item.reason for item in plan.skipped}


def test_quiet_hours_start_nothing(tmp_path: Path) -> None:
    uri = table(tmp_path / "t.lance")
    now = time.time() + 5
    begin = int(now % 86400)
    chosen = policy(tmp_path, budget=Budget(quiet_hours=((begin - 60) % 86400, (begin + 60) % 86400), backoff_seconds=0))
    assert plan_for(chosen, uri, now=now).steps == ()


def test_indices_that_lag_are_extended(tmp_path: Path) -> None:
    uri = table(tmp_path / "t.lance", appends=2, rows=500)
    lance_core.dataset(uri).create_scalar_index("id", "BTREE")
    lance_core.write_dataset(pa.table({"id": range(1000, 2000), "text": ["y"] * 1000}), uri, mode="append")
    chosen = policy(tmp_path)
    plan = plan_for(chosen, uri)
    (step,) = [step for step in plan.steps if step.action == "optimize_indices"]
    assert "1,000 rows not indexed (50%)" in step.reason
    Maintainer(chosen).carry_out(plan)
    assert observe(ManagedTable(uri=uri), chosen.levels).unindexed_share == 0


def test_silence_is_an_alarm(tmp_path: Path) -> None:
    uri = table(tmp_path / "t.lance", appends=1)
    chosen = policy(tmp_path)
    now = time.time()
    plan = plan_for(chosen, uri, now=now, maintained_at={uri: now - 3 * 86400})
    assert [(item.uri, item.action) for item in plan.alarms] == [(uri, "deadline")]
    gone = plan_for(chosen, str(tmp_path / "nothing.lance"), now=now)
    assert gone.steps == () and "could not be observed" in gone.alarms[0].reason


def test_rules_override_one_another_in_order(tmp_path: Path) -> None:
    chosen = policy(
        tmp_path,
        tables=(
            TableRule(match="*"),
            TableRule(match="finance/*", levels={"max_deleted_share": 0.02}, steps=("compact",)),
            TableRule(namespace="scratch", paused=True),
            TableRule(conn_id="other", levels={"max_versions": 9}),
        ),
    )
    finance = chosen.for_table(ManagedTable(uri=f"{tmp_path}/finance/orders.lance"))
    assert finance is not None and (finance.levels.max_deleted_share, finance.steps) == (0.02, ("compact",))
    assert chosen.for_table(ManagedTable(uri=f"{tmp_path}/scratch/a.lance")).paused  # type: ignore[union-attr]
    other = chosen.for_table(ManagedTable(uri=f"{tmp_path}/x.lance", conn_id="other"))
    assert other is not None and other.levels.max_versions == 9
    assert Policy(base_uri="/b", tables=(TableRule(match="a/*"),)).for_table(ManagedTable(uri="/b/c")) is None


def test_rates_are_medians_and_defaults_until_known() -> None:
    assert learn([Measured("compact", 100e6, 3.0)] * 2).per_second == learn([]).per_second
    learnt = learn([Measured("compact", 100e6, 3.0, predicted_bytes=100, bytes=150)] * 3)
    assert learnt.per_second["compact"] == 100e6
    assert learnt.bytes_of("compact", 1000) == 1500


def test_evidence_appends_from_several_runs_at_once(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    uri = str(tmp_path / "_maintenance")
    row = Evidence(at=1.0, uri="/t", action="gc", outcome=DONE)
    record(uri, [row])
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: record(uri, [row]), range(8)))
    assert len(history(uri)) == 9
