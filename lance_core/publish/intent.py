"""Intents: a commit, or an abort of finished work, that is under way.

::

    _lance_core/intents/{commit}.json   {"commit": "9c…", "uuids": ["…"], "attempts": {"5d2c…": "00ff…"}, "base": 7, …}

It is put before the manifest of the commit, or before the version that says what is aborted, and removed when each identity
in it has its decision: by whoever finishes it, or by its commit when none of its puts can still arrive. `base` is the newest
version that it knew: what it publishes has a greater number. So where versions are gone, what is unknown is what an intent
names whose base is below the gap, and nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from lance_core.commit import naming
from lance_core.errors import CorruptFileError
from lance_core.io.parallel import each
from lance_core.io.store import Store
from lance_core.publish.records import FORMAT, encode_record, read_as, unless_damaged, unsupported

STALE_SECONDS = 3600.0
"""How long a silent commit may still be alive. A commit takes seconds; conflicts and re-execution take minutes."""
COMMITS, ABORTS = "commits", "aborts"


@dataclass(frozen=True, slots=True)
class Intent:
    """`commit` is the attempt id in the names of the files that the commit itself writes, and `uuids` are those of the
    transactions that it may publish, which name its transaction files: so what a killed one leaves is found."""

    commit: str
    outcome: str = COMMITS
    uuids: tuple[str, ...] = ()
    attempts: Mapping[str, Any] = field(default_factory=dict)
    base: int = 0
    since: float = 0.0

    @property
    def path(self) -> str:
        """Where it is."""
        return f"{naming.INTENTS}/{self.commit}.json"

    @property
    def aborts(self) -> bool:
        """Whether it is an abort of finished work."""
        return self.outcome == ABORTS

    def is_alive(self, now: float) -> bool:
        """Whether the commit may still be at work at `now` (seconds since the epoch). Only for people to look at."""
        return now < self.since + STALE_SECONDS


def put_intent(store: Store, intent: Intent) -> Intent:
    """Put it where it is looked for. Not forced to the disk: when this machine dies, the commit dies as well."""
    made = replace(intent, since=time.time())
    store.put(made.path, encode_record({"format": FORMAT, **asdict(made)}), durable=False)
    return made


def extend_intent(store: Store, intent: Intent, *, uuids: Iterable[str] = (), attempts: Mapping[str, str]) -> Intent:
    """Add what the commit may publish. Writes only changes."""
    known, members = dict.fromkeys((*intent.uuids, *uuids)), {**intent.attempts, **attempts}
    if len(known) == len(intent.uuids) and members == intent.attempts:
        return intent
    return put_intent(store, replace(intent, uuids=tuple(known), attempts=members))


def remove_intent(store: Store, intent: Intent) -> None:
    """It is settled."""
    store.delete(intent.path)


def list_intents(store: Store) -> list[Intent]:
    """All of them, of killed commits as well. A damaged record is logged and skipped; UnsupportedRecordError for one that
    only a newer release knows."""
    found = each(store, _paths(store), lambda store, path: unless_damaged(store, partial(_read, store, path)))
    return [intent for intent in found if intent is not None]


def named_by(intents: Iterable[Intent], identities: Iterable[str], *, below: int, but: str = "") -> dict[str, list[Intent]]:
    """The intents with a base below a version that name an identity, by identity; without that of the commit `but`."""
    found: dict[str, list[Intent]] = {identity: [] for identity in identities}
    for intent in intents:
        if intent.base < below and intent.commit != but:
            for identity in intent.attempts:
                if identity in found:
                    found[identity].append(intent)
    return {identity: items for identity, items in found.items() if items}


def damaged_intents(store: Store) -> Sequence[str]:
    """Paths of intents that cannot be read."""
    known = {intent.path for intent in list_intents(store)}
    return [path for path in _paths(store) if path not in known]


def _paths(store: Store) -> list[str]:
    return [f"{naming.INTENTS}/{name}" for name in store.list_names(f"{naming.INTENTS}/") if name.endswith(".json")]


def _read(store: Store, path: str) -> Intent | None:
    intent = read_as(store, path, Intent)
    if intent is not None and intent.path != path:
        raise CorruptFileError(f"{path}: the record belongs to commit {intent.commit}")
    if intent is not None and intent.outcome not in (COMMITS, ABORTS):
        raise unsupported(f"{store.uri}: {path}", "outcome", expected=f"{COMMITS} or {ABORTS}", got=intent.outcome)
    return intent
