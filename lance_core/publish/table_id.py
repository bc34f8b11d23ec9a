"""The id of a table: a table that was created again at a uri is another one, even with equal version numbers.

::

    version 1 is there        the uuid of its transaction
    version 1 was pruned      _lance_core/table.json   {"table_id": "…", "version": 40, "transaction": "…"}
                              counts as long as version 40 is the one of that transaction
    neither                   "": nobody knows, and nothing is concluded from it

Our cleanup writes the record before it prunes the version that shows it. Two ids of which one is empty say nothing about
each other.

Which release the records of a table need stands in its config, so every manifest says it, and nobody asks for it::

    config["lance_core.records"] = '{"min_reader":2,"min_writer":3,"table_id":"…"}'

A release whose format is lower than the second stages, commits, aborts and removes nothing there; one that is lower than the
first does not read them either. What names another table does not count: a clone has the config of its source.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass

from lance_core.commit import naming
from lance_core.commit.manifests import open_path
from lance_core.commit.transactions import uuid_of
from lance_core.errors import CorruptFileError, LanceError, NotFoundError, UnsupportedRecordError
from lance_core.format.manifest import Manifest
from lance_core.io.store import Store
from lance_core.publish.records import (
    FORMAT,
    TableIdRecord,
    decode_object,
    parse_record,
    read_as,
    unless_damaged,
    unsupported,
    write_record,
)
from lance_core.table.transaction import Transaction

log = logging.getLogger(__name__)

TABLE_PATH = f"{naming.PRIVATE}/table.json"
RECORDS_KEY = "lance_core.records"
"""The config of a table that says which release its records need."""
_FIRST = 1

Load = Callable[[Store, int], "Transaction | None"]


def table_id_of(store: Store, *, present: Collection[int] | None = None, load: Load | None = None) -> str:
    """The table's id; "" when nobody knows. `present`: the version numbers, for a caller that has listed them;
    `load`: the transaction of a version that has been read; None, or one without uuid, where it has not."""
    if present is None or _FIRST in present:
        first = None if load is None else load(store, _FIRST)
        uuid = first.uuid if first is not None and first.uuid else _uuid(store, _FIRST)
        if uuid is not None:
            return uuid
    record = _record(store)
    return "" if record is None or _uuid(store, record.version) != record.transaction else record.table_id


@dataclass(frozen=True, slots=True)
class _Needed:
    min_reader: int
    min_writer: int
    table_id: str = ""


def require_known_records(store: Store, manifest: Manifest | None, *, writes: bool = True) -> None:
    """UnsupportedRecordError when the table's config asks for a newer release than this one, to read its records, or, where
    the caller `writes`, to add to them. No request, but to name the table before it is refused."""
    text = "" if manifest is None else manifest.config.get(RECORDS_KEY, "")
    if not text:
        return
    where = f"{store.uri}: config {RECORDS_KEY}"
    try:
        found = parse_record(_Needed, decode_object(text.encode(), where=where), where=where)
    except CorruptFileError as error:
        raise UnsupportedRecordError(
            f"{error}; nothing is staged, committed or removed",
            cure="Upgrade this library; if nobody uses a newer release on this table, remove that key of its config.",
        ) from error
    needed, key = found.min_reader, "min_reader"
    if writes and found.min_writer > needed:
        needed, key = found.min_writer, "min_writer"
    if needed > FORMAT and not is_other_table(found.table_id, table_id_of(store)):
        raise unsupported(where, key, expected=f"at most {FORMAT}", got=needed)


def is_other_table(one: str, other: str) -> bool:
    """Whether two ids are known to be of two tables."""
    return bool(one and other and one != other)


def keep_table_id(store: Store, *, present: Collection[int], doomed: Collection[int], load: Load | None = None) -> str:
    """Before versions are pruned: note the id, where one of them is what shows it. Returns it."""
    left = sorted(set(present) - set(doomed))
    record = _record(store)
    is_witness = _FIRST in doomed or (record is not None and record.version in doomed)
    table_id = table_id_of(store, present=present, load=load)
    if not table_id or not is_witness or not left:
        return table_id
    # The newest stays longest.
    witness = _uuid(store, left[-1])
    if witness is not None:
        plain = {"format": FORMAT, "table_id": table_id, "version": left[-1], "transaction": witness}
        write_record(store, TABLE_PATH, plain)
    return table_id


def _record(store: Store) -> TableIdRecord | None:
    return unless_damaged(store, lambda: read_as(store, TABLE_PATH, TableIdRecord))


def _uuid(store: Store, version: int) -> str | None:
    """The uuid of the transaction that made a version; None where nobody knows."""
    for scheme in (naming.NamingScheme.V2, naming.NamingScheme.V1):
        try:
            return uuid_of(store, open_path(store, version, naming.manifest_path(version, scheme))) or None
        except NotFoundError:
            continue
        except LanceError as error:
            log.warning("%s: version %d does not identify its table: %s", store.uri, version, error)
            return None
    return None
