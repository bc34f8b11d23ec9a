"""The abort of a library inside another process: the signal goes to one thread, the main one, as that of `abort()` does.

`os.kill` lets the kernel choose the thread. Another thread that dumps the frames of the main one, while that runs on, reads
memory that is given back meanwhile: the process then ends with SIGSEGV now and then.
"""

from __future__ import annotations

import ctypes
import os
import signal


def abort_in(pid: int) -> None:
    """Abort a stopped process in its main thread, and let it go on to its end."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.tgkill(pid, pid, int(signal.SIGABRT)) != 0:
        raise OSError(ctypes.get_errno(), f"no abort in process {pid}")
    os.kill(pid, signal.SIGCONT)
