"""Which identities have landed, as small records: one for each, or one content under the names of a fold's members.

::

    _lance_core/ledger/5d2c….json      {"identity": "5d2c…", "version": 7, "transaction": "…", "attempt": "…", "digest": "…"}
    the same, as one of a fold         {"attempts": {"5d2c…": "…", "77aa…": "…"}, "version": 7, …}  (names of one file)
    _lance_core/ledger/_complete.json  {"version": 5}: every identity that landed at or before version 5 has its record
    _lance_core/ledger/folded/         old records, folded into sorted segments (see `registry.folding`)

A record follows the manifest and precedes every removal of staged records, so it is forced to the disk. What it says is
trusted by `registry.landings` only, which compares it with the log.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from lance_core.commit import naming
from lance_core.commit.identities import identities_of
from lance_core.errors import CorruptFileError
from lance_core.io.abilities import SharesContent
from lance_core.io.parallel import each
from lance_core.io.store import Store
from lance_core.publish.record_types import LedgerRecord, parse_record
from lance_core.publish.records import FORMAT, add_record, encode_record, read_record, write_record
from lance_core.publish.registry.folded import folded_records
from lance_core.publish.registry.incarnation import is_other
from lance_core.table.transaction import Transaction

log = logging.getLogger(__name__)

_SHARED_BY = 128
"""Records of one fold that share a content; each reader of one reads of them all, about 60 bytes each."""

COMPLETE_PATH = f"{naming.LEDGER}/_complete.json"
SETTLED_BY_HAND = "settled by hand"


@dataclass(frozen=True, slots=True)
class Landing:
    """Where an identity landed, and with which attempt's files ("" when the history does not tell), and who had asked."""

    identity: str
    version: int
    attempt: str
    transaction: str
    digest: str = ""
    incarnation: str = ""
    asked: Mapping[str, Any] = field(default_factory=dict)
    landed_at: float = 0.0

    def to_plain(self) -> dict[str, Any]:
        """What is known, as the record of this identity alone."""
        return {name: value for name, value in asdict(self).items() if value}

    @property
    def has_witness(self) -> bool:
        """Whether the log can show that it is true: the version's transaction is known."""
        return self.transaction not in ("", SETTLED_BY_HAND)


def record_landed(
    store: Store,
    identity: str,
    *,
    version: int,
    transaction: str,
    attempt: str = "",
    digest: str = "",
    asked: Mapping[str, Any] | None = None,
    incarnation: str = "",
    durable: bool = True,
) -> None:
    """Note that an identity landed. An equal record stays; a record of another landing is replaced."""
    path = naming.ledger_path(identity)
    record = {
        "format": FORMAT,
        "identity": identity,
        "version": version,
        "transaction": transaction,
        "attempt": attempt,
        "digest": digest,
        "asked": dict(asked or {}),
        "incarnation": incarnation,
        "landed_at": time.time(),
    }
    try:
        found = add_record(store, path, record, durable=durable)
        if found is None or _is_equal(plain_landing(identity, found, path), version, incarnation):
            return
    except CorruptFileError as error:
        log.warning("replacing a damaged record: %s", error)
    # Whoever calls has seen the landing in the log; the other one is of a table that was here before.
    write_record(store, path, record)


def landing_of(store: Store, identity: str) -> Landing | None:
    """The ledger's record of an identity, folded or not. None if there is none or the record is damaged (which is logged).

    CorruptFileError where the damage concerns many: a block of folded records.
    """
    return landings_of(store, [identity])[0]


def landings_of(
    store: Store, identities: Sequence[str], *, damaged: dict[str, CorruptFileError] | None = None
) -> list[Landing | None]:
    """`landing_of` many identities at once. With `damaged`, those of a damaged block are put there, and have None."""
    found = dict(zip(identities, own_landings(store, identities), strict=True))
    found.update(folded_of(store, [identity for identity, item in found.items() if item is None], damaged=damaged))
    return [found[identity] for identity in identities]


def has_no_record(store: Store, identity: str) -> bool:
    """Whether the ledger certainly has nothing about an identity: no record, no folded one, none that is damaged."""
    try:
        return read_record(store, naming.ledger_path(identity)) is None and not folded_records(store, [identity])
    except CorruptFileError:
        return False


def own_landings(store: Store, identities: Sequence[str]) -> list[Landing | None]:
    """The landings that have a record of their own."""
    return each(store, identities, _own_landing)


