"""The time of a version, an index or a branch: what the clock says, where that can be stored.

::

    now_ns()        1_795_834_800_000_000_000, nanoseconds since 1970 (UTC)

Manifests, indices and branches have times from 1970 to 9999: readers take any other for damage, and numbers without a sign
have none before 1970.
"""

from __future__ import annotations

import time

from lance_core.errors import InputError
from lance_core.format.manifest import SECONDS_END


def now_ns() -> int:
    """Now, in nanoseconds since 1970. Raises InputError when the clock is at a time that cannot be stored."""
    moment = time.time_ns()
    if not 0 <= moment < SECONDS_END * 10**9:
        raise InputError(
            f"this machine's clock is at {moment // 10**9:,} s after 1970; a manifest has a time from 1970 to 9999",
            cure="Set the clock.",
        )
    return moment
