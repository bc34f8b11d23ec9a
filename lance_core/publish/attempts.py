"""The attempts of each identity: who is staging, since when, with which files.

::

    _lance_core/staged/{identity}.{attempt}.started.json     before the attempt's first data file

Every try is an attempt of its own. Its record is removed when the attempt is decided and its files are settled. Whether it
finished, was aborted or was committed stands in the decision log of its identity (see `decisions`). A damaged record is
named and left out of lists; nothing is concluded from a record that is not there.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from lance_core.commit import naming
from lance_core.errors import CorruptFileError, UnsupportedRecordError
from lance_core.io.parallel import each
from lance_core.io.store import Store, StoreEntry
from lance_core.publish.decisions import DecisionState, last_of, look, look_many
from lance_core.publish.model import Attempt, StagedEntry, StagedTransaction
from lance_core.publish.records import FORMAT, read_as, unless_damaged, write_record
from lance_core.publish.staged_properties import num_new_fragments

log = logging.getLogger(__name__)

T = TypeVar("T")
Key = tuple[str, str]
"""Identity and attempt."""

STARTED = "started"
_FOLDERS = (naming.DATA, naming.DELETIONS, naming.INDICES, naming.TRANSACTIONS)


@dataclass(frozen=True, slots=True)
class _Started:
    attempt: Attempt
    renewed: float


def list_staged(
    store: Store,
    *,
    now: float | None = None,
    identity: str | None = None,
    unsupported: list[UnsupportedRecordError] | None = None,
) -> list[StagedEntry]:
    """Every attempt that is at work or waits for its commit, or those of one identity, oldest first.

    `now` (seconds since the epoch) decides which leases are over. What a newer release has written is refused, or, for a
    caller that only shows the list, named in `unsupported`.
    """
    at = time.time() if now is None else now
    keys = started_keys(store, identity)
    leases = each(store, keys, lambda store, key: _known(unsupported, partial(read_lease, store, *key)))
    wanted = {key[0] for key in keys} | ({identity} if identity else set())
    states = _states(store, sorted(wanted), unsupported)
    begun: dict[Key, tuple[Attempt, float] | None] = {
        key: lease
        for key, lease in zip(keys, leases, strict=True)
        if lease is not None and key[0] in states and not states[key[0]].is_decided(key[1])
    }
    for state in states.values():
        if state.finished is not None:  # also where the record of its start is gone or damaged
            begun.setdefault((state.identity, state.finished.attempt), None)
    entries = [_entry(key, lease, states[key[0]], now=at) for key, lease in begun.items()]
    return sorted(entries, key=lambda entry: entry.started)


def _states(
    store: Store, identities: Sequence[str], unsupported: list[UnsupportedRecordError] | None
) -> dict[str, DecisionState]:
    damaged: dict[str, CorruptFileError] = {}
    states = _known(unsupported, lambda: look_many(store, identities, damaged=damaged))
    if states is None:  # of the others there is something to be shown
        one = [_known([], partial(look_many, store, [identity], damaged=damaged)) for identity in identities]
        states = {identity: state for found in one if found for identity, state in found.items()}
    for damage in damaged.values():
        log.warning("%s: set aside: %s", store.uri, damage)
    return states


def _known(unsupported: list[UnsupportedRecordError] | None, read: Callable[[], T]) -> T | None:
    try:
        return read()
    except UnsupportedRecordError as error:
        if unsupported is None:
            raise
        unsupported.append(error)
        return None


def _entry(key: Key, begun: tuple[Attempt, float] | None, state: DecisionState, *, now: float) -> StagedEntry:
    staged = state.finished if state.is_finished(key[1]) else None
    if begun is None:
        assert staged is not None
        begun = Attempt(key[0], staged.read_version, state.spec or {}, lease_seconds=0.0), 0.0
    attempt, renewed = begun
    lease_until = renewed + attempt.lease_seconds
    word = "superseded" if key[1] in state.superseded else "running" if now < lease_until else "expired"
    return StagedEntry(
        identity=key[0],
        attempt=key[1],
        state=word if staged is None else "finished",
        read_version=attempt.read_version,
        started=attempt.started,
        lease_until=lease_until,
        staged=staged,
        spec=attempt.spec,
        asked=attempt.asked,
        num_fragments=num_new_fragments(state.transaction) if staged and state.transaction else None,
    )


def find_finished(store: Store, identity: str) -> StagedTransaction | None:
    """What waits for its commit; a damaged decision is logged and counts as nothing."""
    state = unless_damaged(store, partial(look, store, identity))
    return None if state is None else state.finished


def read_started(store: Store, identity: str, attempt: str) -> Attempt | None:
    """What an attempt was begun with; None when its record is gone or damaged."""
    found = read_lease(store, identity, attempt)
    return None if found is None else found[0]


def read_lease(store: Store, identity: str, attempt: str) -> tuple[Attempt, float] | None:
    """What an attempt was begun with, and when its lease was renewed; None when its record is gone or damaged."""
    return unless_damaged(store, partial(_read_started, store, record_path(identity, attempt)))


def started_keys(store: Store, identity: str | None = None) -> list[Key]:
    """Attempts that have a record of their own."""
    found = [naming.parse_attempt_record(name, STARTED) for name in store.list_names(f"{naming.STAGED}/")]
    return [key for key in found if key is not None and identity in (None, key[0])]


def is_over(store: Store, identity: str, attempt: str) -> bool:
    """For a task of the attempt: whether it was aborted or committed. Decisions that are folded are too old to speak of
    it."""
    state = last_of(store, identity)
    return state is not None and state.is_decided(attempt)


def adopted_by_others(store: Store, keys: Sequence[Key]) -> frozenset[Key]:
    """Those of these (identity, attempt) whose files a living attempt on record, which is not among them, goes on with.

    A record that cannot be read may adopt any attempt of its identity.
    """
    identities = {identity for identity, _ in keys}
    others = [key for key in started_keys(store) if key[0] in identities and key not in keys] if keys else []
    if not others:
        return frozenset()
    states = look_many(store, sorted({key[0] for key in others}), damaged={})

    def adopted(store: Store, other: Key) -> list[Key]:
        state = states.get(other[0])
        if state is not None and state.is_aborted(other[1]):
            return []
        try:
            found = _read_started(store, record_path(*other))
        except (CorruptFileError, UnsupportedRecordError):
            return [key for key in keys if key[0] == other[0]]
        return [] if found is None else [(other[0], attempt) for attempt in found[0].adopts]

    return frozenset(key for found in each(store, others, adopted) for key in found if key in keys)


def attempt_files(store: Store) -> list[str]:
    """Paths of everything that could be an attempt's: data, deletions, indices, staged transactions, unfinished writes."""
    unfinished = (entry for folder in _FOLDERS for entry in store.list_unfinished(f"{folder}/"))
    return [entry.path for entry in (*attempt_entries(store), *unfinished)]


def attempt_entries(store: Store) -> list[StoreEntry]:
    """Those that are written whole."""
    return [entry for folder in _FOLDERS for entry in store.list(f"{folder}/")]


def record_path(identity: str, attempt: str) -> str:
    """Where an attempt's record is."""
    return naming.staged_path(identity, STARTED, attempt=attempt)


def write_started(store: Store, attempt: Attempt, *, renewed: float) -> None:
    """Put the record of an attempt, or renew its lease."""
    plain = {"format": FORMAT, "attempt": attempt.to_dict(), "renewed": renewed}
    write_record(store, record_path(attempt.identity, attempt.attempt), plain)


def _read_started(store: Store, path: str) -> tuple[Attempt, float] | None:
    found = read_as(store, path, _Started)
    if found is None:
        return None
    attempt = found.attempt
    if record_path(attempt.identity, attempt.attempt) != path:
        raise CorruptFileError(f"{path}: the record belongs to attempt {attempt.attempt} of {attempt.identity}")
    return attempt, found.renewed
