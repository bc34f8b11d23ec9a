"""A process that dies at the n-th change of its local store, played in this process: nothing it does afterwards is done.

::

    with dies_at(7, under=uri) as death:
        refresh(uri)                       Died is raised behind change 7; whatever tidies up then changes nothing
    death.is_dead                          False where there were fewer changes
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lance_core.io.local import store as local


class DiedError(BaseException):
    """The process is gone. No handler of errors sees it as one."""


@dataclass
class Death:
    """When it comes, and whether it has."""

    at: int
    under: str
    count: int = 0
    is_dead: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def refuse(self, place: str) -> None:
        """A dead process changes nothing."""
        if self.is_dead and self.under in place:
            raise DiedError

    def reach(self, place: str) -> None:
        """One change was made."""
        if self.under not in place:
            return
        with self._lock:
            self.count += 1
            if self.count == self.at:
                self.is_dead = True
        self.refuse(place)


@contextlib.contextmanager
def dies_at(at: int, *, under: str) -> Iterator[Death]:
    """Until the end of the block: changes below `under` are counted, and number `at` (from 1; 0: none) is the last."""
    death = Death(at, under)
    kept = [
        (cls, method, getattr(cls, method))
        for cls, method in (
            (local.LocalWriter, "__init__"),
            (local.LocalWriter, "write"),
            (local.LocalWriter, "close"),
            (local.LocalWriter, "_link"),
            (local.LocalStore, "_unlink"),
        )
    ]
    for cls, method, plain in kept:
        setattr(cls, method, _counted(plain, death))
    try:
        with contextlib.suppress(DiedError):
            yield death
    finally:
        for cls, method, plain in kept:
            setattr(cls, method, plain)


def _counted(plain: Any, death: Death) -> Any:
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        place = str(getattr(self, "_target", "") or getattr(self, "_root", ""))
        death.refuse(place)
        done = plain(self, *args, **kwargs)
        death.reach(str(getattr(self, "_target", "") or getattr(self, "_root", "")))
        return done

    return run
