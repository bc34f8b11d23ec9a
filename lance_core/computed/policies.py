"""What becomes of rows for which a function raises: by exception or status, end the refresh, remember the row, try again.

::

    on_error="skip"                                        the row is failed, the others are computed
    on_error={"429": "retry", "TimeoutError": "retry", "ValueError": "skip", "*": "fail"},  retries=5

A name is that of the exception's class or of one it derives from, a status ("429", "5xx") is what its `status_code`,
`status` or `code` says, or that of its `response`. "*" is for all others, "fail" unless it is given. What is tried again
`retries` times in vain is treated as "*" says.
"""

from __future__ import annotations

import random
import re
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lance_core.errors import InputError

Action = Literal["fail", "skip", "retry"]
OnError = Literal["fail", "skip"] | Mapping[str, Action]
DEFAULT_RETRIES = 3
MAX_RETRIES = 20
_OTHERS = "*"
_STATUS = re.compile(r"[1-5](\d\d|xx)")
_NAME = re.compile(r"[A-Za-z_]\w*")
_FIRST_SECONDS, _LONGEST_SECONDS = 0.5, 60.0
_TEXT = 200


@dataclass(frozen=True)
class ErrorPolicy:
    """What is done about an exception."""

    on_error: OnError = "fail"
    retries: int = DEFAULT_RETRIES

    def action(self, error: Exception) -> Action:
        """What is to be done first."""
        if isinstance(self.on_error, str):
            return self.on_error
        status = status_of(error)
        keys = [str(status), f"{status // 100}xx"] if status else []
        keys += [cls.__name__ for cls in type(error).__mro__]
        return next((self.on_error[key] for key in keys if key in self.on_error), self.last)

    @property
    def last(self) -> Literal["fail", "skip"]:
        """What is done about others, and about what was tried again in vain."""
        others = self.on_error if isinstance(self.on_error, str) else self.on_error.get(_OTHERS, "fail")
        return "skip" if others == "skip" else "fail"


def check_policy(on_error: Any, retries: Any) -> None:
    """InputError for what is no policy."""
    if isinstance(on_error, str) or not isinstance(on_error, Mapping):
        if on_error not in ("fail", "skip"):
            raise InputError(
                f"unknown on_error {on_error!r}",
                cure='Use "fail", "skip", or a mapping of exceptions and statuses to "fail", "skip" and "retry".',
            )
    else:
        for key, action in on_error.items():
            if not (isinstance(key, str) and (key == _OTHERS or _STATUS.fullmatch(key) or _NAME.fullmatch(key))):
                raise InputError(
                    f"on_error: {key!r} is neither a class of exceptions nor a status", cure='As "429" or "5xx".'
                )
            if action not in ("fail", "skip", "retry") or (key == _OTHERS and action == "retry"):
                raise InputError(
                    f"on_error: {key!r} cannot be {action!r}", cure='Use "fail", "skip", or "retry" but for "*".'
                )
    if isinstance(retries, bool) or not isinstance(retries, int) or not 0 <= retries <= MAX_RETRIES:
        raise InputError(f"retries must be between 0 and {MAX_RETRIES}, got {retries!r}")


def check_batches(batch_size: Any, batch_bytes: Any, batch_tokens: Any, *, is_sql: bool) -> None:
    """InputError for bounds of one call that are none, and for those that SQL does not have."""
    given = {"batch_size": batch_size, "batch_bytes": batch_bytes, "batch_tokens": batch_tokens}
    for name, most in given.items():
        if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
            raise InputError(f"{name} must be at least 1, got {most!r}", cure="Leave it out where a call is not bounded so.")
    if is_sql and (batch_bytes is not None or batch_tokens is not None):
        raise InputError(
            "batch_bytes and batch_tokens are of functions, not of sql",
            cure="Leave them out: SQL is computed in batches of rows.",
        )


def check_cache(deterministic: bool, cache_bytes: int, *, is_sql: bool) -> None:
    """InputError for values that cannot be kept so."""
    if isinstance(cache_bytes, bool) or not isinstance(cache_bytes, int) or cache_bytes < 0:
        raise InputError(f"cache_bytes must be a number of bytes, 0 for none, got {cache_bytes!r}")
    if is_sql and (cache_bytes or not deterministic):
        raise InputError(
            "cache_bytes and deterministic are of functions, not of sql", cure="Leave them out: SQL is computed each time."
        )
    if cache_bytes and not deterministic:
        raise InputError(
            "values of a function that is not deterministic cannot be kept for equal inputs",
            cure="Leave cache_bytes out, or declare it deterministic.",
        )


def status_of(error: Exception) -> int:
    """The HTTP status that an exception tells, 0 for none."""
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status", "code"):
            found = getattr(holder, name, None)
            if isinstance(found, int) and not isinstance(found, bool) and 100 <= found < 600:
                return found
    return 0


def seconds_before(retry: int, error: Exception) -> float:
    """How long to wait before a call is made again: what the endpoint asks for, else more each time."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    asked = headers.get("Retry-After") if isinstance(headers, Mapping) else None
    if isinstance(asked, str) and asked.isdigit():
        return min(_LONGEST_SECONDS, float(asked))
    return min(_LONGEST_SECONDS, _FIRST_SECONDS * 2.0**retry) * random.uniform(0.5, 1.0)


def shown_error(error: Exception) -> str:
    """An exception without its message, which may hold a row or a key: its class, its status, and where it was raised."""
    status = status_of(error)
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{f' {status}' if status else ''}{place}"[:_TEXT]
