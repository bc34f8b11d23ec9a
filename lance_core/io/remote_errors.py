"""What object stores raise, as our errors: typed, without secrets, and repeated where repeating helps.

::

    FileNotFoundError, 404                    -> NotFoundError
    FileExistsError, 412 PreconditionFailed   -> AlreadyExistsError
    503 SlowDown, timeouts, resets            -> StoreError, after a few tries with growing waits
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from lance_core.errors import AlreadyExistsError, LanceError, NotFoundError, StoreError

T = TypeVar("T")

MAX_TRIES = 4
_FIRST_WAIT_SECONDS = 0.2

_TRANSIENT_CODES = frozenset(
    {"SlowDown", "Throttling", "ThrottlingException", "RequestTimeout", "InternalError", "ServiceUnavailable", "ServerBusy"}
)
_TRANSIENT_STATUSES = frozenset({408, 409, 429, 500, 502, 503, 504})
_EXISTS_CODES = frozenset({"PreconditionFailed", "BlobAlreadyExists", "ConditionNotMet"})
# Values of these options are no secrets, and messages without them would say nothing.
_PLAIN_OPTIONS = frozenset(
    {"region", "aws_region", "endpoint", "aws_endpoint", "endpoint_url", "aws_endpoint_url", "account_name", "project"}
    | {"dynamodb_endpoint"}
)
_MIN_SECRET_SIZE = 6


class TransientError(StoreError):
    """Throttled, timed out, or the server's fault: the same request may well succeed in a moment."""


class Redactor:
    """Takes the values of storage options out of texts."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._secrets = sorted(
            (value for name, value in options.items() if name not in _PLAIN_OPTIONS and len(value) >= _MIN_SECRET_SIZE),
            key=len,
            reverse=True,
        )

    def __call__(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


@contextlib.contextmanager
def typed(path: str, *, uri: str, redact: Redactor) -> Iterator[None]:
    """Turn whatever a backend raises into an error of ours; the original is not chained, for it may hold secrets."""
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
        return AlreadyExistsError(f"{path!r} exists already", uri=uri)
    if isinstance(error, (FileNotFoundError, IsADirectoryError)) or status == 404:
        return NotFoundError(f"no object {path!r} in {uri}", uri=uri)
    text = redact(f"{uri}: {path}: {type(error).__name__}: {error}")
    if code in _TRANSIENT_CODES or status in _TRANSIENT_STATUSES or isinstance(error, (TimeoutError, ConnectionError)):
        return TransientError(text, uri=uri)
    return StoreError(text, uri=uri)


def retrying(action: Callable[[], T]) -> T:
    """Repeat an action that may be repeated, while its failure is a passing one."""
    for number in range(MAX_TRIES - 1):
        try:
            return action()
        except TransientError:
            time.sleep(_FIRST_WAIT_SECONDS * 2**number * random.uniform(0.5, 1.5))
    return action()


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen = 0
    link: BaseException | None = error
    while link is not None and seen < 5:
        yield link
        link = link.__cause__ or link.__context__
        seen += 1


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
