"""Texts as values of other types, by the rules of the official library, for CAST, TRY_CAST and whatever reads a text.

::

    "+5" -> 5        "1e3" is no integer      " 12.345 " as decimal(10, 2) -> 12.35, halves away from zero; "1e3" is none
    "yes", "T", "on" -> true                  "20200229", "2020-2-9", "+10000-01-01" as dates
    "2020-02-29T12:30:45.5+02:00", "2020-02-29 12:30:45 Europe/Berlin" as timestamps; "2020-02-29 12:30" is none
    "12:30", "1:05:09 pm" as times of day; digits alone are the number of its unit

A column is read by Arrow where that reads the same, and text by text, each once, where one of them has another form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import compute

from lance_core.arrow_numpy import constant, no_values
from lance_core.errors import FilterError
from lance_core.expr import decimals
from lance_core.expr.local_time import PER_SECOND, cast_ticks
from lance_core.shortage import ARROW_ERRORS

pc: Any = compute  # the stubs know only some of what the kernels take
Value: TypeAlias = Any
_NANOS = 10**9
_DAY = 86_400 * _NANOS
_MOST_DIGITS = 76
_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_YEARS = range(-262_143, 262_143)
"""The years that the official library reckons with."""
_INTEGER = re.compile(r"[+-]?[0-9]+\Z")
_DECIMAL = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?\Z")
_DATE = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})\Z|([0-9]{4})([0-9]{2})([0-9]{2})\Z")
_FAR_DATE = re.compile(r"([+-][0-9]{4,})-([0-9]+)-([0-9]+)\Z")
_STAMP = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[Tt ](?:"
    r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+)|(?!\.))|([0-9]{2})([0-9]{2})([0-9]{2})(?![0-9]|.[0-9])"
    r")(.*))?\Z",
    re.DOTALL,
)
_OFFSET = re.compile(r"([+-])([0-9]{2})(?::?([0-9]{2}))?\Z")
_TIME = re.compile(
    r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?( [aApP][mM])?\Z",
)
_DIGITS = np.isin(np.arange(256), [*b"-0123456789"])
_DIGITS_AND_POINT = np.isin(np.arange(256), [*b"-.0123456789"])
_TRUE = frozenset({"t", "tr", "tru", "true", "y", "ye", "yes", "on", "1"})
_FALSE = frozenset({"f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0"})


def cast_text(value: Value, target: pa.DataType, *, safe: bool) -> Value | None:
    """A column or constant of texts as another type; None for a type that texts have no rules of their own for.

    With `safe` what says no such value is null, else FilterError.
    """
    kind = _kind_of(target)
    if kind is None:
        return None
    if isinstance(value, pa.Scalar):
        return _read_all([value.as_py()], target, kind, safe=safe)[0]
    if not len(value):
        return no_values(target)
    if _is_plain(value, kind):
        try:
            return pc.cast(value, target)
        except ARROW_ERRORS:
            pass  # one has another form, or is out of range: which one is found text by text
    encoded = value.dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    found = _read_all(encoded.dictionary.to_pylist(), target, kind, safe=safe)
    return found.take(encoded.indices)


def instant_of(text: str) -> tuple[int, bool]:
    """The same as `read_instant`. FilterError for what is none."""
    found = read_instant(text)
    if found is None:
        raise FilterError(f"{_short(text)} is not a timestamp{wrong_part(text, 'timestamp')}", cure=_WHAT["timestamp"][1])
    return found


def read_instant(text: str) -> tuple[int, bool] | None:
    """Nanoseconds since 1970, and whether the text names a zone: without one it is local time, wherever that is."""
    found = _read_stamp(text)
    return None if found is None else found[:2]


def _read_stamp(text: str) -> tuple[int, bool, int] | None:
    """The same, and the nanoseconds of a leap second in it, which is still of the day before."""
    found = _STAMP.match(text)
    if found is None:
        return None
    days = days_of_date(int(found[1]), int(found[2]), int(found[3]))
    clock = _clock(found[4] or found[8] or "0", found[5] or found[9] or "0", found[6] or found[10] or "0", found[7])
    if days is None or clock is None:
        return None
    local, rest = days * _DAY + clock, found[11] or ""
    leap = _NANOS * ((found[6] or found[10]) == "60")
    if not rest:
        return local, False, leap
    if rest in ("Z", "z"):
        return local, True, leap
    shift = shift_of_zone(rest.lstrip(), local - leap)
    return None if shift is None else (local - shift * _NANOS, True, leap)


def read_date(text: str) -> int | None:
    """Days since 1970, of a date or of a timestamp."""
    if text[:1] in ("+", "-"):
        far = _FAR_DATE.match(text)
        return None if far is None or len(text) > 40 else days_of_date(int(far[1]), int(far[2]), int(far[3]))
    if len(text.encode()) > 10:
        stamp = _read_stamp(text)
        return None if stamp is None else (stamp[0] - stamp[2]) // _DAY
    found = _DATE.match(text)
    if found is None:
        return None
    year, month, day = found.groups()[:3] if found[1] else found.groups()[3:]
    return days_of_date(int(year), int(month), int(day))


def read_time(text: str) -> int | None:
    """Nanoseconds since midnight."""
    found = _TIME.match(text)
    if found is None or (found[5] is not None and not 1 <= int(found[1]) <= 12):
        return None
    hour = int(found[1])
    if found[5] is not None:
        hour = hour % 12 + 12 * (found[5][1] in "pP")
    return _clock(str(hour), found[2], found[3] or "0", found[4])


def _clock(hour: str, minute: str, second: str, fraction: str | None) -> int | None:
    """Nanoseconds; the 60th second is the first of the next minute."""
    if int(hour) > 23 or int(minute) > 59 or int(second) > 60:
        return None
    whole = int(hour) * 3600 + int(minute) * 60 + int(second)
    return whole * _NANOS + int((fraction or "0")[:9].ljust(9, "0"))


def days_of_date(year: int, month: int, day: int) -> int | None:
    """Days from 1970 to a date of the Gregorian calendar, which is carried on into all years."""
    if year not in _YEARS or not 1 <= month <= 12:
        return None
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= day <= (29 if is_leap and month == 2 else _MONTH_DAYS[month - 1]):
        return None
    # Years that begin in March end in the leap day.
    shifted, place = year - (month < 3), (month + 9) % 12
    return shifted * 365 + shifted // 4 - shifted // 100 + shifted // 400 + (153 * place + 2) // 5 + day - 1 - 719_468


def shift_of_zone(zone: str, local: int) -> int | None:
    """Seconds ahead of UTC; None for no zone, and for a local time that its clocks leave out or show twice."""
    found = _OFFSET.match(zone)
    if found is not None:
        seconds = int(found[2]) * 3600 + int(found[3] or "0") * 60
        return None if seconds >= 86_400 else seconds if found[1] == "+" else -seconds
    shown = constant(local // _NANOS, pa.int64()).cast(pa.timestamp("s"))
    try:
        instant = pc.assume_timezone(shown, zone, ambiguous="raise", nonexistent="raise")
    except ARROW_ERRORS:
        return None
    return int(local // _NANOS - instant.cast(pa.int64()).as_py())


def _integer(text: str, target: Any) -> int | None:
    if _INTEGER.match(text) is None:
        return None
    digits = text.lstrip("+-").lstrip("0")
    if len(digits) > 20:
        return None
    number = -int(digits or "0") if text[0] == "-" else int(digits or "0")
    bits = target.bit_width
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if pa.types.is_signed_integer(target) else (0, (1 << bits) - 1)
    return number if low <= number <= high else None


def _decimal(text: str, target: Any) -> int | None:
    """The digits without their point."""
    found = _DECIMAL.match(text.strip())
    if found is None:
        return None
    whole, rest, scale = found[2], found[3] or "", max(target.scale, 0)
    if not whole and not rest:
        return None  # officially 0 where there are digits behind the point
    more = len(rest) - scale
    if len(whole.lstrip("0")) > _MOST_DIGITS or len(rest.lstrip("0")) > _MOST_DIGITS or more > _MOST_DIGITS:
        return None
    if more <= 0:
        number = int(whole + rest.ljust(scale, "0"))
    else:
        kept, cut = divmod(int(rest), 10**more)
        number = int(whole or "0") * 10**scale + kept + (2 * cut >= 10**more)
    if target.scale < 0:
        step = 10**-target.scale
        number = (2 * number + step) // (2 * step)
    return None if number >= 10**target.precision else -number if found[1] == "-" else number


def _boolean(text: str, _: Any) -> bool | None:
    word = text.strip().lower()
    return True if word in _TRUE else False if word in _FALSE else None


def _ticks_of_stamp(text: str, target: Any) -> int | None:
    stamp = _read_stamp(text)
    if stamp is None:
        return None
    nanos = stamp[0] - stamp[2] if target.unit == "s" else stamp[0]
    ticks = nanos * PER_SECOND[target.unit] // _NANOS
    return ticks if -(2**63) <= ticks < 2**63 else None


def _ticks_of_time(text: str, target: Any) -> int | None:
    nanos = read_time(text)
    if nanos is not None:
        ticks = nanos * PER_SECOND[target.unit] // _NANOS
    elif _INTEGER.match(text) is not None and len(text) < 20:
        ticks = int(text)
    else:
        return None
    return ticks if 0 <= ticks < 86_400 * PER_SECOND[target.unit] else None


_READERS: Mapping[str, Callable[[str, Any], Any]] = MappingProxyType(
    {
        "boolean": _boolean,
        "integer": _integer,
        "decimal": _decimal,
        "date": lambda text, _: read_date(text),
        "timestamp": _ticks_of_stamp,
        "time": _ticks_of_time,
    }
)
_WHAT = MappingProxyType(
    {
        "boolean": ("a boolean", "Write it as true or false."),
        "integer": ("a whole number that fits {}", "Use TRY_CAST for null instead."),
        "decimal": ("a number that fits {}", "Use TRY_CAST for null instead."),
        "date": ("a date", "Write it as 2020-01-31."),
        "timestamp": ("a timestamp that fits {}", "Write it as 2020-01-31 or 2020-01-31T23:59:59.5+02:00."),
        "time": ("a time", "Write it as 23:59:59."),
    }
)


def _kind_of(target: Any) -> str | None:
    types = pa.types
    if types.is_boolean(target):
        return "boolean"
    if types.is_integer(target):
        return "integer"
    if types.is_decimal(target):
        return "decimal"
    if types.is_date(target):
        return "date"
    if types.is_timestamp(target):
        return None if target.tz is not None else "timestamp"
    return "time" if types.is_time(target) else None


def _is_plain(value: Value, kind: str) -> bool:
    """Whether Arrow reads none of these texts but as it is read here; what Arrow refuses may be read all the same."""
    if kind in ("integer", "decimal"):
        return _has_only(value, _DIGITS if kind == "integer" else _DIGITS_AND_POINT)
    if kind == "timestamp":  # hours without seconds are read by Arrow alone
        lengths = pc.binary_length(value)
        return not pc.any(pc.is_in(lengths, pa.array([13, 16], lengths.type))).as_py()
    return kind == "date"


def _has_only(value: Value, letters: npt.NDArray[np.bool_]) -> bool:
    """Whether texts have no bytes but some."""
    chunks = value.chunks if isinstance(value, pa.ChunkedArray) else [value]
    for chunk in chunks:
        offsets: Any
        data: Any
        _, offsets, data = chunk.buffers()
        if data is None:
            continue
        wide = pa.types.is_large_string(chunk.type)
        ends = np.frombuffer(offsets, np.int64 if wide else np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
        if not letters[np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]].all():
            return False
    return True


def _read_all(texts: list[str | None], target: Any, kind: str, *, safe: bool) -> Any:
    read = _READERS[kind]
    found = [None if text is None else read(text, target) for text in texts]
    if not safe:
        for text, value in zip(texts, found, strict=True):
            if text is not None and value is None:
                what, cure = _WHAT[kind]
                raise FilterError(f"{_short(text)} is not {what.format(target)}{wrong_part(text, kind)}", cure=cure)
    return _MAKERS[kind](found, target)


def wrong_part(text: str, kind: str = "timestamp") -> str:
    """What of a date is wrong that has the form of one."""
    found = re.match(r"([0-9]{4})-?([0-9]{1,2})-?([0-9]{1,2})", text) if kind in ("date", "timestamp") else None
    if found is None or days_of_date(int(found[1]), int(found[2]), int(found[3])) is not None:
        return ""
    return ": month must be in 1..12" if not 1 <= int(found[2]) <= 12 else ": the month has no such day"


def _short(text: str) -> str:
    return repr(text if len(text) <= 100 else text[:100] + "…")


def _of_days(found: list[int | None], target: Any) -> Any:
    return pa.array(found, pa.int32()).cast(pa.date32()).cast(target)


def _of_ticks(found: list[int | None], target: Any) -> Any:
    if pa.types.is_time32(target):
        return pa.array(found, pa.int32()).cast(target)
    return cast_ticks(pa.array(found, pa.int64()), target)


_MAKERS: Mapping[str, Callable[[list[Any], Any], Any]] = MappingProxyType(
    {
        "boolean": pa.array,
        "integer": pa.array,
        "decimal": decimals.of_digits,
        "date": _of_days,
        "timestamp": _of_ticks,
        "time": _of_ticks,
    }
)
