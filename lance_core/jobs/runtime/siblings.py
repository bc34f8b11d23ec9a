"""Staged work of the same task in the same run that a commit did not receive: members that a mapped list has lost.

::

    append mapped over 3 files, staged; the list shrinks to 2; commit receives [0] and [1]
    -> [Sibling(map_index=2, identity="77ab…", ...)]: finished, not committed, and nothing will publish or repeat it

Who requested an attempt stands in its record, beside the digest. Only finished work is shown: what runs is left alone.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass

from lance_core.commit import naming
from lance_core.commit.identities import Asked
from lance_core.io.store import Store
from lance_core.publish.attempts import list_staged

log = logging.getLogger(__name__)

_MOST = 400
"""Records of other staged work that are read for this; a table with more of them is left to garbage collection."""


@dataclass(frozen=True)
class Sibling:
    """A finished attempt; `started` in seconds since the epoch, by the clock of its worker."""

    map_index: int
    identity: str
    attempt: str
    num_rows: int
    started: float


def find_siblings(store: Store, *, dag_id: str, run_id: str, task_id: str, besides: Collection[str]) -> list[Sibling]:
    """Finished work of a mapped task in a run that was not committed, without the identities `besides`, by map index."""
    names = store.list_names(f"{naming.STAGED}/")
    if not any(name.partition(".")[0] not in besides for name in names):
        return []
    if len(names) > _MOST:
        log.info("%s: %d records of staged work, too many to look for members that are no longer", store.uri, len(names))
        return []
    found = []
    for entry in list_staged(store):
        asked = Asked.from_dict(entry.asked)
        is_member = asked.map_index >= 0 and asked.task[:3] == (dag_id, run_id, task_id)
        if entry.staged is None or not is_member or entry.identity in besides:
            continue
        found.append(Sibling(asked.map_index, entry.identity, entry.attempt, entry.staged.num_rows, entry.started))
    return sorted(found, key=lambda item: (item.map_index, item.identity))
