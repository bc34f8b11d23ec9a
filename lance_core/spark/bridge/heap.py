"""What a process that decodes batch after batch does with the memory of the last one: it keeps it for the next.

glibc hands large blocks back to the system as soon as they are free, and takes other ones for the next batch: the system
then clears each page again, which was a third of what a scan cost this process. Elsewhere than in a process of our own such
settings are not ours to make.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc

import pyarrow as pa

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""glibc's numbers of what `mallopt` sets."""
_LARGEST_KEPT = (128 << 20, 32 << 20)
"""Bytes of a block that is kept when it is free; releases of glibc before 2.35 take no more than the second."""
_MOST_KEPT = 256 << 20


def keep_freed_memory() -> None:
    """Reuse what is freed, up to 256 MiB, before any thread has begun; nothing happens on a system without `mallopt`."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:
        return
    any(mallopt(_MMAP_THRESHOLD, size) for size in _LARGEST_KEPT)
    mallopt(_TRIM_THRESHOLD, _MOST_KEPT)
    # One heap, so that a block which one thread has freed serves the next thread as well.
    mallopt(_ARENA_MAX, 1)
    pa.set_memory_pool(pa.system_memory_pool())


def give_freed_memory_back() -> None:
    """All of it, to the system: for a process that has nothing to do."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    with contextlib.suppress(AttributeError):  # of another C library
        ctypes.CDLL(None).malloc_trim(0)
