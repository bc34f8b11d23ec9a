"""Facts about a bucket, determined once per process: whether its conditional put is real, and its region.

::

    ("s3", "http://minio:9000", "lake")    tried out by the first store of that bucket, known to all others

AWS, Google and Azure themselves are known; behind an address of somebody's own two requests find it out.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

_MAX_PLACES = 10_000


class Probes:
    """Answers by place; a place that is known needs no trying."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[tuple[str, ...], bool] = {}
        self._texts: dict[tuple[str, ...], str] = {}

    def is_conditional(self, place: tuple[str, ...], try_out: Callable[[], bool]) -> bool:
        """What is known of the place, or what trying it out says. An error of trying is not remembered."""
        found = self._found.get(place)
        if found is None:
            found = try_out()
            with self._lock:
                if len(self._found) >= _MAX_PLACES:
                    self._found.clear()
                self._found[place] = found
        return found

    def remembered(self, place: tuple[str, ...], find_out: Callable[[], str | None]) -> str | None:
        """What was found out about a place as text, determined once; None is not cached."""
        found = self._texts.get(place)
        if found is None:
            found = find_out()
            if found is not None:
                self._texts[place] = found
        return found

    def know(self, place: tuple[str, ...], is_conditional: bool) -> None:
        """Take an answer that needs no trying."""
        self._found[place] = is_conditional

    def forget(self) -> None:
        """Try every place again."""
        with self._lock:
            self._found.clear()
            self._texts.clear()


_PROBES = Probes()


def probes() -> Probes:
    """The process's answers."""
    return _PROBES
