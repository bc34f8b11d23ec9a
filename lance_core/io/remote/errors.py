"""What fsspec's file systems were told by a store, requests that are repeated, and secrets that are taken out of texts.

What an answer means is decided in `io.answers`, for every engine alike. A request that failed in passing is repeated here,
and here only: the file systems' own ways to repeat are switched off, because loops in loops turn seconds into minutes.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from lance_core.errors import AlreadyExistsError, LanceError
from lance_core.fetch import Buffer
from lance_core.io.answers import NoAnswerError, StoreReply, TransientError, error_of
from lance_core.io.options import PLAIN_OPTIONS
from lance_core.shortage import is_shortage

T = TypeVar("T")

log = logging.getLogger("lance_core.io")

_FIRST_WAIT_SECONDS = 0.2
_LONGEST_WAIT_SECONDS = 10.0
_LONGEST_WAIT_FOR_AN_ANSWER = 2.0
"""A server that throttles wants longer waits; one that is restarted is there again within seconds, or not for long."""

_CUT_OFF = frozenset(
    {"EndpointConnectionError", "ConnectTimeoutError", "ReadTimeoutError", "ConnectionClosedError", "ResponseStreamingError"}
    | {"ServerDisconnectedError", "ClientOSError", "ClientConnectorError", "ClientPayloadError", "IncompleteReadError"}
    | {"ServiceRequestError", "ServiceResponseError", "IncompleteRead", "ChunkedEncodingError"}
)
"""Of botocore, aiohttp, azure-core, http.client and requests."""
_REFUSED_NUMBERS = frozenset({errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT, errno.EROFS})
_MIN_SECRET_SIZE = 6


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a request is repeated, and for how many seconds at most: `client_max_retries`, `client_retry_timeout`.

    Ten repetitions take about 15 seconds where nobody answers, and about 50 where the store asks for patience.
    """

    times: int = 10
    seconds: float = 180.0


DEFAULT_RETRIES = Retries()


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
def typed(path: str, *, uri: str, redact: Redactor, renews: bool = True) -> Iterator[None]:
    """Turn whatever a backend raises into an error of ours; the original is not chained, because it may hold secrets."""
    failure: LanceError | None = None
    try:
        yield
    except LanceError:
        raise
    except Exception as error:
        if is_shortage(error):
            raise
        failure = as_store_error(error, path, uri=uri, redact=redact, renews=renews)
    if failure is not None:
        raise failure from None


def as_store_error(error: Exception, path: str, *, uri: str, redact: Redactor, renews: bool = True) -> LanceError:
    """The error of ours that says the same; one of ours that a library has wrapped is itself."""
    for link in _chain(error):
        if isinstance(link, LanceError):
            return link
    status = _status_of(error) or _status_of_kind(error)
    message = " ".join(f"{type(error).__name__}: {error}".split())
    answer = StoreReply(message, _code_of(error), status, not status and _is_cut_off(error))
    return error_of(answer, path, uri=uri, redact=redact, renews=renews)


def _status_of_kind(error: Exception) -> int:
    """The status that an error of Python stands for."""
    if isinstance(error, FileExistsError):
        return 412
    if isinstance(error, (FileNotFoundError, IsADirectoryError)):
        return 404
    return 403 if isinstance(error, PermissionError) or getattr(error, "errno", None) in _REFUSED_NUMBERS else 0


def retrying(action: Callable[[], T], retries: Retries = DEFAULT_RETRIES) -> T:
    """Repeat an action that may be repeated, while its failure is a passing one; waits double, and vary by a quarter."""
    deadline = time.monotonic() + retries.seconds
    for number in range(retries.times):
        try:
            return action()
        except TransientError as error:
            longest = _LONGEST_WAIT_FOR_AN_ANSWER if isinstance(error, NoAnswerError) else _LONGEST_WAIT_SECONDS
            wait = min(_FIRST_WAIT_SECONDS * 2**number, longest) * random.uniform(0.75, 1.25)
            if time.monotonic() + wait > deadline:
                raise
            if number == 0:
                log.info("%s; repeating the request, %d times at most", error, retries.times)
            time.sleep(wait)
    return action()


def put_settled(create: Callable[[], None], read: Callable[[], Buffer], sent: Buffer, retries: Retries) -> None:
    """A conditional put that may be sent again. After a failure that may have been only the reply's, "exists" means that
    what is there is compared with what was sent."""
    tries = 0

    def put() -> None:
        nonlocal tries
        tries += 1
        try:
            create()
        except AlreadyExistsError:
            if tries == 1 or bytes(read()) != bytes(sent):
                raise

    retrying(put, retries)


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen = 0
    link: BaseException | None = error
    while link is not None and seen < 5:
        yield link
        link = link.__cause__ or link.__context__
        seen += 1


def _is_cut_off(error: BaseException) -> bool:
    """Whether there was no answer at all: of the network or of a library over it, which each have their own names for it."""
    return any(_is_lost(link) for link in _chain(error))


def _is_lost(link: BaseException) -> bool:
    return isinstance(link, (TimeoutError, ConnectionError)) or type(link).__name__ in _CUT_OFF


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
        if _is_lost(link):
            return 0  # behind it may stand what aiohttp's parser calls a status of 400
        response: Any = getattr(link, "response", None)
        if isinstance(response, dict):
            return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        for name in ("status_code", "code", "status"):
            value = getattr(link, name, None)
            if isinstance(value, int) or (isinstance(value, str) and value.isdigit()):
                return int(value)
    return 0
