"""The library's errors as Airflow understands them: retry what may heal, stop at once where a retry cannot help.

::

    RetryableConflictError, StoreError        raised as they are: the task fails and Airflow retries it
    SourceMissingError                        as `on_missing` says: a retry, a skipped task, or a failure without a retry
    CommitStateUnknownError                   AirflowFailException that names the command which settles it
    every other LanceError                    AirflowFailException; the library's message already ends with the cure
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from airflow_lance.compat import AirflowFailException, AirflowSkipException
from lance_core.errors import CommitStateUnknownError, LanceError, SourceMissingError

OnMissing = Literal["retry", "skip", "fail"]
ON_MISSING: tuple[str, ...] = ("retry", "skip", "fail")


@contextmanager
def as_airflow_errors(uri: str = "", *, on_missing: OnMissing = "fail") -> Iterator[None]:
    """Run library calls inside; errors that a retry cannot mend leave as AirflowFailException."""
    try:
        yield
    except SourceMissingError as error:
        if on_missing == "retry":
            raise
        kind = AirflowSkipException if on_missing == "skip" else AirflowFailException
        raise kind(explain(error, uri=uri)) from error
    except LanceError as error:
        if error.retryable:
            raise
        raise AirflowFailException(explain(error, uri=uri)) from error


def explain(error: LanceError, *, uri: str = "") -> str:
    """One text for a person: the error's class, its message with the cure, and for an unknown outcome the command."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, CommitStateUnknownError):
        where = error.uri or uri
        text += (
            f"\nThe write may or may not have landed, so it is not retried. Settle it by looking: "
            f"`lance staged list {where}` shows the waiting writes, `lance log {where}` the versions and who wrote them. "
            f"If its rows are there: `lance staged settle {where} IDENTITY --version N`; if they are not: "
            f"`lance staged abort {where} IDENTITY --certain`. Then clear the task; one whose rows are there may also be "
            f'marked as successful, and needs on_clear="skip" to be cleared.'
        )
    return text
