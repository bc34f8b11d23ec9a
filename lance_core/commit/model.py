"""What staging hands to commit: small plain values that travel through XCom. Standard library only.

::

    {"uri": "/t", "uuid": "5d2c…", "attempt": "00ff…", "read_version": 4, "operation": "append", "rows": 25000,
     "bytes": 812345, "fragments": 1, "transaction_path": "_transactions/4-5d2c….txn", "creates": false}

Never row data, never fragment lists: those lie in the transaction file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, TypeVar

from lance_core.errors import InputError

LANDED = "landed"
ALREADY_LANDED = "already_landed"
Outcome = Literal["landed", "already_landed"]

IDENTITY_PREFIX = "airflow_lance.identity."
"""A transaction property per identity: `airflow_lance.identity.<uuid>` = small JSON; a folded transaction has many."""

CREATES_PROPERTY = "airflow_lance.creates"
"""On a staged Overwrite of version 0: what it becomes when the table exists by then ("append")."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Attempt:
    """A try at staging one identity. Times are seconds since the epoch.

    `attempt` (16 hex digits) goes into the name of every file it writes: see `naming.data_file_name(attempt.attempt)`.
    """

    identity: str
    attempt: str
    read_version: int
    spec: Mapping[str, Any]
    started: float
    lease_seconds: float
    spec_digest: str = ""

    def to_dict(self) -> dict[str, Any]:
        """JSON-able plain values."""
        return {**asdict(self), "spec": dict(self.spec)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Attempt:
        """The inverse of `to_dict`; unknown keys are ignored, missing ones are an InputError."""
        return _from_dict(cls, plain)


@dataclass(frozen=True, slots=True)
class StagedTransaction:
    """A reference to a staged transaction: written, invisible, waiting for its commit.

    `uuid` is the identity. `rows`, `bytes` and `fragments` are what it adds. `creates` says that the table did not exist.
    `digest` is the whole SHA-256 of the work, `spec_digest` its first digits, which releases before this one compare.
    """

    uri: str
    uuid: str
    attempt: str
    read_version: int
    operation: str
    rows: int
    bytes: int
    fragments: int
    transaction_path: str
    creates: bool = False
    spec_digest: str = ""
    rows_deleted: int = 0
    digest: str = ""

    def to_dict(self) -> dict[str, Any]:
        """JSON-able plain values, fit for XCom."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> StagedTransaction:
        """The inverse of `to_dict`; unknown keys are ignored, missing ones are an InputError."""
        return _from_dict(cls, plain)


@dataclass(frozen=True, slots=True)
class StagedEntry:
    """One line of `lance staged list`: an attempt, and what became of it. `state` is "running", "expired" or "finished"."""

    identity: str
    attempt: str
    state: str
    read_version: int
    started: float
    lease_until: float
    staged: StagedTransaction | None = None
    spec: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CommitResult:
    """What a commit did. It becomes the XCom, the asset event's extra and the metrics.

    `version` is the newest version that holds all identities; `num_versions` how many versions this call added (0 when
    everything had landed before). `rows_added`, `rows_deleted`, `fragments_added`, `bytes_added` count this call only.
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

    def to_dict(self) -> dict[str, Any]:
        """JSON-able plain values."""
        return {**asdict(self), "identities": dict(self.identities)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> CommitResult:
        """The inverse of `to_dict`."""
        return _from_dict(cls, plain)


@dataclass(frozen=True, slots=True)
class GarbageReport:
    """What `collect_garbage` removed (or would remove, when `dry_run`). Sizes in bytes."""

    dry_run: bool
    files: tuple[str, ...] = ()
    bytes: int = 0
    attempts: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """JSON-able plain values."""
        return {**asdict(self), "files": [*self.files], "attempts": [*self.attempts]}


def _from_dict(kind: type[T], plain: Mapping[str, Any]) -> T:
    names = [item.name for item in fields(kind)]  # type: ignore[arg-type]
    try:
        return kind(**{name: plain[name] for name in names if name in plain})
    except TypeError as error:
        raise InputError(
            f"{sorted(plain)} are not the fields of a {kind.__name__}",
            cure="Pass what `to_dict` returned, for example the XCom of a staging task.",
        ) from error
