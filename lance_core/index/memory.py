"""The memory limit of an index build: an option of the build, else an environment variable, else 1 GiB.

::

    create_scalar_index("a", "BTREE", memory_limit=256)      256 MiB, the unit of the official library's option
    LANCE_INDEX_MEMORY_BYTES=268435456                       the same for every build of the process
    memory_limit=8                                           InputError: at least 32 MiB

What does not fit is sorted on this machine's disk (`scalar.external_sort`), or written as one more partition (full text).
"""

from __future__ import annotations

import os

from lance_core.errors import InputError

MEMORY_VARIABLE = "LANCE_INDEX_MEMORY_BYTES"
OPTION = "memory_limit"
DEFAULT_MEMORY = 1 << 30
MIN_MEMORY = 32 << 20


def memory_bytes(limit: object = None) -> int:
    """Bytes that building an index may use; `limit` is the option, in MiB. InputError when that is too little."""
    if limit is not None:
        if isinstance(limit, bool) or not isinstance(limit, int) or limit << 20 < MIN_MEMORY:
            raise InputError(
                f"{OPTION}={limit!r} MiB is too little memory to build an index",
                cure=f"Pass an integer number of MiB, at least {MIN_MEMORY >> 20}, or omit it.",
            )
        return limit << 20
    text = os.environ.get(MEMORY_VARIABLE, "")
    if not text:
        return DEFAULT_MEMORY
    if not text.isdigit() or int(text) < MIN_MEMORY:
        raise InputError(
            f"{MEMORY_VARIABLE}={text!r} is too little memory to build an index",
            cure=f"Set it to at least {MIN_MEMORY} bytes.",
        )
    return int(text)
