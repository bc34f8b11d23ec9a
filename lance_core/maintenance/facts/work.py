"""What became of work that has an identity: running, staged, committed, expired, aborted; with its attempts.

::

    work_page(store, ["5d2c…"]) -> [{"identity": "5d2c…", "state": "committed", "version": 144, "attempts": [...], ...}]
"""

from __future__ import annotations

from collections.abc import Sequence

from lance_core.commit.manifests import find_latest_version, open_or_none
from lance_core.commit.transactions import transaction_of
from lance_core.dataset.maintain.compact_plan import bytes_of
from lance_core.errors import LanceError
from lance_core.io.store import Store
from lance_core.maintenance.facts.history import new_fragments
from lance_core.maintenance.facts.writers import Json, writer_of
from lance_core.publish.attempts import list_staged
from lance_core.publish.decisions import CommittedWork, look_many
from lance_core.publish.model import StagedEntry

_STATES = {"finished": "staged", "running": "running", "expired": "expired", "superseded": "expired"}


def is_there(store: Store) -> bool:
    """Whether there is a table, or a branch, at all. Raises StoreError."""
    return find_latest_version(store) is not None


def work_page(store: Store, identities: Sequence[str]) -> list[Json]:
    """Return an entry for each identity. Raises StoreError."""
    waiting: dict[str, list[StagedEntry]] = {}
    for entry in list_staged(store):
        waiting.setdefault(entry.identity, []).append(entry)
    commits = _commits(store, identities)
    return [
        _entry(store, identity, committed, waiting.get(identity, []))
        for identity, committed in zip(identities, commits, strict=True)
    ]


def _entry(store: Store, identity: str, committed: CommittedWork | None, attempts: Sequence[StagedEntry]) -> Json:
    newest = max(attempts, key=lambda entry: entry.started, default=None)
    finished = next((entry for entry in attempts if entry.state == "finished"), None)
    counts = finished or newest
    state = "committed" if committed is not None else "unknown" if counts is None else _STATES[counts.state]
    staged = None if counts is None else counts.staged
    asked = committed.asked if committed is not None and committed.asked else {} if counts is None else counts.asked
    found: Json = {
        "identity": identity,
        "state": state,
        "kind": None if staged is None else staged.operation,
        "rows": None if staged is None else staged.num_rows,
        "bytes": None if staged is None else staged.num_bytes,
        "fragments": None if counts is None else counts.num_fragments,
        "read_version": None if counts is None else counts.read_version,
        "started": None if newest is None else newest.started or None,
        "version": None,
        "committed_at": None,
        "writer": writer_of(identity, asked),
        "attempts": [_attempt(entry) for entry in attempts],
    }
    return {**found, **_committed(store, committed)} if committed is not None else found


def _commits(store: Store, identities: Sequence[str]) -> list[CommittedWork | None]:
    states = look_many(store, identities, damaged={})
    return [states[identity].committed if identity in states else None for identity in identities]


def _attempt(entry: StagedEntry) -> Json:
    who = writer_of(entry.identity, entry.asked)
    return {
        **who,
        "attempt": entry.attempt,
        "state": entry.state,
        "started": entry.started or None,
    }


def _committed(store: Store, committed: CommittedWork) -> Json:
    """What the version says in which the work was committed, as far as it is still there."""
    found: Json = {"version": committed.version}
    try:
        opened = open_or_none(store, committed.version)
        transaction = None if opened is None else transaction_of(store, opened)
    except LanceError:
        return found
    if opened is not None:
        found["committed_at"] = opened.manifest.timestamp_ns / 1e9
    if transaction is not None:
        found["kind"] = transaction.operation.name
        found["read_version"] = transaction.read_version
        new = new_fragments(transaction)
        if new is not None:
            found |= {"fragments": len(new), "bytes": sum(map(bytes_of, new)), "rows": sum(item.num_rows for item in new)}
    return found
