"""`lance maintain POLICY`: plan what the policy asks for now, show it with its price, and carry it out when asked to."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from lance_core.cli.output import Output, size_text

if TYPE_CHECKING:
    from lance_core.maintenance.evidence import Evidence
    from lance_core.maintenance.plan import Plan

HISTORY_SECONDS = 30 * 86400.0


@click.command("maintain")
@click.argument("policy_file", metavar="POLICY", type=click.Path(exists=True, dir_okay=False))
@click.argument("uris", nargs=-1)
@click.option("--run", "carry_out", is_flag=True, help="Carry the plan out; without it the plan is only printed.")
@click.option("-o", "--storage-option", "pairs", multiple=True, metavar="KEY=VALUE", help="Storage option; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def maintain(policy_file: str, uris: tuple[str, ...], carry_out: bool, pairs: tuple[str, ...], as_json: bool) -> None:
    """Look after tables as POLICY says: the tables at URIS, or all below its base uri.

    The plan lists steps with price and reason, and what is not done and why. Evidence of what is done goes to
    `{base_uri}/_maintenance`. Exit code 1 when a step failed or a table is past its deadline.
    """
    from lance_core.maintenance.evidence import history, last_upkeep, measured, record, spent_today
    from lance_core.maintenance.find import find_tables
    from lance_core.maintenance.observe import observe
    from lance_core.maintenance.plan import plan_maintenance
    from lance_core.maintenance.policy import ManagedTable
    from lance_core.maintenance.policy_file import load_policy
    from lance_core.maintenance.price import learn
    from lance_core.maintenance.run import Maintainer

    output, options, now = Output(as_json=as_json), _pairs(pairs), time.time()
    policy = load_policy(policy_file)
    tables = [ManagedTable(uri=uri) for uri in uris] or find_tables(policy.base_uri, storage_options=options)
    known = [(table, policy.for_table(table)) for table in tables]
    seen = [observe(table, rule.levels, storage_options=options) for table, rule in known if rule is not None]
    rows = history(policy.evidence_uri, since=now - HISTORY_SECONDS, storage_options=options)
    plan = plan_maintenance(
        seen, policy, now=now, spent=spent_today(rows, now), rates=learn(measured(rows)), last_upkeep=last_upkeep(rows)
    )
    done: Sequence[Evidence] = ()
    if carry_out:
        done = Maintainer(policy, options_of=lambda _: options, run="lance maintain").carry_out(plan)
        record(policy.evidence_uri, done, storage_options=options)
    _show(output, plan, done)
    if plan.alarms or any(row.outcome == "failed" for row in done):
        raise click.exceptions.Exit(1)


def _show(output: Output, plan: Plan, done: Sequence[Evidence]) -> None:
    if output.as_json:
        output.record({**plan.to_dict(), "done": list(done)})
        return
    outcome = {(row.uri, row.action): row for row in done}
    output.rows([_line(step, outcome.get((step.uri, step.action))) for step in plan.steps], empty="nothing is due")
    cost = plan.cost
    click.echo(f"price: {size_text(cost.num_bytes)}, {cost.seconds:.0f} s, {cost.gb_hours:.3f} GB-hours")
    for item in plan.skipped:
        click.echo(f"not done: {item.action} of {item.uri}: {item.reason}")
    for item in plan.alarms:
        click.echo(f"ALARM: {item.uri}: {item.reason}", err=True)


def _line(step: Any, row: Evidence | None) -> Mapping[str, Any]:
    plain = {
        "table": step.uri,
        "step": step.action,
        "bytes": size_text(step.cost.num_bytes),
        "seconds": round(step.cost.seconds, 1),
        "why": step.reason,
    }
    return plain if row is None else {**plain, "outcome": row.error or row.outcome, "took": round(row.seconds, 1)}


def _pairs(values: Sequence[str]) -> dict[str, str]:
    options = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{value!r} is not key=value")
        options[name] = text
    return options


COMMANDS = (maintain,)
