"""Which members of a commit go first, when some of them meet each other in a row, or another writer.

::

    a, b, c, d    b and c update a row that a updates      -> a and d now; then b; then c
    a, b          a version of others changed rows of a    -> a is staged again, b is not

Members that meet each other are put in a line behind the one that lands first, so each of them is staged again once, when
its turn comes. Independent lines advance together.
"""

from __future__ import annotations

from collections.abc import Mapping

from lance_core.commit.loop import LoopRequest, rebase_onto
from lance_core.commit.manifests import OpenAt, open_newest
from lance_core.errors import RetryableConflictError
from lance_core.io.store import Store
from lance_core.publish.fold import Fold
from lance_core.publish.model import StagedTransaction


class Turns:
    """The line in which each member stands: by identity, the identity before it."""

    def __init__(self) -> None:
        self._before: dict[str, str] = {}

    def ready(self, pending: Mapping[str, StagedTransaction]) -> list[StagedTransaction]:
        """Members that need not wait for another that is still pending."""
        found = [ref for identity, ref in pending.items() if self._before.get(identity) not in pending]
        return found or [*pending.values()]

    def wait(self, identity: str, *, behind: str, pending: Mapping[str, StagedTransaction]) -> None:
        """Put a member at the end of the line that begins with another."""
        following = {before: one for one, before in self._before.items() if one in pending and one != identity}
        while behind in following:
            behind = following[behind]
        self._before[identity] = behind


def blame_members(store: Store, fold: Fold, error: RetryableConflictError, *, open_at: OpenAt) -> list[int]:
    """Which members of a fold met a version of others, when their common transaction did; all when none did by itself.

    `open_at` opens a version; the commit has opened those in between already.
    """
    everybody = [*range(len(fold.members))]
    newest = open_newest(store) if len(everybody) > 1 and error.other_version is not None else None
    if newest is None:
        return everybody
    blamed = []
    for number, item in enumerate(fold.members):
        try:
            rebase_onto(store, item.transaction, newest, LoopRequest(open_at=open_at))
        except RetryableConflictError:
            blamed.append(number)
    return blamed or everybody
