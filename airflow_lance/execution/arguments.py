"""Arguments of operators on their way into a job spec: what was given, numbers out of templates, one of several words."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_lance.compat import Context, configured
from lance_core.errors import InputError

if TYPE_CHECKING:
    from lance_core.jobs.specs.spec import JobSpec


def default_execution() -> Any:
    """What the deployment says, else spark-submit."""
    return configured("default_execution") or "spark-submit"


def require_one_of(value: object, known: Sequence[str], *, where: str) -> None:
    """InputError when a value is none of those that an argument takes."""
    if value not in known:
        raise InputError(f"{where} must be one of {', '.join(known)}, got {value!r}")


def whole(value: int | str | None) -> Any:
    """A number that a template may have rendered as text; left as it is when it is neither, for the spec to refuse."""
    text = value.strip() if isinstance(value, str) else ""
    return int(text) if text.isdecimal() else value


def given(**fields: Any) -> dict[str, Any]:
    """The fields that were given, for the spec's own defaults to stand for the rest."""
    return {name: value for name, value in fields.items() if value is not None}


def identity_of(context: Context, *, uri: str, key: str = "") -> str:
    """The identity of a task instance's write: the same for every try, clear and restart."""
    from lance_core.jobs.specs.identity import make_identity

    ti = context["ti"]
    return make_identity(
        uri, dag_id=ti.dag_id, run_id=ti.run_id, task_id=ti.task_id, map_index=int(getattr(ti, "map_index", -1)), key=key
    )


def with_asker(spec: JobSpec, context: Context) -> JobSpec:
    """The spec with who asks for it: dag, run, task, map index, try, host, log. It is kept in the table's history."""
    ti = context["ti"]
    asked = {
        "dag_id": ti.dag_id,
        "run_id": ti.run_id,
        "task_id": ti.task_id,
        "map_index": int(getattr(ti, "map_index", -1)),
        "try_number": int(getattr(ti, "try_number", 0) or 0),
        "host": socket.gethostname(),
        "log_url": str(getattr(ti, "log_url", "") or ""),
    }
    return replace(spec, asked=asked)
