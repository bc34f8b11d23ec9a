"""The one door through which an orchestrator or the command line maintains tables.

::

    plan = plan_now(policy)                              observe, learn from the evidence, decide
    rows = carry_out(policy, plan.steps)                 act, and leave evidence

Steps travel as plain data (`Step.to_dict`, `step_from_dict`), so that they can be mapped over tasks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lance_core.errors import InputError
from lance_core.io.threads import Threads
from lance_core.maintenance.evidence import Evidence, history, maintained_at, measured, record, rows_of_skipped, spent_today
from lance_core.maintenance.find import BaseOf, FoundTables, no_base, tables_of
from lance_core.maintenance.observe import Observation, observe
from lance_core.maintenance.plan import MaintenancePlan, MaintenanceStep, Skipped, plan_maintenance
from lance_core.maintenance.policy import ManagedTable, Policy
from lance_core.maintenance.price import Cost, learn
from lance_core.maintenance.run import Maintainer, OptionsOf, no_options

HISTORY_SECONDS = 30 * 86400.0
OBSERVED_AT_ONCE = 16


def observe_all(
    policy: Policy,
    tables: Sequence[ManagedTable],
    *,
    options_of: OptionsOf = no_options,
    now: float | None = None,
) -> list[Observation]:
    """Return what the tables look like that a rule of the policy covers, several at a time."""
    known = [(table, rule) for table in tables if (rule := policy.for_table(table)) is not None]
    with Threads(OBSERVED_AT_ONCE, thread_name_prefix="lance-observe") as pool:
        return list(
            pool.map(
                lambda pair: observe(pair[0], pair[1].levels, storage_options=options_of(pair[0].conn_id), now=now), known
            )
        )


def plan_now(
    policy: Policy,
    *,
    tables: Sequence[ManagedTable] = (),
    options_of: OptionsOf = no_options,
    base_of: BaseOf = no_base,
    conn_id: str | None = None,
    now: float | None = None,
) -> MaintenancePlan:
    """Return what the policy would do now: observed, priced by earlier evidence, within what is left of the budget.

    The tables are those given, else all that `tables_of` finds. `conn_id` is the connection of the policy's own folder.
    Raises StoreError when the policy's folder cannot be read; anything else that cannot be read is an alarm of the plan.
    """
    moment = time.time() if now is None else now
    rows = history(policy.evidence_uri, since=moment - HISTORY_SECONDS, storage_options=options_of(conn_id))
    found = (
        FoundTables(tuple(tables)) if tables else tables_of(policy, options_of=options_of, base_of=base_of, conn_id=conn_id)
    )
    plan = plan_maintenance(
        observe_all(policy, found.tables, options_of=options_of, now=moment),
        policy,
        now=moment,
        spent=spent_today(rows, moment),
        rates=learn(measured(rows)),
        maintained_at=maintained_at(rows),
    )
    alarms = tuple(Skipped(uri, "observe", reason, due=True) for uri, reason in found.unreachable)
    return replace(plan, alarms=(*plan.alarms, *alarms))


def carry_out(
    policy: Policy,
    steps: Sequence[MaintenanceStep],
    *,
    skipped: Sequence[Skipped] = (),
    options_of: OptionsOf = no_options,
    run: str = "",
    on_step: Callable[[Evidence], None] = lambda evidence: None,
) -> list[Evidence]:
    """Carry out steps, each independently, and append a row of evidence for each, also for those that were skipped."""
    maintainer = Maintainer(policy, options_of=options_of, run=run, on_step=on_step)
    done = maintainer.carry_out(MaintenancePlan(tuple(steps), tuple(skipped)))
    record(policy.evidence_uri, done, storage_options=options_of(None))
    return done


def note_skipped(policy: Policy, skipped: Sequence[Skipped], *, options_of: OptionsOf = no_options, run: str = "") -> None:
    """Append evidence for what was not done."""
    rows = rows_of_skipped(skipped, now=time.time(), run=run)
    record(policy.evidence_uri, rows, storage_options=options_of(None))


def step_from_dict(plain: Mapping[str, Any]) -> MaintenanceStep:
    """The inverse of `Step.to_dict`. InputError when the data is no step."""
    try:
        values = {name: plain[name] for name in MaintenanceStep.__dataclass_fields__}
        return replace(MaintenanceStep(**values), cost=Cost(**values["cost"]))
    except (KeyError, TypeError) as error:
        raise InputError(f"not a maintenance step: {error!r}", cure="Pass the result of Step.to_dict.") from None
