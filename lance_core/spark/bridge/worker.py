"""The Python process beside a JVM that reads and writes tables for it, and plans on the driver.

::

    python -m lance_core.spark.bridge.worker
    -> {"protocol": 1, "version": "0.1.0", "socket": "/tmp/lance-4k2j/s"}          one line on standard output, when ready
    then for each connection: request, answer, request, answer (see `frames`), until the other side closes it

One connection at a time: the JVM has a process for each task that is at work. The socket lies in a folder that only this
user may enter, and a peer of another user is refused. The process ends when its standard input does, which the JVM holds
open, however that ends. A request that fails is an answer; nothing that a table says ends the loop.
"""

from __future__ import annotations

import json
import logging
import os
import select
import shutil
import socket
import struct
import sys
import tempfile
import threading
from pathlib import Path

from lance_core import __version__
from lance_core.spark.bridge.frames import Connection
from lance_core.spark.bridge.heap import give_freed_memory_back, keep_freed_memory
from lance_core.spark.bridge.requests import answer

PROTOCOL = 1
"""Changes with what is sent; the jar refuses a process of another one."""

IDLE_SECONDS = 2.0
"""Without a request for so long, the memory of the last ones goes back to the system."""

log = logging.getLogger(__name__)


def main() -> None:
    """Listen, say where, and serve until standard input ends."""
    keep_freed_memory()
    folder = tempfile.mkdtemp(prefix="lance-")  # of mode 0700
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
            place = str(Path(folder, "s"))
            listening.bind(place)
            listening.listen(1)
            threading.Thread(target=_end_with_input, args=(folder,), daemon=True).start()
            ready = {"protocol": PROTOCOL, "version": __version__, "socket": place}
            os.write(sys.stdout.fileno(), json.dumps(ready).encode() + b"\n")
            while True:
                _await(listening)
                connection, _ = listening.accept()
                with connection:
                    _serve(connection)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _end_with_input(folder: str) -> None:
    while os.read(sys.stdin.fileno(), 1 << 10):
        pass
    shutil.rmtree(folder, ignore_errors=True)
    # The JVM is gone, and with it whoever wants what is under way; files of a dead task are collected by its attempt's name.
    os._exit(0)


def _serve(connection: socket.socket) -> None:
    if not _is_own(connection):
        return
    peer = Connection(connection)
    try:
        while _await(connection) and (request := peer.request()) is not None:
            answer(request, peer)
    except (OSError, EOFError) as error:  # the JVM closed early, as it does for a limit: the next connection is a new start
        log.debug("the connection ended in the middle of a request: %s", error)
    finally:
        peer.close()


def _await(source: socket.socket) -> bool:
    """Until something comes, which is always so in the end."""
    poll = select.poll()  # as `select` does, but of descriptors above 1,023 as well
    poll.register(source, select.POLLIN)
    if not poll.poll(IDLE_SECONDS * 1_000):
        give_freed_memory_back()
    return True


def _is_own(connection: socket.socket) -> bool:
    """Whether the peer is a process of this user; where the system does not say, the folder's mode has to do."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return bool(struct.unpack("3i", raw)[1] == os.getuid())


if __name__ == "__main__":
    main()
