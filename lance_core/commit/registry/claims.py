"""Commits at work: who is publishing which identities right now. A claim is what keeps an abort from pulling files away.

::

    _lance_core/commits/{commit}.json   {"commit": "9c…", "uuids": ["…"], "identities": ["5d2c…"], "since": 1700000000}

Both sides raise their flag first and look at the other's afterwards, so at least one of them sees the other:

    commit   puts its claim      then reads the withdrawal marks of what it publishes
    abort    puts its mark       then reads the claims

A claim outlives a killed commit; after its lease it counts for nothing and `collect_garbage` clears it away.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace

from lance_core.commit import naming
from lance_core.commit.records import read_records, write_record
from lance_core.io.store import Store

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
    lease_seconds: float = COMMIT_LEASE_SECONDS

    @property
    def path(self) -> str:
        """Where the claim lies."""
        return f"{naming.COMMITS}/{self.commit}.json"

    def is_alive(self, now: float) -> bool:
        """Whether the commit may still be at work at `now` (seconds since the epoch)."""
        return now < self.since + self.lease_seconds


def put_claim(store: Store, *, uuids: Sequence[str], identities: Sequence[str], commit: str) -> Claim:
    """Announce a commit."""
    claim = Claim(commit=commit, uuids=tuple(uuids), identities=tuple(identities), since=time.time())
    _write(store, claim)
    return claim


def renew_claim(store: Store, claim: Claim, *, uuids: Iterable[str]) -> Claim:
    """Say that the commit is alive; add transactions it may publish. Writes only when there is something to say."""
    known = dict.fromkeys((*claim.uuids, *uuids))
    now = time.time()
    if len(known) == len(claim.uuids) and now < claim.since + claim.lease_seconds / 10:
        return claim
    renewed = replace(claim, uuids=tuple(known), since=now)
    _write(store, renewed)
    return renewed


def drop_claim(store: Store, claim: Claim) -> None:
    """The commit is over, one way or the other."""
    store.delete(claim.path)


def list_claims(store: Store) -> list[Claim]:
    """All announced commits, dead ones included."""
    names = [name for name in store.list_names(f"{naming.COMMITS}/") if name.endswith(".json")]
    records = read_records(store, [f"{naming.COMMITS}/{name}" for name in names])
    return [
        Claim(
            commit=str(record["commit"]),
            uuids=tuple(str(item) for item in record["uuids"]),
            identities=tuple(str(item) for item in record["identities"]),
            since=float(record["since"]),
            lease_seconds=float(record["lease_seconds"]),
        )
        for record in records
        if record is not None
    ]


def _write(store: Store, claim: Claim) -> None:
    write_record(store, claim.path, asdict(claim))
