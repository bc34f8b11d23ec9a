"""kill -9 at the n-th step: a step is everything that changes the local disk, and everything between two tasks.

::

    create data/…lance        a temporary file is there, empty            put = create, write, publish
    write data/…lance         some bytes of it are
    publish data/…lance       it has its name (a rename or a link)
    delete _lance_core/…      a file is gone
    task append               a task's `execute` has returned; nobody has been told yet

Reads change nothing, so a kill before one is a kill after the step before it. Ids in paths are shortened, for names that
mean the same from run to run. The plan is in the environment for a process that is started by others (Airflow, Spark)::

    LANCE_KILL_PLAN='{"at": 17, "once": "/tmp/x/killed", "names": "/tmp/x/steps"}'
"""

from __future__ import annotations

import json
import os
import re
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lance_core.io.local import store as local

VARIABLE = "LANCE_KILL_PLAN"
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{12,}|[01]{24}[0-9a-f]*|\d{15,}")


@dataclass
class KillPlan:
    """Dies at step number `at` (from 1; 0: never), or at the first step named `step`.

    With `once`, a file that the first to die leaves, only one process of all that have the plan dies. `names` is a file to
    which every step appends a line.
    """

    at: int = 0
    step: str = ""
    once: str = ""
    names: str = ""
    under: str = ""
    count: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reach(self, name: str) -> None:
        """One step has been done."""
        short = _ID.sub("…", name)
        with self._lock:
            self.count += 1
            if self.names:
                with Path(self.names).open("a", encoding="utf-8") as file:
                    file.write(short + "\n")
            if self.count == self.at or (self.step and self.step in short):
                self._die()

    def _die(self) -> None:
        if self.once:
            try:
                os.close(os.open(self.once, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            except FileExistsError:
                return
        os.kill(os.getpid(), signal.SIGKILL)


def install(plan: KillPlan) -> KillPlan:
    """From now on every change that a local store makes in this process is a step of the plan."""
    store, writer = local.LocalStore, local.LocalWriter

    def patched(cls: type[Any], method: str, verb: str, path_of: Callable[[Any, tuple[Any, ...]], str]) -> None:
        inner = getattr(cls, method)

        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            done = inner(self, *args, **kwargs)
            path = path_of(self, args)
            if plan.under in str(getattr(self, "_target", "") or getattr(self, "_root", "")):
                plan.reach(f"{verb} {path}")
            return done

        setattr(cls, method, run)

    patched(writer, "__init__", "create", lambda self, args: str(args[1]))
    patched(writer, "write", "write", lambda self, args: str(self._path))
    patched(writer, "close", "publish", lambda self, args: str(self._path))
    patched(writer, "_link", "publish", lambda self, args: str(args[1]))
    patched(store, "_unlink", "delete", lambda self, args: str(args[0]))
    return plan


def install_from(environment: Mapping[str, str]) -> KillPlan | None:
    """The plan that a process was given, installed; None when it was given none."""
    text = environment.get(VARIABLE)
    return install(KillPlan(**json.loads(text))) if text else None
