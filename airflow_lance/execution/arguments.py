"""Arguments of operators on their way into a job spec: explicit values, numbers from templates, choices."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from airflow_lance.compat import Context, configured
from lance_core.errors import InputError

if TYPE_CHECKING:
    from lance_core.jobs.specs.spec import JobSpec


OnClear = Literal["again", "fail", "skip"]
Commit = Literal["now", "later", "elsewhere"]
Execution = Literal["auto", "spark-submit", "spark-connect", "local"]
ON_CLEAR: tuple[str, ...] = get_args(OnClear)
COMMITS: tuple[str, ...] = get_args(Commit)
EXECUTIONS: tuple[str, ...] = get_args(Execution)


def default_execution() -> Any:
    """The deployment's setting, else "auto"."""
    return configured("default_execution") or "auto"


def require_one_of(value: object, known: Sequence[str], *, where: str) -> None:
    """InputError when a value is none of those that an argument takes."""
    if value not in known:
        raise InputError(f"{where} must be one of {', '.join(known)}, got {value!r}")


def whole(value: int | str | None) -> Any:
    """A number that a template may have rendered as text; left as it is when it is neither, for the spec to refuse."""
    text = value.strip() if isinstance(value, str) else ""
    return int(text) if text.isdecimal() else value


def given(**fields: Any) -> dict[str, Any]:
    """The fields that were given, so that the spec's defaults apply to the rest."""
    return {name: value for name, value in fields.items() if value is not None}


def identity_of(context: Context, *, uri: str, key: str = "", idempotency_key: str = "") -> str:
    """The identity of a task instance's write: the same for every try and restart."""
    from lance_core.jobs.specs.identity import make_identity

    return make_identity(uri, **_instance(context), key=key, idempotency_key=idempotency_key)


def with_asker(spec: JobSpec, context: Context, *, retries: int | None = 0) -> JobSpec:
    """The spec with the requesting task. The table's history keeps it."""
    return replace(spec, asked=asker_of(context, retries=retries))


def asker_of(context: Context, *, retries: int | None = 0) -> dict[str, Any]:
    """The requesting task: dag, run and its beginning, task, map index, try, tries at most, host, log, clear."""
    ti = context["ti"]
    asked = {
        **_instance(context),
        "try_number": int(getattr(ti, "try_number", 0) or 0),
        "host": socket.gethostname(),
        "log_url": str(getattr(ti, "log_url", "") or ""),
        "clear": clear_of(context, retries=retries),
        "created": created_of(context),
        "max_tries": int(getattr(ti, "max_tries", None) or 0),
    }
    return {name: value for name, value in asked.items() if name not in ("clear", "created") or value}


def created_of(context: Context) -> str:
    """When the DAG run began, which differs when it was deleted and created again with its id; empty when it is unknown.

    No Airflow gives a task the time at which its run was created. The time at which it began stays the same until somebody
    clears a task of the run (`clear_number`), and `clear_of` sees that.
    """
    run = context.get("dag_run")
    began = None if run is None or getattr(run, "clear_number", None) != 0 else getattr(run, "start_date", None)
    return "" if began is None else str(began.isoformat())


def clear_of(context: Context, *, retries: int | None) -> str:
    """A text that changes with each time that a person clears the task instance; empty until then.

    Airflow (2.11 and 3 alike) sets `max_tries` to the task's retries at first, and at each clear to the tries that were
    used up plus the retries. A task that is cleared while it runs counts as retried: Airflow leaves `max_tries` alone.
    """
    ti = context["ti"]
    used = int(getattr(ti, "max_tries", None) or 0) - int(retries or 0)
    return f"{ti.dag_id}/{ti.run_id}/{ti.task_id} after try {used}" if used > 0 else ""


def _instance(context: Context) -> dict[str, Any]:
    """Which task instance this is."""
    ti = context["ti"]
    return {
        "dag_id": ti.dag_id,
        "run_id": ti.run_id,
        "task_id": ti.task_id,
        "map_index": int(getattr(ti, "map_index", -1)),
    }
