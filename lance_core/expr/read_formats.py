"""Texts as points in time by a format, whose specifiers are chrono's, as the official library has them.

::

    read_formatted("29.02.20 3:04 pm", "%d.%m.%y %I:%M %p")    -> nanoseconds since 1970
    read_formatted("2020-02-29 x", "%Y-%m-%d")                 -> None: a letter is left

Blanks of a format stand for any number of blanks, none too, and numbers may have blanks before them. What stands there
twice has to agree: a Friday that was a Saturday is no date. Where a format has no minutes, the rest of the time is zero.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from lance_core.expr.text_casts import days_of_date, read_instant, shift_of_zone
from lance_core.expr.time_formats import DAYS, MONTHS

Fields: TypeAlias = dict[str, int]
Reader: TypeAlias = "Callable[[str, Fields], str | None]"
_NANOS = 10**9
_DAY = 86_400 * _NANOS
_SHORTHANDS: Mapping[str, str] = MappingProxyType(
    {
        "D": "%m/%d/%y", "x": "%m/%d/%y", "F": "%Y-%m-%d", "v": "%e-%b-%Y", "R": "%H:%M", "T": "%H:%M:%S", "X": "%H:%M:%S",
        "r": "%I:%M:%S %p", "c": "%a %b %e %H:%M:%S %Y", "h": "%b", "n": "\n", "t": "\t",
    }
)  # fmt: skip
_SPECIFIER = re.compile(r"%(\.[369]?f|[369]f|:{0,3}z|#z|[-_0]?[A-Za-z+%])")
_WHOLE = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|z|[+-][0-9]{2}:[0-9]{2})", re.ASCII
)
_OFFSET = re.compile(r"([+-])([0-9]{2})(?:[:\s]*([0-9]{2}))?")


def read_formatted(text: str, form: str) -> int | None:
    """Nanoseconds since 1970; local time of UTC where the text names no zone. None where text and format do not fit."""
    zone = ""
    if form.endswith(" %Z"):
        text, _, zone = text.rpartition(" ")
        form = form[:-3]
    fields: Fields = {}
    rest = _read_all(text, form, fields)
    if rest is None or rest:
        return None
    return _resolved(fields, zone)


def _read_all(text: str, form: str, fields: Fields) -> str | None:
    at, rest = 0, text
    while at < len(form):
        letter = form[at]
        if letter.isspace():
            rest, at = rest.lstrip(), at + 1
        elif letter != "%":
            if not rest.startswith(letter):
                return None
            rest, at = rest[1:], at + 1
        else:
            found = _SPECIFIER.match(form, at)
            left = None if found is None else _read_one(rest, found[1], fields)
            if found is None or left is None:
                return None
            rest, at = left, found.end()
    return rest


def _read_one(text: str, specifier: str, fields: Fields) -> str | None:
    name = specifier.lstrip("-_0") if specifier[:1] in "-_0" else specifier
    if name in _SHORTHANDS:
        return _read_all(text, _SHORTHANDS[name], fields)
    if name in _NUMBERS:
        field, width, signed = _NUMBERS[name]
        return _number(text.lstrip(), field, width, fields, signed=signed)
    reader = _READERS.get(name)
    return None if reader is None else reader(text, fields)


def _set(fields: Fields, name: str, value: int) -> bool:
    """Whether a value agrees with what is known."""
    return fields.setdefault(name, value) == value


def _number(text: str, field: str, width: int, fields: Fields, *, signed: bool) -> str | None:
    pattern = r"[+-][0-9]+|[0-9]{1,%d}" if signed else r"[0-9]{1,%d}"
    found = re.match(pattern % width, text, re.ASCII)
    if found is None or len(found[0]) > 20 or not _set(fields, field, int(found[0])):
        return None
    return text[found.end() :]


_NUMBERS: Mapping[str, tuple[str, int, bool]] = MappingProxyType(
    {
        "Y": ("year", 4, True), "C": ("century", 2, True), "y": ("year of century", 2, False), "G": ("iso year", 4, True),
        "g": ("iso year of century", 2, False), "m": ("month", 2, False), "d": ("day", 2, False), "e": ("day", 2, False),
        "U": ("week from sunday", 2, False), "W": ("week from monday", 2, False), "V": ("iso week", 2, False),
        "w": ("day from sunday", 1, False), "u": ("day from monday", 1, False), "j": ("ordinal", 3, False),
        "H": ("hour", 2, False), "k": ("hour", 2, False), "I": ("hour of twelve", 2, False),
        "l": ("hour of twelve", 2, False),
        "M": ("minute", 2, False), "S": ("second", 2, False), "f": ("nanosecond", 9, False), "s": ("timestamp", 20, True),
        "q": ("quarter", 1, False),
    }
)  # fmt: skip


def _name(names: tuple[str, ...], field: str, *, long: bool) -> Reader:
    """Three letters of a name, or all of it where the format has the long form."""

    def read(text: str, fields: Fields) -> str | None:
        start = text[:3].lower()
        number = next((at for at, name in enumerate(names) if name[:3].lower() == start), None)
        if number is None or not _set(fields, field, number + 1):
            return None
        size = len(names[number]) if long and text.lower().startswith(names[number].lower()) else 3
        return text[size:]

    return read


def _half_of_day(text: str, fields: Fields) -> str | None:
    half = {"am": 0, "pm": 1}.get(text[:2].lower())
    return None if half is None or not _set(fields, "half", half) else text[2:]


def _fraction(text: str, fields: Fields) -> str | None:
    """A point and digits, or neither."""
    if not text.startswith("."):
        return text
    found = re.match(r"\.([0-9]+)", text, re.ASCII)
    if found is None or not _set(fields, "nanosecond", int(found[1][:9].ljust(9, "0"))):
        return None
    return text[found.end() :]


def _digits(count: int) -> Reader:
    def read(text: str, fields: Fields) -> str | None:
        digits = text[:count]
        if re.fullmatch(rf"[0-9]{{{count}}}", digits, re.ASCII) is None:
            return None
        return text[count:] if _set(fields, "nanosecond", int(digits.ljust(9, "0"))) else None

    return read


def _offset(text: str, fields: Fields, *, may_lack_minutes: bool = False) -> str | None:
    given = text.lstrip()
    if may_lack_minutes and given[:1] in ("Z", "z"):
        return given[1:] if _set(fields, "offset", 0) else None
    found = _OFFSET.match(given)
    if found is None or (found[3] is None and not may_lack_minutes) or int(found[3] or "0") > 59:
        return None
    seconds = int(found[2]) * 3600 + int(found[3] or "0") * 60
    return given[found.end() :] if _set(fields, "offset", seconds if found[1] == "+" else -seconds) else None


def _whole(text: str, fields: Fields) -> str | None:
    """A whole ISO timestamp with its zone."""
    found = re.match(
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|z|[+-][0-9]{2}:[0-9]{2})", text
    )
    instant = None if found is None else read_instant(found[0])
    if found is None or instant is None or not _set(fields, "instant", instant[0]):
        return None
    return text[found.end() :]


_READERS: Mapping[str, Reader] = MappingProxyType(
    {
        "b": _name(MONTHS, "month", long=False), "B": _name(MONTHS, "month", long=True),
        "a": _name(DAYS, "day from monday", long=False), "A": _name(DAYS, "day from monday", long=True),
        "p": _half_of_day, "P": _half_of_day, ".f": _fraction, ".3f": _fraction, ".6f": _fraction, ".9f": _fraction,
        "3f": _digits(3), "6f": _digits(6), "9f": _digits(9), "z": _offset, ":z": _offset, "::z": _offset, ":::z": _offset,
        "#z": lambda text, fields: _offset(text, fields, may_lack_minutes=True), "+": _whole,
        "%": lambda text, _: text[1:] if text.startswith("%") else None,
    }
)  # fmt: skip


def _resolved(fields: Fields, zone: str) -> int | None:
    if "instant" in fields:
        return fields["instant"]
    if "timestamp" in fields:
        return fields["timestamp"] * _NANOS + fields.get("nanosecond", 0)
    days, clock = _date(fields), _clock(fields)
    if days is None or clock is None:
        return None
    local = days * _DAY + clock
    if zone:
        shift = shift_of_zone(zone, local)
        return None if shift is None else local - shift * _NANOS
    return local - fields.get("offset", 0) * _NANOS


def _clock(fields: Fields) -> int | None:
    """Nanoseconds since midnight; None for what no clock shows."""
    hour = fields.get("hour")
    if "hour of twelve" in fields:
        twelve = fields["hour of twelve"]
        if not 1 <= twelve <= 12 or ("half" not in fields and hour is None):
            return 0 if 1 <= twelve <= 12 else None  # before or after noon: the date alone
        half = fields.get("half", 0 if hour is None else hour // 12)
        hour = _agreed(hour, twelve % 12 + 12 * half)
        if hour is None:
            return None
    minute, second = fields.get("minute", 0), fields.get("second", 0)
    if hour is None:
        return 0
    if hour > 23 or minute > 59 or second > 60:
        return None
    return (hour * 3600 + minute * 60 + second) * _NANOS + (fields.get("nanosecond", 0) if "second" in fields else 0)


def _agreed(known: int | None, found: int) -> int | None:
    return found if known is None or known == found else None


def _year(fields: Fields, year: str, century: str, rest: str) -> int | None:
    if rest not in fields:
        return fields.get(year)
    if fields[rest] > 99:
        return None
    if century in fields:
        return _agreed(fields.get(year), fields[century] * 100 + fields[rest])
    if year in fields:
        return fields[year] if fields[year] % 100 == fields[rest] else None
    return fields[rest] + (2000 if fields[rest] < 70 else 1900)


def _date(fields: Fields) -> int | None:
    """Days since 1970 of what is known; None for too little, or what does not agree."""
    year, weekday = _year(fields, "year", "century", "year of century"), _weekday(fields)
    days: int | None = None
    if year is not None and "month" in fields and "day" in fields:
        days = days_of_date(year, fields["month"], fields["day"])
    elif year is not None and "ordinal" in fields:
        days = _of_ordinal(year, fields["ordinal"])
    elif year is not None and weekday is not None and ("week from monday" in fields or "week from sunday" in fields):
        days = _of_week(year, weekday, fields)
    elif weekday is not None and "iso week" in fields:
        iso = _year(fields, "iso year", "iso century", "iso year of century")
        days = None if iso is None else _of_iso_week(iso, fields["iso week"], weekday)
    if days is None or (weekday is not None and (days + 3) % 7 != weekday):
        return None
    return days


def _weekday(fields: Fields) -> int | None:
    """Counted from Monday, 0; -1 for days that do not agree."""
    monday, sunday = fields.get("day from monday"), fields.get("day from sunday")
    if sunday is not None:
        found = (sunday + 6) % 7 if sunday < 7 else -1
        return found if monday is None or monday - 1 == found else -1
    return None if monday is None else monday - 1 if 1 <= monday <= 7 else -1


def _of_ordinal(year: int, ordinal: int) -> int | None:
    first, after = days_of_date(year, 1, 1), days_of_date(year + 1, 1, 1)
    if first is None or after is None or not 1 <= ordinal <= after - first:
        return None
    return first + ordinal - 1


def _of_week(year: int, weekday: int, fields: Fields) -> int | None:
    """The first week begins with the first Monday, or Sunday, of the year."""
    first = days_of_date(year, 1, 1)
    if first is None:
        return None
    begins = 0 if "week from monday" in fields else 6
    week = fields["week from monday" if begins == 0 else "week from sunday"]
    start = first + (begins - (first + 3)) % 7
    return start + (week - 1) * 7 + (weekday - begins) % 7


def _of_iso_week(year: int, week: int, weekday: int) -> int | None:
    fourth = days_of_date(year, 1, 4)
    return None if fourth is None or not 1 <= week <= 53 else fourth - (fourth + 3) % 7 + (week - 1) * 7 + weekday
