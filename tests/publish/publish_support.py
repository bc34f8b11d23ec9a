"""What tests of publication have in common: processes that die, others that act in between, and what may be left."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lance_core.commit import naming
from lance_core.commit.manifests import latest_version, list_versions, load_manifest
from lance_core.commit.references import referenced_files
from lance_core.io.memory import MemoryStore
from lance_core.io.store import Store
from lance_core.publish.collect import collect_garbage
from lance_core.publish.commit import commit_staged
from lance_core.publish.decisions import DecisionState, decision_path, look
from lance_core.publish.intent import list_intents
from lance_core.publish.model import StagedTransaction
from tests.commit.commit_support import create, paths
from tests.protocol.protocol_support import Hook, HookStore, Killed, is_manifest_put

LATER = 10 * 24 * 3600.0
MEMORY = (f"{naming.DECISIONS}/", f"{naming.SEGMENTS}/", f"{naming.PRIVATE}/settled.json", f"{naming.PRIVATE}/table.json")
"""What stays of work that came to its end."""

Key = tuple[str, str]


class WideStore(MemoryStore):
    """Far away: what can be asked at once is asked at once, in threads."""

    is_local = False
    is_wide = True


def memory(*, empty: bool = False) -> MemoryStore:
    """A table of the rows 1, 2, 3 at version 1."""
    store = MemoryStore(uuid.uuid4().hex)
    if not empty:
        create(store)
    return store


def key_of(ref: StagedTransaction) -> Key:
    return ref.identity, ref.attempt


def die() -> None:
    raise Killed


def at_call(number: int, act: Callable[[], object], *, matches: Callable[[str, str], bool]) -> Hook:
    """Does something right before the n-th call that matches."""
    seen = 0

    def hook(name: str, path: str, action: Callable[[], Any]) -> Any:
        nonlocal seen
        if matches(name, path):
            seen += 1
            if seen == number:
                act()
        return action()

    return hook


def at_manifest(number: int, act: Callable[[], object]) -> Hook:
    """Does something right before a commit's n-th put of a manifest."""
    return at_call(number, act, matches=is_manifest_put)


def is_decision(name: str, path: str) -> bool:
    """Whether a call puts a decision."""
    return name == "put_if_absent" and path.startswith(f"{naming.DECISIONS}/")


def kill_before_manifest(store: Store, refs: Sequence[StagedTransaction]) -> None:
    """A commit that has put its intent, and dies before it puts a version."""
    with contextlib.suppress(Killed):
        commit_staged(HookStore(store, at_manifest(1, die)), refs)


class Interrupted:
    """A hook: right before the n-th call another writer acts, and the caller goes on or dies. On request the first put of a
    manifest loses its number as well."""

    def __init__(self, number: int, act: Callable[[], object], *, dies: bool, race: Callable[[], object] | None) -> None:
        self._number, self._act, self._dies, self._race = number, act, dies, race
        self.num_calls = 0

    def __call__(self, name: str, path: str, action: Callable[[], Any]) -> Any:
        self.num_calls += 1
        if is_manifest_put(name, path) and self._race is not None:
            race, self._race = self._race, None
            race()
        if self.num_calls == self._number:
            self._act()
            if self._dies:
                raise Killed
        return action()


class LatePut:
    """A hook: the first put that matches times out, and is done `delay` calls later; before, others may act."""

    def __init__(
        self,
        delay: int,
        *,
        before: Callable[[], object] | None = None,
        matches: Callable[[str, str], bool] = is_manifest_put,
    ) -> None:
        from lance_core.errors import StoreError

        self._error = StoreError
        self._delay, self._before, self._matches = delay, before, matches
        self._late: Callable[[], Any] | None = None
        self._num_calls = self._at = 0
        self.has_landed = self.is_over = False

    def __call__(self, name: str, path: str, action: Callable[[], Any]) -> Any:
        self._num_calls += 1
        if self._late is not None and self._num_calls >= self._at:
            self.land()
        if self._matches(name, path) and not self._at:
            self._late, self._at = action, self._num_calls + self._delay
            if self._before is not None:
                self._before()
            raise self._error("timed out")
        return action()

    def land(self) -> None:
        """It takes effect now."""
        late, self._late = self._late, None
        if late is not None:
            with contextlib.suppress(self._error):
                late()
                self.has_landed = True


def gc_late(store: Store) -> None:
    """A collection when every lease is over."""
    collect_garbage(store, now=time.time() + LATER)


def prune(store: Store) -> None:
    """What a cleanup of others does: all versions but the newest go, and their transactions."""
    newest = latest_version(store)
    kept = set(referenced_files(load_manifest(store)))
    for entry in list_versions(store):
        if entry.version != newest:
            for path in referenced_files(load_manifest(store, entry.version)):
                if path.startswith("_transactions/") and path not in kept:
                    store.delete(path)
            store.delete(entry.path)


def _needed(store: Store) -> Iterator[str]:
    for entry in list_versions(store):
        yield from referenced_files(load_manifest(store, entry.version))


def orphans(store: Store) -> set[str]:
    """What no version refers to and nobody remembers by: files, records of attempts, intents, unfinished writes."""
    return {path for path in paths(store) if not path.startswith(("_versions/", *MEMORY))} - set(_needed(store))


def records(store: Store) -> set[str]:
    """What is left of staged work and commits that should be over."""
    return {path for path in paths(store) if path.startswith((f"{naming.STAGED}/", f"{naming.INTENTS}/"))}


def broken(store: Store) -> dict[int, set[str]]:
    """Files that a version names and that are gone."""
    there = paths(store)
    named = {
        item.version: {path for path in referenced_files(load_manifest(store, item.version)) if not path.endswith("/")}
        for item in list_versions(store)
    }
    return {version: files - there for version, files in named.items() if files - there}


def intents(store: Store) -> list[dict[str, object]]:
    """The attempts of each intent on record."""
    return [dict(item.attempts) for item in list_intents(store)]


def committed_at(store: Store, identity: str) -> int | None:
    """The version that the decisions of an identity name."""
    done = look(store, identity).committed
    return None if done is None else done.version


def decisions(store: Store, identity: str) -> list[DecisionState]:
    """Every number of an identity that is there."""
    from lance_core.publish.decisions import list_identities, read_decision

    found = [read_decision(store, identity, number) for number in list_identities(store).get(identity, ())]
    return [item for item in found if item is not None]


def remove_decisions(store: Store, identity: str) -> None:
    """As if they had never been put."""
    for item in decisions(store, identity):
        store.delete(decision_path(identity, item.number))
