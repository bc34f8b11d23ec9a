"""What stands beside a table about its declared columns: notes, computed values. It goes with the declaration.

::

    _lance_core/columns/{id}/…        of a column that was undeclared or dropped: removed behind that commit
                                      of one that others dropped: removed by a cleanup, with its last version
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from lance_core.commit.naming import COLUMNS
from lance_core.errors import LanceError
from lance_core.format.declared import column_ids
from lance_core.format.schema import Schema
from lance_core.io.many import delete_all
from lance_core.io.store import Store, StoreEntry

log = logging.getLogger(__name__)


def notes_of(store: Store, ids: Iterable[str]) -> Iterator[StoreEntry]:
    """The objects beside the table of some declared columns."""
    for column_id in sorted(ids):
        yield from store.list(f"{COLUMNS}/{column_id}/")


def remove_vanished(store: Store, before: Schema, after: Schema) -> None:
    """Remove what stands beside the table about columns that a commit took away. Never fails: a cleanup finds the rest."""
    gone = column_ids(before) - column_ids(after)
    try:
        delete_all(store, [entry.path for entry in notes_of(store, gone)])
    except LanceError as error:
        log.warning("%s: notes of columns that are no more stay behind: %s", store.uri, error)
