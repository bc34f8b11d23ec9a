"""Running commits: the files, transactions and identities of a commit, so that its leftovers can be found by name.

::

    _lance_core/commits/{commit}.json   {"commit": "9c…", "uuids": ["…"], "attempts": {"5d2c…": "00ff…"}, "since": 1.7e9}

Whether a commit may publish an attempt is decided by the attempt's fence, not here, and the time of a claim is only shown. A
claim is removed at the end of its commit, or later by `collect_garbage`, when all its identities are settled.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from lance_core.commit import naming
from lance_core.errors import CorruptFileError, NotFoundError
from lance_core.io.parallel import each
from lance_core.io.store import Store
from lance_core.publish.record_types import parse_record
from lance_core.publish.records import FORMAT, encode_record, read_record

log = logging.getLogger(__name__)

COMMIT_LEASE_SECONDS = 3600.0
"""How long a silent commit may still be alive. A commit takes seconds; conflicts and re-execution take minutes."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A commit at work. `commit` is the attempt id in the names of the deletion files the commit itself writes; `uuids` are
    those of the transactions it may publish, which name its transaction files."""

    commit: str
    uuids: tuple[str, ...]
    identities: tuple[str, ...]
    since: float
    attempts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """Where the claim is."""
        return f"{naming.COMMITS}/{self.commit}.json"

    def is_alive(self, now: float) -> bool:
        """Whether the commit may still be at work at `now` (seconds since the epoch)."""
        return now < self.since + COMMIT_LEASE_SECONDS


def make_claim(*, uuids: Sequence[str], attempts: Mapping[str, str], commit: str) -> Claim:
    """A claim that is to be written before anything else of its commit."""
    return Claim(
        commit=commit,
        uuids=tuple(uuids),
        identities=tuple(attempts),
        since=time.time(),
        attempts=dict(attempts),
    )


def renew_claim(
    store: Store, claim: Claim, *, uuids: Iterable[str] = (), attempts: Mapping[str, str] | None = None
) -> Claim:
    """Renew the claim and add what the commit may publish. Writes only changes."""
    known = dict.fromkeys((*claim.uuids, *uuids))
    members = {**claim.attempts, **(attempts or {})}
    now = time.time()
    if len(known) == len(claim.uuids) and members == claim.attempts and now < claim.since + COMMIT_LEASE_SECONDS / 10:
        return claim
    renewed = replace(claim, uuids=tuple(known), identities=tuple(members), attempts=members, since=now)
    write_claim(store, renewed)
    return renewed


def drop_claim(store: Store, claim: Claim) -> None:
    """The commit is over, one way or the other."""
    store.delete(claim.path)


def is_claimed(store: Store, commit: str) -> bool:
    """Whether a commit has not ended, or has ended in doubt. Asked by its name, so that no listing matters."""
    try:
        store.size(f"{naming.COMMITS}/{commit}.json")
    except NotFoundError:
        return False
    return True


def list_claims(store: Store) -> list[Claim]:
    """All announced commits, dead ones included. A damaged record is logged and skipped."""
    names = [name for name in store.list_names(f"{naming.COMMITS}/") if name.endswith(".json")]
    found = each(store, [f"{naming.COMMITS}/{name}" for name in names], _read)
    return [claim for claim in found if claim is not None]


def _read(store: Store, path: str) -> Claim | None:
    try:
        record = read_record(store, path)
        claim = None if record is None else parse_record(Claim, record, where=path)
        if claim is not None and claim.path != path:
            raise CorruptFileError(f"{path}: the record belongs to commit {claim.commit}")
        return claim
    except CorruptFileError as error:
        log.warning("%s: set aside: %s", store.uri, error)
        return None


def write_claim(store: Store, claim: Claim) -> None:
    """Put it where it is looked for."""
    # Not forced to the disk: when this machine dies, the commit dies as well.
    store.put(claim.path, encode_record({"format": FORMAT, **asdict(claim)}), durable=False)
