"""Staging in another Python, or in whatever a command starts: a virtual environment, a container.

::

    LanceAppendOperator(..., execution=ExternalPython("/opt/venvs/sources/bin/python"))
    LanceAppendOperator(..., execution=Command(["docker", "run", "-i", "--rm", "-v", "/lake:/lake", "our/image:3",
                                                "python", "-m", "lance_core.jobs.child"]))

The job's spec, with its credentials, goes through standard input: neither arguments nor variables show it. What it prints is
the task's log. The result and an error come back through the table's staged registry, as with Spark.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess  # nosec B404: the command is the DAG author's, and no shell reads it
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lance_core.errors import InputError, RetryableConflictError
from lance_core.jobs.specs.child_protocol import GREETING, PROTOCOL

if TYPE_CHECKING:
    from lance_core.jobs.api import Log
    from lance_core.jobs.specs.spec import JobSpec

MODULE = "lance_core.jobs.child"
_GRACE_SECONDS = 20.0
_LAST_LINES = 5
_ENVIRONMENT_CURE = (
    "Install airflow-provider-lance (without extras) where the command runs, in the version that this worker has. The "
    f"command must end with `python -m {MODULE}` and pass its standard input on (docker run -i, kubectl run -i)."
)
_OF_THIS_PYTHON = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")


@dataclass(frozen=True)
class Command:
    """A command that starts `python -m lance_core.jobs.child` and passes its standard input on. No shell reads it.

    `env`: more variables of the command. It gets those of the worker, except Airflow's and those of this Python.
    """

    arguments: Sequence[str]
    env: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        texts = not isinstance(self.arguments, str) and all(isinstance(item, str) for item in self.arguments)
        if not texts or not self.arguments:
            raise InputError(
                f"execution: a Command needs a list of texts, got {self.arguments!r}", cure='Pass ["docker", "run", ...].'
            )

    def __str__(self) -> str:
        return f"the command {self.arguments[0]}"


def ExternalPython(python: str, *, env: Mapping[str, str] | None = None) -> Command:
    """The Python of another environment, which has lance_core."""
    return Command([python, "-m", MODULE], env)


class CommandRun:
    """One try of a staging job in a process of its own."""

    def __init__(self, command: Command, *, log: Log) -> None:
        self._command = command
        self._log = log
        self._process: subprocess.Popen[str] | None = None
        self._last: deque[str] = deque(maxlen=_LAST_LINES)

    def run(self, spec: JobSpec, *, options: Mapping[str, Any]) -> dict[str, Any]:
        """Stage, unless the work is done already; the reference for the commit.

        The job's own error where it left one. InputError for a command without our library, or one of another protocol.
        """
        from lance_core.jobs import api

        done = api.find_done(spec, options=options)
        if done is not None:
            self._log.info("Nothing to do: %s", done.reason)
            return done.reference
        with api.raising_driver_errors(spec, options=options):
            self._carry_out(api.with_options(spec, options).to_json())
        return api.read_result(spec, options=options)

    def kill(self) -> None:
        """Stop the process and its children: first so that it aborts its attempt, then for good."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        until = time.monotonic() + _GRACE_SECONDS
        while process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def _carry_out(self, text: str) -> None:
        process = self._process = self._start()
        try:
            self._greet(process)
            if process.stdin is not None:
                process.stdin.write(text + "\n")
                process.stdin.flush()
            self._follow(process)
            status = process.wait()
        except BrokenPipeError:
            status = process.wait()
        finally:
            self.kill()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with suppress(OSError):
                        stream.close()
        if status:
            raise RetryableConflictError(
                f"{self._command} ended with status {status} and left no error: {self._shown()}",
                cure="Read the lines above; the next try stages the work again.",
            )

    def _start(self) -> subprocess.Popen[str]:
        kept = {name: value for name, value in os.environ.items() if not name.lstrip("_").startswith("AIRFLOW")}
        passed_on = {name: value for name, value in kept.items() if name not in _OF_THIS_PYTHON}
        try:
            return subprocess.Popen(  # nosec B603: the command is the DAG author's, and no shell reads it
                [*self._command.arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**passed_on, "PYTHONUNBUFFERED": "1", **(self._command.env or {})},
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise InputError(f"{self._command} cannot be started: {error.strerror or error}") from None

    def _greet(self, process: subprocess.Popen[str]) -> None:
        """Read up to the line that says what is there. InputError when it does not come, or names another protocol."""
        for line in process.stdout or ():
            if not line.startswith(GREETING):
                self._show(line)
                continue
            told = json.loads(line[len(GREETING) :])
            if told.get("protocol") != PROTOCOL:
                raise InputError(
                    f"{self._command} runs lance_core {told.get('version')} with protocol {told.get('protocol')}, "
                    f"expected {PROTOCOL}",
                    cure=_ENVIRONMENT_CURE,
                )
            self._log.info("Staging in %s with lance_core %s", self._command, told.get("version"))
            return
        status = process.wait()
        text = f"{self._command} ended with status {status} before its lance_core answered: {self._shown()}"
        if "No module named" in self._shown():
            raise InputError(text, cure=_ENVIRONMENT_CURE)
        raise RetryableConflictError(text, cure=_ENVIRONMENT_CURE)

    def _follow(self, process: subprocess.Popen[str]) -> None:
        for line in process.stdout or ():
            self._show(line)

    def _show(self, line: str) -> None:
        self._last.append(line.rstrip())
        self._log.info("%s", line.rstrip())

    def _shown(self) -> str:
        return " | ".join(line for line in self._last if line) or "it printed nothing"
