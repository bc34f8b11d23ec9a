"""The settings of the pages in the section `[lance]`.

::

    [lance]
    pages_connections = lake, far              # default: every connection of type lance that is found
    pages_policy = /etc/lance/lance_policy.yaml
    pages_rows = nobody                        # or: connection, view
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from airflow_lance.compat import configured
from lance_core.errors import InputError

RowsRight: TypeAlias = Literal["nobody", "connection", "view"]
_ROWS: tuple[RowsRight, ...] = ("nobody", "connection", "view")


@dataclass(frozen=True, kw_only=True)
class PagesSettings:
    """`rows` says who may see rows: nobody, who may read the table's connection, or who has the view "Lance rows".

    `timeout_seconds` bounds a request, `wait_seconds` how long a list waits for tables that are still being checked.
    """

    connections: tuple[str, ...] = ()
    policy_path: str = ""
    policy_conn_id: str = "lance_default"
    rows: RowsRight = "nobody"
    actions_dag: str = "lance_actions"
    plan_dag: str = "lance_maintenance"
    cache_seconds: float = 30.0
    cache_bytes: int = 64 << 20
    timeout_seconds: float = 10.0
    wait_seconds: float = 2.0
    threads: int = 8


def read_settings() -> PagesSettings:
    """Return the settings. InputError names the option that is wrong; nothing is shown then (fail closed)."""
    default = PagesSettings()
    rows = configured("pages_rows") or default.rows
    if rows not in _ROWS:
        raise InputError(f"[lance] pages_rows must be one of {', '.join(_ROWS)}, got {rows!r}")
    names = [name.strip() for name in configured("pages_connections").split(",")]
    return PagesSettings(
        connections=tuple(name for name in names if name),
        policy_path=configured("pages_policy"),
        policy_conn_id=configured("pages_policy_conn_id") or default.policy_conn_id,
        rows=next(item for item in _ROWS if item == rows),
        actions_dag=configured("pages_actions_dag") or default.actions_dag,
        plan_dag=configured("pages_plan_dag") or default.plan_dag,
        cache_seconds=_number("pages_cache_seconds", default.cache_seconds),
        timeout_seconds=_number("pages_timeout_seconds", default.timeout_seconds),
    )


def _number(name: str, default: float) -> float:
    text = configured(name)
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        raise InputError(f"[lance] {name} must be a number, got {text!r}") from None
    if not 0 < value <= 86400:
        raise InputError(f"[lance] {name} must be above 0 and at most 86400, got {text}")
    return value
