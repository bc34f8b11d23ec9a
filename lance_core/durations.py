"""Durations as a table's configuration and metadata write them.

::

    parse_duration("26h")        26 hours          parse_duration("1h 30m")    90 minutes
    parse_duration("14days")     14 days           parse_duration("26")        InputError: a number has its unit

The units are those of the official library. Standard library only: a DAG file loads this. (Spec: FORMAT D.5.)
"""

from __future__ import annotations

import datetime as dt
import re

from lance_core.errors import InputError

_PART = re.compile(r"(\d+)\s*([a-zA-Z]+)\s*")
_UNIT_SECONDS = {
    **dict.fromkeys(("nanos", "nsec", "ns"), 1e-9),
    **dict.fromkeys(("usec", "us"), 1e-6),
    **dict.fromkeys(("millis", "msec", "ms"), 1e-3),
    **dict.fromkeys(("seconds", "second", "sec", "secs", "s"), 1.0),
    **dict.fromkeys(("minutes", "minute", "min", "mins", "m"), 60.0),
    **dict.fromkeys(("hours", "hour", "hrs", "hr", "h"), 3600.0),
    **dict.fromkeys(("days", "day", "d"), 86_400.0),
    **dict.fromkeys(("weeks", "week", "w"), 7 * 86_400.0),
    **dict.fromkeys(("months", "month", "M"), 30.44 * 86_400.0),
    **dict.fromkeys(("years", "year", "y"), 365.25 * 86_400.0),
}


def parse_duration(text: str, *, of: str = "") -> dt.timedelta:
    """A duration as configuration has it: "1h", "14days", "1h 30m". InputError for anything else, that
    names what it was meant for."""
    parts = _PART.findall(text)
    if not parts or _PART.sub("", text).strip() or any(unit not in _UNIT_SECONDS for _, unit in parts):
        raise InputError(
            f"{of and f'{of}: '}{text!r} is not a duration with its unit", cure="Write for example 26h, 14days or 3600s."
        )
    return dt.timedelta(seconds=sum(int(number) * _UNIT_SECONDS[unit] for number, unit in parts))
