"""Points in time as texts, by the specifiers of Rust's chrono, which the official library formats with.

::

    Moment(...).written("%d.%m.%Y")     '31.01.2020'        "%.3f"  '.250'       "%-d"  '3'      "%_d"  ' 3'

A specifier may say how a number is filled up: `%-d` not at all, `%_d` with blanks, `%0d` with zeros. Years that need more
than four digits, or come before the year 0, have a sign.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lance_core.errors import FilterError

_SPECIFIER = re.compile(r"%([-_0]?)(\.[369]?f|[369]f|:{0,3}z|.?)", re.DOTALL)
_ERA = 146_097 * 86_400
"""Seconds of four hundred years, which have as many days, and weekdays, as any other four hundred."""
_YEAR_ONE, _YEAR_10000 = (dt.datetime(1970, 1, 1) - dt.datetime(1, 1, 1)).days * 86_400, (2_932_896 + 1) * 86_400
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
           "December")  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True, slots=True)
class Moment:
    """What clocks show: `eras` times four hundred years after `time`; `offset` in seconds where there is a zone."""

    time: dt.datetime
    eras: int
    nanoseconds: int
    instant: int
    offset: int | None
    has_date: bool

    @classmethod
    def of(cls, seconds: int, nanoseconds: int, *, instant: int, offset: int | None, has_date: bool = True) -> Moment:
        """Of the local seconds since 1970, those of UTC, and what lies between them."""
        eras = (seconds + _YEAR_ONE) // _ERA if not -seconds <= _YEAR_ONE or seconds >= _YEAR_10000 else 0
        time = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds - eras * _ERA)
        return cls(time, eras, nanoseconds, instant, offset, has_date)

    @property
    def year(self) -> int:
        """The year, of any number of digits."""
        return self.time.year + 400 * self.eras

    @property
    def iso_year(self) -> int:
        """The year that the week belongs to."""
        return self.time.isocalendar()[0] + 400 * self.eras

    def written(self, form: str) -> str:
        """The text of a format. Raises FilterError: a specifier that there is not, or whose part the value has not."""

        def spelled(match: re.Match[str]) -> str:
            fill, what = match[1], match[2]
            if what in _LONG and not fill:
                return self.written(_LONG[what])
            if what in _NUMBERS:
                width, usual, number = _NUMBERS[what]
                self._require(what, form)
                return _filled(number(self), width, fill or usual, signed=what in "YG")
            if what in _WORDS and not fill:
                self._require(what, form)
                return _WORDS[what](self)
            if what.endswith("z") or what == "Z":
                return self._zone(what, form)
            raise FilterError(f"%{fill}{what} in the format {form!r}", cure="Use the specifiers of strftime.")

        return _SPECIFIER.sub(spelled, form)

    def _require(self, what: str, form: str) -> None:
        if not self.has_date and what not in _OF_TIMES:
            raise FilterError(f"%{what} in the format {form!r}: a time has no date", cure="Use the hour and its parts.")

    def _zone(self, what: str, form: str) -> str:
        if self.offset is None:
            cure = "CAST it to a timestamp with a zone."
            raise FilterError(f"the format {form!r} has a zone, the timestamp has none", cure=cure)
        size = abs(self.offset)
        parts = [f"{size // 3600:02}", f"{size // 60 % 60:02}", f"{size % 60:02}"]
        count, between = _ZONES[what]
        return ("-" if self.offset < 0 else "+") + between.join(parts[:count])

    def fraction(self, digits: int) -> str:
        """So many digits of the second's fraction; of 0 those it needs, in threes."""
        if digits:
            return f"{self.nanoseconds:09}"[:digits]
        return self.fraction(next((n for n in (3, 6) if self.nanoseconds % 10 ** (9 - n) == 0), 9))


