"""Go on with the finished parts of an earlier attempt: by name, under an attempt of one's own.

::

    1  the new attempt's record names the attempts that it adopts
    2  the earlier one is decided against (its fence), so that nobody publishes it
    3  its parts are read once more, and only what is there is adopted

    the deleter: fence -> who adopts it? -> the files of one that a living attempt adopts stay, and so do its records

Whoever removes an attempt looks for adopters behind its fence, and an adopter is on record before it comes to that fence. So
either the deleter sees the adopter, or the adopter finds a fence that is not its own, and adopts nothing.
"""

from __future__ import annotations

import time
from dataclasses import replace

from lance_core.io.store import Store
from lance_core.publish.model import Attempt, StagedTransaction
from lance_core.publish.registry.attempts import read_started, write_started
from lance_core.publish.registry.fences import is_remembered
from lance_core.publish.staging.remove import decide_against
from lance_core.publish.staging.supersede import give_up_for_another


def adopt_unfinished(store: Store, attempt: Attempt) -> Attempt:
    """The attempt, once it has taken over the newest of those that it adopts, which has not finished; one that adopts
    nothing where that is too late."""
    key = (attempt.identity, attempt.adopts[0])
    is_mine = decide_against(store, key, by="a new attempt")
    # Whoever had decided before and has ended has removed the record; the memory tells it from one that came back.
    if is_mine and read_started(store, *key) is not None and not is_remembered(store, *key):
        return attempt
    return _alone(store, attempt)


def adopt_finished(store: Store, attempt: Attempt, ref: StagedTransaction, *, own_commit: str | None) -> Attempt:
    """The same of staged work that a commit brings up to a newer version: it is given up here."""
    return attempt if give_up_for_another(store, ref, own_commit=own_commit) else _alone(store, attempt)


def _alone(store: Store, attempt: Attempt) -> Attempt:
    """What is not adopted is not kept from its removal."""
    found = replace(attempt, adopts=())
    write_started(store, found, renewed=time.time())
    return found
