"""A worker of the bridge for each connection, forked from a process that has imported everything, killed at a step.

::

    server = WorkerServer(folder)
    worker = server.start(KillPlan(at=17, under=uri))      a process that dies with kill -9 at its 17th change of the store
    worker.ask({"do": "begin", ...})                       what the jar asks; EOFError where the worker died

The test has the part of the JVM: it carries words from one request to the next, and goes on as Spark does when a worker,
its planner or the whole application is gone.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from kill_plan import KillPlan, install

ROOT = Path(__file__).resolve().parents[2]


class WorkerError(Exception):
    """What a worker answered instead of a result."""


class Worker:
    """One worker process, from the JVM's side."""

    def __init__(self, place: str, plan: Mapping[str, Any]) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(place)
        self._file = self._socket.makefile("rwb")
        self._send(plan)

    def _send(self, value: Mapping[str, Any]) -> None:
        body = json.dumps(value).encode()
        self._file.write(struct.pack(">i", len(body)) + body)
        self._file.flush()

    def ask(self, request: Mapping[str, Any], rows: pa.Table | None = None) -> dict[str, Any]:
        """Its JSON answer. `rows` follow a write. EOFError where the worker is gone."""
        try:
            self._send(request)
            if rows is not None:
                with pa.ipc.new_stream(self._file, rows.schema) as stream:
                    stream.write_table(rows)
                self._file.write(struct.pack(">cq", b"K", rows.num_rows))
                self._file.flush()
        except BrokenPipeError:
            raise EOFError("the worker is gone") from None
        try:
            head = self._file.read(5)
        except ConnectionResetError:
            head = b""
        if len(head) < 5:
            raise EOFError("the worker is gone")
        kind, size = struct.unpack(">ci", head)
        found: dict[str, Any] = json.loads(self._file.read(size))
        if kind != b"J":
            raise WorkerError(f"{found['type']}: {found['message']}")
        return found

    def close(self) -> None:
        """The JVM is gone."""
        with contextlib.suppress(OSError):
            self._file.close()
        self._socket.close()


class WorkerServer:
    """The process that workers are forked from."""

    def __init__(self, folder: Path) -> None:
        self._place = str(folder / "kills")
        paths = [str(ROOT), str(ROOT / "tests" / "exactly_once"), os.environ.get("PYTHONPATH", "")]
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), self._place],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"

    def start(self, plan: KillPlan | None = None) -> Worker:
        """A worker; without a plan one that nobody kills."""
        given = {} if plan is None else {"at": plan.at, "names": plan.names, "under": plan.under}
        return Worker(self._place, given)

    def close(self) -> None:
        """End it, and with it its workers."""
        self._process.communicate()


def main(place: str) -> None:
    """Fork a worker for each connection until standard input ends."""
    _import_everything()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(place)
        listening.listen(8)
        os.write(sys.stdout.fileno(), b"ready\n")
        while listening in select.select([listening, sys.stdin], [], [])[0]:
            connection, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                os.dup2(
                    sys.stderr.fileno(), sys.stdout.fileno()
                )  # whoever waits for the end of the server's waits for it alone
                _work(connection)
                os._exit(0)
            connection.close()


def _work(connection: socket.socket) -> None:
    from lance_core.spark.bridge.worker import _serve

    (size,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
    plan = json.loads(connection.recv(size, socket.MSG_WAITALL))
    if plan:
        install(KillPlan(**plan))
    _serve(connection)


def _import_everything() -> None:
    """What requests import when they are carried out; importing starts no thread that a fork would lose."""
    importlib.import_module("pyspark.sql.types")
    for room in (
        "lance_core.commit",
        "lance_core.dataset",
        "lance_core.jobs",
        "lance_core.publish",
        "lance_core.spark.bridge",
    ):
        package = importlib.import_module(room)
        for found in pkgutil.walk_packages(package.__path__, f"{room}."):
            importlib.import_module(found.name)


if __name__ == "__main__":
    main(sys.argv[1])
