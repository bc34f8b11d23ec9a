"""Whether a Spark Connect server answers, within a limit, and with a word about what is waited for.

::

    sc://spark:15002     nobody listens                 -> asked again each second until the limit: it may be starting
                         a name that nobody knows       -> refused at once where that is certain
                         listens and says nothing       -> `answering` gives up at the limit

pyspark's own client repeats a request to a server that is down for ten minutes and more, and says nothing in the meantime.
Standard library only.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

from lance_core.errors import InputError, RetryableConflictError

log = logging.getLogger("lance_core.spark")

T = TypeVar("T")

CONNECT_SECONDS = 30.0
"""For how long a server that does not answer is waited for. Airflow's retries of the task are the longer wait."""
_PORT = 15002
_PAUSE_SECONDS = 1.0
_CURE = "Check the connection and the server's log; a server that is starting is found by the next try."


def wait_for_port(url: str, *, shown: str, seconds: float = CONNECT_SECONDS) -> None:
    """Return when the server's port takes connections. RetryableConflictError when it does not within the limit, InputError
    for a url that names no server."""
    host, port = _place(url, shown)
    log.info("Connecting to the Spark Connect server %s, for at most %g seconds", shown, seconds)
    until = time.monotonic() + seconds
    while True:
        left = until - time.monotonic()
        try:
            with socket.create_connection((host, port), timeout=max(0.05, left)):
                return
        except OSError as error:
            left = until - time.monotonic()
            if left <= _PAUSE_SECONDS:
                raise _unreachable(shown, f"{type(error).__name__}: {error.strerror or error}", seconds) from None
            log.info("%s does not answer (%s); waiting %d more seconds", shown, error.strerror or error, left)
            time.sleep(_PAUSE_SECONDS)


def answering(action: Callable[[], T], *, shown: str, give_up: Callable[[], Any], seconds: float = CONNECT_SECONDS) -> T:
    """What the first requests to a server give. RetryableConflictError, and `give_up` is called to end them, when they have
    given nothing at the limit."""
    found: list[T] = []
    failed: list[BaseException] = []

    def ask() -> None:
        try:
            found.append(action())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=ask, name="lance-spark-connect", daemon=True)
    thread.start()
    thread.join(seconds)
    if found:
        return found[0]
    if failed:
        raise failed[0]
    # Beside, too: what hangs in a request may hang in ending it.
    threading.Thread(target=give_up, name="lance-spark-connect-end", daemon=True).start()
    raise _unreachable(shown, "it takes connections, but does not answer", seconds)


def without_token(url: str) -> str:
    """A server's url fit for a log: its parameters may hold a token."""
    return url.split("/;")[0].split(";")[0]


def _unreachable(shown: str, why: str, seconds: float) -> RetryableConflictError:
    return RetryableConflictError(f"no answer of the Spark Connect server {shown} in {seconds:g} seconds: {why}", cure=_CURE)


def _place(url: str, shown: str) -> tuple[str, int]:
    try:
        parts = urlsplit(without_token(url))
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host:
        raise InputError(f"{shown} is not the address of a Spark Connect server", cure="Write sc://host:15002.")
    return host, port or _PORT
