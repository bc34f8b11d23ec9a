"""Results that fit: what a task returns is kept in Airflow's metadata database, so lists in it have an end.

::

    bounded({"version": 7, "config": {...}})  -> {"version": 7, "config": {the first keys}, "left_out": {"config": 89000}}
    in_short({"version": 7, "config": {...}})     -> "version 7, 90,000 config"

Rows of queries have bounds of their own (`max_rows`, `max_bytes`). Standard library only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from typing import Any

from lance_core.jobs.specs.definition import RESULT_BYTES

LINE = 200
SHARE = 4
"""One list or mapping of a result may take that part of what all of it may take."""


def bounded(result: Mapping[str, Any], *, most: int = RESULT_BYTES) -> dict[str, Any]:
    """Return a result whose lists and mappings are cut where they take too much; `left_out` says how many items were cut."""
    if _size(result) <= most:
        return dict(result)
    found, left_out = {}, {}
    for name, value in result.items():
        cut = _first(value, most // SHARE) if isinstance(value, list | tuple | dict) else value
        found[name] = cut
        if cut is not value and len(cut) < len(value):
            left_out[name] = len(value) - len(cut)
    return {**found, "left_out": left_out} if left_out else found


def in_short(result: Mapping[str, Any]) -> str:
    """Return a result as one line of a log: numbers and words as they are, of lists and mappings how many they hold."""
    parts = []
    for name, value in result.items():
        words = name.replace("_", " ")
        if isinstance(value, list | tuple | dict) and len(_text(value)) > LINE:
            parts.append(f"{len(value):,} {words}")
        elif value is not None:
            parts.append(f"{words} {_text(value)}")
    return ", ".join(parts) or "nothing to do"


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _first(value: list[Any] | tuple[Any, ...] | dict[str, Any], most: int) -> Any:
    """As many of the first items as fit."""
    items = list(value.items()) if isinstance(value, dict) else list(value)
    size = count = 0
    for item in items:
        size += _size(item) + 1
        if size > most:
            break
        count += 1
    if count == len(items):
        return value
    return dict(islice(items, count)) if isinstance(value, dict) else items[:count]


def _size(value: object) -> int:
    return len(json.dumps(value, default=str).encode())