def folded_of(
    store: Store, identities: Sequence[str], *, damaged: dict[str, CorruptFileError] | None = None
) -> dict[str, Landing]:
    """The landings that have been folded, of identities whose own records were found missing **before** this call."""
    found: dict[str, Landing] = {}
    for identity, record in folded_records(store, identities).items():
        if not isinstance(record, CorruptFileError):
            found[identity] = plain_landing(identity, record, identity)
        elif damaged is None:
            raise record
        else:
            damaged[identity] = record
    return found


def recorded_identities(store: Store) -> list[str]:
    """Identities that have a record of their own, sorted."""
    names = store.list_names(f"{naming.LEDGER}/")
    return sorted(name.removesuffix(".json") for name in names if name.endswith(".json") and not name.startswith("_"))


def _own_landing(store: Store, identity: str) -> Landing | None:
    path = naming.ledger_path(identity)
    try:
        record = read_record(store, path)
        return None if record is None else plain_landing(identity, record, path)
    except CorruptFileError as error:
        log.warning("set aside: %s", error)
        return None


def record_fold(
    store: Store,
    identities: Iterable[str],
    *,
    version: int,
    transaction: Transaction,
    incarnation: str = "",
    durable: bool = True,
) -> None:
    """Note the landing of identities that a transaction of the log carries."""
    notes = identities_of(transaction)
    known: Notes = {identity: notes.get(identity, {}) for identity in identities}
    common = {"version": version, "transaction": transaction.uuid, "incarnation": incarnation}
    if len(known) > 1 and isinstance(store, SharesContent):
        known = _record_shared(store, known, common, durable=durable)
    _record_each(store, known, common, durable=durable)


def recorded_version(store: Store, identity: str) -> int | None:
    """The version in the ledger for an identity, None without a record. The log is not read."""
    landing = landing_of(store, identity)
    return None if landing is None else landing.version


def complete_version(store: Store) -> int:
    """Up to which version the ledger has every identity."""
    try:
        record = read_record(store, COMPLETE_PATH)
        return 0 if record is None else parse_record(LedgerRecord, record, where=COMPLETE_PATH).version
    except CorruptFileError as error:
        log.warning("set aside: %s", error)
        return 0


Notes = Mapping[str, Mapping[str, Any]]


def _record_each(store: Store, notes: Notes, common: Mapping[str, Any], *, durable: bool) -> None:
    def record(store: Store, item: tuple[str, Mapping[str, Any]]) -> None:
        identity, note = item
        asked = note.get("asked")
        record_landed(
            store,
            identity,
            attempt=str(note.get("attempt", "")),
            digest=str(note.get("digest", "")),
            asked=asked if isinstance(asked, Mapping) else {},
            durable=durable,
            **common,
        )

    each(store, [*notes.items()], record)


def _record_shared(store: SharesContent, notes: Notes, common: Mapping[str, Any], *, durable: bool) -> Notes:
    """Put one content under the names of many records. Returns the notes whose names were taken, to be written again."""
    items, left = [*notes.items()], dict[str, Mapping[str, Any]]()
    for start in range(0, len(items), _SHARED_BY):
        share = dict(items[start : start + _SHARED_BY])
        record = {
            "format": FORMAT,
            "attempts": {identity: str(note.get("attempt", "")) for identity, note in share.items()},
            "digests": {identity: str(note["digest"]) for identity, note in share.items() if note.get("digest")},
            "asked": {identity: note["asked"] for identity, note in share.items() if note.get("asked")},
            "landed_at": time.time(),
            **common,
        }
        by_path = {naming.ledger_path(identity): identity for identity in share}
        taken = store.put_same_if_absent([*by_path], encode_record(record), durable=durable)
        left.update({by_path[path]: share[by_path[path]] for path in taken})
    return left


def _is_equal(found: Landing, version: int, incarnation: str) -> bool:
    return found.version == version and not is_other(found.incarnation, incarnation)


def plain_landing(identity: str, plain: Mapping[str, Any], path: str) -> Landing:
    """What a record says about one identity."""
    record = parse_record(LedgerRecord, plain, where=path)
    if record.attempts and identity not in record.attempts:
        raise CorruptFileError(f"{path}: the record belongs to other identities")
    asked = record.asked.get(identity, {}) if record.attempts else record.asked
    return Landing(
        identity=identity,
        version=record.version,
        attempt=str(record.attempts.get(identity) or record.attempt),
        transaction=record.transaction,
        digest=str(record.digests.get(identity) or record.digest),
        incarnation=record.incarnation,
        asked=asked if isinstance(asked, Mapping) else {},
        landed_at=record.landed_at,
    )
