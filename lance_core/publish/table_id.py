"""The id of a table: a table that was created again at a uri is another one, even with equal version numbers.

::

    version 1 is there        the uuid of its transaction
    version 1 was pruned      _lance_core/table.json   {"table_id": "…", "version": 40, "transaction": "…"}
                              counts as long as version 40 is the one of that transaction
    neither                   "": nobody knows, and nothing is concluded from it

Our cleanup writes the record before it prunes the version that shows it. Watchers, sensors and the ledger compare what is
known; two ids of which one is empty say nothing about each other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

from lance_core.commit import naming
from lance_core.commit.manifests import open_path
from lance_core.commit.transactions import uuid_of
from lance_core.errors import CorruptFileError, LanceError, NotFoundError
from lance_core.io.store import Store
from lance_core.publish.records import FORMAT, TableIdRecord, parse_record, read_record, write_record
from lance_core.table.transaction import Transaction

log = logging.getLogger(__name__)

TABLE_PATH = f"{naming.PRIVATE}/table.json"
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
    return "" if record is None or not _is_shown(store, record) else record.table_id


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
        plain = {"table_id": table_id, "version": left[-1], "transaction": witness}
        write_record(store, TABLE_PATH, {"format": FORMAT, **plain})
    return table_id


def _record(store: Store) -> TableIdRecord | None:
    try:
        plain = read_record(store, TABLE_PATH)
        return None if plain is None else parse_record(TableIdRecord, plain, where=TABLE_PATH)
    except CorruptFileError as error:
        log.warning("%s: set aside: %s", store.uri, error)
        return None


def _is_shown(store: Store, record: TableIdRecord) -> bool:
    witness = _uuid(store, record.version)
    return witness is not None and witness == record.transaction


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
