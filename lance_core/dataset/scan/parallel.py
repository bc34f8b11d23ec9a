"""Run the same work on many fragments: one after the other on local files, in parallel on a remote store.

::

    take of 200 rows of 100 fragments      64 fragments at a time are waited for
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.io.threads import Threads

S = TypeVar("S")
T = TypeVar("T")

TASKS_AT_ONCE = 64
"""Fragments that are waited for at once, however little is read of each."""


def is_far(snapshot: Snapshot) -> bool:
    """Whether some files of a snapshot are on a store that is waited for."""
    return not snapshot.store.is_local or bool(snapshot.manifest.base_paths)


def at_once(snapshot: Snapshot, items: Sequence[S], work: Callable[[S], T]) -> list[T]:
    """`work(item)` for every item, in order; the first error is raised when all have ended."""
    if len(items) < 2 or not is_far(snapshot):
        return [work(item) for item in items]
    # Threads of this call's own: they wait for the shared pools, which must therefore not run them.
    with Threads(max_workers=min(TASKS_AT_ONCE, len(items)), thread_name_prefix="lance-take") as pool:
        return list(pool.map(work, items))
