"""Decide what maintenance does now: steps that are due, ranked by gain and cost, as far as the budget reaches. Pure.

::

    observe every table -> steps that are due -> score = gain / cost, normalised -> greedy within the budget
    Plan.steps      what is done, in this order, with price and reason
    Plan.skipped    what is due and not done, and why; and what is not due
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lance_core.maintenance.freshness import is_late, lateness
from lance_core.maintenance.observe import Observation
from lance_core.maintenance.policy import ManagedTable, Policy, TablePolicy
from lance_core.maintenance.price import Cost, Rates
from lance_core.maintenance.quantities import counted, is_within

GAIN_WEIGHT = 0.7
DUE_AT = 0.6
"""A compaction is due when a table has come this far towards a level; earlier rewrites would only be done again."""


@dataclass(frozen=True, slots=True)
class MaintenanceStep:
    """One thing to do on one table. `urgency` is how far a service level is exceeded: 1 is at the level, 2 twice as far."""

    uri: str
    action: str
    reason: str
    gain: float
    urgency: float
    cost: Cost
    quantity: float
    version: int
    conn_id: str | None = None
    deleted_share: float = 0.0
    num_bytes: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "gb_hours": self.cost.gb_hours}


@dataclass(frozen=True, slots=True)
class Skipped:
    """A step that is not done now, and why. `due`: it should be done, and something else stands in the way."""

    uri: str
    action: str
    reason: str
    due: bool = False


@dataclass(frozen=True)
class MaintenancePlan:
    """Steps in the order in which they are done, what they cost together, and what is not done."""

    steps: tuple[MaintenanceStep, ...]
    skipped: tuple[Skipped, ...]
    alarms: tuple[Skipped, ...] = ()

    @property
    def cost(self) -> Cost:
        """All steps together."""
        total = Cost()
        for step in self.steps:
            total += step.cost
        return total

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "steps": [step.to_dict() for step in self.steps],
            "skipped": [asdict(item) for item in self.skipped],
            "alarms": [asdict(item) for item in self.alarms],
            "cost": {**asdict(self.cost), "gb_hours": self.cost.gb_hours},
        }


def plan_maintenance(
    observations: Sequence[Observation],
    policy: Policy,
    *,
    now: float,
    spent: Cost | None = None,
    rates: Rates | None = None,
    maintained_at: Mapping[str, float] | None = None,
) -> MaintenancePlan:
    """Return what to do now.

    `spent` is what today's steps cost so far; `maintained_at` says by uri since when a table has not been maintained, in
    seconds since the epoch (see `evidence.maintained_at`). A table that was not maintained for too long is an alarm, even
    if no step is due now.
    """
    rates = rates or Rates()
    due: list[MaintenanceStep] = []
    skipped: list[Skipped] = []
    alarms: list[Skipped] = []
    for seen in observations:
        rule = policy.for_table(ManagedTable(uri=seen.uri, conn_id=seen.conn_id))
        if rule is None:
            skipped.append(Skipped(seen.uri, "all", "no rule of the policy covers the table"))
            continue
        alarms += _alarms(seen, rule, now, maintained_at or {})
        found, left = _due(seen, rule, policy, now, rates)
        due += found
        skipped += left
    if policy.budget.quiet_hours is not None and is_within(policy.budget.quiet_hours, now):
        return MaintenancePlan(
            (), (*skipped, *(Skipped(s.uri, s.action, "quiet hours", due=True) for s in due)), tuple(alarms)
        )
    chosen, postponed = _within_budget(_ranked(due), policy, spent or Cost())
    return MaintenancePlan(tuple(chosen), (*skipped, *postponed), tuple(alarms))


def _due(
    seen: Observation, rule: TablePolicy, policy: Policy, now: float, rates: Rates
) -> tuple[list[MaintenanceStep], list[Skipped]]:
    if seen.error is not None:
        return [], [Skipped(seen.uri, "all", f"the table could not be observed: {seen.error}", due=True)]
    if rule.paused:
        return [], [Skipped(seen.uri, "all", "paused by the policy")]
    due: list[MaintenanceStep] = []
    skipped: list[Skipped] = []
    for action in rule.steps:
        step, reason = _TESTS[action](seen, rule, rates)
        if step is None:
            skipped.append(Skipped(seen.uri, action, reason))
        elif now - seen.written_at < policy.budget.backoff_seconds and action != "gc":
            skipped.append(Skipped(seen.uri, action, "another writer committed a moment ago", due=True))
        else:
            due.append(step)
    return due, skipped


def _compact(seen: Observation, rule: TablePolicy, rates: Rates) -> tuple[MaintenanceStep | None, str]:
    levels = rule.levels
    if not seen.fragments_in:
        return None, "no size tier is full and no fragment has too many deleted rows"
    allowed = levels.allowed_fragments(seen.num_bytes)
    crowded = seen.num_fragments / allowed
    urgency = max(crowded, seen.deleted_share / max(levels.max_deleted_share, 1e-9))
    if urgency < DUE_AT:
        return None, f"{seen.num_fragments} fragments, the levels allow {allowed:.0f}"
    read, written = rates.bytes_of("compact", seen.bytes_in), rates.bytes_of("compact", seen.bytes_out)
    cost = Cost(read, written, rates.seconds("compact", read))
    reason = f"{counted(seen.fragments_in, 'fragment')} become {seen.fragments_out}"
    reason += f"; {seen.deleted_share:.0%} of the rows are deleted"
    gain = float(seen.fragments_in - seen.fragments_out)
    return _step(seen, "compact", reason, max(gain, seen.deleted_share * 100), urgency, cost, float(read)), ""


def _merge_columns(seen: Observation, rule: TablePolicy, rates: Rates) -> tuple[MaintenanceStep | None, str]:
    limit = rule.levels.max_files_per_fragment
    # A compaction of the same run writes all files of its fragments again.
    is_compacted = "compact" in rule.steps and _compact(seen, rule, rates)[0] is not None
    spread = seen.spread_apart if is_compacted else seen.spread
    if not spread.fragments:
        return None, f"no fragment with small files to merge has more than {limit} data files"
    size = rates.bytes_of("merge_columns", spread.bytes)
    cost = Cost(size, size, rates.seconds("merge_columns", size))
    reason = f"the columns of {counted(spread.fragments, 'fragment')} are in more than {limit} data files"
    reason += f"; their {spread.files} smallest become {spread.fragments}"
    gain = float(spread.files - spread.fragments)
    return _step(seen, "merge_columns", reason, gain, 1.0, cost, float(size)), ""


def _refresh_columns(seen: Observation, rule: TablePolicy, rates: Rates) -> tuple[MaintenanceStep | None, str]:
    levels = rule.levels
    stale = [column for column in seen.declared if column.stale_rows]
    if not stale:
        return None, "no declared column has rows that no refresh has seen"
    if levels.max_stale_share is None and levels.max_stale_age is None:
        return None, "neither max_stale_share nor max_stale_age is set"
    ages = [seen.observed_at - (column.refreshed_at or 0.0) for column in stale]
    by_share = 0.0 if levels.max_stale_share is None else seen.stale_share / max(levels.max_stale_share, 1e-9)
    by_age = 0.0 if levels.max_stale_age is None else max(ages) / max(levels.max_stale_age, 1e-9)
    if max(by_share, by_age) < 1.0:
        return None, f"at most {seen.stale_share:.0%} of a declared column's rows may be stale"
    rows = sum(column.stale_rows for column in stale)
    rows = rows if levels.max_refresh_rows is None else min(rows, levels.max_refresh_rows)
    size = rates.bytes_of("refresh_columns", max(1.0, rows * seen.num_bytes / max(seen.physical_rows, 1)))
    cost = Cost(size, size // 4, rates.seconds("refresh_columns", size))
    told = ", ".join(f"{column.name}: {counted(column.stale_rows, 'row')}" for column in stale)
    reason = f"no refresh has seen rows of declared columns as they are now ({told})"
    return _step(seen, "refresh_columns", reason, seen.stale_share * 100, max(by_share, by_age), cost, float(size)), ""


def _optimize_indices(seen: Observation, rule: TablePolicy, rates: Rates) -> tuple[MaintenanceStep | None, str]:
    limit = rule.levels.max_unindexed_share
    crowded = seen.index_merges
    if not seen.index_segments:
        return None, "the table has no index"
    moved = seen.rows_in if "compact" in rule.steps else 0
    if max(seen.unindexed_share, moved / max(seen.num_rows, 1)) <= limit and not crowded:
        return None, f"at most {seen.unindexed_share:.0%} of the rows are not indexed"
    rows = sum(seen.unindexed_rows.values()) + moved
    per_row = seen.num_bytes / max(seen.physical_rows, 1)
    read = rates.bytes_of("optimize_indices", max(1.0, rows * per_row))
    cost = Cost(read, read // 4, rates.seconds("optimize_indices", read))
    reason = f"{counted(rows - moved, 'row')} not indexed ({seen.unindexed_share:.0%})"
    if moved:
        reason += f"; the compaction moves {counted(moved, 'row')}"
    if crowded:
        full = [f"{counted(count, 'segment')} of {name} fill a tier" for name, count in sorted(crowded.items())]
        reason += f"; {', '.join(full)}"
    urgency = max(seen.unindexed_share / max(limit, 1e-9), 1.0 if crowded else 0.0)
    return _step(seen, "optimize_indices", reason, seen.unindexed_share * 100 + len(crowded), urgency, cost, float(read)), ""


def _cleanup(seen: Observation, rule: TablePolicy, rates: Rates) -> tuple[MaintenanceStep | None, str]:
    limit, most_dead = rule.levels.max_versions, rule.levels.max_dead_bytes
    dead = seen.dead_bytes or 0
    is_full = most_dead is not None and dead > most_dead
    if not seen.expired_versions or not (seen.num_versions > limit or is_full):
        there = counted(seen.num_versions, "version")
        return None, f"{there}, of which {seen.expired_versions} may be removed; cleanup is due above {limit}"
    cost = Cost(seen.expired_manifest_bytes, 0, rates.seconds("cleanup", seen.expired_versions))
    reason = f"{seen.expired_versions} of {counted(seen.num_versions, 'version')} may be removed"
    if is_full:
        reason += f"; {dead:,} bytes are not in the newest version"
    urgency = max(seen.num_versions / limit, dead / max(most_dead, 1) if most_dead is not None else 0.0)
    return _step(seen, "cleanup", reason, seen.expired_versions / 10, urgency, cost, float(seen.expired_versions)), ""


def _gc(seen: Observation, rule: TablePolicy, rates: Rates) -> tuple[MaintenanceStep | None, str]:
    if not seen.num_dead_attempts:
        return None, "no attempt is dead"
    cost = Cost(0, 0, rates.seconds("gc", seen.num_dead_attempts))
    reason = f"{counted(seen.num_dead_attempts, 'dead attempt')} left files"
    return _step(seen, "gc", reason, float(seen.num_dead_attempts), 1.0, cost, float(seen.num_dead_attempts)), ""


_TESTS: Mapping[str, Callable[[Observation, TablePolicy, Rates], tuple[MaintenanceStep | None, str]]] = {
    "compact": _compact,
    "merge_columns": _merge_columns,
    "refresh_columns": _refresh_columns,
    "optimize_indices": _optimize_indices,
    "cleanup": _cleanup,
    "gc": _gc,
}


def _step(
    seen: Observation, action: str, reason: str, gain: float, urgency: float, cost: Cost, quantity: float
) -> MaintenanceStep:
    known = (seen.version, seen.conn_id, seen.deleted_share, seen.num_bytes)
    return MaintenanceStep(seen.uri, action, reason, gain, urgency, cost, quantity, *known)


def _ranked(due: Sequence[MaintenanceStep]) -> list[MaintenanceStep]:
    """Steps by a weighted sum of normalised gain (times urgency) and cost, best first."""
    if not due:
        return []
    gains = [step.gain * max(step.urgency, 0.01) for step in due]
    costs = [step.cost.gb_hours for step in due]

    def normal(values: Sequence[float], value: float) -> float:
        low, high = min(values), max(values)
        return (value - low) / (high - low) if high > low else 0.5

    scores = {
        id(step): GAIN_WEIGHT * normal(gains, gain) - (1 - GAIN_WEIGHT) * normal(costs, cost)
        for step, gain, cost in zip(due, gains, costs, strict=True)
    }
    return sorted(due, key=lambda step: (-scores[id(step)], step.uri, step.action))


def _within_budget(
    ranked: Sequence[MaintenanceStep], policy: Policy, spent: Cost
) -> tuple[list[MaintenanceStep], list[Skipped]]:
    budget = policy.budget
    chosen: list[MaintenanceStep] = []
    postponed: list[Skipped] = []
    total = spent
    for step in ranked:
        after = total + step.cost
        bounds = (
            (budget.bytes_per_day, after.num_bytes, "bytes"),
            (budget.gb_hours_per_day, after.gb_hours, "GB-hours"),
            (budget.seconds_per_day, after.seconds, "seconds"),
        )
        over = next((name for limit, value, name in bounds if limit is not None and value > limit), None)
        # Housekeeping frees space and costs next to nothing: a spent budget never stops it.
        if over is not None and step.action not in ("cleanup", "gc"):
            postponed.append(Skipped(step.uri, step.action, f"today's budget of {over} is not sufficient", due=True))
            continue
        chosen.append(step)
        total = after
    return chosen, postponed


def _alarms(seen: Observation, rule: TablePolicy, now: float, last: Mapping[str, float]) -> list[Skipped]:
    if rule.paused:
        return []
    limit = rule.levels.max_seconds_since_upkeep
    if seen.error is not None:
        return [Skipped(seen.uri, "observe", f"the table could not be observed: {seen.error}")]
    late = [Skipped(seen.uri, "freshness", lateness(seen.freshness, now))] if is_late(seen.freshness) else []
    since = last.get(seen.uri)
    if since is not None and now - since > limit:
        return [
            *late,
            Skipped(
                seen.uri, "deadline", f"not maintained for {(now - since) / 3600:.1f} h, the limit is {limit / 3600:.1f} h"
            ),
        ]
    return late
