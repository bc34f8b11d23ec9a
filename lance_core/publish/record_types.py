"""The contents of each record under `_lance_core/` as frozen dataclasses, with typed decoding from JSON. Pure.

::

    parse_record(Fence, {"outcome": "publish", "commit": "9c…", "since": 1.7e9}, where="…fence.json")
    parse_record(Fence, {"outcome": 3}, where="…")   -> CorruptFileError: …: outcome: expected text, got 3 (int)

Keys that a dataclass does not know are ignored, so that a later release may add some. (Design: docs/adr/040-records.md.)
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import typing
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, TypeGuard, TypeVar

from lance_core.errors import CorruptFileError

T = TypeVar("T")

PUBLISH = "publish"
WITHDRAW = "withdraw"
APART = "apart"

_MAX_INTEGER = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Fence:
    """`staged/{identity}.{attempt}.fence.json`: who may continue with an attempt. The first writer wins.

    `outcome` is "publish" (then `commit` says by which commit) or "withdraw" (then `by` says who gave it up). `version` of a
    withdrawal is the fence version that was published for it, 0 when none was needed. `alone`: that commit writes no file
    but the manifest, so it has no claim; until it says here that it has ended, its put may still land.
    """

    outcome: str
    commit: str = ""
    by: str = ""
    since: float = 0.0
    version: int = 0
    alone: bool = False

    @property
    def withdraws(self) -> bool:
        """Whether the attempt may no longer be published."""
        return self.outcome == WITHDRAW


@dataclass(frozen=True, slots=True)
class GroupFence:
    """`fences/{group}.json`: what was decided first about the attempts of a group. It is never changed or removed.

    `outcome` is "publish" (then `commit` says by which commit, `attempts` which ones, by identity) or "apart": each of them
    is decided by its own fence, as every attempt is that is not among `attempts`.
    """

    outcome: str
    commit: str = ""
    since: float = 0.0
    attempts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LedgerRecord:
    """`ledger/{identity}.json`, or a part of a segment: an identity landed.

    A record that stands for several identities of one fold has `attempts`, `digests` and `asked` by identity.
    """

    version: int
    identity: str = ""
    transaction: str = ""
    attempt: str = ""
    digest: str = ""
    incarnation: str = ""
    landed_at: float = 0.0
    asked: Mapping[str, Any] = field(default_factory=dict)
    attempts: Mapping[str, Any] = field(default_factory=dict)
    digests: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reexecution:
    """`staged/{identity}/reexecute.json`: a commit was about to do this work again. `spec` is data, not an order."""

    identity: str
    spec: Mapping[str, Any]
    digest: str = ""


@dataclass(frozen=True, slots=True)
class CleanupNote:
    """`cleanup/{id}`: a cleanup had begun to delete these; each path is checked again by the cleanup that resumes."""

    files: tuple[str, ...] = ()
    versions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class IncarnationRecord:
    """`incarnation.json`: which table the records belong to, and a version that shows it."""

    incarnation: str
    version: int = 0
    transaction: str = ""


def work_digest(work: Mapping[str, Any]) -> str:
    """The whole SHA-256 of a spec that says the work alone."""
    text = json.dumps(work, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def is_same_work(one: str, other: str) -> bool:
    """Whether two digests mean the same work. What has no digest (noted by hand, found in use) matches any."""
    return not one or not other or one == other


def parse_record(cls: type[T], plain: Mapping[str, Any], *, where: str) -> T:
    """A record as its dataclass. CorruptFileError names the key that is missing or of another type."""
    try:
        return cls(**checked_fields(cls, plain))
    except ValueError as error:
        raise CorruptFileError(f"{where}: {error}") from error


def checked_fields(cls: type[Any], plain: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a dataclass's fields from plain data, typed. ValueError for one that is missing or of another type."""
    found: dict[str, Any] = {}
    for name, hint, is_required in _fields_of(cls):  # type: ignore[arg-type]
        if name in plain:
            found[name] = _checked(hint, plain[name], name)
        elif is_required:
            raise ValueError(f"{name} is missing")
    return found


@functools.cache
def _fields_of(cls: type[Any]) -> tuple[tuple[str, Any, bool], ...]:
    """Name, type and whether it must be there, of each field."""
    hints = typing.get_type_hints(cls)
    return tuple(
        (item.name, hints[item.name], item.default is MISSING and item.default_factory is MISSING) for item in fields(cls)
    )


def _checked(hint: Any, value: Any, name: str) -> Any:
    if hint in _SCALARS:
        check, expected = _SCALARS[hint]
        if not check(value):
            raise ValueError(f"{name}: expected {expected}, got {shown(value)}")
        return float(value) if hint is float else value
    origin = typing.get_origin(hint)
    if origin is tuple:
        if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
            raise ValueError(f"{name}: expected a list, got {shown(value)}")
        return tuple(_checked(typing.get_args(hint)[0], item, f"{name}[{index}]") for index, item in enumerate(value))
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            raise ValueError(f"{name}: expected an object, got {shown(value)}")
        return dict(value)
    raise TypeError(f"{name}: {hint} cannot be checked")


def _is_integer(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_integer(value) and 0 <= value <= _MAX_INTEGER


def _is_number(value: Any) -> bool:
    if _is_integer(value):
        return bool(abs(value) <= _MAX_INTEGER)
    return isinstance(value, float) and math.isfinite(value)


def shown(value: Any) -> str:
    """A value and its type, for a message."""
    text = repr(value)
    return f"{text[:60]}{'…' if len(text) > 60 else ''} ({type(value).__name__})"


_SCALARS: Mapping[Any, tuple[typing.Callable[[Any], bool], str]] = {
    str: (lambda value: isinstance(value, str), "text"),
    int: (_is_count, "an integer from 0 to 2^64-1"),
    float: (_is_number, "a number"),
    bool: (lambda value: isinstance(value, bool), "a boolean"),
}
