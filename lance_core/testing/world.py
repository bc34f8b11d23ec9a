"""The world that actors share: objects, a clock, and a store that calls the scheduler before each operation.

An actor is a thread that runs only when it has the turn (see `engine`). The store and the clocks find out by the thread who
calls; threads that are no actors see the real clock.
"""

from __future__ import annotations

import random
import threading
import uuid as uuids
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, TypeVar, cast

from lance_core.errors import AlreadyExistsError, NotFoundError, StoreError
from lance_core.io import manifest_names, pool
from lance_core.io.external.store import ExternalStore
from lance_core.io.memory import MemoryStore
from lance_core.io.store import Store, StoreEntry
from lance_core.io.testing import WrappedStore
from lance_core.testing.schedule import ERROR, LATE, LISTINGS, LOST, STALE, StoreCall, label_of
from lance_core.wire.manifest_file import ManifestFile

T = TypeVar("T")

BEGINNING = 1_700_000_000.0
"""The world's time when it begins, in seconds since the epoch."""

_QUIET = frozenset({"open_writer", "write"})
"""Calls that nobody else can notice: a file being written is invisible until it is closed."""


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
        pool.mark_io_worker()
        pool.mark_worker()
        while True:
            self._wanted.acquire()
            actor = self.actor
            if actor is None:
                return
            actor.act()
            self.actor = None
            self._free.append(self)
            actor.when_done()
            del actor


