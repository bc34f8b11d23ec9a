"""The specification's error codes, as exceptions of this library.

::

    error_of(4, "no table sales$orders")       NotFoundError
    error_of(14, "...")                        RetryableConflictError
"""

from __future__ import annotations

from collections.abc import Mapping

from lance_core.errors import (
    AlreadyExistsError,
    InputError,
    LanceError,
    NotFoundError,
    RetryableConflictError,
    SchemaMismatchError,
    StoreError,
    StoreRefusedError,
    UnsupportedFeatureError,
)

UNSUPPORTED, TABLE_NOT_FOUND, TABLE_ALREADY_EXISTS = 0, 4, 5

_BY_CODE: Mapping[int, type[LanceError]] = {
    UNSUPPORTED: UnsupportedFeatureError,
    1: NotFoundError,  # a namespace
    2: AlreadyExistsError,
    3: InputError,  # a namespace that is not empty
    TABLE_NOT_FOUND: NotFoundError,
    TABLE_ALREADY_EXISTS: AlreadyExistsError,
    6: NotFoundError,
    7: AlreadyExistsError,
    8: NotFoundError,
    9: AlreadyExistsError,
    10: NotFoundError,
    11: NotFoundError,
    12: InputError,
    13: InputError,
    14: RetryableConflictError,
    15: StoreRefusedError,  # no permission
    16: StoreRefusedError,  # not authenticated
    17: StoreError,
    18: StoreError,
    19: InputError,  # a table in another state
    20: SchemaMismatchError,
    21: StoreError,  # throttled
    22: NotFoundError,
    23: AlreadyExistsError,
}

_BY_STATUS: Mapping[int, type[LanceError]] = {
    400: InputError,
    401: StoreRefusedError,
    403: StoreRefusedError,
    404: NotFoundError,
    405: UnsupportedFeatureError,
    406: UnsupportedFeatureError,
    409: AlreadyExistsError,
    501: UnsupportedFeatureError,
}


def error_of(code: int, message: str, *, uri: str | None = None) -> LanceError:
    """The exception of a code; StoreError, which is retryable, for one that is not known."""
    return _BY_CODE.get(code, StoreError)(message, uri=uri)


def error_of_status(status: int, message: str, *, uri: str | None = None) -> LanceError:
    """The exception of an HTTP status without a code. StoreError, which is retryable, for all that is not listed."""
    return _BY_STATUS.get(status, StoreError)(message, uri=uri)


def translated(error: Exception, *, uri: str | None = None) -> LanceError | None:
    """The error of another package's client as one of ours; None for one that has no code of the specification."""
    if isinstance(error, LanceError):
        return error
    code = getattr(error, "code", None)
    is_of_specification = any(kind.__name__ == "LanceNamespaceError" for kind in type(error).__mro__)
    return error_of(int(code), str(error), uri=uri) if is_of_specification and isinstance(code, int) else None
