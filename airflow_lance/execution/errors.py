"""Translate errors for Airflow: retry if a retry can help, else fail at once.

::

    RetryableConflictError, StoreError        raised as they are: the task fails and Airflow retries it
    SourceMissingError                        as `on_missing` says: a retry, a skipped task, or a failure without a retry
    CommitStateUnknownError                   AirflowFailException that names the command which settles it
    every other LanceError                    AirflowFailException; the library's message already ends with the cure
    KeyError, RecursionError, ... of ours     AirflowFailException: the same table gives the same error again
    errors of sources and other libraries     raised as they are: a source that fails today may work in the next try
    ModuleNotFoundError of a dependency       AirflowFailException: this machine only parses DAGs
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Literal

from airflow_lance.compat import AirflowFailException, AirflowSkipException
from lance_core.errors import CommitStateUnknownError, InputError, LanceError, SourceMissingError

OnMissing = Literal["retry", "skip", "fail"]
ON_MISSING: tuple[str, ...] = ("retry", "skip", "fail")
_NEEDED = frozenset(
    {"pyarrow", "numpy", "numba", "llvmlite", "google", "pyroaring", "zstandard", "lz4", "obstore", "fsspec", "sqlglot",
     "click", "snowballstemmer", "regex"}
)  # fmt: skip
"""What lance_core imports when it works, and an installation without dependencies lacks."""


@contextmanager
def as_airflow_errors(uri: str = "", *, on_missing: OnMissing = "fail") -> Iterator[None]:
    """Run library calls inside; errors that a retry cannot fix are raised as AirflowFailException."""
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
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _NEEDED:
            raise
        told = InputError(
            f"{missing} is not installed here, so this machine can parse DAGs, but cannot run jobs",
            cure='Run the task on a worker with `pip install "airflow-provider-lance[airflow]"`, without --no-deps.',
        )
        raise AirflowFailException(explain(told, uri=uri)) from error
    except _DEFECTS as error:
        if not is_defect(error):
            raise
        raise AirflowFailException(
            f"{type(error).__name__}: {error}: this library met an unexpected state of {uri or 'the table'}. A retry would "
            "meet it again, so the task is not retried. Run `lance validate`, and report the traceback above."
        ) from error


_DEFECTS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    RecursionError,
    NotImplementedError,
)
_OWN = ("airflow_lance", "lance_core")
_LIBRARIES = ("google", "llvmlite", "lz4", "numba", "numpy", "pyarrow", "pyroaring", "regex", "sqlglot", "zstandard")
"""What decodes bytes or reads filters for us: an error that leaves them leaves us."""


def is_defect(error: BaseException) -> bool:
    """Whether an error that is not a LanceError was raised by the library's code, not by a source that it called."""
    raiser = ""
    for name in _modules(error.__traceback__):
        top = name.partition(".")[0]
        if top in _OWN or (top not in sys.stdlib_module_names and top not in _LIBRARIES):
            raiser = top
    return isinstance(error, _DEFECTS) and raiser in _OWN


def _modules(traceback: TracebackType | None) -> Iterator[str]:
    """The modules that an error went through, the one that raised it last; not the block that guards the call."""
    traceback = None if traceback is None else traceback.tb_next
    while traceback is not None:
        yield str(traceback.tb_frame.f_globals.get("__name__", ""))
        traceback = traceback.tb_next


def explain(error: LanceError, *, uri: str = "") -> str:
    """One text for a person: the error's class, its message with the cure, and for an unknown outcome the command."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, CommitStateUnknownError):
        where = error.uri or uri
        text += (
            f"\nIt is unknown whether the write was committed, so it is not retried. To settle it: "
            f"`lance staged list {where}` shows the waiting writes, `lance log {where}` the versions and who wrote them. "
            f"If its rows are there: `lance staged settle {where} IDENTITY --version N`; if they are not: "
            f"`lance staged abort {where} IDENTITY --certain`. Then clear the task; one whose rows are there may also be "
            f'marked as successful, and needs on_clear="skip" to be cleared.'
        )
    return text
