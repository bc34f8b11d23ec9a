"""Quantities as people write them in a policy: sizes, durations, hours of a day.

::

    parse_size("1.5 GB")        1_500_000_000        parse_size("2 GiB")     2_147_483_648
    parse_duration("36h")       129_600.0 seconds
    parse_hours("22:00-06:00")  (79_200, 21_600) seconds of a day, which may wrap around midnight
"""

from __future__ import annotations

import re
from types import MappingProxyType

from lance_core.errors import InputError

_UNITS = MappingProxyType(
    {
        "": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "pb": 10**15,
        "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40, "pib": 1 << 50,
    }
)  # fmt: skip
_SECONDS = MappingProxyType({"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0})
_NUMBER = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")
_HOURS = re.compile(r"\s*([01]?\d|2[0-3]):([0-5]\d)\s*-\s*([01]?\d|2[0-4]):([0-5]\d)\s*")


def parse_size(value: object) -> int:
    """Return bytes. InputError when the value is neither a number nor a text such as "64 MiB"."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return int(value)
    found = _NUMBER.fullmatch(value) if isinstance(value, str) else None
    if found is None or found.group(2).lower() not in _UNITS:
        raise InputError(f"{value!r} is not a size", cure='Write bytes, or a string such as "64 MiB" or "1.5 GB".')
    return int(float(found.group(1)) * _UNITS[found.group(2).lower()])


def parse_duration(value: object) -> float:
    """Return seconds. InputError when the value is neither a number of seconds nor a text such as "36h"."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return float(value)
    found = _NUMBER.fullmatch(value) if isinstance(value, str) else None
    if found is None or found.group(2).lower() not in _SECONDS:
        raise InputError(f"{value!r} is not a duration", cure='Write seconds, or a string such as "30m", "36h" or "14d".')
    return float(found.group(1)) * _SECONDS[found.group(2).lower()]


def parse_hours(value: object) -> tuple[int, int]:
    """Return begin and end as seconds of a day (UTC). The end may be before the begin: the span wraps around midnight."""
    found = _HOURS.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise InputError(f"{value!r} is not a time range within a day", cure='Write it as "22:00-06:00" (UTC).')
    begin_hour, begin_minute, end_hour, end_minute = map(int, found.groups())
    return begin_hour * 3600 + begin_minute * 60, (end_hour * 3600 + end_minute * 60) % 86400


def is_within(hours: tuple[int, int], now: float) -> bool:
    """Return whether a moment (seconds since the epoch) is inside a span of the day.

    >>> is_within((79200, 21600), 23 * 3600), is_within((79200, 21600), 12 * 3600)
    (True, False)
    """
    begin, end = hours
    second = now % 86400
    return begin <= second < end if begin <= end else second >= begin or second < end


def counted(number: int, one: str) -> str:
    """A number with its noun.

    >>> counted(1, "fragment"), counted(12000, "fragment")
    ('1 fragment', '12,000 fragments')
    """
    return f"{number:,} {one}" if number == 1 else f"{number:,} {one}s"