def _filled(number: int, width: int, fill: str, *, signed: bool) -> str:
    sign = "+" if signed and not 0 <= number <= 9999 else ""
    if fill == "-":
        return f"{number:{sign}}"
    return f"{number:{sign}{'0' if fill == '0' else ''}{width + bool(sign)}}"


_ZONES: Mapping[str, tuple[int, str]] = MappingProxyType(
    {"z": (2, ""), ":z": (2, ":"), "Z": (2, ":"), "::z": (3, ":"), ":::z": (1, "")}
)
_LONG: Mapping[str, str] = MappingProxyType(
    {
        "D": "%m/%d/%y", "x": "%m/%d/%y", "F": "%Y-%m-%d", "v": "%e-%b-%Y", "R": "%H:%M", "T": "%H:%M:%S", "X": "%H:%M:%S",
        "r": "%I:%M:%S %p", "c": "%a %b %e %H:%M:%S %Y", "+": "%Y-%m-%dT%H:%M:%S%.f%:z",
    }
)  # fmt: skip
_NUMBERS: Mapping[str, tuple[int, str, Callable[[Moment], int]]] = MappingProxyType(
    {
        "Y": (4, "0", lambda m: m.year),
        "C": (2, "0", lambda m: m.year // 100),
        "y": (2, "0", lambda m: m.year % 100),
        "G": (4, "0", lambda m: m.iso_year),
        "g": (2, "0", lambda m: m.iso_year % 100),
        "q": (1, "0", lambda m: (m.time.month + 2) // 3),
        "m": (2, "0", lambda m: m.time.month),
        "d": (2, "0", lambda m: m.time.day),
        "e": (2, "_", lambda m: m.time.day),
        "j": (3, "0", lambda m: m.time.timetuple().tm_yday),
        "u": (1, "0", lambda m: m.time.isoweekday()),
        "w": (1, "0", lambda m: m.time.isoweekday() % 7),
        "U": (2, "0", lambda m: (m.time.timetuple().tm_yday + 6 - m.time.isoweekday() % 7) // 7),
        "W": (2, "0", lambda m: (m.time.timetuple().tm_yday + 6 - m.time.weekday()) // 7),
        "V": (2, "0", lambda m: m.time.isocalendar()[1]),
        "H": (2, "0", lambda m: m.time.hour),
        "k": (2, "_", lambda m: m.time.hour),
        "I": (2, "0", lambda m: m.time.hour % 12 or 12),
        "l": (2, "_", lambda m: m.time.hour % 12 or 12),
        "M": (2, "0", lambda m: m.time.minute),
        "S": (2, "0", lambda m: m.time.second),
        "f": (9, "0", lambda m: m.nanoseconds),
        "s": (1, "0", lambda m: m.instant),
    }
)
"""Digits, what they are filled up with, and the number."""
_WORDS: Mapping[str, Callable[[Moment], str]] = MappingProxyType(
    {
        "b": lambda m: MONTHS[m.time.month - 1][:3],
        "h": lambda m: MONTHS[m.time.month - 1][:3],
        "B": lambda m: MONTHS[m.time.month - 1],
        "a": lambda m: DAYS[m.time.weekday()][:3],
        "A": lambda m: DAYS[m.time.weekday()],
        "p": lambda m: "AM" if m.time.hour < 12 else "PM",
        "P": lambda m: "am" if m.time.hour < 12 else "pm",
        ".f": lambda m: f".{m.fraction(0)}" if m.nanoseconds else "",
        **{f".{n}f": lambda m, n=n: f".{m.fraction(n)}" for n in (3, 6, 9)},  # type: ignore[misc]
        **{f"{n}f": lambda m, n=n: m.fraction(n) for n in (3, 6, 9)},  # type: ignore[misc]
        "n": lambda _: "\n",
        "t": lambda _: "\t",
        "%": lambda _: "%",
    }
)
_OF_TIMES = frozenset("HkIlMSfpPnt%") | {".f", ".3f", ".6f", ".9f", "3f", "6f", "9f"}
