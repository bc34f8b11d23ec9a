"""The world that actors share: objects, a clock, and the actors themselves.

An actor is a thread that runs only when it has the turn (see `engine`). The store (`stores`) and the clocks (`determinism`)
find out by the thread who calls; threads that are no actors see the real clock.
"""

from __future__ import annotations

import random
import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from lance_core.cached import cached_property
from lance_core.io import manifest_names, pool
from lance_core.io.cache import LruCache
from lance_core.io.store import Store
from lance_core.wire.manifest_file import ManifestFile
from tests.simulation.histories import HistoryMoment, StoreAnswer
from tests.simulation.schedule import StoreCall, label_of

BEGINNING = 1_700_000_000.0
"""The world's time when it begins, in seconds since the epoch."""
WIDE = "wide"
"""The kind of store whose calls a process makes in parallel."""


class Killed(BaseException):
    """The actor's process is dead: nothing of it runs any more."""


class TurnsOfActors(Protocol):
    """What a store asks before each call."""

    def before(self, actor: Actor, call: StoreCall) -> str | None:
        """Wait for the turn; returns the fault that befalls the call. Raises Killed."""

    def after(self, actor: Actor, call: StoreCall, note: str) -> None:
        """The call is done."""

    def launch(self, actor: Actor, call: StoreCall, action: Callable[[], object]) -> None:
        """Let the call happen at a later time, by itself."""

    def begin(self, actor: Actor, work: Callable[[], object]) -> Actor:
        """A strand of the actor's process, in parallel to it."""

    def join(self, actor: Actor, strand: Actor) -> None:
        """The actor waits until a strand has ended."""


class Hand(threading.Thread):
    """A thread that lends itself to one actor after the other: to begin and to end one takes longer than most actors do."""

    def __init__(self, free: list[Hand]) -> None:
        super().__init__(name="hand of an actor", daemon=True)
        self.actor: Actor | None = None
        self._free = free
        self._wanted = threading.Lock()
        self._wanted.acquire()

    def lend(self, actor: Actor) -> None:
        """Let it act."""
        self.actor = actor
        self._wanted.release()

    def dismiss(self) -> None:
        """End the thread."""
        self._wanted.release()

    def run(self) -> None:
        """The thread's body."""
        pool.mark_worker()
        while True:
            self._wanted.acquire()
            actor = self.actor
            if actor is None:
                return
            _mark_io(actor.waits_by_itself)
            actor.act()
            self.actor = None
            self._free.append(self)
            actor.when_done()
            del actor


def _mark_io(waits_by_itself: bool) -> None:
    # Says to the product whether this thread may begin others that wait for the store.
    pool._IO._local.mine = waits_by_itself


class Actor:
    """One process of the world, or a strand of one. It runs `work` when it has the turn, in a thread that is lent to it."""

    def __init__(self, world: World, name: str, work: Callable[[], object], *, process: Actor | None = None) -> None:
        self.world = world
        self.label = name
        self.process: Actor = self if process is None else process
        """The actor of whose process this is a strand: itself unless the store is wide."""
        self.joins: Actor | None = None
        """The strand that it waits for."""
        self.num_strands = 0
        self.turn = threading.Lock()
        self.turn.acquire()
        self.counts: dict[str, int] = {}
        self.skew = 0.0
        self.is_done = False
        self._is_dead = False
        self.result: object = None
        self.error: BaseException | None = None
        self.turns: TurnsOfActors | None = None
        self.when_done: Callable[[], None] = lambda: None
        self.moment: HistoryMoment | None = None
        """Where it is in the tree of what it does, if that is kept."""
        self.answered: deque[StoreAnswer] = deque()
        """Its answers from before, which it gets again: none of them is a step of the world."""
        self.slept: list[float] = []
        """Since its last call."""
        self._then = 0.0
        self._work = work
        self._has_begun = False

    @cached_property
    def random(self) -> random.Random:
        """The random numbers of its process, the same in every run."""
        return random.Random(f"{self.label}/") if self.process is self else self.process.random

    @cached_property
    def cache(self) -> LruCache:
        """What its process has read, as each one remembers for itself."""
        return LruCache(max_bytes=1 << 24) if self.process is self else self.process.cache

    @property
    def is_dead(self) -> bool:
        """Whether its process is dead, with all strands."""
        return self.process._is_dead

    @property
    def is_strand(self) -> bool:
        """Whether it is a part of another actor's process."""
        return self.process is not self

    @property
    def waits_by_itself(self) -> bool:
        """Whether it makes one call after the other: everywhere but in a process on a wide store."""
        return self.is_strand or not self.world.is_wide

    @property
    def may_go_on(self) -> bool:
        """Whether it can have the turn."""
        return not self.is_done and (self.joins is None or self.joins.is_done)

    def die(self) -> None:
        """Its process ends here, with all strands."""
        self.process._is_dead = True

    @property
    def now(self) -> float:
        """The time without its own skew: the world's, or that of the answers from before."""
        return self._then if self.answered else self.world.now

    def remember(self, follow: Callable[[Callable[[], object]], object]) -> None:
        """Let `follow` decide how much of the work is done."""
        work = self._work
        self._work = lambda: follow(work)

    def begin_again(self, answered: deque[StoreAnswer], *, at: float) -> None:
        """From here on the real work runs, and these answers come first."""
        self.answered, self._then = answered, at

    def told_again(self) -> StoreAnswer:
        """The next of those answers."""
        answer = self.answered.popleft()
        self._then = answer.now
        self.slept.clear()
        return answer

    def sleep(self, seconds: float) -> None:
        """Time passes; a dead actor does not sleep."""
        if self.answered:
            self._then += seconds
        elif not self.is_dead:
            self.slept.append(seconds)
            self.world.now += seconds

    def leave(self) -> None:
        """The run is over: let go of all that holds it in a circle, so that its memory is free at once."""
        self.turns = self.moment = self.joins = None
        self.when_done = self._work = lambda: None

    def go_on(self) -> None:
        """Give it the turn."""
        if self._has_begun:
            self.turn.release()
            return
        self._has_begun = True
        self.world.hand().lend(self)

    def act(self) -> None:
        """From its beginning to its end."""
        try:
            if not self.is_dead:
                self.result = self._work()
        except BaseException as error:  # an actor's end is data, whatever it was
            self.error = error
        finally:
            self.is_done = True


