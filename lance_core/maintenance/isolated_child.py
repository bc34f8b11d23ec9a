"""The process in which the questions of `isolated` are answered: one line of JSON asks, one line answers.

::

    {"question": "doctor", "arguments": {"uri": "/t.lance", "deep": true}, "seconds": 60}
    {"answer": [...]}    or    {"failure": {"type": "CorruptFileError", "message": "..."}}

It ends when there is no question for a while, when its parent is gone, and when an answer takes too long, in native
code as well: the alarm has its default action. Options of stores come through the pipe, never as arguments or variables.
"""

from __future__ import annotations

import faulthandler
import json
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from lance_core.conditions import condition_from_dict
from lance_core.errors import LanceError
from lance_core.jobs import api
from lance_core.jobs.runtime.error_transport import failure_to_plain
from lance_core.maintenance.doctor import diagnose
from lance_core.maintenance.facts.column import column_page
from lance_core.maintenance.facts.rows import RowsRequest, rows_page
from lance_core.maintenance.policy import ServiceLevels

GRACE_SECONDS = 2.0
"""By so much the parent is earlier: it says what happened."""

Options = Mapping[str, str]


def _doctor(*, uri: str, deep: bool, levels: Mapping[str, Any], options: Options) -> object:
    found = diagnose(uri, deep=deep, levels=ServiceLevels(**levels), storage_options=options)
    return [finding.to_dict() for finding in found]


def _rows(*, uri: str, request: Mapping[str, Any], options: Options, seconds: float) -> object:
    lists = {name: tuple(value) for name, value in request.items() if isinstance(value, list)}
    return rows_page(uri, RowsRequest(**{**request, **lists}), storage_options=options, seconds=seconds)


def _column(*, uri: str, path: str, version: int | None, options: Options, seconds: float) -> object:
    return column_page(uri, path, version=version, storage_options=options, seconds=seconds)


def _facts(*, uri: str, condition: Mapping[str, Any], options: Options) -> object:
    return api.look(uri, condition=condition_from_dict(condition), options=options).to_dict()


QUESTIONS: Mapping[str, Callable[..., object]] = {"doctor": _doctor, "rows": _rows, "column": _column, "facts": _facts}


def answer_line(line: bytes) -> bytes:
    """The answer to one line. Every exception is an answer; what is no error of this library is shown in the log only."""
    try:
        asked = json.loads(line)
        signal.setitimer(signal.ITIMER_REAL, float(asked["seconds"]) + GRACE_SECONDS)
        answer: dict[str, object] = {"answer": QUESTIONS[asked["question"]](**asked["arguments"])}
        data = json.dumps(answer)
    except LanceError as error:
        data = json.dumps({"failure": failure_to_plain(error)})
    except Exception as error:
        traceback.print_exc()
        name = type(error).__name__
        data = json.dumps({"failure": {"type": "LanceError", "message": f"{name}: see the log of this process's parent"}})
    signal.setitimer(signal.ITIMER_REAL, 0)
    return data.encode() + b"\n"


def serve(asked: BinaryIO, answers: BinaryIO, *, idle_seconds: float) -> None:
    """Answer until there is no question for `idle_seconds`, or the other end is gone."""
    while select.select([asked], [], [], idle_seconds)[0]:
        line = asked.readline()
        if not line:
            return
        answers.write(answer_line(line))
        answers.flush()


def main(memory_bytes: int, idle_seconds: float) -> None:
    """Answer what comes through standard input, within so much memory more than what is needed to begin."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is for the log
    # Frames of threads that run on cannot be read safely: a dump of them made an abort a SIGSEGV now and then.
    faulthandler.enable(all_threads=False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's end closes the pipe
    _limit(memory_bytes)
    answers.write(b"{}\n")
    answers.flush()
    serve(sys.stdin.buffer, answers, idle_seconds=idle_seconds)


def _limit(memory_bytes: int) -> None:
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return  # macOS does not tell and does not keep to such limits
    import resource

    used = int(statm.read_text().split()[0]) * resource.getpagesize()
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    wanted = used + memory_bytes
    resource.setrlimit(resource.RLIMIT_AS, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
