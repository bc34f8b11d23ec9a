"""How long to wait after a lost race: random, growing, bounded.

::

    a try took 20 ms  ->  unit 22 ms;  1st wait 0..3 units, 2nd 0..7 units, 3rd 0..15, ...   never above `max_seconds`

Random slots keep racing writers apart; the unit follows what a try costs on this store.
"""

from __future__ import annotations

import datetime as dt
import random
import time

DEFAULT_MAX_RETRIES = 20
"""How often a commit tries the next version number."""
DEFAULT_RETRIES = 10
DEFAULT_RETRY_TIMEOUT = dt.timedelta(seconds=30)
"""How often, and for how long, an edit is planned again after a conflict."""

_FIRST_SLOTS = 4
_SLOWER_THAN_A_TRY = 1.1
_MIN_UNIT_SECONDS = 0.002


class Backoff:
    """Waits of one commit."""

    def __init__(self, *, max_seconds: float = 1.0) -> None:
        self._max_seconds = max_seconds
        self._unit: float | None = None
        self._slots = _FIRST_SLOTS

    def wait(self, *, try_seconds: float) -> None:
        """Sleep before the next try; the first try's duration sets the unit."""
        if self._unit is None:
            self._unit = max(_MIN_UNIT_SECONDS, try_seconds * _SLOWER_THAN_A_TRY)
        time.sleep(min(self._max_seconds, self._unit * random.uniform(0, self._slots - 1)))
        self._slots *= 2
