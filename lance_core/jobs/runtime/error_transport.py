"""An error as plain data, so that it crosses from an executor to the driver and from a driver to the orchestrator.

::

    SchemaMismatchError("column 'id' ...") <-> {"type": "SchemaMismatchError", "message": "column 'id' ...",
                                                "retryable": false, "uri": "/t"}

What is not a LanceError keeps its class name and text, and counts as retryable: an executor that was lost or a network
that hung says nothing about the work itself. Standard library only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lance_core.errors import LanceError

_FACTS = ("uri", "version", "other_version", "operation")

EXIT_OK = 0
EXIT_UNEXPECTED = 70
EXIT_NOT_RETRYABLE = 65
EXIT_RETRYABLE = 75
"""Exit statuses of a job's process, after sysexits.h: EX_SOFTWARE, EX_DATAERR, EX_TEMPFAIL."""


class ForeignError(LanceError):
    """Something that is not this library's failed (an executor was lost, a user's function raised); worth another try."""

    retryable = True


def failure_to_plain(error: BaseException) -> dict[str, Any]:
    """JSON data of an error. Messages of LanceErrors never carry credentials."""
    plain: dict[str, Any] = {"type": type(error).__name__, "message": str(error) or type(error).__name__}
    if isinstance(error, LanceError):
        plain["retryable"] = error.retryable
        plain.update({name: getattr(error, name) for name in _FACTS if getattr(error, name) is not None})
    else:
        plain["retryable"] = True
    return plain


def failure_from_plain(plain: Mapping[str, Any]) -> LanceError:
    """The error again, as the class it was; a class this library does not have becomes one that names it and keeps
    whether it may be retried."""
    kind = {cls.__name__: cls for cls in _all_errors(LanceError)}.get(str(plain.get("type")))
    facts = {name: plain[name] for name in _FACTS if name in plain}
    message = str(plain.get("message", "unknown failure"))
    if kind is None:
        return (ForeignError if plain.get("retryable") else LanceError)(f"{plain.get('type')}: {message}", **facts)
    return kind(message, **facts)


def exit_status(error: BaseException) -> int:
    """Which status a process ends with for an error."""
    if not isinstance(error, LanceError):
        return EXIT_UNEXPECTED
    return EXIT_RETRYABLE if error.retryable else EXIT_NOT_RETRYABLE


def _all_errors(cls: type[LanceError]) -> Iterator[type[LanceError]]:
    yield cls
    for child in cls.__subclasses__():
        yield from _all_errors(child)
