"""Translate errors of obstore: typed, without secrets and without internal details.

::

    FileNotFoundError                            -> NotFoundError
    AlreadyExistsError, PreconditionError        -> AlreadyExistsError
    a status of 429 or 5xx, no answer at all     -> TransientError, a StoreError
    a status of 401, 403 or 507                  -> StoreRefusedError: a retry cannot help
    whatever else                                -> StoreError

A 409 of S3 (`ConditionalRequestConflict`) means that another conditional put is under way, not that an object exists.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator

import obstore.exceptions as theirs

from lance_core.errors import AlreadyExistsError, LanceError, NotFoundError, StoreError, StoreRefusedError
from lance_core.io.remote.errors import REFUSED_CURE, REFUSED_STATUSES, TransientError

_STATUS = re.compile(r"status code: (\d{3})")
_DEBUG = re.compile(r"\n+Debug source:.*", re.DOTALL)
_QUERY = re.compile(r"(https?://[^\s?]+)\?\S*")
_NOISE = re.compile(
    r"Generic \w+ error: |Error performing [\w ]+ request: (?=Error performing)|, max_retries: \d+, retry_timeout: \S+"
)
_TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})
_NO_ANSWER = f"credential provider: {StoreError.__name__}: "
"""obstore takes each error of a provider for a refusal; this one is that nobody answered."""
_CUT_OFF = ("error sending request", "error decoding response body", "timed out", "connection", "operation timed out")
_CONFLICT = ("ConditionalRequestConflict", "OperationAborted")


@contextlib.contextmanager
def typed(path: str, *, uri: str, redact: Callable[[str], str]) -> Iterator[None]:
    """Turn whatever obstore raises into an error of ours; the original is not chained, because it may hold secrets."""
    failure: LanceError | None = None
    try:
        yield
    except LanceError:
        raise
    except Exception as error:
        failure = as_store_error(error, path, uri=uri, redact=redact)
    if failure is not None:
        raise failure from None


def as_store_error(error: Exception, path: str, *, uri: str, redact: Callable[[str], str]) -> LanceError:
    """The error of ours that says the same."""
    message = _NOISE.sub("", _QUERY.sub(r"\1", _DEBUG.sub("", str(error)))).strip()
    where = f"{uri}: {path}" if path else uri
    if isinstance(error, (theirs.AlreadyExistsError, theirs.PreconditionError)):
        if any(word in message for word in _CONFLICT):
            return TransientError(redact(f"{where}: {message}"), uri=uri)
        return AlreadyExistsError(f"{path!r} already exists", uri=uri)
    if isinstance(error, FileNotFoundError):
        return NotFoundError(f"no object {path!r} in {uri}", uri=uri)
    kind = "" if type(error) is theirs.GenericError else f"{type(error).__name__}: "
    text = redact(f"{where}: {kind}{message}")
    found = _STATUS.search(message)
    status = int(found[1]) if found else 0
    is_cut_off = not status and any(word in message.lower() for word in _CUT_OFF)
    if status in _TRANSIENT or is_cut_off or (status == 409 and any(word in message for word in _CONFLICT)):
        return TransientError(text, uri=uri)
    if _NO_ANSWER in message:
        return TransientError(text, uri=uri)
    if status in REFUSED_STATUSES or isinstance(error, (theirs.PermissionDeniedError, theirs.UnauthenticatedError)):
        return StoreRefusedError(text, uri=uri, cure=REFUSED_CURE)
    return StoreError(text, uri=uri)
