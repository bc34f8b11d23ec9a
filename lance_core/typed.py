"""Frozen dataclasses from plain JSON data: specs of jobs, records of a table, references that a DAG hands on.

::

    @dataclass(frozen=True)
    class Part: name: str; sizes: tuple[int, ...] = ()

    from_plain(Part, {"name": "a", "sizes": [1]}, rules)             Part("a", (1,))
    from_plain(Part, {"name": "a", "sizes": ["b"]}, rules)           ValueError: sizes[0]: expected an integer, got 'b' (str)
    from_plain(Part, {"nane": "a"}, rules, where="spec")             ValueError: spec: unknown key 'nane'; did you mean ...

What a scalar may be, and how its refusal reads, is the caller's table. Standard library only: a DAG file loads this.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Rules:
    """`scalars`: for each type a function from a value and its place to the value; its ValueError names the place.

    `is_closed`: whether a key that is no field is refused; otherwise a newer release may have written it.
    """

    scalars: Mapping[Any, Callable[[object, str], Any]]
    is_closed: bool


def from_plain(cls: type[T], data: object, rules: Rules, *, where: str = "") -> T:
    """A dataclass from plain data. ValueError names the place of what is unknown, missing or of another type.

    Args:
        cls: the dataclass; its fields may be scalars, tuples, maps, unions, literals and other dataclasses.
        data: what JSON gave; an instance of another dataclass in it is taken as it is.
        rules: what scalars may be.
        where: the place of the data, for errors.
    """
    if not isinstance(data, Mapping):
        raise ValueError(f"{where}: expected an object, got {shown(data)}")
    fields = _fields_of(cls)  # type: ignore[arg-type]
    place = f"{where}: " if where else ""
    if rules.is_closed and not fields.keys() >= data.keys():
        name = next(name for name in data if name not in fields)
        raise ValueError(f"{place}unknown key {name!r}{_guess(str(name), fields)}")
    dot = f"{where}." if where else ""
    values = {name: _typed(fields[name][0], item, rules, dot + name) for name, item in data.items() if name in fields}
    for name, (_, is_required) in fields.items():
        if is_required and name not in values:
            raise ValueError(f"{place}{name!r} is missing")
    return cls(**values)


def shown(value: object) -> str:
    """A value and its type, for a message."""
    text = repr(value)
    return f"{text[:60]}{'…' if len(text) > 60 else ''} ({type(value).__name__})"


@functools.cache
def hints_of(cls: type[Any]) -> Mapping[str, Any]:
    """The fields of a dataclass with their types."""
    return typing.get_type_hints(cls)


@functools.cache
def _fields_of(cls: type[Any]) -> Mapping[str, tuple[Any, bool]]:
    """The type of each field, and whether it must be there."""
    hints, nothing = hints_of(cls), dataclasses.MISSING  # type: ignore[arg-type]
    fields = dataclasses.fields(cls)
    return {item.name: (hints[item.name], item.default is nothing and item.default_factory is nothing) for item in fields}


def _guess(name: str, known: Mapping[str, object]) -> str:
    import difflib  # DAG files import this module, and few of them have a name wrong

    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; known keys: {', '.join(sorted(known))}"


def _typed(hint: Any, value: object, rules: Rules, where: str) -> Any:
    if hint in rules.scalars:
        return rules.scalars[hint](value, where)
    if hint is Any:
        return value
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _one_of(arguments, value, rules, where)
    if origin is Literal:
        if value not in arguments:
            raise ValueError(f"{where}: expected one of {', '.join(map(repr, arguments))}; got {shown(value)}")
        return value
    if origin is tuple:
        if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
            raise ValueError(f"{where}: expected a list, got {shown(value)}")
        return tuple(_typed(arguments[0], item, rules, f"{where}[{index}]") for index, item in enumerate(value))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            raise ValueError(f"{where}: expected an object, got {shown(value)}")
        if arguments[1] is Any:
            return {str(name): item for name, item in value.items()}
        return {str(name): _typed(arguments[1], item, rules, f"{where}.{name}") for name, item in value.items()}
    return value if isinstance(value, hint) else from_plain(hint, value, rules, where=where)


def _one_of(options: Sequence[Any], value: object, rules: Rules, where: str) -> Any:
    if value is None and type(None) in options:
        return None
    failures: list[ValueError] = []
    for option in options:
        if option is not type(None):
            try:
                return _typed(option, value, rules, where)
            except ValueError as error:
                failures.append(error)
    raise failures[0]
