"""`lance maintain POLICY`: plan the steps that the policy requires now, show their cost, and execute them on request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from lance_core.cli.output import Output, say, size_text
from lance_core.cli.table import storage_option

if TYPE_CHECKING:
    from lance_core.maintenance.evidence import Evidence
    from lance_core.maintenance.plan import MaintenancePlan


@click.command("maintain")
@click.argument("policy_file", metavar="POLICY", type=click.Path(exists=True, dir_okay=False))
@click.argument("uris", nargs=-1)
@click.option("--run", "run_now", is_flag=True, help="Execute the plan; without this option the plan is only printed.")
@storage_option("options")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def maintain(policy_file: str, uris: tuple[str, ...], run_now: bool, options: dict[str, str], as_json: bool) -> None:
    """Maintain tables by POLICY: the tables at URIS, or all below its base uri.

    The plan lists steps with cost and reason, and the steps that are not done and why. Evidence of what is done goes to
    `{base_uri}/_maintenance`. Exit code 1 when a step failed or a table is past its deadline.
    """
    from lance_core.maintenance.api import carry_out, plan_now
    from lance_core.maintenance.policy import ManagedTable
    from lance_core.maintenance.policy_file import load_policy

    output = Output(as_json=as_json)
    policy = load_policy(policy_file)
    plan = plan_now(policy, tables=[ManagedTable(uri=uri) for uri in uris], options_of=lambda _: options)
    done: Sequence[Evidence] = ()
    if run_now:
        done = carry_out(policy, plan.steps, skipped=plan.skipped, options_of=lambda _: options, run="lance maintain")
    _show(output, plan, done)
    if plan.alarms or any(row.outcome == "failed" for row in done):
        raise click.exceptions.Exit(1)


def _show(output: Output, plan: MaintenancePlan, done: Sequence[Evidence]) -> None:
    if output.as_json:
        output.record({**plan.to_dict(), "done": list(done)})
        return
    outcome = {(row.uri, row.action): row for row in done}
    output.rows([_line(step, outcome.get((step.uri, step.action))) for step in plan.steps], empty="nothing is due")
    cost = plan.cost
    say(f"cost: {size_text(cost.num_bytes)}, {cost.seconds:.0f} s, {cost.gb_hours:.3f} GB-hours")
    for item in plan.skipped:
        say(f"not done: {item.action} of {item.uri}: {item.reason}")
    for item in plan.alarms:
        say(f"ALARM: {item.uri}: {item.reason}", err=True)


def _line(step: Any, row: Evidence | None) -> Mapping[str, Any]:
    plain = {
        "table": step.uri,
        "step": step.action,
        "bytes": size_text(step.cost.num_bytes),
        "seconds": round(step.cost.seconds, 1),
        "why": step.reason,
    }
    return plain if row is None else {**plain, "outcome": row.error or row.outcome, "took": round(row.seconds, 1)}


COMMANDS = (maintain,)
