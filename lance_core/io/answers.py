"""What an object store answered, and the error of ours that says the same: one table for every engine and every cloud.

::

    404 NoSuchKey                                     NotFoundError
    404 NoSuchBucket, ContainerNotFound               StoreRefusedError: the table is not what is missing
    412, PreconditionFailed, ConditionNotMet          AlreadyExistsError
    429, 5xx, SlowDown, OperationAborted              TransientError: the same request may succeed in a moment
    nothing at all                                    NoAnswerError, a TransientError
    ExpiredToken                                      StoreError where the keys renew themselves, else StoreRefusedError
    301, 302, 307, 308, PermanentRedirect             StoreRefusedError: nothing goes to an address that was not configured
    401, 403, 507, AccessDenied, a quota, a full disk StoreRefusedError: a retry cannot help
    whatever else                                     StoreError

A code says more than a status, and is asked first: of many objects deleted at once each has a code of its own in an answer
with status 200, and S3's 409 (`ConditionalRequestConflict`) is no object that exists. Engines bring what they were told in
their own ways (`objects.store`, `remote.errors`); what it means is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from lance_core.errors import AlreadyExistsError, LanceError, NotFoundError, StoreError, StoreRefusedError

Meaning = Literal["absent", "no bucket", "exists", "transient", "no answer", "expired", "moved", "refused", "failed"]

REFUSED_CURE = "Check the permissions of the credentials and the quota; a retry cannot help."
_BUCKET_CURE = "Create the bucket, or correct the uri; tables are created by writing to them, buckets are not."
_EXPIRED_CURE = "Renew the keys where they are kept, or use ones that renew themselves: aws_role_arn, a machine's identity."
REDIRECTS = (301, 302, 303, 307, 308)
MOVED_CURE = "Configure the address that answers: the endpoint, or for a bucket of AWS its region (aws_region)."


class TransientError(StoreError):
    """Throttled, timed out, or the server's fault: the same request may well succeed in a moment."""


class NoAnswerError(TransientError):
    """Nobody answered: the server is down, it restarts, or the network does not reach it."""


@dataclass(frozen=True, slots=True)
class StoreReply:
    """What an engine was told. `code`: the store's own word. `status`: that of HTTP, 0 where there was none.

    `is_cut_off`: there was no answer. `message`: one line for people, without the path and the uri.
    """

    message: str
    code: str = ""
    status: int = 0
    is_cut_off: bool = False


def error_of(answer: StoreReply, path: str, *, uri: str, redact: Callable[[str], str], renews: bool = True) -> LanceError:
    """The error that says what an answer says. `renews`: whether the keys are of a kind that is renewed when it expires."""
    meaning = meaning_of(answer)
    if meaning == "exists":
        return AlreadyExistsError(f"{path!r} already exists", uri=uri)
    if meaning == "absent":
        return NotFoundError(f"no object {path!r} in {uri}", uri=uri)
    text = redact(_text(answer, path, uri))
    if meaning == "transient":
        return TransientError(text, uri=uri)
    if meaning == "no answer":
        return NoAnswerError(text, uri=uri)
    if meaning == "no bucket":
        return StoreRefusedError(text, uri=uri, cure=_BUCKET_CURE)
    if meaning == "expired" and not renews:
        return StoreRefusedError(text, uri=uri, cure=_EXPIRED_CURE)
    if meaning == "moved":
        return StoreRefusedError(text, uri=uri, cure=MOVED_CURE)
    if meaning == "refused":
        return StoreRefusedError(text, uri=uri, cure=REFUSED_CURE)
    return StoreError(text, uri=uri)


def meaning_of(answer: StoreReply) -> Meaning:
    """By the code where it is known, else by the status, else by whether there was an answer."""
    found = _CODES.get(answer.code) or _STATUSES.get(answer.status)
    if found is None and not answer.status and answer.is_cut_off:
        return "no answer"
    return found or "failed"


def _text(answer: StoreReply, path: str, uri: str) -> str:
    where = f"{uri}: {path}" if path else uri
    known = [name for name in (answer.code, f"status {answer.status}" if answer.status else "") if name]
    told = ", ".join(name for name in known if name not in answer.message)
    return f"{where}: {answer.message}" + (f" ({told})" if told else "")


def _rows(meaning: Meaning, *names: str) -> dict[str, Meaning]:
    return dict.fromkeys(names, meaning)


_CODES: Mapping[str, Meaning] = {
    **_rows("absent", "NoSuchKey", "BlobNotFound", "NoSuchVersion", "NoSuchUpload"),
    **_rows("no bucket", "NoSuchBucket", "ContainerNotFound", "FilesystemNotFound"),
    **_rows("exists", "PreconditionFailed", "BlobAlreadyExists", "ConditionNotMet", "UploadIdExists"),
    **_rows("transient", "SlowDown", "Throttling", "ThrottlingException", "RequestTimeout", "InternalError"),
    **_rows("transient", "ServiceUnavailable", "ServerBusy", "OperationTimedOut", "RequestLimitExceeded"),
    **_rows("transient", "OperationAborted", "ConditionalRequestConflict", "ContainerBeingDeleted"),
    **_rows("transient", "ProvisionedThroughputExceededException", "TransactionConflictException", "InternalServerError"),
    **_rows("moved", "PermanentRedirect", "TemporaryRedirect", "IllegalLocationConstraintException"),
    **_rows("expired", "ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "ExpiredAuthenticationToken"),
    **_rows("refused", "AccessDenied", "AccessDeniedException", "AllAccessDisabled", "AccountProblem"),
    **_rows("refused", "AuthorizationFailure", "AuthorizationPermissionMismatch", "AuthenticationFailed"),
    **_rows("refused", "InvalidAccessKeyId", "InvalidToken", "UnrecognizedClientException", "SignatureDoesNotMatch"),
    **_rows("refused", "QuotaExceeded", "XMinioStorageFull", "RequestTimeTooSkewed"),
    **_rows("transient", "StandbyException", "RetriableException", "SafeModeException"),
    **_rows("refused", "AccessControlException", "SecurityException"),
    **_rows("refused", "QuotaExceededException", "NSQuotaExceededException", "DSQuotaExceededException"),
}
"""The words of S3, of what speaks like it, of DynamoDB, Google, Azure and Hadoop."""

_STATUSES: Mapping[int, Meaning] = {
    404: "absent",
    412: "exists",
    **dict.fromkeys(REDIRECTS, "moved"),
    **dict.fromkeys((408, 409, 429, 500, 502, 503, 504), "transient"),
    **dict.fromkeys((401, 403, 507), "refused"),
}
