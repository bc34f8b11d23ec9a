"""Errors of the pages: a code that the front end knows, a message for people, an HTTP status."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from lance_core.errors import (
    FormatError,
    IncompatibleConflictError,
    InputError,
    LanceError,
    NotFoundError,
    StoreError,
    UnsupportedEncodingError,
    UnsupportedFeatureError,
    UnsupportedRecordError,
    UnsupportedVersionError,
)

_UNSUPPORTED = (UnsupportedVersionError, UnsupportedFeatureError, UnsupportedRecordError, UnsupportedEncodingError)

STATUS: Mapping[str, int] = MappingProxyType(
    {
        "invalid": 400,
        "not_authenticated": 401,
        "forbidden": 403,
        "rows_forbidden": 403,
        "cross_site": 403,
        "not_found": 404,
        "no_actions_dag": 409,
        "failed": 500,
        "unreachable": 502,
        "damaged": 502,
        "unsupported": 502,
        "busy": 503,
        "timeout": 504,
    }
)


_CODES: tuple[tuple[tuple[type[LanceError], ...], str, str], ...] = (
    ((NotFoundError,), "not_found", ""),
    ((InputError, IncompatibleConflictError), "invalid", ""),
    ((StoreError,), "unreachable", "Check the connection and the store."),
    (_UNSUPPORTED, "unsupported", ""),
    ((FormatError,), "damaged", "Run the doctor with `deep`, or restore an older version."),
    ((LanceError,), "failed", ""),
)
"""Classes of errors, their code and cure; the first row that fits counts."""


class PageError(Exception):
    """What went wrong, for the browser. `code` is a key of `STATUS`."""

    def __init__(self, code: str, message: str, *, cure: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.cure = cure

    @property
    def status(self) -> int:
        """The HTTP status."""
        return STATUS[self.code]

    def to_dict(self) -> dict[str, object]:
        """Code, message and cure."""
        return {"code": self.code, "message": self.message, "cure": self.cure}


def page_error(error: BaseException) -> PageError:
    """Return what the browser receives about any error. Of an unknown one only its class: its text may hold anything."""
    if isinstance(error, PageError):
        return error
    for kinds, code, cure in _CODES:
        if isinstance(error, kinds):
            return PageError(code, str(error), cure=cure)
    if isinstance(error, TimeoutError):
        return PageError("timeout", "The store did not answer in time.", cure="Try again, or check the connection.")
    if isinstance(error, OSError):
        return PageError("unreachable", f"{type(error).__name__}: {error.strerror or 'the store cannot be reached'}")
    return PageError("failed", f"{type(error).__name__}: see the API server's log.")


def observed_error(text: str) -> dict[str, object]:
    """Return the error of a table that could not be observed, from `Type: message` as `observe` writes it."""
    name, _, message = text.partition(": ")
    kind = next((kind for error, kind in _kinds().items() if error == name), "unreachable")
    return PageError(kind, message or text, cure=_CURES.get(kind, "")).to_dict()


_CURES: Mapping[str, str] = MappingProxyType(
    {
        "not_found": "It may have been dropped; its folder is still there.",
        "unreachable": "Check the connection and the store.",
        "damaged": "Run the doctor with `deep`, or restore an older version.",
        "invalid": "Check the options of the connection.",
    }
)


def _kinds() -> dict[str, str]:
    """What is wrong with a table, by the name of the error class. Damage is claimed for damage alone: what is not of the
    format, such as a refused request, says something about the store."""
    kinds: tuple[type[LanceError], ...] = (LanceError, *_all_below(LanceError))
    return {kind.__name__: next(code for among, code, _ in _CODES if issubclass(kind, among)) for kind in kinds}


def _all_below(kind: type[LanceError]) -> Iterator[type[LanceError]]:
    for below in kind.__subclasses__():
        yield below
        yield from _all_below(below)
