"""kill -9 of one of several processes that somebody else starts, at their n-th step together.

::

    kills = Kills("/tmp/x/kills")           in the test; nobody dies while the file is not there
    with kills.at(17, under=uri): ...       the process that does the 17th change below `uri` dies, once
    kills.steps                             what has been done meanwhile

`sitecustomize` lets every worker of the bridge that Spark starts take part, warm ones among them: the file is read at each
step.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any


class Kills:
    """The test's side."""

    def __init__(self, place: str) -> None:
        self._file = Path(place)
        self._steps = Path(f"{place}.steps")

    @contextmanager
    def at(self, number: int, *, under: str, slowly: bool = False) -> Iterator[None]:
        """While it lasts steps are counted, and the process that reaches this number dies; 0: none does.

        `slowly`: its connections end some seconds before it does, as those of a process with much memory do.
        """
        self._steps.write_text("", encoding="utf-8")
        self._file.write_text(json.dumps({"at": number, "under": under, "slowly": slowly}), encoding="utf-8")
        try:
            yield
        finally:
            self._file.unlink()

    @property
    def steps(self) -> list[str]:
        """What was done in the last `at`."""
        return self._steps.read_text(encoding="utf-8").splitlines()


class FilePlan:
    """A plan (see `kill_plan`) that stands in a file and counts the steps of all processes."""

    def __init__(self, place: str) -> None:
        self._place = place

    @property
    def under(self) -> str:
        """The table whose changes count; without a plan a folder that there is not."""
        return str(self._plan()["under"])

    def reach(self, name: str) -> None:
        """One step has been done."""
        with Path(f"{self._place}.steps").open("a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            number = len(file.readlines()) + 1
            file.write(f"{name}\n")
        plan = self._plan()
        if number == plan["at"]:
            if plan["slowly"]:
                _hang_up()
            os.kill(os.getpid(), signal.SIGKILL)

    def _plan(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(Path(self._place).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {"at": 0, "under": "\0"}
        return found


def _hang_up() -> None:
    for path in Path("/proc/self/fd").iterdir():
        with suppress(OSError), socket.socket(fileno=os.dup(int(path.name))) as found:
            if not found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                found.shutdown(socket.SHUT_RDWR)
    time.sleep(4)
