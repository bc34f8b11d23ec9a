"""What obstore's errors were told by a store; `io.answers` says what that means.

::

    Generic S3 error: ... status code: 400 Bad Request: <?xml ...><Code>ExpiredToken</Code><Message>The ...</Message>
    Generic S3 error: DeleteObjects request failed for key a/b: Access Denied (code: AccessDenied)
    Generic S3 error: ... HTTP error: error sending request

The text is all there is: the code, the status and the message are read out of it, and the document around them, like what
only the engine needs, does not reach the user.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from html import unescape

import obstore.exceptions as theirs

from lance_core.errors import LanceError, StoreError
from lance_core.io.answers import StoreReply, error_of
from lance_core.io.objects.redirects import is_sent_elsewhere
from lance_core.shortage import is_shortage

_STATUS = re.compile(r"status code: (\d{3})")
_CODES = (re.compile(r"<Code>([^<]{1,200})</Code>"), re.compile(r"\(code: (\w{1,200})\)"))
_MESSAGE = re.compile(r"<Message>([^<]{1,1000})</Message>")
_DOCUMENT = re.compile(r":?\s*(?:\ufeff|ï»¿)?<[?!A-Za-z].*", re.DOTALL)
_DEBUG = re.compile(r"\n+Debug source:.*", re.DOTALL)
_QUERY = re.compile(r"(https?://[^\s?]+)\?\S*")
_NOISE = re.compile(
    r"Generic \w+ error: |Error performing [\w ]+ request: (?=Error performing)|, max_retries: \d+, retry_timeout: \S+"
)
_NO_ANSWER = f"credential provider: {StoreError.__name__}: "
"""obstore takes each error of a provider for a refusal; this one is that nobody answered."""
_CUT_OFF = ("error sending request", "error decoding response body", "timed out", "connection", "operation timed out")


@contextlib.contextmanager
def typed(path: str, *, uri: str, redact: Callable[[str], str], renews: bool = True) -> Iterator[None]:
    """Turn whatever obstore raises into an error of ours; the original is not chained, because it may hold secrets."""
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


def as_store_error(
    error: Exception, path: str, *, uri: str, redact: Callable[[str], str], renews: bool = True
) -> LanceError:
    """The error of ours that says the same."""
    return error_of(_answer(error), path, uri=uri, redact=redact, renews=renews)


def _answer(error: Exception) -> StoreReply:
    if is_sent_elsewhere(str(error)):
        return StoreReply("the store redirects to another host", status=307)
    text = _DEBUG.sub("", str(error))
    code = next((found[1] for found in (pattern.search(text) for pattern in _CODES) if found), "")
    given = _STATUS.search(text)
    status = int(given[1]) if given else _status_of(error)
    message = _shown(text, error)
    lowered = message.lower()
    is_cut_off = _NO_ANSWER in message or any(word in lowered for word in _CUT_OFF)
    return StoreReply(message, code, 0 if _NO_ANSWER in message else status, is_cut_off)


def _status_of(error: Exception) -> int:
    """Of the errors that obstore has classes for."""
    return next((status for kind, status in _KINDS if isinstance(error, kind)), 0)


_KINDS: tuple[tuple[type[Exception] | tuple[type[Exception], ...], int], ...] = (
    ((theirs.AlreadyExistsError, theirs.PreconditionError), 412),
    (FileNotFoundError, 404),
    (theirs.PermissionDeniedError, 403),
    (theirs.UnauthenticatedError, 401),
)


def _shown(text: str, error: Exception) -> str:
    """One line: what the engine says without its document, and the message that was in it."""
    found = _MESSAGE.search(text)
    short = _NOISE.sub("", _QUERY.sub(r"\1", _DOCUMENT.sub("", text)))
    kind = "" if type(error) is theirs.GenericError else f"{type(error).__name__}: "
    told = [" ".join(short.split()), " ".join(unescape(found[1]).split()) if found else ""]
    return kind + ": ".join(part for part in told if part)
