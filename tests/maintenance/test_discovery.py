"""Which tables a policy is about (base uri, connections and assets that rules name), and what cannot be seen."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

import lance_core
from lance_core.errors import StoreError
from lance_core.maintenance.api import carry_out, note_skipped, plan_now
from lance_core.maintenance.evidence import Evidence, history, levels_kept, maintained_at
from lance_core.maintenance.find import tables_of
from lance_core.maintenance.policy import Budget, Policy, ServiceLevels, TableRule


def _table(path: Path, appends: int = 1) -> str:
    for _ in range(appends):
        lance_core.write_dataset(pa.table({"id": range(10)}), str(path), mode="append")
    return str(path)


def _options(conn_id: str | None) -> Mapping[str, str]:
    return {}


def test_rules_reach_connections_and_assets(tmp_path: Path) -> None:
    own, other, asset = (
        _table(tmp_path / "lake" / "a.lance"),
        _table(tmp_path / "other" / "b.lance"),
        _table(tmp_path / "far" / "c.lance"),
    )
    _table(tmp_path / "far" / "not_named.lance")
    policy = Policy(
        base_uri=str(tmp_path / "lake"),
        tables=(TableRule(match="*"), TableRule(conn_id="warehouse"), TableRule(asset=asset)),
    )
    found = tables_of(policy, options_of=_options, base_of={"warehouse": str(tmp_path / "other")}.__getitem__)
    assert [(table.uri, table.conn_id) for table in found.tables] == [(own, None), (other, "warehouse"), (asset, None)]
    plan = plan_now(
        policy, options_of=_options, base_of={"warehouse": str(tmp_path / "other")}.__getitem__, conn_id="lance_default"
    )
    assert {item.uri for item in plan.skipped} | {step.uri for step in plan.steps} == {own, other, asset}
    assert plan.alarms == ()


def test_the_connection_of_the_policys_folder_matches_rules(tmp_path: Path) -> None:
    uri = _table(tmp_path / "a.lance", appends=3)
    rule = TableRule(conn_id="lance_default", levels={"min_fragments": 1, "max_fragments_per_gb": 1.0, "tier_fanout": 2})
    policy = Policy(base_uri=str(tmp_path), tables=(rule,), budget=Budget(backoff_seconds=0))
    plan = plan_now(policy, options_of=_options, conn_id="lance_default")
    assert [(step.uri, step.action, step.conn_id) for step in plan.steps] == [(uri, "compact", "lance_default")]


def test_a_named_table_that_is_missing_is_an_alarm(tmp_path: Path) -> None:
    _table(tmp_path / "a.lance")
    gone = str(tmp_path / "gone.lance")
    plan = plan_now(Policy(base_uri=str(tmp_path), tables=(TableRule(asset=gone),)), options_of=_options)
    assert [(item.uri, item.action) for item in plan.alarms] == [(gone, "observe")]


def test_a_connection_that_cannot_be_listed_is_an_alarm_and_stops_nothing(tmp_path: Path) -> None:
    own = _table(tmp_path / "a.lance")

    def base_of(conn_id: str) -> str:
        raise StoreError(f"no connection {conn_id}")

    policy = Policy(base_uri=str(tmp_path), tables=(TableRule(match="*"), TableRule(conn_id="warehouse")))
    plan = plan_now(policy, options_of=_options, base_of=base_of)
    assert {item.uri for item in plan.skipped} == {own}
    assert [(item.uri, "no connection warehouse" in item.reason) for item in plan.alarms] == [("warehouse", True)]


def test_a_table_with_nothing_due_counts_as_maintained_at(tmp_path: Path) -> None:
    """A quiet, healthy table is no alarm; one whose steps are only ever postponed is."""
    healthy, crowded = _table(tmp_path / "healthy.lance"), _table(tmp_path / "crowded.lance", appends=4)
    levels = ServiceLevels(min_fragments=1, max_fragments_per_gb=1.0, tier_fanout=2, max_seconds_since_upkeep=86400.0)
    policy = Policy(base_uri=str(tmp_path), levels=levels, budget=Budget(bytes_per_day=1, backoff_seconds=0))
    plan = plan_now(policy, options_of=_options)
    note_skipped(policy, plan.skipped)
    rows = history(policy.evidence_uri)
    assert {row.outcome for row in rows if row.uri == healthy} == {"nothing"}
    (first,) = {row.at for row in rows}
    late = [
        *rows,
        *(Evidence(at=first + 2 * 86400, uri=row.uri, action=row.action, outcome=row.outcome) for row in rows),
    ]
    since = maintained_at(late)
    assert since == {healthy: first + 2 * 86400, crowded: first}
    later = plan_now(policy, options_of=_options, now=first + 2 * 86400)
    assert (crowded, "deadline") in {(item.uri, item.action) for item in later.alarms}


def test_failures_and_looks_that_failed_do_not_count() -> None:
    rows = [
        Evidence(at=1, uri="t", action="compact", outcome="done"),
        Evidence(at=2, uri="t", action="compact", outcome="failed"),
        Evidence(at=3, uri="u", action="all", outcome="skipped"),
        Evidence(at=4, uri="u", action="all", outcome="skipped"),
        Evidence(at=5, uri="v", action="all", outcome="skipped"),
        Evidence(at=6, uri="v", action="compact", outcome="nothing"),
        Evidence(at=7, uri="w", action="compact", outcome="skipped"),
        Evidence(at=8, uri="w", action="all", outcome="nothing"),
    ]
    assert maintained_at(rows) == {"t": 1, "u": 3, "v": 6, "w": 8}


def test_levels_are_kept_when_a_look_leaves_nothing_due() -> None:
    rows = [
        Evidence(at=1, uri="t", run="r1", action="compact", outcome="done"),
        Evidence(at=1, uri="t", run="r1", action="gc", outcome="nothing"),
        Evidence(at=1, uri="u", run="r1", action="compact", outcome="skipped"),
        Evidence(at=2, uri="u", run="r2", action="compact", outcome="failed"),
        Evidence(at=2, uri="u", run="r2", action="gc", outcome="nothing"),
        Evidence(at=3, uri="u", run="r3", action="compact", outcome="nothing"),
    ]
    assert levels_kept(rows) == 0.5
    assert levels_kept([]) is None


def test_dead_bytes_make_a_cleanup_due(tmp_path: Path) -> None:
    uri = _table(tmp_path / "a.lance")
    lance_core.dataset(uri).delete("id >= 0")
    for _ in range(3):
        lance_core.write_dataset(pa.table({"id": range(10)}), uri, mode="overwrite")
    kept = ServiceLevels(keep_versions=1, keep_seconds=0)
    without = plan_now(Policy(base_uri=str(tmp_path), levels=kept, budget=Budget(backoff_seconds=0)), now=time.time() + 9)
    assert [step.action for step in without.steps] == []
    levels = ServiceLevels(keep_versions=1, keep_seconds=0, max_dead_bytes=1000)
    policy = Policy(base_uri=str(tmp_path), levels=levels, budget=Budget(backoff_seconds=0))
    plan = plan_now(policy, now=time.time() + 9)
    (step,) = plan.steps
    dead = sum(path.stat().st_size for path in (Path(uri) / "data").iterdir())
    live = sum(
        file.file_size_bytes or 0 for item in lance_core.dataset(uri).snapshot.manifest.fragments for file in item.files
    )
    assert step.action == "cleanup" and f"{dead - live:,} bytes are not in the newest version" in step.reason
    carry_out(policy, plan.steps)
    assert plan_now(policy, now=time.time() + 9).steps == ()
