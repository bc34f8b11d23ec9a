"""Who wrote a version or staged work: what the table's history and records say, as plain data.

::

    writer_of("5d2c…", note) -> {"identity": "5d2c…", "dag_id": "shop", "task_id": "append", "map_index": 3, ...}

Records are data from strangers: what is not text or a number where it should be is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any, TypeAlias

from lance_core.commit.identities import Asked, identities_in, requests_in

Json: TypeAlias = dict[str, object]

MAX_WRITERS = 50
_IDENTITY_MARKS = ("lance_core.", "airflow_lance.")


def writer_of(identity: str, asked: object) -> Json:
    """Return one writer; names are empty if they were not recorded."""
    who = Asked.from_dict(asked)
    return {
        "identity": identity,
        "dag_id": who.dag_id or None,
        "run_id": who.run_id or None,
        "task_id": who.task_id or None,
        "map_index": who.map_index,
        "try_number": who.try_number or None,
        "host": who.host or None,
    }


def place_of(task: str) -> Json | None:
    """Return who a record of a refresh names as "dag/run/task", None for nobody."""
    names = task.split("/", 2)
    return dict(zip_longest(("dag_id", "run_id", "task_id"), names)) if task else None


def writers_in(properties: Mapping[str, str]) -> list[Json]:
    """Return the writers that a transaction's properties name, at most `MAX_WRITERS`."""
    found = []
    notes = [*identities_in(properties).items(), *(("", note) for note in requests_in(properties))]
    for identity, note in notes[:MAX_WRITERS]:
        operation, rows = note.get("operation"), note.get("rows")
        found.append(
            {
                **writer_of(identity, note.get("asked")),
                "operation": operation if isinstance(operation, str) else None,
                "rows": rows if isinstance(rows, int) else None,
            }
        )
    return found


def other_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that are not about identities."""
    return {name: text for name, text in properties.items() if not name.startswith(_IDENTITY_MARKS)}


def name_of(writers: list[Json]) -> Json | None:
    """Return the first writer's DAG and task, None if there is none."""
    for writer in writers:
        if writer.get("task_id"):
            return {"dag_id": writer["dag_id"], "task_id": writer["task_id"], "run_id": None, "map_index": -1}
    return None


def shown(value: Any, limit: int = 2000) -> str:
    """Return text that is not longer than a page can show."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= limit else f"{text[:limit]}…"
