"""Records of an external store, that is objects that are put if absent, removed, and put again, beside rows in a register:
however writers and removers meet, a record can be read, or else be written."""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from lance_core.errors import AlreadyExistsError, NotFoundError
from lance_core.io.external.sql import SqlRegister
from lance_core.io.external.store import ExternalStore, ManifestRegister
from tests.stores.test_stores_external import Careless, any_register, register

__all__ = ["any_register", "register"]


RECORD = "_lance_core/staged/a.fence.json"
_FINAL_NAMES = [f"{{base}}/{RECORD}", f"{{base}}/{RECORD}.77ab.final"]


@pytest.mark.parametrize("final", _FINAL_NAMES, ids=["earlier release", "own name"])
def test_a_row_whose_record_is_gone_is_taken_over(any_register: ManifestRegister, final: str) -> None:
    base = uuid.uuid4().hex
    store = ExternalStore(Careless(base), any_register, base=base)
    any_register.add(f"{base}/{RECORD}", 0, final.format(base=base), 3)
    with pytest.raises(NotFoundError):
        store.get(RECORD)
    store.put_if_absent(RECORD, b"anew")
    assert bytes(store.get(RECORD)) == b"anew"
    with pytest.raises(AlreadyExistsError):
        store.put_if_absent(RECORD, b"another")
    store.delete(RECORD)
    assert any_register.get(f"{base}/{RECORD}", 0) is None


def test_a_row_of_an_earlier_release_is_given_back_when_its_record_came_after_the_look(register: SqlRegister) -> None:
    inner = Careless(uuid.uuid4().hex)
    register.add(f"t/{RECORD}", 0, f"t/{RECORD}", 3)

    class Meanwhile:
        """Another worker of that release removes the row, and writes the record again, right before the row is taken."""

        def replace(self, *arguments: Any) -> None:
            inner.put(RECORD, b"theirs")
            register.replace(*arguments)

        def __getattr__(self, name: str) -> Any:
            return getattr(register, name)

    with pytest.raises(AlreadyExistsError):
        ExternalStore(inner, Meanwhile(), base="t").put_if_absent(RECORD, b"mine")
    store = ExternalStore(inner, register, base="t")
    assert bytes(store.get(RECORD)) == b"theirs"
    assert [entry.path for entry in store.list("")] == [RECORD]
    assert list(store.list_unfinished("")) == []
    store.delete(RECORD)
    store.put_if_absent(RECORD, b"mine")


class Pausing:
    """One writer's way to a store or a register: it waits before its nth call until it may go on."""

    def __init__(self, steps: Steps, inner: Any) -> None:
        self._steps, self._inner = steps, inner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        def call(*arguments: Any, **more: Any) -> Any:
            self._steps.next()
            return found(*arguments, **more)

        return call


class Steps:
    """The calls of one writer, in a thread of its own."""

    def __init__(self, pause_at: int) -> None:
        self._left = pause_at
        self._paused, self._go = threading.Event(), threading.Event()
        self.ended_early = False

    def next(self) -> None:
        self._left -= 1
        if self._left == 0:
            self._paused.set()
            assert self._go.wait(20)

    def start(self, action: Callable[[], None]) -> None:
        def run() -> None:
            with contextlib.suppress(AlreadyExistsError):
                action()
            self.ended_early = not self._paused.is_set()
            self._paused.set()

        self._thread = threading.Thread(target=run)
        self._thread.start()
        assert self._paused.wait(20)

    def finish(self) -> None:
        self._go.set()
        self._thread.join(20)
        assert not self._thread.is_alive()


class Rows:
    """A register in memory."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, int], str] = {}

    def get(self, base: str, version: int) -> str | None:
        return self.rows.get((base, version))

    def latest(self, base: str) -> tuple[int, str] | None:
        found = [(version, path) for (place, version), path in self.rows.items() if place == base]
        return max(found) if found else None

    def add(self, base: str, version: int, path: str, size: int) -> None:
        if self.rows.setdefault((base, version), path) != path:
            raise AlreadyExistsError("there is one")

    def change(self, base: str, version: int, path: str, size: int) -> None:
        if (base, version) not in self.rows:
            raise NotFoundError("there is none")
        self.rows[base, version] = path

    def replace(self, base: str, version: int, old: str, path: str, size: int) -> None:
        if self.rows.get((base, version)) != old:
            raise NotFoundError("there is none")
        self.rows[base, version] = path

    def remove(self, base: str, version: int) -> None:
        self.rows.pop((base, version), None)

    def remove_if(self, base: str, version: int, path: str) -> None:
        if self.rows.get((base, version)) == path:
            del self.rows[base, version]


@pytest.mark.parametrize("others", ["a put", "a put and a removal", "a removal"])
def test_a_record_can_be_read_or_written_however_writers_and_removers_meet(others: str) -> None:
    """Two removers and a writer, each stopped before each of its calls, and one after the other in between."""
    stopped = 0
    for first in range(1, 16):
        for second in range(1, 16):
            rows, inner = Rows(), Careless(uuid.uuid4().hex)
            store = ExternalStore(inner, rows, base="t")
            put, remove = Steps(first), Steps(second)
            putting = ExternalStore(Pausing(put, inner), Pausing(put, rows), base="t")  # type: ignore[arg-type]
            removing = ExternalStore(Pausing(remove, inner), Pausing(remove, rows), base="t")  # type: ignore[arg-type]
            put.start(lambda: putting.put_if_absent(RECORD, b"second"))
            if "put" in others:
                _put_or_not(store, b"first")
            remove.start(lambda: removing.delete(RECORD))
            if "removal" in others:
                store.delete(RECORD)
            put.finish()
            remove.finish()
            if not _put_or_not(store, b"third"):
                assert bytes(store.get(RECORD)) in (b"first", b"second"), (first, second)
            assert bytes(store.get(RECORD)), (first, second)
            stopped += not (put.ended_early or remove.ended_early)
            store.delete(RECORD)
            assert not rows.rows, (first, second)
    assert stopped > 12


def _put_or_not(store: ExternalStore, data: bytes) -> bool:
    try:
        store.put_if_absent(RECORD, data)
    except AlreadyExistsError:
        return False
    return True
