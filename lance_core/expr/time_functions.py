"""Functions of dates and timestamps: one row each in a table, as in `functions`.

::

    to_char(ts, '%d.%m.%Y') -> '31.01.2020'     to_timestamp_millis(1000) -> 1970-01-01 00:00:01     make_date(2020, 2, 29)
    date_bin(INTERVAL '15' MINUTE, ts) -> the beginning of its quarter of an hour

Timestamps that have a zone are read as its local time (`local_time`), bins are those of UTC. Formats are
those of strftime, with `%.3f` for a fraction of three digits.
"""

from __future__ import annotations

import datetime as dt
import math
import time
from collections.abc import Callable, Mapping
from decimal import Context
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from pyarrow import compute

from lance_core.arrow_numpy import constant
from lance_core.errors import FilterError
from lance_core.expr.casts import cast_to
from lance_core.expr.coerce import Value, as_text, cast, family_of, instant_scalar, is_scalar, plain
from lance_core.expr.literals import parse_date, parse_instant
from lance_core.expr.local_time import PER_SECOND, cast_ticks, to_local, with_zone, without_zone, zone_of
from lance_core.expr.read_formats import read_formatted
from lance_core.expr.rows import made_of, rows_of
from lance_core.expr.time_formats import Moment

pc: Any = compute  # the stubs know only some of what the kernels take
_EXACT = Context(prec=100)
_EPOCH = dt.date(1970, 1, 1).toordinal()
Row = tuple[int, int, Callable[..., Value]]
_STAMPS: Mapping[str, pa.DataType] = MappingProxyType(
    {"s": pa.timestamp("s"), "ms": pa.timestamp("ms"), "us": pa.timestamp("us"), "ns": pa.timestamp("ns")}
)
_TICKS: Mapping[int, pa.DataType] = MappingProxyType({32: pa.int32(), 64: pa.int64()})


def _naive(value: Value, name: str) -> Value:
    """A date or timestamp as a timestamp of UTC without a zone."""
    subject = plain(value)
    if family_of(subject.type) in ("text", "null"):
        return cast_to(subject, "timestamp", (9,), safe=False)
    if family_of(subject.type) == "date":
        return cast(cast(subject, pa.date32(), safe=False), pa.timestamp("s"))
    if family_of(subject.type) != "timestamp":
        raise FilterError(f"{name} takes a date or a timestamp, got {subject.type}", cure="CAST it.")
    return without_zone(subject)


def _local(value: Value, name: str) -> Value:
    """A date or timestamp as the timestamp that clocks of its zone show."""
    subject = plain(value)
    return to_local(subject) if pa.types.is_timestamp(subject.type) else _naive(subject, name)


