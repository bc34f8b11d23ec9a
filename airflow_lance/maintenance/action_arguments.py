"""The requests of the pages' buttons: the actions, their arguments and the types of these. Standard library only.

::

    check_arguments("tag", {"name": "prod", "version": 7})    -> {"name": "prod", "version": 7, "action": "set"}
    check_arguments("tag", {"nmae": "prod"})                   -> InputError
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lance_core.errors import InputError

MAX_TEXT = 1024


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument: its types, whether it must be given, what it is when it is not, which words it may be, and whether no
    letter is a text."""

    types: tuple[type, ...]
    required: bool = False
    default: object = None
    words: tuple[str, ...] = ()
    may_be_empty: bool = False


_TEXT = Argument((str,), required=True)
_VERSION = Argument((int,))
_SAID = Argument((str,), may_be_empty=True)
ACTIONS: Mapping[str, Mapping[str, Argument]] = MappingProxyType(
    {
        "compact": {},
        "merge_columns": {},
        "optimize_indices": {},
        "cleanup": {"older_than_days": Argument((int, float), default=7.0), "retain_versions": Argument((int,), default=3)},
        "gc": {},
        "tag": {
            "name": _TEXT,
            "version": _VERSION,
            "action": Argument((str,), default="set", words=("set", "create", "delete")),
        },
        "restore": {"version": Argument((int,), required=True), "expected_version": Argument((int,), required=True)},
        "abort": {"identity": _TEXT, "attempt": Argument((str,))},
        "settle": {"identity": _TEXT, "version": Argument((int,), required=True)},
        "describe": {"column": Argument((str,)), "description": _SAID, "owner": _SAID, "fresh_within": _SAID},
    }
)


def check_arguments(action: str, given: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments of an action with its defaults. InputError for an unknown action, argument, type or word."""
    known = ACTIONS.get(action)
    if known is None:
        raise InputError(f"unknown action {action!r}", cure=f"Known actions: {', '.join(sorted(ACTIONS))}.")
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise InputError(
            f"{action}: unknown argument {unknown[0]!r}", cure=f"Known arguments: {', '.join(known) or 'none'}."
        )
    return {name: _checked(action, name, argument, given.get(name)) for name, argument in known.items()}


def _checked(action: str, name: str, argument: Argument, value: object) -> object:
    if value is None:
        if argument.required:
            raise InputError(f"{action}: {name} is missing")
        return argument.default
    if isinstance(value, bool) or not isinstance(value, argument.types):
        expected = " or ".join(kind.__name__ for kind in argument.types)
        raise InputError(f"{action}: {name} must be {expected}, got {type(value).__name__}")
    if isinstance(value, str) and not (0 if argument.may_be_empty else 1) <= len(value) <= MAX_TEXT:
        raise InputError(f"{action}: {name} must have {0 if argument.may_be_empty else 1} to {MAX_TEXT} letters")
    if isinstance(value, int | float) and value < 0:
        raise InputError(f"{action}: {name} must not be negative, got {value}")
    if argument.words and value not in argument.words:
        raise InputError(f"{action}: {name} must be one of {', '.join(argument.words)}, got {value!r}")
    return value
