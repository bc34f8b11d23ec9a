"""Try many cases in child processes, where the end of a process is a finding like any other.

::

    findings = run_in_children(["tests/security/forged_types.py", "--child"], range(20_000), state=None)

A child is given a range of cases, says `start <case>` before each and `escape <case> <text>` for what it finds. When it ends
before its time (a signal, an abort inside a native library, no word for two minutes), the case it was at is tried alone;
where that one ends well, the fault is an earlier case's and halving finds the shortest run that ends the process. The next
child goes on behind it. `state` is a file that remembers how far a run has come.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SILENT_SECONDS = 120.0
"""A case that says nothing for so long hangs inside native code: Python code is ended by the child's own timers. A child
that waits for a processor for so long does not hang; it is left alone until it has had that much processor time."""
START_SECONDS = 900.0
"""Until the first case: a child builds its tables and compiles, on a machine that may have much else to do."""
SHARE = 500
"""Cases of one child."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A case and what became of it."""

    case: int
    what: str


def sweep(file: str, child: Callable[[range], int], *, what: str, count: int, doc: str | None) -> int:
    """The command of a sweep, its exit status: the cases from `--seed` on, in children that the file is with `--child`."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", action="store_true", help="try the cases in this process")
    parser.add_argument("--state", type=Path, help="a file that remembers how far this run has come")
    given = parser.parse_args()
    cases = range(given.seed, given.seed + given.count)
    if given.child:
        return child(cases)
    findings = run_in_children([file, "--child"], cases, state=given.state)
    print(f"{len(cases)} {what} from {given.seed}, {len(findings)} escapes")
    return 1 if findings else 0


def run_in_children(command: list[str], cases: range, *, state: Path | None = None) -> list[Finding]:
    """Every case of the range, in as many children as it takes; what escaped, in order."""
    findings: list[Finding] = []
    at = cases.start
    if state is not None and state.exists():
        at = max(at, int(state.read_text()))
    while at < cases.stop:
        last, ended, found = _child(command, at, min(at + SHARE, cases.stop))
        findings += found
        for finding in found:
            print(f"case {finding.case}: {finding.what}", flush=True)
        if last < at:
            raise RuntimeError(f"a child did not come to its first case: {ended}")
        if ended:
            findings.append(Finding(last, _blamed(command, at, last, ended)))
            print(f"case {last}: {findings[-1].what}", flush=True)
        at = last + 1
        if state is not None:
            state.write_text(str(at))
    return findings


def _blamed(command: list[str], first: int, last: int, ended: str) -> str:
    """What ended a child at the case `last`, and the cases that it takes: that one alone, or the fewest before it."""
    if _child(command, last, last + 1)[1]:
        return ended
    ends, goes_on = first, last  # a run from here to the last ends the process, as was seen, and from there it does not
    while goes_on - ends > 1:
        middle = (ends + goes_on) // 2
        if _child(command, middle, last + 1)[1]:
            ends = middle
        else:
            goes_on = middle
    return f"after the cases from {ends}: {ended}"


def _child(command: list[str], start: int, stop: int) -> tuple[int, str, list[Finding]]:
    """The last case that a child began, why it ended there ("" when it did all), and what it found."""
    process = subprocess.Popen(
        [sys.executable, *command, "--seed", str(start), "--count", str(stop - start)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "PYTHONFAULTHANDLER": "1"},
    )  # fmt: skip
    assert process.stdout is not None and process.stderr is not None
    errors: list[str] = []
    reader = threading.Thread(target=lambda: errors.append(process.stderr.read()))  # type: ignore[union-attr]
    reader.start()
    last, found = start - 1, []
    timer = _Silence(process)
    for line in process.stdout:
        timer.heard()
        word, _, rest = line.partition(" ")
        if word == "start":
            last = int(rest)
        elif word == "escape":
            case, _, what = rest.partition(" ")
            found.append(Finding(int(case), what.strip()))
    timer.stop()
    code = process.wait()
    reader.join()
    if code == 0:
        return stop - 1, "", found
    why = f"silent for {SILENT_SECONDS:.0f} s" if timer.fired else _cause(code)
    tail = " / ".join(line.strip() for line in errors[0].splitlines() if line.strip())[-800:]
    return last, f"{why}: {tail}", found


def _cause(code: int) -> str:
    return f"the process ended by {signal.Signals(-code).name}" if code < 0 else f"the process ended with status {code}"


class _Silence:
    """Ends a child that has not said anything for too long."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.fired = False
        self._since = 0.0
        self._timer = self._new(START_SECONDS)

    def _new(self, seconds: float) -> threading.Timer:
        timer = threading.Timer(seconds, self._fire)
        timer.daemon = True
        timer.start()
        return timer

    def _fire(self) -> None:
        used, is_runnable = _processor(self._process.pid)
        if is_runnable and used - self._since < SILENT_SECONDS:
            self._timer = self._new(SILENT_SECONDS / 4)
            return
        self.fired = True
        self._process.kill()

    def heard(self) -> None:
        self._timer.cancel()
        self._since = _processor(self._process.pid)[0]
        self._timer = self._new(SILENT_SECONDS)

    def stop(self) -> None:
        self._timer.cancel()


def _processor(pid: int) -> tuple[float, bool]:
    """Seconds of processor time that a process has had, and whether one of its threads wants more now."""
    used, is_runnable = 0.0, False
    with contextlib.suppress(OSError):
        for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
            fields = stat.read_text().rpartition(")")[2].split()
            is_runnable |= fields[0] == "R"
            used += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return used, is_runnable
