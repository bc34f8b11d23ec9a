"""Questions that read pages of a table, answered where an abort cannot end a server: in a warm child process for each table.

::

    checks = shared_checks()
    checks.run("/t.lance", "doctor", {"uri": "/t.lance", "deep": True, ...}, seconds=60)      [{"code": ...}, ...]
    CheckEndedError: the check (doctor) of /t.lance ended with SIGABRT; nothing else was stopped ...

A library that finds its own rules broken ends its process: no `except` stops that. A table has one child at a time, which
stays for a while and serves no other table, so that what one table did to it is no other table's; there are few children in
all, and the one that has been idle longest makes room. How a child ended is remembered for a while: the same question is
not asked again at once. Standard library only.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess  # nosec B404: this interpreter and a module of this library, no shell
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from functools import cache
from typing import Any

from lance_core.errors import CheckEndedError, CorruptFileError, InputError, StoreError
from lance_core.jobs.runtime.error_transport import failure_from_plain

MEMORY_VARIABLE = "LANCE_CHECK_MEMORY_BYTES"
MEMORY_BYTES = 4 << 30
MOST_CHILDREN = 4
IDLE_SECONDS = 300.0
START_SECONDS = 60.0
REMEMBERED_SECONDS = 30.0
_IDLE_END = "ended with exit status 0"
_TOO_LATE = "took longer than it may and was ended"
ANSWER_BYTES = 256 << 20
"""A longer answer is none of ours: rows and findings are bounded."""


class IsolatedChecks:
    """The children of one process. Calls from many threads; calls for one table come one after the other."""

    def __init__(
        self,
        *,
        most: int = MOST_CHILDREN,
        memory_bytes: int = MEMORY_BYTES,
        idle_seconds: float = IDLE_SECONDS,
        remembered_seconds: float = REMEMBERED_SECONDS,
    ) -> None:
        self._most = most
        self._arguments = (str(memory_bytes), str(idle_seconds))
        self._limits = f"{memory_bytes} bytes of memory ({MEMORY_VARIABLE})"
        self._remembered_seconds = remembered_seconds
        self._changed = threading.Condition()
        self._busy: set[str] = set()
        self._idle: OrderedDict[str, _Child] = OrderedDict()
        self._ended: dict[tuple[str, str], tuple[float, str]] = {}

    def run(self, table: str, question: str, arguments: Mapping[str, Any], *, seconds: float) -> Any:
        """The answer of a child of `table`: plain data. `table` only tells tables apart.

        The error that the child raised; CheckEndedError when it ended; StoreError (retryable) when it took longer than
        `seconds`, or checks of other tables had not ended by then.
        """
        line = json.dumps({"question": question, "arguments": dict(arguments), "seconds": seconds}).encode() + b"\n"
        shown = str(arguments.get("uri", table))
        self._refuse_again((table, line.decode()), shown)
        deadline = time.monotonic() + seconds
        child, victim = self._take(table, deadline, shown)
        try:
            if victim is not None:
                victim.end()
            answer: Mapping[str, Any] | str = _IDLE_END
            if child is not None and child.is_alive():
                answer = child.ask(line, deadline=deadline)
            if answer == _IDLE_END:  # none, or one that ended while nothing was asked
                if child is not None:
                    child.end()
                child = _Child(self._arguments)
                answer = child.ask(line, deadline=deadline)
        except BaseException:
            if child is not None:
                child.end()
            child = None
            raise
        finally:
            if child is not None and not child.is_alive():
                child = None
            self._give_back(table, child)
        if isinstance(answer, str):
            what = f"the check ({question}) of {shown} {answer}"
            with self._changed:
                self._ended[table, line.decode()] = (time.monotonic() + self._remembered_seconds, what)
            raise self._error(what, shown)
        if "failure" in answer:
            raise failure_from_plain(answer["failure"])
        return answer["answer"]

    def pids(self) -> dict[str, int]:
        """The idle children by table."""
        with self._changed:
            return {table: child.pid for table, child in self._idle.items()}

    def close(self) -> None:
        """End the idle children."""
        with self._changed:
            children = list(self._idle.values())
            self._idle.clear()
            self._changed.notify_all()
        for child in children:
            child.end()

    def _refuse_again(self, key: tuple[str, str], shown: str) -> None:
        now = time.monotonic()
        with self._changed:
            self._ended = {one: known for one, known in self._ended.items() if known[0] > now}
            known = self._ended.get(key)
        if known is not None:
            raise self._error(known[1], shown)

    def _error(self, what: str, shown: str) -> CheckEndedError | StoreError:
        if what.endswith(_TOO_LATE):
            # A store that does not answer looks the same: as there, another try may help.
            return StoreError(what, uri=shown, cure="Try again later, or validate the table from a shell.")
        return CheckEndedError(
            f"{what}; nothing else was stopped. It runs in a process of its own, with {self._limits}",
            uri=shown,
            cure="See the log, where a library that gave up names its reason; validate the table from a shell with "
            f"`lance validate --deep {shown}`, restore an older version, or raise the limit.",
        )

    def _take(self, table: str, deadline: float, shown: str) -> tuple[_Child | None, _Child | None]:
        """The idle child of a table, if it has one, and one to end because there may be no more; the table is busy then."""
        with self._changed:
            while True:
                if table not in self._busy:
                    own, room = self._idle.pop(table, None), len(self._busy) + len(self._idle) < self._most
                    if own is not None or room or self._idle:
                        self._busy.add(table)
                        victim = None if own is not None or room else self._idle.popitem(last=False)[1]
                        return own, victim
                left = deadline - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    raise StoreError(
                        f"{shown}: checks that began before have not ended; {self._most} run at once, one of each table",
                        uri=shown,
                        cure="Try again later.",
                    )

    def _give_back(self, table: str, child: _Child | None) -> None:
        with self._changed:
            self._busy.discard(table)
            if child is not None:
                self._idle[table] = child
            self._changed.notify_all()


class _Child:
    """A process of `isolated_child`, started now."""

    def __init__(self, arguments: tuple[str, ...]) -> None:
        # Without the working directory in front of the library's own modules (Python 3.11 and later listen to it).
        environment = {**os.environ, "PYTHONSAFEPATH": "1"}
        self._process = subprocess.Popen(  # nosec B603: this interpreter and a module of this library
            [sys.executable, "-m", "lance_core.maintenance.isolated_child", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,
            bufsize=0,
        )
        self._received = b""
        ready = self._line(time.monotonic() + START_SECONDS)
        if isinstance(ready, str):
            self.end()
            raise StoreError(f"a process for checks could not be started: it {ready}", cure="See the log for its reason.")

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def is_alive(self) -> bool:
        """Whether it may be asked."""
        return self._process.poll() is None

    def ask(self, line: bytes, *, deadline: float) -> Mapping[str, Any] | str:
        """The answer; or how the process ended, as the rest of a sentence."""
        assert self._process.stdin is not None
        descriptor = self._process.stdin.fileno()
        view = memoryview(line)
        try:
            while view:
                if not select.select([], [descriptor], [], max(0.0, deadline - time.monotonic()))[1]:
                    return self._too_late()
                view = view[os.write(descriptor, view[: select.PIPE_BUF]) :]  # what fits, once it may be written at all
        except BrokenPipeError:
            return self._how_it_ended()
        found = self._line(deadline)
        return found if isinstance(found, str) else _parsed(found)

    def _too_late(self) -> str:
        self._process.kill()
        self._process.wait()
        return _TOO_LATE

    def end(self) -> None:
        """End it, and wait for that."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _line(self, deadline: float) -> bytes | str:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        parts, size = [self._received], len(self._received)
        while b"\n" not in parts[-1]:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                return self._too_late()
            part = os.read(descriptor, 1 << 20)
            parts.append(part)
            size += len(part)
            if not part:
                return self._how_it_ended()
            if size > ANSWER_BYTES:
                self.end()
                return f"answered with more than {ANSWER_BYTES} bytes"
        line, _, self._received = b"".join(parts).partition(b"\n")
        return line

    def _how_it_ended(self) -> str:
        code = self._process.wait()
        if code >= 0:
            return f"ended with exit status {code}"
        name = signal.Signals(-code).name
        reasons = {"SIGKILL": " (somebody ended it, or the machine ran out of memory)", "SIGALRM": " (it took too long)"}
        return f"ended with {name}{reasons.get(name, '')}"


def _parsed(line: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not found.keys() & {"answer", "failure"}:
        raise CorruptFileError("a process for checks answered with something that is no answer")
    return found


def shared_checks() -> IsolatedChecks:
    """Those of this process; a forked one has its own. InputError for a limit that is no number."""
    return _checks_of(os.getpid())


@cache
def _checks_of(_: int) -> IsolatedChecks:
    text = os.environ.get(MEMORY_VARIABLE, "")
    if text and not (text.isascii() and text.isdigit() and int(text) >= 1 << 20):
        raise InputError(f"{MEMORY_VARIABLE} must be a number of bytes, at least 1048576, got {text!r}")
    return IsolatedChecks(memory_bytes=int(text) if text else MEMORY_BYTES)
