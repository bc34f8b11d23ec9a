"""How an actor makes its calls: as steps of the schedule, from what is kept of it (see `histories`) or by its real work."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

from lance_core.errors import AlreadyExistsError, NotFoundError, StoreError
from tests.simulation.histories import (
    Histories,
    HistoryEnd,
    HistoryMoment,
    OtherHistoryError,
    StoreAnswer,
    StoreQuestion,
    bare,
    kept,
    twin_of,
)
from tests.simulation.schedule import ERROR, LATE, LOST, STALE, WRITES, StoreCall
from tests.simulation.world import Actor, Killed, World, this_actor

T = TypeVar("T")
_WITH_CONTENT = frozenset({"put", "put_if_absent", "create", "close"})


def do(
    world: World, name: str, path: str, action: Callable[[], T], *, listed: Callable[[str, str, Any], Any] | None = None
) -> T:
    """One call of whoever calls: with the turn, and with what befalls it."""
    actor = this_actor()
    if actor is None or actor.turns is None:
        return action()
    question = StoreQuestion(name, path, action, listed)
    if actor.moment is None:
        return cast("T", _step(actor, question))
    if actor.is_dead:
        raise Killed
    moment = _noted(actor, actor.moment, question)
    if actor.answered:
        answer = actor.told_again()
    else:
        answer = _answer(actor, question)
        _compare_content(actor, moment, question, answer)
        actor.slept.clear()
    actor.moment = moment.after(answer)
    return cast("T", answer.given())


def followed(actor: Actor, histories: Histories, work: Callable[[], object], *, real: bool = False) -> object:
    """An actor's life: from what is kept as far as it goes, and from there on its real work. `real`: its work alone."""
    world = actor.world
    began, answered = world.now, deque[StoreAnswer]()
    begin = moment = histories.beginning(actor.label, began)
    while not real:
        if moment.end is not None:
            _sleep(world, moment)
            return _ended(moment.end)
        if moment.question is None:
            break
        _sleep(world, moment)
        answered.append(_answer(actor, moment.question))
        moment = moment.after(answered[-1])
    histories.num_real += 1
    actor.moment = begin
    actor.begin_again(answered, at=began)
    return _worked(actor, work)


def _sleep(world: World, moment: HistoryMoment) -> None:
    for seconds in moment.slept:
        world.now += seconds


def _ended(end: HistoryEnd) -> object:
    if end.error is not None:
        raise end.error
    return end.result


def _worked(actor: Actor, work: Callable[[], object]) -> object:
    end = HistoryEnd(None, None)
    try:
        end = HistoryEnd(work(), None)
    except Exception as error:
        end = HistoryEnd(None, bare(error))
    moment = actor.moment
    if not actor.is_dead and moment is not None:
        if moment.question is not None:
            raise _other(actor, f"ended where it has called {_said(moment.question)} before")
        if moment.end is None:
            moment.end, moment.slept = end, tuple(actor.slept)
    return _ended(end)


def _noted(actor: Actor, moment: HistoryMoment, question: StoreQuestion) -> HistoryMoment:
    if moment.question is None and moment.end is None:
        moment.question, moment.slept = question, tuple(actor.slept)
    elif moment.question is None or _said(moment.question) != _said(question):
        known = "ended" if moment.question is None else f"called {_said(moment.question)}"
        raise _other(actor, f"calls {_said(question)} where it has {known} before")
    return moment


def _compare_content(actor: Actor, moment: HistoryMoment, question: StoreQuestion, answer: StoreAnswer) -> None:
    if question.name not in _WITH_CONTENT or answer.error is not None:
        return
    content = actor.world.objects[question.path][0]
    if moment.written is None:
        moment.written = content
    elif moment.written != content:
        raise _other(actor, f"calls {_said(question)} with other bytes than before")


def _other(actor: Actor, text: str) -> OtherHistoryError:
    actor.die()
    return OtherHistoryError(f"{actor.label} {text}")


def _said(question: StoreQuestion) -> str:
    return f"{question.name} {question.path}"


def _answer(actor: Actor, question: StoreQuestion) -> StoreAnswer:
    try:
        value = kept(_step(actor, question))
    except Exception as error:
        if actor.is_dead:
            raise
        return StoreAnswer(None, twin_of(error), actor.world.now)
    return StoreAnswer(value, None, actor.world.now)


def _step(actor: Actor, question: StoreQuestion) -> Any:
    """A call as a step of the schedule."""
    if actor.is_dead:
        raise Killed
    turns, world = actor.turns, actor.world
    assert turns is not None
    name, path, action, listed = question
    label = world.label_of(name, path)
    nth = actor.counts[label] = actor.counts.get(label, 0) + 1
    call = StoreCall(actor.label, name, path, label, nth)
    fault = turns.before(actor, call)
    if fault == ERROR:
        turns.after(actor, call, "refused")
        raise StoreError(f"simulated: {name} {path!r} was refused")
    if fault == LATE:
        turns.after(actor, call, "timed out")
        turns.launch(actor, call, action)
        raise StoreError(f"simulated: {name} {path!r} timed out")
    is_write = name in WRITES
    before = world.objects.get(path) if is_write else None
    try:
        result = action()
    except (NotFoundError, AlreadyExistsError) as error:
        turns.after(actor, call, "there is none" if isinstance(error, NotFoundError) else "already exists")
        if fault == LOST:
            raise StoreError(f"simulated: the answer to {name} {path!r} was lost") from error
        raise
    except StoreError:
        turns.after(actor, call, "its unfinished file is gone")
        raise
    if is_write:
        world.note_write(actor.process.label, name, path, before)
    if fault == STALE and listed is not None:
        result = listed(name, path, tuple(cast("Iterator[Any]", result)) if name == "list" else result)
    turns.after(actor, call, fault or "")
    if fault == LOST:
        raise StoreError(f"simulated: the answer to {name} {path!r} was lost")
    return result
