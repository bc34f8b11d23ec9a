"""Commits at work: who is publishing which identities right now. A claim is what keeps an abort from pulling files away.

::

    _lance_core/commits/{commit}.json   {"commit": "9c…", "uuid": "…", "identities": ["5d2c…"], "since": 1700000000, …}

Both sides raise their flag first and look at the other's afterwards, so at least one of them sees the other:

    commit   puts its claim      then reads the withdrawal marks of what it publishes
    abort    puts its mark       then reads the claims

A claim outlives a killed commit; after its lease it counts for nothing and `collect_garbage` clears it away.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from lance_core.commit import naming
from lance_core.commit.records import read_records, write_record
from lance_core.io.store import Store

COMMIT_LEASE_SECONDS = 3600.0
"""How long a silent commit may still be alive. A commit takes seconds; conflicts and re-execution take minutes."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A commit at work. `commit` is the attempt id in the names of the files the commit itself writes."""

    commit: str
    uuid: str
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


def put_claim(store: Store, *, uuid: str, identities: Sequence[str], commit: str) -> Claim:
    """Announce a commit."""
    claim = Claim(commit=commit, uuid=uuid, identities=tuple(identities), since=time.time())
    record = {"commit": claim.commit, "uuid": uuid, "identities": [*identities], "since": claim.since}
    write_record(store, claim.path, {**record, "lease_seconds": claim.lease_seconds})
    return claim


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
            uuid=str(record["uuid"]),
            identities=tuple(str(item) for item in record["identities"]),
            since=float(record["since"]),
            lease_seconds=float(record["lease_seconds"]),
        )
        for record in records
        if record is not None
    ]
