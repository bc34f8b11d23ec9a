"""Fields of a job's spec, copied by name from the arguments of an operator.

::

    LanceDeleteOperator(task_id="d", uri="t.lance", predicate="id = 7", rows_per_task="1000")
    fields_of(task)  ->  {"predicate": "id = 7", "rows_per_task": 1000}

An argument that is None keeps the spec's default. A number that a template rendered as text becomes a number, one name a
list of one, a path a source; everything else is the spec's to check.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

from airflow_lance.execution.arguments import whole
from airflow_lance.execution.sources import plain_source


def spec_class(place: str) -> Any:
    """The class of a spec by its place, `module:name`."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def own_fields(cls: Any) -> Mapping[str, Any]:
    """The fields of a spec that describe its work, with their types: not those that every job has."""
    from lance_core.jobs.specs.spec import JobSpec, hints_of

    shared = hints_of(JobSpec)
    return {name: hint for name, hint in hints_of(cls).items() if name not in shared}


def fields_of(task: Any) -> dict[str, Any]:
    """The fields of a task's spec as plain data, from the arguments of their names (`task.renamed`: of other names)."""
    given = vars(task)
    found = {
        name: (hint, given.get(task.renamed.get(name, name))) for name, hint in own_fields(spec_class(task.spec)).items()
    }
    return {name: _plain(hint, value) for name, (hint, value) in found.items() if value is not None}


def _plain(hint: Any, value: Any) -> Any:
    from lance_core.jobs.specs.spec import SourceSpec

    is_choice = typing.get_origin(hint) in (typing.Union, types.UnionType)
    kinds = [typing.get_origin(kind) or kind for kind in (typing.get_args(hint) if is_choice else (hint,))]
    if tuple in kinds:
        return [value] if isinstance(value, str) else list(value) if isinstance(value, Iterable) else value
    if SourceSpec in kinds:
        return plain_source(value)
    return whole(value) if int in kinds else value
