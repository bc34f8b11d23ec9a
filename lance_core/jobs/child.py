"""A job in another process, environment or container: what `execution=ExternalPython(...)` and `Command(...)` start.

::

    python -m lance_core.jobs.child        standard input: {"spec": 1, "kind": "append", ...} on one line, then it stays open

It first prints one line with its protocol, so that whoever started it sends the spec, which may hold credentials, only to a
lance_core that understands it. The result and an error go to the table's staged registry, never through the output. When
standard input ends, the process that started it is gone, and the job is stopped: its attempt is aborted.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading

from lance_core import __version__
from lance_core.errors import InputError
from lance_core.jobs.kinds import spec_from_json
from lance_core.jobs.run import run_job
from lance_core.jobs.runtime.error_transport import EXIT_OK, exit_status
from lance_core.jobs.runtime.failure_record import record_failure
from lance_core.jobs.specs.child_protocol import GREETING, PROTOCOL
from lance_core.jobs.specs.spec import JobSpec

log = logging.getLogger("lance_core.child")

EXIT_TERMINATED = 128 + signal.SIGTERM


class ChildStopped(SystemExit):
    """SIGTERM: unwinds the job, so that its attempt is aborted."""

    def __init__(self) -> None:
        super().__init__(EXIT_TERMINATED)


def main() -> int:
    """Run one job; returns the exit status."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    signal.signal(signal.SIGTERM, _terminate)
    print(GREETING + json.dumps({"protocol": PROTOCOL, "version": __version__}), flush=True)
    spec: JobSpec | None = None
    try:
        text = sys.stdin.buffer.readline()
        if not text.strip():
            raise InputError("no job spec came on standard input")
        threading.Thread(target=_stop_with_the_parent, daemon=True).start()
        spec = spec_from_json(text.decode())
        run_job(spec)
        return EXIT_OK
    except ChildStopped:
        log.error("stopped")
        return EXIT_TERMINATED
    except Exception as error:
        log.error("%s: %s", type(error).__name__, str(error).split("\n", 1)[0])
        if spec is not None:
            record_failure(spec, error)
        return exit_status(error)


def _stop_with_the_parent() -> None:
    # Not through sys.stdin, whose lock a thread must not hold while the interpreter ends.
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _terminate(*_: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise ChildStopped


if __name__ == "__main__":
    sys.exit(main())
