"""The list of tables as plain data: a row for each, and their totals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from airflow_lance.ui.service import HISTORY_DAYS, FoundSource, Looked, Managed

if TYPE_CHECKING:
    from lance_core.maintenance.plan import MaintenancePlan
    from lance_core.maintenance.policy import Policy

Json = dict[str, object]
_ATTENTION_BELOW = 80
_NUMBERS = (
    "version", "num_versions", "num_rows", "num_deleted_rows", "num_bytes", "manifest_bytes", "num_fragments",
    "num_small_fragments", "unindexed_rows", "unindexed_share", "num_indices", "num_staged", "num_dead_attempts",
    "dead_bytes", "written_at", "writes",
)  # fmt: skip


def tables_answer(
    sources: Sequence[FoundSource],
    looked: Sequence[Looked],
    managed: Managed | None,
    plan: MaintenancePlan | None,
    now: float,
) -> Json:
    """Return the list, worst first, with its summary."""
    from lance_core.maintenance.evidence import last_upkeep

    upkeep = {} if managed is None else last_upkeep(managed.rows)
    steps = {} if plan is None else {step.uri: step for step in reversed(plan.steps)}
    rows = []
    for item in looked:
        step = steps.get(item.ref.uri)
        due = None if step is None else {"action": step.action, "reason": step.reason, "gb_hours": step.cost.gb_hours}
        row = table_row(item, None if managed is None else managed.policy)
        rows.append({**row, "upkeep_at": upkeep.get(item.ref.uri), "next": due})
    rows.sort(key=_worst_first)
    pending = sum(row["state"] == "pending" for row in rows)
    return {
        "made_at": now,
        "pending": pending,
        "retry_after": 1.5 if pending else None,
        "summary": {**_summary(rows), **(_budget(managed, now) if managed is not None else _NO_BUDGET)},
        "sources": [
            {
                "conn_id": found.conn_id,
                "base_uri": None if found.source is None else found.source.base_uri,
                "tables": len(found.tables),
                "error": None if found.error is None else found.error.to_dict(),
            }
            for found in sources
        ],
        "tables": rows,
    }


def table_row(item: Looked, policy: Policy | None) -> Json:
    """Return one table's row; numbers are null where nothing is known."""
    from lance_core.maintenance.facts.writers import shown
    from lance_core.maintenance.freshness import lateness
    from lance_core.maintenance.health import health_of
    from lance_core.maintenance.policy import ManagedTable, ServiceLevels

    rule = None if policy is None else policy.for_table(ManagedTable(uri=item.ref.uri, conn_id=item.ref.conn_id))
    row: Json = {
        "id": item.ref.id,
        "name": item.ref.name,
        "uri": item.ref.uri,
        "conn_id": item.ref.conn_id,
        "state": "error" if item.error is not None else "pending" if item.seen is None else "ok",
        "error": item.error,
        "health": None,
        "description": None,
        "owner": None,
        "fresh_within": None,
        "freshness": None,
        "late": None,
        "columns": None,
        **dict.fromkeys(_NUMBERS),
        "upkeep_at": None,
        "next": None,
        "in_policy": rule is not None,
        "paused": rule is not None and rule.paused,
    }
    seen = item.seen
    if seen is None:
        return row
    said, fresh = seen.description, seen.freshness
    health = health_of(seen, ServiceLevels() if rule is None else rule.levels)
    return {
        **row,
        "health": {
            "score": health.score,
            "unchecked": health.unchecked or None,
            "parts": [
                {"code": part.code, "label": part.label, "points": part.points, "value": part.value, "unit": part.unit}
                for part in health.parts
            ],
        },
        "description": None if said.text is None else shown(said.text),
        "owner": None if said.owner is None else shown(said.owner),
        "fresh_within": None if said.fresh_within is None else shown(said.fresh_within),
        "freshness": None if fresh is None else fresh.state,
        "late": lateness(fresh, seen.observed_at) or None,
        "columns": list(seen.columns),
        "version": seen.version,
        "num_versions": seen.num_versions,
        "num_rows": seen.num_rows,
        "num_deleted_rows": seen.physical_rows - seen.num_rows,
        "num_bytes": seen.num_bytes,
        "manifest_bytes": seen.manifest_bytes,
        "num_fragments": seen.num_fragments,
        "num_small_fragments": seen.num_small_fragments,
        "unindexed_rows": max(seen.unindexed_rows.values(), default=0),
        "unindexed_share": seen.unindexed_share,
        "num_indices": len(seen.index_segments),
        "num_staged": seen.num_staged,
        "num_dead_attempts": seen.num_dead_attempts,
        "dead_bytes": seen.dead_bytes,
        "written_at": seen.written_at,
        "writes": list(seen.commits_by_hour),
    }


def _worst_first(row: Mapping[str, object]) -> tuple[int, int, str]:
    order = {"error": 0, "ok": 1, "pending": 2}[str(row["state"])]
    health = row["health"]
    score = health["score"] if isinstance(health, Mapping) else 0
    return order, int(score), str(row["name"])


def _summary(rows: Sequence[Mapping[str, object]]) -> Json:
    def total(name: str) -> int:
        return sum(value for row in rows if isinstance(value := row[name], int))

    errors = sum(row["state"] == "error" for row in rows)
    unchecked = sum(isinstance(health := row["health"], Mapping) and bool(health["unchecked"]) for row in rows)
    return {
        "tables": len(rows),
        "attention": sum(_needs_attention(row) for row in rows),
        "late": sum(row["freshness"] == "late" for row in rows),
        "errors": errors,
        "unchecked": unchecked,
        "num_bytes": total("num_bytes"),
        "manifest_bytes": total("manifest_bytes"),
        "num_rows": total("num_rows"),
        "dead_bytes": total("dead_bytes") if any(row["dead_bytes"] is not None for row in rows) else None,
    }


def _needs_attention(row: Mapping[str, object]) -> bool:
    health = row["health"]
    is_low = isinstance(health, Mapping) and health["score"] < _ATTENTION_BELOW
    return is_low or row["state"] == "error" or row["freshness"] == "late"


_NO_BUDGET: Json = {"service_levels": None, "rewrite_factor": None, "budget": None}


def _budget(managed: Managed, now: float) -> Json:
    from lance_core.maintenance.evidence import DONE, levels_kept

    kept = levels_kept(managed.rows)
    done = [row for row in managed.rows if row.outcome == DONE]
    rewritten = sum(row.bytes_written for row in done)
    taken_on = sum(row.bytes_before for row in done if row.action == "compact")
    return {
        "service_levels": None if kept is None else {"kept": kept, "days": HISTORY_DAYS},
        "rewrite_factor": rewritten / taken_on if taken_on else None,
        "budget": budget_answer(managed, now),
    }


def budget_answer(managed: Managed, now: float) -> Json:
    """Return what the policy's budget of this day (UTC) is, and what of it is spent."""
    from lance_core.maintenance.evidence import spent_today
    from lance_core.maintenance.quantities import is_within

    budget, spent = managed.policy.budget, spent_today(managed.rows, now)
    return {
        "gb_hours": {"spent": spent.gb_hours, "limit": budget.gb_hours_per_day},
        "bytes": {"spent": spent.num_bytes, "limit": budget.bytes_per_day},
        "seconds": {"spent": spent.seconds, "limit": budget.seconds_per_day},
        "quiet_hours": None if budget.quiet_hours is None else list(budget.quiet_hours),
        "is_quiet": budget.quiet_hours is not None and is_within(budget.quiet_hours, now),
    }
