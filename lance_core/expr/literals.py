"""Text of constants to Python values: numbers, hex, intervals, dates, timestamps.

::

    "12" -> 12    "1e3" -> 1000.0    "00ff" -> b"\\x00\\xff"    "2020-01-05T00:00:00+02:00" -> Instant(ns, "+02:00")
"""

from __future__ import annotations

import datetime as dt
import re

from lance_core.errors import FilterError
from lance_core.expr.ast import Days, Instant
from lance_core.expr.text_casts import read_date, read_instant, read_time, wrong_part

_EPOCH = dt.date(1970, 1, 1).toordinal()
_SECOND = 1_000_000_000
_UNIT_SECONDS = {"WEEK": 604_800, "DAY": 86_400, "HOUR": 3_600, "MINUTE": 60, "SECOND": 1}
_STAMP = re.compile(
    r"\s*(\d{4})-(\d{1,2})-(\d{1,2})(?:[T ](\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?)?"
    r"\s*(Z|z|UTC|[+-]\d{2}:?(?:\d{2})?)?\s*\Z"
)


def parse_number(text: str) -> int | float:
    """An SQL number. Digits alone are an integer.

    >>> parse_number("12"), parse_number("1e3"), parse_number(".5")
    (12, 1000.0, 0.5)
    """
    if len(text) > 400:
        raise FilterError(f"a number of {len(text)} digits is too long", cure="Write a number that fits 64 bits.")
    try:
        return int(text) if text.isdigit() else float(text)
    except ValueError:
        raise FilterError(f"{text!r} is not a number") from None


def decode_hex(text: str) -> bytes:
    """The bytes of a hex constant.

    >>> decode_hex("00ff")
    b'\\x00\\xff'
    """
    try:
        return bytes.fromhex(text if len(text) % 2 == 0 else "0" + text)
    except ValueError:
        raise FilterError(f"X'{text}' is not hexadecimal") from None


def parse_interval(amount: str, unit: str) -> dt.timedelta:
    """A fixed length of time, or days; months and years are none.

    >>> parse_interval("3", "days")
    Days(days=3)
    """
    seconds = _UNIT_SECONDS.get(unit.upper().removesuffix("S"))
    if seconds is None:
        raise FilterError(
            f"unknown unit of an interval: {amount} {unit or '(no unit)'}",
            cure=f"Known units: {', '.join(_UNIT_SECONDS).lower()}.",
        )
    kind = Days if seconds >= _UNIT_SECONDS["DAY"] else dt.timedelta
    try:
        return kind(seconds=float(amount) * seconds)
    except (ValueError, OverflowError):
        raise FilterError(
            f"an interval needs a number, got {amount!r} {unit}", cure="Write a number before the unit."
        ) from None


def interval_text(value: dt.timedelta) -> str:
    """The text of an interval that is written out: what it has of days, hours, minutes and seconds.

    >>> interval_text(dt.timedelta(minutes=-90))
    '-1 hours -30 mins'
    """
    sign, rest = (-1, -value) if value < dt.timedelta() else (1, value)
    days, rest = divmod(rest, dt.timedelta(days=1)) if isinstance(value, Days) else (0, rest)
    hours, rest = divmod(rest, dt.timedelta(hours=1))
    minutes, rest = divmod(rest, dt.timedelta(minutes=1))
    parts = [f"{sign * number} {name}" for number, name in ((days, "days"), (hours, "hours"), (minutes, "mins")) if number]
    if rest:
        parts.append(f"{'-' if sign < 0 else ''}{rest.seconds}.{rest.microseconds:06}000 secs")
    return " ".join(parts) or "0 secs"


def parse_instant(text: str) -> Instant:
    """A timestamp: ISO 8601 date, optionally time, fraction and zone; without a zone it means UTC.

    What CAST reads as a timestamp, and what people write besides: `2020-1-5`, a time without seconds, spaces around.

    >>> parse_instant("1970-01-01 00:00:01.5")
    Instant(nanoseconds=1500000000, zone=None)
    """
    found = instant_or_none(text)
    if found is None:
        raise FilterError(
            f"{text!r} is not a timestamp{wrong_part(text)}", cure="Write it as 2020-01-31 or 2020-01-31T23:59:59.5+02:00."
        )
    return found


def instant_or_none(text: str) -> Instant | None:
    """The same; None for what is no timestamp."""
    read = read_instant(text)
    if read is not None:
        return Instant(read[0], "UTC" if read[1] else None)
    match = _STAMP.match(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    try:
        days = dt.date(int(year), int(month), int(day)).toordinal() - _EPOCH
        clock = dt.time(int(hour or 0), int(minute or 0), int(second or 0))
    except ValueError:
        return None
    seconds = days * 86_400 + clock.hour * 3_600 + clock.minute * 60 + clock.second - _zone_seconds(zone)
    return Instant(seconds * _SECOND + int((fraction or "0").ljust(9, "0")), zone)


def _zone_seconds(zone: str | None) -> int:
    if zone is None or zone.upper() in ("Z", "UTC"):
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    return (1 if zone[0] == "+" else -1) * (int(digits[:2]) * 3_600 + int(digits[2:]) * 60)


def parse_date(text: str) -> int:
    """Days since 1970 of a date, or of a timestamp.

    >>> parse_date("2020-01-05"), parse_date("20200105"), parse_date("2020-01-05T23:59:59")
    (18266, 18266, 18266)
    """
    days = read_date(text)
    return parse_instant(text).nanoseconds // (86_400 * _SECOND) if days is None else days


def parse_time(text: str) -> int:
    """A time of day in nanoseconds.

    >>> parse_time("03:00:00"), parse_time("3:00 pm") // 10**9
    (10800000000000, 54000)
    """
    found = read_time(text.strip())
    if found is None or found >= 86_400 * _SECOND:
        raise FilterError(f"{text!r} is not a time", cure="Write it as 23:59:59.")
    return found
