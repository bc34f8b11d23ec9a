"""Shared by the operators whose job refreshes declared columns: it publishes what it computes, group by group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_lance.compat import Context
from lance_core.errors import InputError

if TYPE_CHECKING:
    from lance_core.jobs.specs.spec import JobSpec


def require_own_publication(task: Any, *, takes_gates: bool = False) -> None:
    """InputError for arguments that leave publishing to another task, or ask something of rows before it."""
    if task.commit in ("later", "elsewhere") or (task.gates and not takes_gates):
        neither = "it cannot take" if takes_gates else "it takes neither gates nor"
        raise InputError(
            f"{task.task_id}: a refresh publishes what it computes: {neither} commit={task.commit!r}",
            cure="Check the version afterwards with a LanceCheckOperator.",
        )


def finish_refresh(
    task: Any, reference: Mapping[str, Any], spec: JobSpec, options: Mapping[str, Any], context: Context
) -> dict[str, Any]:
    """What the refresh of a job did, for XCom. Writes it to the log, and sends the events of the outlets."""
    from airflow_lance.execution.publish import send_events
    from airflow_lance.execution.results import bounded
    from lance_core.jobs import api

    result = {**api.refresh_result(spec, reference, options=options), "uri": spec.uri, "operation": spec.kind}
    for line in api.refresh_lines(result):
        task.log.info(line)
    told = ("uri", "operation", "version", "identity", "columns", "stopped")
    send_events(task, context, {name: result[name] for name in told if name in result})
    return bounded(result)


def rows_told(result: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """The rows that a refresh wrote and those that failed, counted for each column; None where nobody knows what it did."""
    columns = result["columns"].values()
    if not columns:
        return None, None
    written = sum(counts["stale"] - counts["left"] + counts["unseen"] for counts in columns)
    return written, sum(counts["failed_now"] for counts in columns)
