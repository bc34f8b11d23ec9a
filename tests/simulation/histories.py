"""What an actor does after what it was answered: kept, so that it need not be computed again.

An actor knows the world by the answers of its store and by its clock only: a process of its own, with random numbers of its
own. After the same answers it makes the same next call. So its calls are kept as a tree, with a branch for each answer::

    list _versions/  -> (1, 2) -> get _versions/2.manifest -> b"..."  -> put_if_absent _lance_core/staged/….fence.json -> …
                                                           -> refused -> delete _lance_core/claims/….json -> …
                     -> (1, 2, 3) -> …

As long as the tree knows what comes next, the calls are carried out from it. Where it does not, the real work begins from
its start: what was answered so far is answered again, without a step of the world, and from there on it runs by itself, and
the tree grows. A control run carries out the real work alone; each of its calls is compared with the tree, with what it
writes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Listed = Callable[[str, str, Any], Any]


class StoreQuestion(NamedTuple):
    """A call that an actor makes: what it is, how it is carried out, and how a listing looks without the last change."""

    name: str
    path: str
    action: Callable[[], Any]
    listed: Listed | None = None


class StoreAnswer(NamedTuple):
    """What it got: a value or an error, and the world's time at that moment."""

    value: Any
    error: Exception | None
    now: float

    @property
    def key(self) -> Hashable:
        """Equal for answers that are the same to the actor."""
        if self.error is not None:
            return type(self.error), str(self.error), self.now
        return self.value, self.now

    def given(self) -> Any:
        """The answer, once more."""
        if self.error is not None:
            raise twin_of(self.error)
        return list(self.value.items) if isinstance(self.value, Items) else self.value


class Items(NamedTuple):
    """A list among the answers: whoever gets it may change it."""

    items: tuple[Any, ...]


class HistoryEnd(NamedTuple):
    """How an actor ended."""

    result: object
    error: BaseException | None


@dataclass(slots=True)
class HistoryMoment:
    """A point in an actor's life. `slept`: how long it sleeps before what comes next."""

    question: StoreQuestion | None = None
    end: HistoryEnd | None = None
    slept: tuple[float, ...] = ()
    written: bytes | None = None
    """The object that the call leaves where it is a write."""
    later: dict[Hashable, HistoryMoment] = field(default_factory=dict)

    def after(self, answer: StoreAnswer) -> HistoryMoment:
        """The point behind an answer."""
        key = answer.key
        found = self.later.get(key)
        if found is None:
            found = self.later[key] = HistoryMoment()
        return found


class Histories:
    """The trees of all actors of a scenario on a store, from the beginnings (who, when) on."""

    def __init__(self) -> None:
        self._beginnings: dict[tuple[str, float], HistoryMoment] = {}
        self.num_real = 0
        """How many actors had to run by themselves so far."""

    def beginning(self, actor: str, now: float) -> HistoryMoment:
        """The root of a tree."""
        return self._beginnings.setdefault((actor, now), HistoryMoment())

    def forget(self) -> None:
        """Begin again with little memory."""
        self._beginnings.clear()
        self.num_real = 0


class OtherHistoryError(RuntimeError):
    """An actor did something else after the same answers: something besides the store and its clock reaches it."""


def kept(value: Any) -> Any:
    """An answer that nobody changes."""
    if isinstance(value, list):
        return Items(tuple(value))
    return value


def twin_of(error: Exception) -> Exception:
    """The same error without its traceback: it is raised more than once."""
    twin = type(error).__new__(type(error), *error.args)
    twin.args = error.args
    vars(twin).update(vars(error))
    twin.__cause__ = error.__cause__
    return twin


def bare(error: BaseException) -> BaseException:
    """The error without what its traceback keeps alive."""
    found: BaseException | None = error
    seen: set[int] = set()
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        found.__traceback__ = None
        found = found.__cause__ or found.__context__
    return error
