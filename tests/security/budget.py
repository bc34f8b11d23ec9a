"""What a case may take: processor time, and memory above what the process has when it is idle.

::

    budget = Budget()                              once the process is warm
    budget.guarded(action, watch, folder)          "" for success and for a LanceError, else what it ended with

Memory is what the process really had in its main memory at most (the kernel's high-water mark, which is reset), and what it
asked for is bounded as well, so that a claim of many gigabytes fails at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from hostile_tables import Watch, guarded, limit_to

SECONDS = 5.0
MEMORY_BYTES = 512 << 20
ADDRESS_BYTES = 2 << 30
"""Of address space, which threads reserve much of and never use."""


class Budget:
    """The bounds of one process; `warm` measures nothing."""

    def __init__(self, *, warm: bool = False) -> None:
        self._warm = warm
        if not warm:
            limit_to(ADDRESS_BYTES)

    def guarded(self, action: Callable[[], object], watch: Watch, folder: Path) -> str:
        """What an action ended with that it must not; one that took too much is asked once more, when all is compiled."""
        what = self._once(action, watch, folder)
        return self._once(action, watch, folder) if what.startswith(("took", "more than")) else what

    def _once(self, action: Callable[[], object], watch: Watch, folder: Path) -> str:
        if self._warm:
            return guarded(action, watch, folder)
        _reset_peak()  # what was built for the case, and what allocators keep of the cases before, is not this action's
        idle, begun = _peak(), time.process_time()
        what = guarded(action, watch, folder, seconds=SECONDS * 2)
        seconds = time.process_time() - begun
        grown = _peak() - idle
        if what:
            return what
        if seconds > SECONDS:
            return f"took {seconds:.1f} s of processor time"
        return f"took {grown >> 20} MB of memory" if grown > MEMORY_BYTES else ""


def _reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _peak() -> int:
    status = Path("/proc/self/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) << 10
