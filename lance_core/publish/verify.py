"""Verify all records of a table: find damaged ones, and decisions that the log contradicts; set them aside, below
`_lance_core/aside/`, where nobody looks for them; and tell one identity's story.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from lance_core.commit import naming
from lance_core.commit.manifests import version_numbers
from lance_core.errors import CorruptFileError, NotFoundError
from lance_core.io.parallel import each
from lance_core.io.store import Store
from lance_core.publish.attempts import read_started, record_path, started_keys
from lance_core.publish.decisions import (
    CommittedWork,
    DecisionState,
    decision_path,
    list_identities,
    look,
    look_many,
    parse_decision_name,
    read_decision,
)
from lance_core.publish.folding import aside_path, folded_states, remove_folded
from lance_core.publish.history import SETTLED_PATH, TO_SETTLE, in_doubt, void_work
from lance_core.publish.intent import damaged_intents, list_intents
from lance_core.publish.records import FORMAT, decode_record, encode_record
from lance_core.publish.segments import FOLDED


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that does not count, and why."""

    path: str
    reason: str


def list_ledger(store: Store) -> list[CommittedWork]:
    """Everything that was committed and whose record can be read, by version."""
    works = [state.committed for state in _every_state(store, {}).values() if state.committed is not None]
    return sorted(works, key=lambda item: (item.version, item.identity))


def _every_state(store: Store, damaged: dict[str, str]) -> dict[str, DecisionState]:
    """The states that can be read, folded ones included. Blocks that cannot be read are put into `damaged`."""
    folded = {state.identity: state for state in folded_states(store, damaged=damaged)}
    return {**folded, **look_many(store, [*list_identities(store)], damaged={})}


def void_records(store: Store) -> list[BadRecord]:
    """Decisions that are damaged or that the log contradicts, folded ones included."""
    blocks = dict[str, str]()
    states = _every_state(store, blocks)
    works = [state.committed for state in states.values() if state.committed is not None]
    void = void_work(store, works, version_numbers(store))
    found = [BadRecord(decision_path(name, states[name].number), reason) for name, reason in sorted(void.items())]
    found += [BadRecord(path, reason) for path, reason in blocks.items()]
    found += [item for item in _unreadable(store, _decision_paths(store)) if item.path not in {one.path for one in found}]
    return found + _unreadable(store, [SETTLED_PATH])


def _decision_paths(store: Store) -> list[str]:
    return [f"{naming.DECISIONS}/{name}" for name in store.list_names(f"{naming.DECISIONS}/")]


def damaged_records(store: Store) -> list[BadRecord]:
    """Records of staged work, decisions and intents that cannot be read."""
    names = store.list_names(f"{naming.STAGED}/")
    found = _unreadable(store, [f"{naming.STAGED}/{name}" for name in names])
    known = {item.path for item in found}
    for key in started_keys(store):
        path = record_path(*key)
        if path not in known and read_started(store, *key) is None:
            found.append(BadRecord(path, "it is not a valid record of an attempt"))
    found += _bad(store, _decision_paths(store), _read_decision)
    return found + [BadRecord(path, "it is not a valid intent") for path in damaged_intents(store)]


def set_aside(store: Store, paths: Sequence[str]) -> list[str]:
    """Set records aside, folded ones as well; returns their new paths."""
    moved = []
    for path in paths:
        try:
            store.put(aside_path(path), store.get(path))
        except NotFoundError:
            continue
        if not path.startswith(f"{FOLDED}/"):
            store.delete(path)  # segments are removed when an index without them is there
        moved.append(aside_path(path))
    # A folded record is put where its own one would be set aside; then there is a generation without it.
    names = [parse_decision_name(path.rpartition("/")[2]) for path in paths if path.startswith(f"{naming.DECISIONS}/")]
    identities = [*dict.fromkeys(name[0] for name in names if name is not None)]
    with_damaged = any(path.startswith(f"{FOLDED}/") for path in paths)
    for record in remove_folded(store, identities, with_damaged=with_damaged) if identities or with_damaged else ():
        target = aside_path(decision_path(str(record.get("identity")), int(record.get("number", 0))))
        store.put(target, encode_record({"format": FORMAT, **record}))
        moved.append(target)
    return moved


def forget(store: Store, identity: str) -> list[str]:
    """Set all decisions of an identity aside, so that its work may be committed again while the history does not show it."""
    numbers = list_identities(store).get(identity, [])
    # The highest last: until then it is the answer.
    return set_aside(store, [decision_path(identity, number) for number in numbers or [0]])


def _unreadable(store: Store, paths: Sequence[str]) -> list[BadRecord]:
    return _bad(store, paths, lambda store, path: decode_record(bytes(store.get(path)), where=path))


def _read_decision(store: Store, path: str) -> None:
    if (parsed := parse_decision_name(path.rpartition("/")[2])) is not None:
        read_decision(store, *parsed)


def _bad(store: Store, paths: Sequence[str], read: Callable[[Store, str], object]) -> list[BadRecord]:
    """Those that `read` finds damaged."""

    def look(store: Store, path: str) -> BadRecord | None:
        try:
            with suppress(NotFoundError):
                read(store, path)
        except CorruptFileError as error:
            return BadRecord(path, str(error))
        return None

    return [item for item in each(store, paths, look) if item is not None]


def explain(store: Store, identity: str) -> list[dict[str, object]]:
    """One identity's story, a line for each thing on record: attempts, decisions, intents, versions, and what would settle
    an unknown."""
    lines: list[dict[str, object]] = []
    for key in started_keys(store, identity):
        begun = read_started(store, *key)
        lines.append(_line("attempt", key[1], None if begun is None else begun.read_version, "began on this version"))
    state = look(store, identity)
    for number in range(1, state.number + 1):
        found = read_decision(store, identity, number)
        if found is None and number == state.number:
            found = replace(state, outcome=f"{state.outcome}, folded into a segment", by="")
        if found is not None:
            version = None if found.committed is None else found.committed.version
            text = f"{found.outcome} by {found.by}" if found.by else found.outcome
            lines.append(_line(f"decision {number}", found.attempt, version, text))
    for intent in list_intents(store):
        if identity in intent.attempts:
            verb = "an abort" if intent.aborts else "a commit"
            text = f"{verb} had begun on this version, and nobody has said that it ended"
            lines.append(_line(f"intent {intent.commit}", intent.attempts[identity], intent.base, text))
    return [*lines, _conclusion(store, state)]


def _conclusion(store: Store, state: DecisionState) -> dict[str, object]:
    identity, done, waits = state.identity, state.committed, state.finished
    if done is not None:
        void = void_work(store, [done], version_numbers(store))
        text = f"void: {void[identity]}" if void else "it is committed; committing it again adds nothing"
        return _line("now", done.attempt, done.version, text)
    if waits is None:
        return _line("now", None, None, "nothing waits for a commit" if state.number else "nothing is known of it")
    unknown = in_doubt(store, {identity: waits.read_version})
    text = "it waits for its commit: commit again, or abort it"
    if identity in unknown:
        text = f"unknown: the history of version {unknown[identity]} was removed. {TO_SETTLE}"
    return _line("now", waits.attempt, waits.read_version, text)


def _line(what: str, attempt: object, version: int | None, says: str) -> dict[str, object]:
    return {"what": what, "attempt": attempt, "version": version, "says": says}
