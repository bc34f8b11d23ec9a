"""Values put into a filter as literals, so that they cannot change the filter's meaning. Standard library only.

::

    bind("user_id = :user and day < :day", {"user": "x' OR 'a' = 'a", "day": 7})
    -> "user_id = 'x'' OR ''a'' = ''a' and day < 7"
    bind_all({"name": ":new", "": "name = :old"}, {"old": "a", "new": "b"})      several texts that share their values
    -> {"name": "'b'", "": "name = 'a'"}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lance_core.errors import InputError

_PIECES = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|::|:([A-Za-z_]\w*)")


def bind(predicate: str, params: Mapping[str, Any]) -> str:
    """The filter with each `:name` outside of quotes as a literal. InputError for a name without a value, or one unused."""
    return bind_all({"": predicate}, params)[""]


def bind_all(texts: Mapping[str, str], params: Mapping[str, Any]) -> dict[str, str]:
    """Some texts, by name, with each `:name` outside of quotes as a literal. A value may be used in any of them."""
    used: set[str] = set()

    def literal(match: re.Match[str]) -> str:
        name = match.group(1)
        if name is None:
            return match.group()
        if name not in params:
            raise InputError(
                f"the filter has the placeholder :{name}, which has no value",
                cure=f"Values were passed for: {', '.join(params) or 'none'}.",
            )
        used.add(name)
        return _literal(name, params[name])

    bound = {key: _PIECES.sub(literal, text) for key, text in texts.items()}
    unused = sorted(set(params) - used)
    if unused:
        raise InputError(
            f"the filter has no placeholder :{unused[0]}", cure="Write the placeholder outside quotes, or omit the value."
        )
    return bound


def _literal(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) or (isinstance(value, float) and abs(value) < float("inf")):
        return repr(value)
    if value is None:
        return "null"
    if isinstance(value, str) and "\x00" not in value:
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, (list, tuple)) and value:
        return "(" + ", ".join(_literal(name, item) for item in value) + ")"
    raise InputError(
        f":{name}: expected a string, a number, true, false, null or a list of them, got {type(value).__name__}"
    )
