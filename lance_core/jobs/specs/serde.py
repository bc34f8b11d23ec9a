"""Frozen dataclasses to and from plain JSON data, checked on the way in.

A field is written only when it differs from its default. On the way in every key must be a field and every value must
have the field's declared type; the error names the path of the value::

    {"uri": 3}            -> InputError: spec.uri: expected text, got 3 (int)
    {"urii": "x"}         -> InputError: spec: unknown key 'urii'; did you mean 'uri'?

Standard library only.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from lance_core.errors import InputError
from lance_core.jobs.specs.secret import HIDDEN, Secret, as_secret

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
    if not isinstance(data, Mapping):
        raise InputError(f"{where}: expected an object, got {_shown(data)}")
    known = {item.name: item for item in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for name in data:
        if name not in known:
            raise InputError(f"{where}: unknown key {name!r}{_guess(str(name), known)}")
    hints = hints_of(cls)  # type: ignore[arg-type]
    values = {name: _check(hints[name], item, f"{where}.{name}") for name, item in data.items()}
    for name, item in known.items():
        required = item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING
        if required and name not in values:
            raise InputError(f"{where}: {name!r} is missing")
    return cls(**values)


@functools.cache
def hints_of(cls: type[Any]) -> Mapping[str, Any]:
    """The fields of a dataclass with their types."""
    return typing.get_type_hints(cls)


def _is_default(item: dataclasses.Field[Any], value: object) -> bool:
    if item.default is not dataclasses.MISSING:
        return bool(value == item.default)
    return item.default_factory is not dataclasses.MISSING and bool(value == item.default_factory())


def _is_sensitive(name: str, value: object) -> bool:
    return isinstance(value, str) and any(word in name.lower() for word in _SENSITIVE)


def _guess(name: str, known: Mapping[str, object]) -> str:
    import difflib  # DAG files import this module, and few of them have a name wrong

    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; known keys: {', '.join(sorted(known))}"


def _shown(value: object) -> str:
    return f"{value!r} ({type(value).__name__})"


def _check(hint: Any, value: object, where: str) -> Any:
    if hint is Any:
        return value
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return _check_union(typing.get_args(hint), value, where)
    if origin is Literal:
        return _check_literal(typing.get_args(hint), value, where)
    if origin is tuple:
        return _check_list(typing.get_args(hint)[0], value, where)
    if origin in (dict, Mapping):
        return _check_map(typing.get_args(hint)[1], value, where)
    if hint is Secret:
        return as_secret(value, where=where)
    if dataclasses.is_dataclass(hint):
        return value if isinstance(value, hint) else from_plain(hint, value, where=where)  # type: ignore[arg-type]
    return _SCALARS[hint](value, where)


def _check_union(options: Sequence[Any], value: object, where: str) -> Any:
    if value is None and type(None) in options:
        return None
    failures: list[InputError] = []
    for option in options:
        if option is type(None):
            continue
        try:
            return _check(option, value, where)
        except InputError as error:
            failures.append(error)
    raise failures[0]


def _check_literal(options: Sequence[Any], value: object, where: str) -> Any:
    if value not in options:
        raise InputError(f"{where}: expected one of {', '.join(map(repr, options))}; got {_shown(value)}")
    return value


def _check_list(hint: Any, value: object, where: str) -> tuple[Any, ...]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        raise InputError(f"{where}: expected a list, got {_shown(value)}")
    return tuple(_check(hint, item, f"{where}[{index}]") for index, item in enumerate(value))


def _check_map(hint: Any, value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"{where}: expected an object, got {_shown(value)}")
    return {str(name): _check(hint, item, f"{where}.{name}") for name, item in value.items()}


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"{where}: expected a string, got {_shown(value)}")
    return value


def _integer(value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{where}: expected an integer, got {_shown(value)}")
    return value


def _number(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f"{where}: expected a number, got {_shown(value)}")
    return float(value)


def _flag(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"{where}: expected true or false, got {_shown(value)}")
    return value


_SCALARS: Mapping[Any, Callable[[object, str], Any]] = {str: _text, int: _integer, float: _number, bool: _flag}
