"""Arguments of an operator are checked when its DAG is parsed, unless they contain a template.

::

    LanceMergeOperator(..., when_matched="upsert")                 refused among the DAG's import errors, not at 3 a.m.
    LanceDeleteOperator(..., rows_per_task="{{ params.rows }}")    a template counts as a number; it is checked when it runs
    LanceAppendOperator(..., source="/raw/{{ ds }}.csv")           of a path the rest counts, which shows its format, and
                                                                    of a SQL statement, which shows what it changes
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

_NAMES_OF_FUNCTIONS = ("callable", "function")
_NAMES_OF_TEXTS = ("source", "paths", "sql")
_NAMES_OF_DURATIONS = ("fresh_within",)
_TEMPLATE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)


def check_arguments(task: Any) -> None:
    """Make the spec of a task with a placeholder for each template. InputError names the wrong argument."""
    if any(_is_late(getattr(task, name, None)) for name in task.template_fields):
        return
    if any(_is_template(getattr(task, name, None)) for name in ("source", "sql")):
        return
    stand_in = copy.copy(task)
    for name in task.template_fields:
        # Past the operator's own `__setattr__`, which would register the copy as a task.
        object.__setattr__(stand_in, name, _rendered(getattr(task, name, None), name))
    with suppress(ModuleNotFoundError):  # a machine that only parses DAGs may lack what reads a SQL statement
        stand_in.make_spec(uri="/parsed.lance", identity="")


def check_gates(gates: Any, *, task_id: str) -> None:
    """InputError names the key of a gate that is unknown, before rows are staged that no gate would let through."""
    from lance_core.jobs.specs.gates import GateSpec
    from lance_core.jobs.specs.spec import from_plain

    if _is_late(gates) or not isinstance(gates, (list, tuple)):
        return
    for number, gate in enumerate(gates):
        if not _is_late(gate):
            from_plain(GateSpec, _rendered(gate, ""), where=f"{task_id}: gates[{number}]")


def _is_template(source: object) -> bool:
    """Whether a source is a path that only its template knows."""
    paths = source if isinstance(source, (list, tuple)) else [source]
    return any(isinstance(path, str) and path != "" and not _TEMPLATE.sub("", path).strip() for path in paths)


def _is_late(value: object) -> bool:
    """Whether a value is known only when the task runs: another task's result."""
    if hasattr(value, "iter_references") or hasattr(value, "resolve"):
        return True
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ()
    return any(_is_late(item) for item in items)


def _rendered(value: Any, name: str) -> Any:
    if isinstance(value, str):
        if "{{" not in value and "{%" not in value:
            return value
        if name in _NAMES_OF_TEXTS:
            return _TEMPLATE.sub("7", value)
        if name in _NAMES_OF_DURATIONS:
            filled = _TEMPLATE.sub("7", value).strip()
            return f"{filled}h" if filled.isdigit() else filled
        return "parsed:parsed" if name in _NAMES_OF_FUNCTIONS else "7"
    if isinstance(value, Mapping):
        return {key: _rendered(item, str(key)) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rendered(item, name) for item in value]
    return value
