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
from lance_core.commit.manifests import version_numbers
from lance_core.errors import CorruptFileError, NotFoundError
from lance_core.io.parallel import each
from lance_core.io.store import Store
from lance_core.publish.records import FORMAT, decode_record, encode_record
from lance_core.publish.registry.attempts import find_finished, finished_path, read_started
from lance_core.publish.registry.claims import list_claims
from lance_core.publish.registry.folding import ASIDE, folded_landings, remove_folded
from lance_core.publish.registry.group_fences import is_damaged, list_groups
from lance_core.publish.registry.landings import void_landings
from lance_core.publish.registry.ledger import COMPLETE_PATH, Landing, folded_of, own_landings, recorded_identities
from lance_core.publish.registry.segments import FOLDED


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that does not count, and why."""

    path: str
    reason: str


def list_ledger(store: Store) -> list[Landing]:
    """Every landing on record that can be read, by version."""
    own = [item for item in own_landings(store, recorded_identities(store)) if item is not None]
    found = {item.identity: item for item in (*folded_landings(store, damaged=[]), *own)}
    return sorted(found.values(), key=lambda item: (item.version, item.identity))


def void_records(store: Store) -> list[BadRecord]:
    """Ledger records that are damaged or that the log contradicts, folded ones included."""
    identities = recorded_identities(store)
    landings = own_landings(store, identities)
    blocks: list[tuple[str, str]] = []
    own = [item for item in landings if item is not None]
    void = void_landings(store, (*folded_landings(store, damaged=blocks), *own), version_numbers(store))
    damaged = [identity for identity, landing in zip(identities, landings, strict=True) if landing is None]
    reasons = {**dict.fromkeys(damaged, "it is damaged"), **void}
    found = [BadRecord(naming.ledger_path(identity), reason) for identity, reason in sorted(reasons.items())]
    found += [BadRecord(path, reason) for path, reason in blocks]
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
    names = [name for name in store.list_names(f"{naming.COMMITS}/") if name.endswith(".json")]
    paths = [f"{naming.COMMITS}/{name}" for name in names]
    found.extend(BadRecord(path, "it is not a valid claim") for path in paths if path not in claims)
    damaged = [group for group, decided in list_groups(store).items() if is_damaged(decided)]
    found.extend(BadRecord(naming.group_path(group), "it is not a valid decision about a group") for group in damaged)
    return found


def set_aside(store: Store, paths: Sequence[str]) -> list[str]:
    """Set records aside, folded ones as well; returns their new paths."""
    moved = []
    for path in paths:
        target = _aside(path)
        try:
            store.put(target, store.get(path))
        except NotFoundError:
            continue
        if not path.startswith(f"{FOLDED}/"):
            store.delete(path)  # segments are removed when an index without them is there
        moved.append(target)
    return moved + _set_folded_aside(store, paths)


def _set_folded_aside(store: Store, paths: Sequence[str]) -> list[str]:
    """A folded record is put where its own one would be set aside; then the ledger has a generation without it."""
    identities = [name for path in paths if (name := _identity_of(path))]
    with_damaged = any(path.startswith(f"{FOLDED}/") for path in paths)
    if not identities and not with_damaged:
        return []
    folded = folded_of(store, identities, damaged={})
    for identity, landing in folded.items():
        store.put(_aside(naming.ledger_path(identity)), encode_record({"format": FORMAT, **landing.to_plain()}))
    remove_folded(store, identities, with_damaged=with_damaged)
    return [_aside(naming.ledger_path(identity)) for identity in folded]


def _identity_of(path: str) -> str:
    folder, _, name = path.rpartition("/")
    is_one = folder == naming.LEDGER and name.endswith(".json") and not name.startswith("_")
    return name.removesuffix(".json") if is_one else ""


def _aside(path: str) -> str:
    return f"{ASIDE}/{path.removeprefix(naming.PRIVATE + '/')}"


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
