"""Frozen dataclasses to and from plain JSON data, checked on the way in.

A field is written only when it differs from its default. On the way in every key must be a field and every value must
have the field's declared type; the error names the path of the value::

    {"uri": 3}            -> InputError: spec.uri: expected text, got 3 (int)
    {"urii": "x"}         -> InputError: spec: unknown key 'urii'; did you mean 'uri'?

Standard library only.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from lance_core import typed
from lance_core.errors import InputError
from lance_core.jobs.specs.secret import HIDDEN, Secret, as_secret
from lance_core.typed import hints_of as hints_of
from lance_core.typed import shown

T = TypeVar("T")

_SENSITIVE = ("password", "secret", "token", "credential", "access_key", "account_key", "sas")


def to_plain(value: object, *, redact: bool = False) -> Any:
    """JSON data of a dataclass (or a container of them). With `redact`, literal secrets and sensitive options are hidden."""
    if isinstance(value, Secret):
        return HIDDEN if redact and value.is_literal else value.to_json()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            item.name: to_plain(getattr(value, item.name), redact=redact)
            for item in dataclasses.fields(value)
            if not _is_default(item, getattr(value, item.name))
        }
    if isinstance(value, Mapping):
        return {
            str(name): HIDDEN if redact and _is_sensitive(str(name), item) else to_plain(item, redact=redact)
            for name, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [to_plain(item, redact=redact) for item in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    raise InputError(
        f"a job spec may only contain plain data, got {type(value).__name__}",
        cure="Use strings, numbers, lists and objects.",
    )


def from_plain(cls: type[T], data: object, *, where: str = "spec") -> T:
    """A dataclass from JSON data. InputError that names the place for anything unknown, missing or of another type."""
    try:
        return typed.from_plain(cls, data, _RULES, where=where)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(str(error)) from None


def _is_default(item: dataclasses.Field[Any], value: object) -> bool:
    if item.default is not dataclasses.MISSING:
        return bool(value == item.default)
    return item.default_factory is not dataclasses.MISSING and bool(value == item.default_factory())


def _is_sensitive(name: str, value: object) -> bool:
    return isinstance(value, str) and any(word in name.lower() for word in _SENSITIVE)


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"{where}: expected a string, got {shown(value)}")
    return value


def _integer(value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{where}: expected an integer, got {shown(value)}")
    return value


def _number(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f"{where}: expected a number, got {shown(value)}")
    return float(value)


def _flag(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"{where}: expected true or false, got {shown(value)}")
    return value


_RULES = typed.Rules(
    {
        str: _text,
        int: _integer,
        float: _number,
        bool: _flag,
        Secret: lambda value, where: as_secret(value, where=where),
    },
    is_closed=True,
)
