"""Verify all records of a table: find damaged ones, and ledger records that the log contradicts; and set them aside.

::

    list_ledger      every landing on record
    void_records     those that do not count: of a table that was here before, or damaged
    damaged_records  records of staged work and claims that nobody can read
    set_aside        a record moves to _lance_core/aside/, where nobody looks for it
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lance_core.commit import naming
from lance_core.commit.log.manifests import version_numbers
from lance_core.commit.records import decode_record, each
from lance_core.commit.registry.attempts import find_finished, finished_path, read_started
from lance_core.commit.registry.claims import list_claims
from lance_core.commit.registry.landings import void_landings
from lance_core.commit.registry.ledger import COMPLETE_PATH, Landing, landings_of
from lance_core.errors import CorruptFileError, NotFoundError
from lance_core.io.store import Store

ASIDE = f"{naming.PRIVATE}/aside"


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that does not count, and why."""

    path: str
    reason: str


def list_ledger(store: Store) -> list[Landing]:
    """Every landing on record that can be read, by version."""
    found = landings_of(store, _identities(store))
    return sorted((item for item in found if item is not None), key=lambda item: (item.version, item.identity))


def void_records(store: Store) -> list[BadRecord]:
    """Ledger records that are damaged or that the log contradicts."""
    identities = _identities(store)
    landings = landings_of(store, identities)
    void = void_landings(store, [item for item in landings if item is not None], version_numbers(store))
    reasons = {
        identity: "it is damaged" if landing is None else void.get(identity, "")
        for identity, landing in zip(identities, landings, strict=True)
    }
    found = [BadRecord(naming.ledger_path(identity), reason) for identity, reason in reasons.items() if reason]
    return found + _unreadable(store, [COMPLETE_PATH])


def damaged_records(store: Store) -> list[BadRecord]:
    """Records of staged work and claims that cannot be read."""
    names = store.list_names(f"{naming.STAGED}/")
    found = _unreadable(store, [f"{naming.STAGED}/{name}" for name in names])
    known = {item.path for item in found}
    for name in names:
        path = f"{naming.STAGED}/{name}"
        attempt = naming.parse_attempt_record(name, "started")
        if path in known:
            continue
        if attempt is not None and read_started(store, *attempt) is None:
            found.append(BadRecord(path, "it is not a valid record of an attempt"))
        identity = name.removesuffix(".finished.json")
        if identity != name and path == finished_path(identity) and find_finished(store, identity) is None:
            found.append(BadRecord(path, "it is not a valid record of a staged transaction"))
    claims = {claim.path for claim in list_claims(store)}
    paths = [f"{naming.COMMITS}/{name}" for name in store.list_names(f"{naming.COMMITS}/") if name.endswith(".json")]
    found.extend(BadRecord(path, "it is not a valid claim") for path in paths if path not in claims)
    return found


def set_aside(store: Store, paths: Sequence[str]) -> list[str]:
    """Set records aside; returns their new paths."""
    moved = []
    for path in paths:
        target = f"{ASIDE}/{path.removeprefix(naming.PRIVATE + '/')}"
        try:
            store.put(target, store.get(path))
        except NotFoundError:
            continue
        store.delete(path)
        moved.append(target)
    return moved


def _identities(store: Store) -> list[str]:
    names = store.list_names(f"{naming.LEDGER}/")
    return sorted(name.removesuffix(".json") for name in names if name.endswith(".json") and not name.startswith("_"))


def _unreadable(store: Store, paths: Sequence[str]) -> list[BadRecord]:
    def look(store: Store, path: str) -> BadRecord | None:
        try:
            decode_record(bytes(store.get(path)), where=path)
        except NotFoundError:
            return None
        except CorruptFileError as error:
            return BadRecord(path, str(error))
        return None

    return [item for item in each(store, paths, look) if item is not None]