def _stamp(unit: str, numbers: str) -> Callable[..., Value]:
    """To a timestamp of a unit: from text, from numbers of `numbers` since 1970, from other dates and timestamps."""

    def function(value: Value, *formats: Value) -> Value:
        subject = plain(value)
        target = _STAMPS[unit]
        family = family_of(subject.type)
        if family == "null":
            return cast(subject, target)
        if family == "text":
            return made_of((_read(*row, unit=unit) for row in rows_of([subject, *map(plain, formats)])), target, [subject])
        if family == "float":
            per_second = PER_SECOND[unit]
            scaled = pc.multiply(cast(subject, pa.float64()), constant(float(per_second // PER_SECOND[numbers])))
            ticks = (None if row is None else _ticks_of(row) for (row,) in rows_of([scaled]))
            return cast_ticks(made_of(ticks, pa.int64(), [scaled]), target)
        if family == "decimal":
            factor = PER_SECOND[unit] // PER_SECOND[numbers]
            ticks = (None if row is None else int(_EXACT.multiply(row, factor)) for (row,) in rows_of([subject]))
            return cast(made_of(map(_in_64_bits, ticks), pa.int64(), [subject]), target)
        if family == "int":
            return cast(cast(cast(subject, pa.int64()), _STAMPS[numbers]), target)
        return cast(_naive(subject, "to_timestamp"), target, safe=False)

    return function


def _ticks_of(number: float) -> int:
    """A whole number; NaN as 0, and what is beyond 64 bits, infinities too, as the last of them."""
    if math.isnan(number):
        return 0
    return max(min(int(number), 2**63 - 1), -(2**63)) if math.isfinite(number) else 2**63 - 1 if number > 0 else -(2**63)


def _in_64_bits(ticks: int | None) -> int | None:
    if ticks is not None and not -(2**63) <= ticks < 2**63:
        raise FilterError(
            "a timestamp is out of the range of 64-bit ticks", cure="Use a coarser unit, as to_timestamp_seconds."
        )
    return ticks


def _read(text: str | None, *formats: str | None, unit: str) -> int | None:
    """A timestamp in ticks: by the first of the formats that fits, as ISO where there is none."""
    if text is None:
        return None
    per_second = PER_SECOND[unit]
    if not formats:
        return parse_instant(text).nanoseconds * per_second // 10**9
    for form in formats:
        if form is not None and (found := read_formatted(text, form)) is not None:
            return found * per_second // 10**9
    raise FilterError(f"{text!r} fits none of the formats {', '.join(map(repr, formats))}")


def _to_date(value: Value, *formats: Value) -> Value:
    subject = plain(value)
    if family_of(subject.type) == "text":
        rows = rows_of([subject, *map(plain, formats)])
        return made_of((_day(*row) for row in rows), pa.date32(), [subject])
    if family_of(subject.type) in ("int", "float", "decimal"):
        return cast(cast_to(subject, "int", (), safe=False), pa.date32())
    return cast_to(subject, "date", (), safe=False)


def _day(text: str | None, *formats: str | None) -> int | None:
    """Days since 1970."""
    if text is None:
        return None
    if not formats:
        return parse_date(text)
    for form in formats:
        if form is not None and (found := read_formatted(text, form)) is not None:
            return found // (86_400 * 10**9)
    raise FilterError(f"{text!r} fits none of the formats {', '.join(map(repr, formats))}")


def _to_unixtime(value: Value, *formats: Value) -> Value:
    subject = plain(value)
    if family_of(subject.type) in ("int", "float"):
        return cast(subject, pa.int64(), safe=False)
    stamps = _stamp("s", "s")(subject, *formats) if family_of(subject.type) == "text" else _naive(subject, "to_unixtime")
    return cast(stamps, pa.timestamp("s"), safe=False).cast(pa.int64())


def _to_char(value: Value, form: Value) -> Value:
    wanted = as_text(form, "to_char")
    if pa.types.is_duration(value.type):
        return _always(value, wanted)
    has_date = not pa.types.is_time(value.type)
    subject, utc = (_local(value, "to_char"), _naive(value, "to_char")) if has_date else (value, value)
    per_second = PER_SECOND[subject.type.unit]
    zone = zone_of(plain(value).type)
    ticks, instants = (cast(cast(each, _TICKS[each.type.bit_width]), pa.int64()) for each in (subject, utc))
    rows = rows_of([ticks, wanted, instants])
    found = (_written(*row, per_second=per_second, has_zone=zone is not None, has_date=has_date) for row in rows)
    return made_of(found, pa.string(), [ticks, wanted])


def _always(value: Value, form: Value) -> Value:
    """A duration in its own words: no format has a word for it."""
    texts = cast(value, pa.string())
    return pc.if_else(pc.is_valid(form), texts, constant(None, pa.string()))


def _written(
    ticks: int | None, form: str | None, utc: int | None, *, per_second: int, has_zone: bool, has_date: bool
) -> str | None:
    if ticks is None or form is None or utc is None:
        return None
    seconds, rest = divmod(ticks, per_second)
    offset = (ticks - utc) // per_second if has_zone else None
    nanoseconds = rest * (10**9 // per_second)
    moment = Moment.of(seconds, nanoseconds, instant=utc // per_second, offset=offset, has_date=has_date)
    return moment.written(form)


def _of_numbers(name: str, make: Callable[..., Any], kind: pa.DataType) -> Callable[..., Value]:
    def call(*values: Value) -> Value:
        plains = [plain(value) for value in values]
        for value in plains:
            if family_of(value.type) not in ("int", "null"):
                raise FilterError(f"{name} takes whole numbers, got {value.type}", cure="CAST it.")
        return made_of((None if None in row else make(*row) for row in rows_of(plains)), kind, plains)

    return call


def _time(hour: int, minute: int, second: int) -> int:
    try:
        dt.time(hour, minute, second)
        return (hour * 60 + minute) * 60 + second
    except (ValueError, OverflowError) as error:
        raise FilterError(f"no time {hour}:{minute}:{second}: {error}") from None


def _date(year: int, month: int, day: int) -> int:
    try:
        return dt.date(year, month, day).toordinal() - _EPOCH
    except (ValueError, OverflowError) as error:
        raise FilterError(f"no date {year}-{month}-{day}: {error}") from None


def _date_bin(interval: Value, value: Value, origin: Value | None = None) -> Value:
    zone = zone_of(plain(value).type)
    if family_of(plain(value).type) == "time":
        return _time_bin(interval, plain(value))
    subject = _naive(value, "date_bin")
    if zone is not None or family_of(plain(value).type) == "date":
        subject = cast(subject, pa.timestamp("ns"))
    if not is_scalar(interval) or family_of(interval.type) != "duration" or not interval.is_valid:
        raise FilterError("date_bin takes a constant interval", cure="Write it as INTERVAL '15' MINUTE.")
    per_second = PER_SECOND[subject.type.unit]
    step = int(cast(interval, pa.duration("ns"), safe=False).cast(pa.int64()).as_py()) * per_second // 10**9
    if step <= 0:
        raise FilterError("date_bin takes an interval longer than nothing, in the column's unit")
    begin = 0
    if origin is not None:
        given = plain(origin)
        if not is_scalar(given):
            raise FilterError("date_bin takes a constant origin")
        stamp = instant_scalar(parse_instant(given.as_py()).nanoseconds) if family_of(given.type) == "text" else given
        begin = int(cast(_naive(stamp, "date_bin"), subject.type, safe=False).cast(pa.int64()).as_py())
    ticks = subject.cast(pa.int64())
    rows = (None if tick is None else begin + (tick - begin) // step * step for (tick,) in rows_of([ticks]))
    made = made_of(rows, subject.type, [subject])
    return made if zone is None else with_zone(made, zone)


def _time_bin(interval: Value, value: Value) -> Value:
    """The beginning of a time's bin; bins begin at midnight."""
    if not is_scalar(interval) or family_of(interval.type) != "duration" or not interval.is_valid:
        raise FilterError("date_bin takes a constant interval", cure="Write it as INTERVAL '15' MINUTE.")
    per_second = PER_SECOND[value.type.unit]
    step = int(cast(interval, pa.duration("ns"), safe=False).cast(pa.int64()).as_py()) * per_second // 10**9
    if not 0 < step < 86_400 * per_second:
        raise FilterError("date_bin of a time takes an interval of less than a day, and longer than nothing")
    return made_of((None if tick is None else tick // step * step for (tick,) in rows_of([value])), value.type, [value])


def _today() -> Value:
    return constant(dt.datetime.now(dt.timezone.utc).date(), pa.date32())


def _now() -> Value:
    return constant(time.time_ns(), pa.timestamp("ns"))


_TODAY: Row = (0, 0, _today)
_NOW: Row = (0, 0, _now)
_CHAR: Row = (2, 2, _to_char)
TIME_FUNCTIONS: Mapping[str, Row] = MappingProxyType(
    {
        "to_timestamp": (1, 255, _stamp("ns", "s")),
        "to_timestamp_seconds": (1, 255, _stamp("s", "s")),
        "to_timestamp_millis": (1, 255, _stamp("ms", "ms")),
        "to_timestamp_micros": (1, 255, _stamp("us", "us")),
        "to_timestamp_nanos": (1, 255, _stamp("ns", "ns")),
        "from_unixtime": (1, 1, _stamp("s", "s")),
        "to_unixtime": (1, 255, _to_unixtime),
        "to_date": (1, 255, _to_date),
        "to_char": _CHAR,
        "date_format": _CHAR,
        "to_local_time": (1, 1, lambda value: _local(value, "to_local_time")),
        "make_date": (3, 3, _of_numbers("make_date", _date, pa.date32())),
        "make_time": (3, 3, _of_numbers("make_time", _time, pa.time32("s"))),
        "date_bin": (2, 3, _date_bin),
        "current_date": _TODAY,
        "today": _TODAY,
        "current_timestamp": _NOW,
        "now": _NOW,
        "current_time": (0, 0, lambda: constant(dt.datetime.now(dt.timezone.utc).time(), pa.time64("ns"))),
    }
)
