"""Publish staged work and report it: one log line, one set of counters, one event for each outlet, one XCom.

The commit task and an operator that publishes its own work both call `publish`; what they return is the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow_lance.compat import Asset, Context, count, record_seconds
from airflow_lance.execution.partitions import add_partitions

COUNTERS = (
    "rows_added", "rows_inserted", "rows_updated", "rows_deleted", "rows_rewritten", "bytes_added", "bytes_removed",
)  # fmt: skip


def publish(
    operator: Any,
    context: Context,
    *,
    uri: str,
    references: Sequence[Mapping[str, Any]],
    options: Mapping[str, Any],
    gates: Sequence[Mapping[str, Any]] = (),
    max_attempts: int | None = None,
    re_execute: bool = True,
    partitions: Sequence[str] = (),
) -> dict[str, Any]:
    """Commit the references exactly once; the outcome as a plain dict with the table's uri."""
    from airflow_lance.execution.callables import check_callables
    from lance_core.jobs import api
    from lance_core.spark import OnDemandSpark

    check_callables(gates)
    # Work that reads other tables may have to be done again, with the options that its own task has for them.
    options_of = getattr(operator, "options_of", None) or (lambda _: api.revealed(options))
    with OnDemandSpark(options_of) as runner:
        done = api.commit(
            uri,
            references,
            options=options,
            max_attempts=max_attempts,
            gates=gates,
            re_execute=re_execute,
            runner=runner,
        )
    result = {"uri": uri, **done}
    if gates and "committed" in done["identities"].values():
        result["gates"] = [str(gate.get("name") or number) for number, gate in enumerate(gates, start=1)]
    _log_and_count(operator, result)
    extra = event_of(result)
    send_events(operator, context, {**extra, "partitions": [*partitions]} if partitions else extra, partitions=partitions)
    return result


def event_of(result: Mapping[str, Any]) -> dict[str, Any]:
    """The content of the asset event of a publication."""
    return {
        **{
            name: value
            for name, value in result.items()
            if name not in ("seconds", "conflicts_rebased", "re_executed", "gates")
        },
        "transaction_uuids": list(result["identities"]),
    }


def send_events(operator: Any, context: Context, extra: Mapping[str, Any], *, partitions: Sequence[str] = ()) -> None:
    """Give every outlet asset's event the same facts, and the keys of the partitions that they are about."""
    for outlet in operator.outlets:
        if isinstance(outlet, Asset):
            event = context["outlet_events"][outlet]
            event.extra.update(extra)
            add_partitions(event, partitions, log=operator.log)


def _log_and_count(operator: Any, result: Mapping[str, Any]) -> None:
    outcomes = list(result["identities"].values())
    committed, before = outcomes.count("committed"), outcomes.count("already_committed")
    if committed:
        operator.log.info(
            "%s is at version %s with %s rows: %d writes committed now (%s), %d were committed earlier",
            result["uri"], result["version"], result["rows"], committed, _changes(result), before,
        )  # fmt: skip
    else:
        operator.log.info(
            "%s is unchanged: all %d writes were committed earlier, by version %s, which has %s rows",
            result["uri"], before, result["version"], result["rows"],
        )  # fmt: skip
    numbers = ((key, int(result[key])) for key in COUNTERS if result[key] is not None)
    for name, value in (("committed", committed), ("already_committed", before), *numbers):
        count(f"lance.commit.{name}", value)
    record_seconds("lance.commit.duration", float(result["seconds"]))


def _changes(result: Mapping[str, Any]) -> str:
    """What happened to rows, in words."""
    words = ("inserted", "updated", "deleted", "rewritten")
    told = [f"{result[f'rows_{word}']} rows {word}" for word in words if result[f"rows_{word}"]]
    return ", ".join(told) or "no row changed"
