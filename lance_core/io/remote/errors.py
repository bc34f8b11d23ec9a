"""Translate errors of object stores: typed, without secrets, and retried if a retry can help.

::

    FileNotFoundError, 404                    -> NotFoundError
    FileExistsError, 412 PreconditionFailed   -> AlreadyExistsError
    403, 401, AccessDenied, a quota, a full disk -> StoreRefusedError, at once: a retry cannot help
    400, whatever else                        -> StoreError, at once
    503 SlowDown, 429, timeouts, resets       -> StoreError, after a few tries with growing waits
"""

from __future__ import annotations

import contextlib
import errno
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from lance_core.errors import AlreadyExistsError, LanceError, NotFoundError, StoreError, StoreRefusedError
from lance_core.io.options import PLAIN_OPTIONS

T = TypeVar("T")

_FIRST_WAIT_SECONDS = 0.2
_LONGEST_WAIT_SECONDS = 10.0

_TRANSIENT_CODES = frozenset(
    {"SlowDown", "Throttling", "ThrottlingException", "RequestTimeout", "InternalError", "ServiceUnavailable", "ServerBusy"}
)
_TRANSIENT_STATUSES = frozenset({408, 409, 429, 500, 502, 503, 504})
_CUT_OFF = frozenset(
    {"EndpointConnectionError", "ConnectTimeoutError", "ReadTimeoutError", "ConnectionClosedError", "ResponseStreamingError"}
    | {"ServerDisconnectedError", "ClientOSError", "ClientConnectorError", "ClientPayloadError", "IncompleteReadError"}
    | {"ServiceRequestError", "ServiceResponseError", "IncompleteRead", "ChunkedEncodingError"}
)
"""Of botocore, aiohttp, azure-core, http.client and requests."""
_EXISTS_CODES = frozenset({"PreconditionFailed", "BlobAlreadyExists", "ConditionNotMet"})
REFUSED_STATUSES = frozenset({401, 403, 507})
_REFUSED_CODES = frozenset(
    {"AccessDenied", "AccountProblem", "AuthorizationFailure", "AuthorizationPermissionMismatch", "InvalidAccessKeyId"}
    | {"QuotaExceeded", "SignatureDoesNotMatch", "XMinioStorageFull"}
)
_REFUSED_NUMBERS = frozenset({errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT, errno.EROFS})
REFUSED_CURE = "Check the permissions of the credentials and the quota; a retry cannot help."
_MIN_SECRET_SIZE = 6


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a request is repeated, and for how many seconds at most: `client_max_retries`, `client_retry_timeout`."""

    times: int = 5
    seconds: float = 180.0


DEFAULT_RETRIES = Retries()


class TransientError(StoreError):
    """Throttled, timed out, or the server's fault: the same request may well succeed in a moment."""


class Redactor:
    """Takes the values of storage options out of texts."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._secrets = sorted(
            (value for name, value in options.items() if name not in PLAIN_OPTIONS and len(value) >= _MIN_SECRET_SIZE),
            key=len,
            reverse=True,
        )

    def __call__(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


@contextlib.contextmanager
def typed(path: str, *, uri: str, redact: Redactor) -> Iterator[None]:
    """Turn whatever a backend raises into an error of ours; the original is not chained, because it may hold secrets."""
    failure: LanceError | None = None
    try:
        yield
    except LanceError:
        raise
    except Exception as error:
        failure = as_store_error(error, path, uri=uri, redact=redact)
    if failure is not None:
        raise failure from None


def as_store_error(error: Exception, path: str, *, uri: str, redact: Redactor) -> LanceError:
    """The error of ours that says the same."""
    code, status = _code_of(error), _status_of(error)
    if isinstance(error, FileExistsError) or status == 412 or code in _EXISTS_CODES:
        return AlreadyExistsError(f"{path!r} already exists", uri=uri)
    if isinstance(error, (FileNotFoundError, IsADirectoryError)) or status == 404:
        return NotFoundError(f"no object {path!r} in {uri}", uri=uri)
    text = redact(f"{uri}: {path}: {type(error).__name__}: {error}")
    if code in _TRANSIENT_CODES or status in _TRANSIENT_STATUSES or (not status and _is_cut_off(error)):
        return TransientError(text, uri=uri)
    if status in REFUSED_STATUSES or code in _REFUSED_CODES or _is_refusal(error):
        return StoreRefusedError(text, uri=uri, cure=REFUSED_CURE)
    return StoreError(text, uri=uri)


def _is_refusal(error: Exception) -> bool:
    return isinstance(error, PermissionError) or getattr(error, "errno", None) in _REFUSED_NUMBERS


def retrying(action: Callable[[], T], retries: Retries = DEFAULT_RETRIES) -> T:
    """Repeat an action that may be repeated, while its failure is a passing one; waits double, and vary by half."""
    deadline = time.monotonic() + retries.seconds
    for number in range(retries.times):
        try:
            return action()
        except TransientError:
            wait = min(_FIRST_WAIT_SECONDS * 2**number, _LONGEST_WAIT_SECONDS) * random.uniform(0.5, 1.5)
            if time.monotonic() + wait > deadline:
                raise
            time.sleep(wait)
    return action()


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen = 0
    link: BaseException | None = error
    while link is not None and seen < 5:
        yield link
        link = link.__cause__ or link.__context__
        seen += 1


def _is_cut_off(error: BaseException) -> bool:
    """Whether there was no answer at all: of the network or of a library over it, which each have their own names for it."""
    return any(
        isinstance(link, (TimeoutError, ConnectionError)) or type(link).__name__ in _CUT_OFF for link in _chain(error)
    )


def _code_of(error: BaseException) -> str:
    for link in _chain(error):
        response: Any = getattr(link, "response", None)
        if isinstance(response, dict):
            return str(response.get("Error", {}).get("Code", ""))
        code = getattr(link, "error_code", None)
        if code:
            return str(getattr(code, "value", code))
    return ""


def _status_of(error: BaseException) -> int:
    for link in _chain(error):
        response: Any = getattr(link, "response", None)
        if isinstance(response, dict):
            return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        for name in ("status_code", "code", "status"):
            value = getattr(link, name, None)
            if isinstance(value, int) or (isinstance(value, str) and value.isdigit()):
                return int(value)
    return 0
