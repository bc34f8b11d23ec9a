"""Which tasks of a DAG pass their results to which, and which task commits; analysed while a DAG is parsed.

::

    append.output -> collect(...) -> LanceCommitOperator(staged=...)     staging_tasks(staged) -> [append]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

PUBLISHES_WHAT_IS_THERE = "none_failed_min_one_success"
"""The trigger rule of a task that publishes: a skipped task before it keeps nothing back, a failed one does."""


def source_tasks(value: object) -> Iterator[Any]:
    """The tasks whose results are in a value, and those whose results these were given, each once."""
    seen: set[int] = set()
    waiting = [*_referred(value)]
    while waiting:
        task = waiting.pop()
        if id(task) in seen:
            continue
        seen.add(id(task))
        yield task
        waiting += _referred([getattr(task, name, None) for name in ("op_args", "op_kwargs", "op_kwargs_expand_input")])


def commits_later(task: Any) -> bool:
    """Let a staging task leave its work to a commit task, unless its own arguments say something; whether it does."""
    kwargs = getattr(task, "partial_kwargs", None)
    if kwargs is None:
        task.commit = task.commit or "later"
        return bool(task.commit == "later")
    return bool(kwargs.setdefault("commit", "later") in ("later", None))


def has_commit_after(task: Any) -> bool:
    """Whether a commit task is downstream of a task in its DAG."""
    return any(getattr(operator_class(other), "commits_others", False) for other in task.get_flat_relatives(upstream=False))


def operator_class(task: Any) -> type[Any]:
    """The class of a task, plain or mapped."""
    kind = getattr(task, "operator_class", type(task))
    return kind if isinstance(kind, type) else type(task)


def _referred(value: object) -> list[Any]:
    if hasattr(value, "iter_references"):
        return [task for task, _ in value.iter_references()]
    if isinstance(value, Mapping):
        return [task for item in value.values() for task in _referred(item)]
    if isinstance(value, (list, tuple, set)):
        return [task for item in value for task in _referred(item)]
    inner = getattr(value, "value", None)  # what a mapped task expands over
    return _referred(inner) if isinstance(inner, (Mapping, list, tuple)) else []
