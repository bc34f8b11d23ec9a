"""`collect()` that can be stopped: it runs in a thread while the caller waits, reports progress, and handles signals.

A signal's exception raised inside PySpark's own call is of no use: its clean-up asks the JVM something on the connection
that is busy with the job, and waits until the job ends. So the caller's thread never is inside that call; when it is
stopped, it cancels the job from outside.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

log = logging.getLogger(__name__)

_CANCEL_SECONDS = 20.0


def collect(frame: Any, *, tick_seconds: float, on_tick: Callable[[], None], what: str) -> list[Any]:
    """The rows of a (small) DataFrame. Calls `on_tick` every `tick_seconds`; any exception here cancels the Spark job."""
    job = _Collecting(frame, what)
    job.thread.start()
    try:
        while not job.done.wait(tick_seconds):
            on_tick()
    except BaseException:
        job.cancel()
        raise
    return job.result()


class _Collecting:
    def __init__(self, frame: Any, what: str) -> None:
        self._frame = frame
        self._spark = frame.sparkSession
        self._tag = f"lance-{uuid.uuid4().hex}"
        self._what = what
        self._rows: list[Any] = []
        self._error: BaseException | None = None
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._run, name="lance-collect", daemon=True)

    def result(self) -> list[Any]:
        if self._error is not None:
            raise self._error
        return self._rows

    def cancel(self) -> None:
        """Stop the job's tasks; waits a little so that they are gone before their files are removed."""
        with suppress(Exception):  # the JVM may be what died
            if _is_connect(self._spark):
                self._spark.interruptTag(self._tag)
            else:
                self._spark.sparkContext.cancelJobGroup(self._tag)
        if not self.done.wait(_CANCEL_SECONDS):
            log.warning("the Spark job did not stop within %.0f s", _CANCEL_SECONDS)

    def _run(self) -> None:
        try:
            # Groups and tags belong to the thread that starts the job.
            if _is_connect(self._spark):
                self._spark.addTag(self._tag)
            else:
                self._spark.sparkContext.setJobGroup(self._tag, self._what, True)
            self._rows = self._frame.collect()
        except BaseException as error:
            self._error = error
        finally:
            self.done.set()


def _is_connect(spark: Any) -> bool:
    return "connect" in type(spark).__module__.split(".")
