"""Paths into JSON documents, as in `json_extract`.

::

    $.b.c   b.c   $["b"].c      the same: keys b, then c           ("b", "c")
    $.tags[0]   $.tags[last]    an element                         ("tags", 0)   ("tags", -1)
    $.tags[*]   $.*             every element, every value         ("tags", EVERY)   (ANY,)

Several matches are given as a list, none as MISSING, which is not the same as a null that is there.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import Any

from lance_core.errors import FilterError


class PathStep(Enum):
    """A step that takes many: `[*]` elements (of what is no list: itself), `.*` values of an object."""

    ELEMENTS = "[*]"
    VALUES = ".*"


class _Missing(Enum):
    MISSING = "missing"


MISSING = _Missing.MISSING
"""What a path that leads nowhere finds."""
Path = tuple["str | int | PathStep", ...]

_QUOTED = r'"(?:[^"\\]|\\.)*"' + r"|'(?:[^'\\]|\\.)*'"
_STEP = re.compile(
    rf"""\s*(?:
        \.\s*(?P<star>\*) | [.:]\s*(?P<quoted_name>{_QUOTED}) | [.:]\s*(?P<name>[^\s.:\[\]"'*?()@$]+)
        | \[\s*(?:(?P<every>\*) | (?P<quoted_key>{_QUOTED}) | (?P<last>last)(?:\s*-\s*(?P<back>\d+))? | (?P<index>\d+))\s*\]
    )\s*""",
    re.VERBOSE,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


@lru_cache(maxsize=256)
def parse_path(text: str) -> Path:
    """The steps of a path. Raises FilterError, which says where it stopped making sense.

    >>> parse_path("$.b[0]")
    ('b', 0)
    """
    stripped = text.strip()
    rest = stripped[1:] if stripped.startswith("$") else stripped
    if rest is stripped and rest and rest[0] not in ".:[":
        rest = f".{rest}"
    steps: list[str | int | PathStep] = []
    position = 0
    while position < len(rest):
        found = _STEP.match(rest, position)
        if found is None:
            raise FilterError(
                f"{text!r} is not a JSON path: unexpected {rest[position : position + 20]!r}",
                cure="Write $.name, $['a name'], $.list[0], $.list[last] or $.list[*].",
            )
        steps.append(_step(found))
        position = found.end()
    return tuple(steps)


def _step(found: re.Match[str]) -> str | int | PathStep:
    if found["star"] or found["every"]:
        return PathStep.VALUES if found["star"] else PathStep.ELEMENTS
    quoted = found["quoted_name"] or found["quoted_key"]
    if quoted:
        return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), quoted[1:-1])
    if found["last"]:
        return -1 - int(found["back"] or 0)
    return int(found["index"]) if found["index"] else found["name"]


def select(document: Any, path: Path) -> Any:
    """What the path finds in a parsed document: a value, a list of several, or MISSING."""
    found = [document]
    for step in path:
        found = [value for item in found for value in _follow(item, step)]
        if not found:
            return MISSING
    return found[0] if len(found) == 1 else found


def _follow(item: Any, step: str | int | PathStep) -> list[Any]:
    if step is PathStep.ELEMENTS:
        return list(item) if isinstance(item, list) else [item]
    if step is PathStep.VALUES:
        return list(item.values()) if isinstance(item, dict) else []
    if isinstance(step, str):
        return [item[step]] if isinstance(item, dict) and step in item else []
    assert isinstance(step, int)
    inside = isinstance(item, list) and -len(item) <= step < len(item)
    return [item[step]] if inside else []