class Actor:
    """One process of the world. It runs `work` when it has the turn, in a thread that the world lends it."""

    def __init__(self, world: World, name: str, work: Callable[[], object], *, seed: str = "") -> None:
        self.world = world
        self.label = name
        self.turn = threading.Lock()
        self.turn.acquire()
        self.counts: Counter[str] = Counter()
        self.random = random.Random(f"{name}/{seed}")
        self.skew = 0.0
        self.is_done = False
        self.is_dead = False
        self.result: object = None
        self.error: BaseException | None = None
        self.turns: TurnsOfActors | None = None
        self.when_done: Callable[[], None] = lambda: None
        self._work = work
        self._has_begun = False

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
    """Objects and a clock. `kind`: "memory" (conditional put) or "external" (manifests published through a register)."""

    def __init__(self, kind: str = "memory") -> None:
        self.kind = kind
        self.now = BEGINNING
        # A name of its own: objects of memory stores are shared by name, also with worlds that are over.
        self._objects = MemoryStore(f"simulated-{uuids.uuid4().hex}")
        self._register: dict[tuple[str, int], tuple[str, int]] = {}
        self.undo: list[tuple[str, str, tuple[bytes, float] | None]] = []
        """(actor, path, what was there before) of every write."""
        self._labels: dict[tuple[str, str], str] = {}
        self._free: list[Hand] = []
        weakref.finalize(self, _dismiss, self._free)
        self._newest = 0
        self.decoded: dict[bytes, ManifestFile] = {}
        """Manifests by their bytes."""
        self.strays: set[str] = set()
        """Manifests that took a number which others had used and pruned: no newer version follows from them."""
        watched: Store = SimulatedStore(self._objects, self, conditional=kind != "external")
        if kind == "external":
            watched = ExternalStore(watched, SimulatedRegister(self), base=TABLE, uri=URI)
        self.store: Store = watched

    @property
    def objects(self) -> dict[str, tuple[bytes, float]]:
        """path -> (bytes, modified)"""
        return self._objects._objects.by_path

    def hand(self) -> Hand:
        """A thread for an actor."""
        if self._free:
            return self._free.pop()
        made = Hand(self._free)
        made.start()
        return made

    def snapshot(self) -> Mapping[str, Any]:
        """The state, to go on from any number of times."""
        return {"objects": dict(self.objects), "register": dict(self._register), "now": self.now}

    def reset(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        self.objects.clear()
        self.objects.update(state["objects"])
        self._register.clear()
        self._register.update(state["register"])
        self.now = state["now"]
        self.undo.clear()
        self.strays.clear()
        self._newest = max((number_of_version(path) for path in self.objects), default=0)

    def note_write(self, actor: str, name: str, path: str, before: tuple[bytes, float] | None) -> None:
        """A write has happened."""
        self.undo.append((actor, path, before))
        number = number_of_version(path)
        if number and name != "delete" and before is None:
            if number < self._newest or (number == self._newest and name == "put_if_absent"):
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


TABLE = "table"
URI = "memory://simulated/table"


class SimulatedStore(WrappedStore):
    """Each call is a step of the schedule. The objects' bytes are kept without copies."""

    def __init__(self, inner: Store, world: World, *, conditional: bool, folder: str = "") -> None:
        super().__init__(inner)
        self._world = world
        self._conditional = conditional
        self._folder = folder

    @property
    def uri(self) -> str:
        """The same in every run."""
        return f"{URI}/{self._folder}".rstrip("/")

    @property
    def has_put_if_absent(self) -> bool:
        """Whether this kind of world has conditional puts of its own."""
        return self._conditional

    @property
    def is_local(self) -> bool:
        """True: no pools, so that an actor is one thread."""
        return True

    def child(self, path: str) -> Store:
        """The store of a sub-folder, in the same world."""
        folder = f"{self._folder}{path.strip('/')}/"
        return SimulatedStore(self.inner.child(path), self._world, conditional=self._conditional, folder=folder)

    def _call(self, name: str, path: str, action: Callable[[], T]) -> T:
        full = self._folder + path
        return do(self._world, name, full, action, listed=self._undone if name in LISTINGS else None)

    def _undone(self, name: str, path: str, found: Any) -> Any:
        """A listing as it was before the last change that somebody else made below it."""
        mine = this_actor()
        for actor, changed, before in reversed(self._world.undo):
            if mine is not None and actor != mine.label and changed.startswith(path):
                return _replaced(name, found, changed[len(self._folder) :], path[len(self._folder) :], before)
        return found


def _replaced(name: str, found: Any, path: str, prefix: str, before: tuple[bytes, float] | None) -> Any:
    short = path[len(prefix) :]
    if name == "list_names":
        if "/" in short:
            return found
        rest = [item for item in found if item != short]
        return rest if before is None else [*rest, short]
    entries = tuple(item for item in found if item.path != path)
    return entries if before is None else (*entries, StoreEntry(path, len(before[0]), before[1]))


class SimulatedRegister:
    """Rows of an external manifest store; each access is a step, too."""

    def __init__(self, world: World) -> None:
        self._world = world

    def get(self, base: str, version: int) -> str | None:
        """The path of a row."""
        found = self._do("get", f"register/{base}/{version}", lambda: self._rows.get((base, version)))
        return None if found is None else found[0]

    def latest(self, base: str) -> tuple[int, str] | None:
        """The row of the highest version."""

        def look() -> tuple[int, str] | None:
            numbers = [version for place, version in self._rows if place == base]
            return (max(numbers), self._rows[base, max(numbers)][0]) if numbers else None

        return self._do("latest", f"register/{base}/", look)

    def add(self, base: str, version: int, path: str, size: int) -> None:
        """Add a row, if there is none."""

        def put() -> None:
            if (base, version) in self._rows:
                raise AlreadyExistsError(f"row {base} {version} exists")
            self._rows[base, version] = path, size

        self._do("add", f"register/{base}/{version}", put)

    def change(self, base: str, version: int, path: str, size: int) -> None:
        """Change a row that is there."""

        def put() -> None:
            if (base, version) not in self._rows:
                raise NotFoundError(f"no row {base} {version}")
            self._rows[base, version] = path, size

        self._do("change", f"register/{base}/{version}", put)

    def replace(self, base: str, version: int, old: str, path: str, size: int) -> None:
        """Change a row that names the old path."""

        def put() -> None:
            if self._rows.get((base, version), ("", 0))[0] != old:
                raise NotFoundError(f"no row {base} {version} of {old}")
            self._rows[base, version] = path, size

        self._do("replace", f"register/{base}/{version}", put)

    def remove(self, base: str, version: int) -> None:
        """Remove a row."""
        self._do("remove", f"register/{base}/{version}", lambda: self._rows.pop((base, version), None))

    @property
    def _rows(self) -> dict[tuple[str, int], tuple[str, int]]:
        return self._world._register

    def _do(self, name: str, path: str, action: Callable[[], T]) -> T:
        return do(self._world, name, path, action)


def do(
    world: World, name: str, path: str, action: Callable[[], T], *, listed: Callable[[str, str, Any], Any] | None = None
) -> T:
    """One call of whoever calls: with the turn, and with what befalls it."""
    actor = this_actor()
    if actor is None or actor.turns is None:
        return action()
    if actor.is_dead:
        raise Killed
    if name in _QUIET:
        return action()
    turns = actor.turns
    label = world.label_of(name, path)
    actor.counts[label] += 1
    call = StoreCall(actor.label, name, path, label, actor.counts[label])
    fault = turns.before(actor, call)
    if fault == ERROR:
        turns.after(actor, call, "refused")
        raise StoreError(f"simulated: {name} {path!r} was refused")
    if fault == LATE:
        turns.after(actor, call, "timed out")
        turns.launch(actor, call, action)
        raise StoreError(f"simulated: {name} {path!r} timed out")
    before = world.objects.get(f"{path}") if call.is_write else None
    try:
        result = action()
    except (NotFoundError, AlreadyExistsError) as error:
        turns.after(actor, call, "there is none" if isinstance(error, NotFoundError) else "already exists")
        if fault == LOST:
            raise StoreError(f"simulated: the answer to {name} {path!r} was lost") from error
        raise
    if call.is_write:
        world.note_write(actor.label, name, path, before)
    if fault == STALE and listed is not None:
        result = listed(name, path, tuple(cast("Iterator[Any]", result)) if name == "list" else result)
    turns.after(actor, call, fault or "")
    if fault == LOST:
        raise StoreError(f"simulated: the answer to {name} {path!r} was lost")
    return result
