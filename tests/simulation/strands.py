"""Strands: what a process does in parallel on a wide store. Each is scheduled by itself, as if it were an actor.

::

    each(store, paths, read)       commit/1, commit/2, ...  one strand a path; the process waits for each in turn
    begin(store, write_claim)      commit/3                 begun, and waited for much later

A strand has the turn when its process waits for it, or earlier where the schedule says so. It shares all that a process has:
its memory, its random numbers, its clock and its death. One that nobody waits for goes on when its process has ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures._base import FINISHED
from typing import Any

from lance_core.io.threads import Threads
from tests.simulation.world import Actor, Killed, this_actor

_WAITING = ("lance-io", "lance-beside")
"""Names of pools whose threads wait for the store. What others would compute, an actor does by itself."""
_BEGUN = "_strands_of_the_simulated_world"


class _JoiningCondition(threading.Condition):
    """Whoever takes it waits until the strand has ended: every way to wait for a future does, and none blocks a thread."""

    def __init__(self, future: StrandFuture) -> None:
        super().__init__()
        self._future = future
        take = self.acquire

        def acquire(*arguments: Any, **options: Any) -> bool:
            future.join()
            return take(*arguments, **options)

        vars(self)["acquire"] = acquire

    def __enter__(self) -> bool:
        self._future.join()
        return super().__enter__()


class StrandFuture(Future[Any]):
    """The result of a strand."""

    def __init__(self) -> None:
        super().__init__()
        self._strand: Actor | None = None
        self.set_running_or_notify_cancel()  # threads begin at once: there is nothing to cancel
        self._condition = _JoiningCondition(self)

    def belongs_to(self, strand: Actor) -> None:
        """The strand whose result it is."""
        self._strand = strand

    def join(self) -> None:
        """Wait for the strand, unless it is the one that asks."""
        strand, actor = self._strand, this_actor()
        if strand is None or actor is None or actor is strand:
            return
        if actor.turns is not None and not strand.is_done:
            actor.turns.join(actor, strand)
        if self._state != FINISHED:
            raise Killed  # it died before it began


def begins_strands(pool: Threads, actor: Actor) -> bool:
    """Whether what an actor gives to a pool is done in parallel."""
    named: str = vars(pool)["_pool"]._thread_name_prefix
    return not actor.waits_by_itself and actor.turns is not None and named.startswith(_WAITING)


def in_a_strand(pool: Threads, actor: Actor, work: Callable[[], object]) -> Future[Any]:
    """Begin a strand."""
    future = StrandFuture()

    def done() -> None:
        try:
            found = work()
        except BaseException as error:  # death as well: whoever waits is dead, too
            future.set_exception(error)
        else:
            future.set_result(found)

    assert actor.turns is not None
    future.belongs_to(actor.turns.begin(actor, done))
    if not vars(pool)["_pool"]._thread_name_prefix.startswith("lance-io"):
        vars(pool).setdefault(_BEGUN, []).append(future)
    return future


def joined(shutdown: Callable[..., None]) -> Callable[..., None]:
    """A pool that is shut down waits for its strands."""

    def down(pool: Threads, wait: bool = True, *, cancel_futures: bool = False) -> None:
        for future in vars(pool).pop(_BEGUN, []) if wait else []:
            future.join()
        shutdown(pool, wait, cancel_futures=cancel_futures)

    return down
