"""Values that staging passes to commit: small and plain, because they travel through XCom. Standard library only.

::

    {"uri": "/t", "identity": "5d2c…", "attempt": "00ff…", "number": 1, "read_version": 4, "operation": "append",
     "num_rows": 25000, "num_deleted_rows": 0, "num_bytes": 812345, "digest": "9a…"}

Never row data, never fragment lists: those are in the transaction file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeVar

from lance_core.commit import naming
from lance_core.errors import InputError
from lance_core.publish.records import RULES
from lance_core.typed import from_plain

COMMITTED = "committed"
ALREADY_COMMITTED = "already_committed"
Outcome = Literal["committed", "already_committed"]

DEFAULT_LEASE_SECONDS = 24 * 3600.0

P = TypeVar("P", bound="Plain")


class Plain:
    """A dataclass whose values are plain: it travels as JSON."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """JSON-able plain values, fit for XCom."""
        plain: dict[str, Any] = asdict(self)  # type: ignore[call-overload]
        return {name: [*value] if isinstance(value, tuple) else value for name, value in plain.items()}

    @classmethod
    def from_dict(cls: type[P], plain: Mapping[str, Any]) -> P:
        """The inverse of `to_dict`; unknown keys are ignored, missing ones are an InputError."""
        try:
            return from_plain(cls, plain, RULES)
        except ValueError as error:
            raise InputError(
                f"{sorted(plain)} are not the fields of a {cls.__name__}: {error}",
                cure="Pass what `to_dict` returned, for example the XCom of a staging task.",
            ) from error


@dataclass(frozen=True, slots=True)
class Attempt(Plain):
    """A try at staging one identity. Times are seconds since the epoch.

    `spec` is noted for people and digested for retries; it must be JSON-able and free of secrets. `read_version` is the
    version the work is planned on, 0 when there is no table yet, `base` the name of its transaction file. Within
    `lease_seconds` (renew with `renew_lease`) garbage collection leaves the attempt's files alone. `asked` says who
    requested it. `adopts`: earlier attempts, the newest first, whose files it goes on with, which nobody removes while it is
    on record. `replaces`: the finished attempt in whose place it is staged, and the commit that brings the work up to a
    newer version.

    `begin` fills in the rest: `attempt` (16 hex digits) goes into the name of every file it writes: see
    `naming.data_file_name(attempt.attempt)`. `is_first`: behind its record there was no decision of its identity.
    `has_more`: it wrote or adopted files that its transaction does not name.
    """

    identity: str
    read_version: int
    spec: Mapping[str, Any]
    lease_seconds: float = DEFAULT_LEASE_SECONDS
    asked: Mapping[str, Any] = field(default_factory=dict)
    base: str = ""
    adopts: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    attempt: str = ""
    started: float = 0.0
    digest: str = ""
    table_id: str = ""
    has_more: bool = False
    is_first: bool = False


@dataclass(frozen=True, slots=True)
class StagedTransaction(Plain):
    """A reference to a staged transaction: written, invisible, waiting for its commit. Ten plain values, each fact once.

    `number` is that of the decision that it is finished. `operation` is what was requested (the kind of the job).
    `num_rows`, `num_deleted_rows` and `num_bytes` are what it adds and deletes. `digest` is the whole SHA-256 of the work.
    What else its commit has to know stands in the transaction (see `publish.staged_properties`).
    """

    uri: str
    identity: str
    attempt: str
    read_version: int
    operation: str
    num_rows: int
    num_bytes: int
    number: int = 0
    num_deleted_rows: int = 0
    digest: str = ""

    @property
    def transaction_path(self) -> str:
        """Where the staged transaction is; "" for work that was committed long ago. Its name has identity and attempt, so
        that two attempts never share a file."""
        return staged_transaction_path(self.identity, self.attempt, self.read_version) if self.attempt else ""

    @property
    def creates(self) -> bool:
        """Whether it adds to a table that did not exist when it was planned, and adds to it if it exists by then."""
        return bool(self.attempt) and not self.read_version and self.operation != "overwrite"


def staged_transaction_path(identity: str, attempt: str, read_version: int) -> str:
    """Where an attempt's transaction is, which was planned on this version."""
    return naming.transaction_path(naming.transaction_name(read_version, f"{identity}.{attempt}"))


@dataclass(frozen=True, slots=True)
class StagedEntry:
    """One line of `lance staged list`: an attempt, and its result. `state` is "running", "expired" or "finished".

    `asked` is the task that requested it, as far as the attempt's own record is there. `num_fragments`: new ones, where the
    decision has the transaction.
    """

    identity: str
    attempt: str
    state: str
    read_version: int
    started: float
    lease_until: float
    staged: StagedTransaction | None = None
    spec: Mapping[str, Any] = field(default_factory=dict)
    asked: Mapping[str, Any] = field(default_factory=dict)
    num_fragments: int | None = None


@dataclass(frozen=True, slots=True)
class CommitResult(Plain):
    """The result of a commit. It becomes the XCom, the asset event's extra and the metrics.

    `version` is the newest version that holds all identities; `num_versions` how many versions this call added (0 when
    all was committed before). `rows_added`, `rows_deleted`, `fragments_added`, `bytes_added` count this call only.
    `refused`: identities that a partial commit left out, with the reason.
    """

    version: int
    num_versions: int
    identities: Mapping[str, str]
    rows_added: int = 0
    rows_deleted: int = 0
    fragments_added: int = 0
    bytes_added: int = 0
    conflicts_rebased: int = 0
    re_executed: int = 0
    seconds: float = 0.0
    refused: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able plain values."""
        plain = Plain.to_dict(self)
        return plain if self.refused else {name: value for name, value in plain.items() if name != "refused"}


@dataclass(frozen=True, slots=True)
class GarbageReport(Plain):
    """What `collect_garbage` removed (or would remove, when `dry_run`). Sizes in bytes.

    `abandoned`: identities whose staged work had waited too long for its commit. `unknown`: identities that would be among
    them, but nothing tells whether they were committed; they stay until a person has looked.
    """

    dry_run: bool
    files: tuple[str, ...] = ()
    bytes: int = 0
    attempts: tuple[str, ...] = ()
    abandoned: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
