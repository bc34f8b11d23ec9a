"""Keyword arguments written out once: a TypedDict shows their names and types to editors, type checkers and `help()`.

::

    class OpenOptions(TypedDict, total=False):
        session: object                                    accepted
        table_id: Annotated[None, NOT_IMPLEMENTED]         refused by name, unless it is None

    @written_out(OpenOptions)
    def dataset(uri, **options: Unpack[OpenOptions]): check_options("dataset", options, OpenOptions)

An argument that nobody knows is a TypeError, as for any function. A module with such a TypedDict has no
`from __future__ import annotations`: as texts its marks would be lost.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ForwardRef, TypeVar, get_args

from lance_core.errors import InputError

_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class NotImplementedHere:
    """The mark of an argument that would change the result and is not implemented; `nothing` are values without an
    effect, besides None."""

    nothing: tuple[object, ...] = ()


NOT_IMPLEMENTED = NotImplementedHere()


def check_options(verb: str, given: Mapping[str, object], kind: type) -> None:
    """Raise InputError for arguments that are not implemented, TypeError for unknown ones."""
    known = kind.__annotations__
    for name, value in given.items():
        if name not in known:
            raise TypeError(f"{verb}() got an unexpected keyword argument {name!r}")
        mark = _mark(known[name])
        if mark is not None and value is not None and value not in mark.nothing:
            raise InputError(f"{verb}: the option {name}={value!r} is not implemented", cure="Leave it out.")


def written_out(kind: type) -> Callable[[_Function], _Function]:
    """Show the arguments of a TypedDict in a function's signature, in the place of its `**options`."""

    for annotation in kind.__annotations__.values():
        _mark(annotation)  # refuses texts when the module is imported

    def mark(function: _Function) -> _Function:
        signature = inspect.signature(function)
        plain = [item for item in signature.parameters.values() if item.kind is not item.VAR_KEYWORD]
        taken = {item.name for item in plain}
        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
            for name, annotation in kind.__annotations__.items()
            if name not in taken
        ]
        function.__signature__ = signature.replace(parameters=[*plain, *more])  # type: ignore[attr-defined]
        return function

    return mark


def _mark(annotation: Any) -> NotImplementedHere | None:
    if isinstance(annotation, (str, ForwardRef)):
        raise TypeError(f"the annotation {annotation!r} is a text, so that its mark is lost")
    return next((item for item in get_args(annotation)[1:] if isinstance(item, NotImplementedHere)), None)