def _dismiss(hands: list[Hand]) -> None:
    while hands:
        hands.pop().dismiss()


def this_actor() -> Actor | None:
    """The actor whose thread asks."""
    thread = threading.current_thread()
    return thread.actor if isinstance(thread, Hand) else None


class World:
    """Objects, rows of a register, and a clock."""

    store: Store
    """The store on these objects, of the kind `kind`: see `stores`."""

    def __init__(self, kind: str = "memory") -> None:
        self.kind = kind
        self.now = BEGINNING
        self.objects: dict[str, tuple[bytes, float]] = {}
        """path -> (bytes, modified)"""
        self.register: dict[tuple[str, int], tuple[str, int]] = {}
        """The rows of an external manifest store."""
        self.undo: list[tuple[str, str, tuple[bytes, float] | None]] = []
        """(actor, path, what was there before) of every write."""
        self._labels: dict[tuple[str, str], str] = {}
        self._free: list[Hand] = []
        weakref.finalize(self, _dismiss, self._free)
        self._newest = 0
        self.decoded: dict[bytes, ManifestFile] = {}
        """Manifests by their bytes."""
        self.is_wide = kind == WIDE
        """Whether what a process does in parallel is scheduled as well."""
        self.strays: set[str] = set()
        """Manifests that took a number which others had used and pruned: no newer version follows from them."""

    def hand(self) -> Hand:
        """A thread for an actor."""
        if self._free:
            return self._free.pop()
        made = Hand(self._free)
        made.start()
        return made

    def snapshot(self) -> Mapping[str, Any]:
        """The state, to go on from any number of times."""
        newest = max((number_of_version(path) for path in self.objects), default=0)
        return {"objects": dict(self.objects), "register": dict(self.register), "now": self.now, "newest": newest}

    def reset(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        self.objects.clear()
        self.objects.update(state["objects"])
        self.register.clear()
        self.register.update(state["register"])
        self.now = state["now"]
        self.undo.clear()
        self.strays.clear()
        self._newest = state["newest"]

    def note_write(self, actor: str, name: str, path: str, before: tuple[bytes, float] | None) -> None:
        """A write has happened."""
        self.undo.append((actor, path, before))
        number = number_of_version(path)
        if number and name != "delete" and before is None:
            if number < self._newest or (number == self._newest and name in _CONDITIONAL):
                self.strays.add(path)
            self._newest = max(self._newest, number)

    def label_of(self, name: str, path: str) -> str:
        """`schedule.label_of`, remembered: the same paths come in every run."""
        found = self._labels.get((name, path))
        if found is None:
            found = self._labels[name, path] = label_of(name, path)
        return found


def number_of_version(path: str) -> int:
    """The version whose manifest this is, on the main line; 0 for any other path."""
    folder, _, name = path.rpartition("/")
    found = manifest_names.number_of(name) if folder == "_versions" else None
    return 0 if found is None else found[0]


_CONDITIONAL = frozenset({"put_if_absent", "link"})
