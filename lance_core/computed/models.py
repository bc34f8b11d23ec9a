"""The objects of declared classes: made for one refresh, or kept by a Spark worker from task to task.

::

    OwnModel     take -> the class is made and set up      give_back -> closed
    KeptModel    take -> as above, or what is kept          give_back -> kept for the next task of this process
                 another class or other arguments           what is kept is closed first: there is one model for a process
                 a task that failed                         closed: what is broken is not handed on
                 nobody took it for a while                 closed

A task of Spark is a function call in a process that Spark keeps and gives the next task. Nothing of PySpark lives as long as
that process but its modules, so what is to be loaded once for it stands in a module (`KEPT`); it is used nowhere else.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol

log = logging.getLogger(__name__)
_IDLE_SECONDS = 30.0
"""Spark ends a worker that had no task for a minute, without a word."""
_KEEPS_WORKERS = "SPARK_REUSE_WORKER"


class Models(Protocol):
    """Makes the objects of declared classes."""

    def take(self, found: Any, arguments: Mapping[str, Any]) -> Any:
        """An object of a class with these arguments, set up. Raises what the class raises."""

    def give_back(self, made: Any, *, is_sound: bool) -> None:
        """It is not needed here any more; `is_sound`: nothing failed with it."""


class OwnModel:
    """An object for each that takes one."""

    def take(self, found: Any, arguments: Mapping[str, Any]) -> Any:
        """Make it."""
        made = found(**arguments)
        getattr(made, "setup", _nothing)()
        return made

    def give_back(self, made: Any, *, is_sound: bool) -> None:
        """Close it. Raises what it raises."""
        getattr(made, "close", _nothing)()


class KeptModel:
    """One object for a process, for one that takes it at a time; others get objects of their own. For several threads."""

    def __init__(self, timer: Callable[[float, Callable[[], None]], threading.Timer] = threading.Timer) -> None:
        self._lock, self._new_timer = threading.Lock(), timer
        self._made: Any = None
        self._key: tuple[Any, str] | None = None
        self._is_taken = False
        self._timer: threading.Timer | None = None
        self._process = 0

    def take(self, found: Any, arguments: Mapping[str, Any]) -> Any:
        """What is kept, where it is an object of this very class with these arguments; else one is made."""
        key = (found, json.dumps(dict(arguments), sort_keys=True))
        with self._lock:
            if self._is_taken and self._process == os.getpid():
                is_mine, former = False, None
            else:
                is_mine, former = True, self._withdrawn(key)
        if not is_mine:
            return OwnModel().take(found, arguments)
        _close(former)
        if self._made is None:
            try:
                self._made = OwnModel().take(found, arguments)
            except BaseException:
                self._is_taken, self._key = False, None
                raise
        return self._made

    def give_back(self, made: Any, *, is_sound: bool) -> None:
        """Keep it for the next; close it where something failed, or where it is not the one that is kept."""
        with self._lock:
            is_kept = is_sound and made is self._made
            if made is self._made:
                self._is_taken = False
                if is_kept:
                    self._timer = self._new_timer(_IDLE_SECONDS, self.close_idle)
                    self._timer.daemon = True
                    self._timer.start()
                else:
                    self._made = self._key = None
        if not is_kept:
            _close(made)

    def close_idle(self) -> None:
        """Close what is kept, unless somebody has taken it."""
        with self._lock:
            made = None if self._is_taken else self._made
            if made is not None:
                self._made = self._key = None
        _close(made)

    def _withdrawn(self, key: tuple[Any, str]) -> Any:
        """Take the place; what was kept for another class or other arguments, to be closed."""
        if self._process != os.getpid():  # what a parent keeps is the parent's
            self._made = self._key = self._timer = None
            self._process = os.getpid()
            atexit.register(self.close_idle)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        former = None if self._key == key else self._made
        if former is not None:
            self._made = None
        self._is_taken, self._key = True, key
        return former


KEPT = KeptModel()


def models_of_process() -> Models:
    """Where a task's models come from: kept in a worker that Spark gives further tasks, else made for each."""
    return KEPT if os.environ.get(_KEEPS_WORKERS) else OwnModel()


def _close(made: Any) -> None:
    """Close what a later task must not suffer from."""
    try:
        getattr(made, "close", _nothing)()
    except Exception as error:
        log.warning("%s.close failed: %s", type(made).__name__, type(error).__name__)


def _nothing() -> None:
    return None
