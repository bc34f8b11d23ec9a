"""Clocks and random numbers of actors: simulated time, and names that are the same in every run of a schedule.

While it is installed, `time`, `secrets`, `uuid.uuid4` and `random.uniform` give actors what the world says; every other
thread gets the real thing. Sleeping makes the world's time pass and never waits.
"""

from __future__ import annotations

import random
import secrets
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import numpy.random  # noqa: F401  (draws random bits when it is imported: not from the first actor that needs it)

from lance_core.commit import manifests
from lance_core.io import cache, resolve
from lance_core.io.threads import SharedThreads, Threads
from lance_core.wire.manifest_file import ManifestFile
from tests.simulation.stores import URI
from tests.simulation.strands import begins_strands, in_a_strand, joined
from tests.simulation.world import Actor, World, this_actor

Answer = Callable[[Actor], Any]


@contextmanager
def installed(world: World) -> Iterator[None]:
    """Actors live in the world: its clock, its names, and its store for whoever opens `URI`."""
    changed = [
        _change(time, "time", lambda actor: actor.now + actor.skew),
        _change(time, "time_ns", lambda actor: int((actor.now + actor.skew) * 1e9)),
        _change(time, "monotonic", lambda actor: actor.now),
        _change(secrets, "token_hex", lambda actor: lambda size=16: f"{actor.random.getrandbits(8 * size):0{2 * size}x}"),
        _change(secrets, "randbits", lambda actor: actor.random.getrandbits),
        _change(uuid, "uuid4", lambda actor: uuid.UUID(int=actor.random.getrandbits(128), version=4)),
        _change(random, "uniform", lambda actor: actor.random.uniform),
        _change(time, "sleep", lambda actor: lambda seconds: actor.sleep(max(0.0, seconds))),
        _change(cache._SHARED, "get", lambda actor: actor.cache),
    ]
    opened, submit, shutdown = resolve._resolve, Threads.submit, Threads.shutdown
    shared = SharedThreads.submit
    _set(Threads, "submit", _at_once(submit))
    _set(SharedThreads, "submit", _at_once(shared))
    _set(Threads, "shutdown", joined(shutdown))
    _set(resolve, "_resolve", lambda uri, options: world.store if str(uri) == URI else opened(uri, options))
    decode: Callable[[bytes], ManifestFile] = vars(manifests)["decode_manifest_file"]
    _set(manifests, "decode_manifest_file", remembered(world, decode))
    try:
        yield
    finally:
        _set(Threads, "submit", submit)
        _set(SharedThreads, "submit", shared)
        _set(Threads, "shutdown", shutdown)
        _set(resolve, "_resolve", opened)
        _set(manifests, "decode_manifest_file", decode)
        for undo in changed:
            undo()


def remembered(world: World, decode: Callable[[bytes], ManifestFile]) -> Callable[[bytes], ManifestFile]:
    """The same bytes are the same manifest, and they recur from run to run."""

    def look(data: bytes) -> ManifestFile:
        found = world.decoded.get(data)
        if found is None:
            found = world.decoded[data] = decode(data)
        return found

    return look


def _at_once(submit: Callable[..., Future[Any]]) -> Callable[..., Future[Any]]:
    """An actor does by itself what it would leave to threads of its own: each of its calls is a step. On a wide store, what
    waits for the store is a strand (see `strands`)."""

    def done(pool: Threads, work: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        actor = this_actor()
        if actor is None:
            return submit(pool, work, *arguments, **options)
        if begins_strands(pool, actor):
            return in_a_strand(pool, actor, lambda: work(*arguments, **options))
        future: Future[Any] = Future()
        try:
            future.set_result(work(*arguments, **options))
        except Exception as error:
            future.set_exception(error)
        return future

    return done


_CALLED_WITH = frozenset({"token_hex", "randbits", "uniform", "sleep"})
"""Functions that take arguments: their answer is a function."""


def _change(module: Any, name: str, answer: Answer) -> Callable[[], None]:
    real = getattr(module, name)

    def function(*arguments: Any) -> Any:
        actor = this_actor()
        if actor is None:
            return real(*arguments)
        return answer(actor)(*arguments) if name in _CALLED_WITH else answer(actor)

    _set(module, name, function)
    return lambda: _set(module, name, real)


def _set(module: Any, name: str, value: Any) -> None:
    setattr(module, name, value)
