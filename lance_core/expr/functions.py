"""The functions a filter may call: one row each in a table of name -> (fewest arguments, most arguments, what it does).

::

    lower(s)   starts_with(s, 'a')   regexp_like(s, '^a', 'i')   array_has(tags, 'x')   coalesce(a, b, 0)
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute

from lance_core.arrow_numpy import arrow_of, constant, numpy_of
from lance_core.errors import FilterError
from lance_core.expr import decimals
from lance_core.expr.casts import cast_as
from lance_core.expr.coerce import Value, as_text, cast, family_of, is_scalar, plain, repeat
from lance_core.expr.common_type import as_common, cast_common, common_type, shown_type
from lance_core.expr.compare import compare
from lance_core.expr.json_values import (
    json_array_contains,
    json_array_length,
    json_exists,
    json_extract,
    json_get,
    json_getter,
    to_bool,
    to_float,
    to_int,
    to_text,
)
from lance_core.expr.list_functions import LIST_FUNCTIONS
from lance_core.expr.lists import array_contains, array_has_all, array_has_any, cardinality, element, length_of, map_of
from lance_core.expr.local_time import PER_SECOND, to_local, to_zone, with_zone, without_zone, zone_of
from lance_core.expr.number_functions import NUMBER_FUNCTIONS, by_digits
from lance_core.expr.patterns import contains, for_each, match_groups, match_regex
from lance_core.expr.regex_functions import REGEX_FUNCTIONS
from lance_core.expr.text_functions import TEXT_FUNCTIONS
from lance_core.expr.time_functions import TIME_FUNCTIONS
from lance_core.expr.type_names import type_name

pc: Any = compute  # the stubs know only some of what the kernels take


def call(name: str, arguments: Sequence[Value]) -> Value:
    """Apply a function by name. Raises FilterError: unknown name, wrong number or types of arguments."""
    found = _FUNCTIONS.get(name)
    if found is None:
        near = difflib.get_close_matches(name, _FUNCTIONS, n=3)
        cure = f"Did you mean {', '.join(near)}?" if near else f"Known: {', '.join(sorted(_FUNCTIONS))}."
        raise FilterError(f"unknown function {name!r}", cure=cure)
    fewest, most, function = found
    if not fewest <= len(arguments) <= most:
        raise FilterError(f"{name} takes {fewest} to {most} arguments, got {len(arguments)}")
    made = function(*(_prepared(name, argument) for argument in arguments))
    is_half = name in _OF_HALVES and pa.types.is_float16(arguments[-1].type)
    return cast(made, pa.float16(), safe=False) if is_half else made


def _prepared(name: str, value: Value) -> Value:
    """A half float stays one where its text is wanted, and is a double where it is reckoned with."""
    if name in _AS_THEY_ARE:
        return value
    if not pa.types.is_float16(value.type):
        return plain(value)
    return (
        value
        if name in _OF_TEXTS or name in LIST_FUNCTIONS
        else cast(value, pa.float64())
        if name in _DOUBLES
        else plain(value)
    )


def require_text(value: Value, what: str) -> Value:
    """The value as text. Raises FilterError when it is none."""
    subject = plain(value)
    if family_of(subject.type) == "null":
        return cast(subject, pa.string())
    if family_of(subject.type) != "text":
        raise FilterError(f"{what} expects a string, got {subject.type}", cure="CAST it to string.")
    return subject


def _text(kernel: Callable[..., Value], what: str) -> Callable[..., Value]:
    return lambda value: kernel(require_text(value, what))


def _cased(kernel: Callable[..., Value], full: Callable[[str], str], what: str) -> Callable[..., Value]:
    """By the full rules of Unicode, which Arrow has not: one letter may become two, and a sigma at an end is another."""

    def function(value: Value) -> Value:
        text = require_text(value, what)
        if is_scalar(text):
            return constant(full(text.as_py()), text.type) if text.is_valid else text
        if pc.all(pc.string_is_ascii(text)).as_py() is not False:
            return kernel(text)
        return pa.array([None if item is None else full(item) for item in text.to_pylist()], text.type)

    return function


def _search(kernel: Callable[..., Value], what: str) -> Callable[[Value, Value], Value]:
    def function(value: Value, pattern: Value) -> Value:
        text = require_text(value, what)
        return for_each(text, require_text(pattern, what), lambda items, one: kernel(items, pattern=str(one)))

    return function


def _regex(value: Value, pattern: Value, flags: Value | None = None) -> Value:
    given = "" if flags is None or not isinstance(flags, pa.Scalar) else str(flags.as_py() or "")
    return match_regex(require_text(value, "regexp_like"), require_text(pattern, "regexp_like"), given)


def _regex_groups(value: Value, pattern: Value, flags: Value | None = None) -> Value:
    text, wanted = as_text(value, "regexp_match"), as_text(pattern, "regexp_match")
    found = _regex(text, wanted, flags)
    given = "" if flags is None or not isinstance(flags, pa.Scalar) else str(flags.as_py() or "")
    return match_groups(text, wanted, found, given)


def _length(value: Value) -> Value:
    """Characters of a text, or of the text of any other value; bytes of binary values."""
    if family_of(value.type) == "bytes":
        return pc.binary_length(value)
    return pc.utf8_length(as_text(value, "length"))


def _octet_length(value: Value) -> Value:
    if family_of(value.type) == "null":
        return cast(value, pa.int32())
    if family_of(value.type) not in ("text", "bytes"):
        raise FilterError(f"octet_length expects a string or binary value, got {value.type}")
    return pc.binary_length(value)


def _substring(value: Value, start: Value, count: Value | None = None) -> Value:
    if not isinstance(start, pa.Scalar) or not (count is None or isinstance(count, pa.Scalar)):
        raise FilterError("the positions of substr must be constants")
    first = int(start.as_py()) - 1
    stop = None if count is None else max(first + int(count.as_py()), 0)
    return pc.utf8_slice_codeunits(require_text(value, "substr"), max(first, 0), stop)


def _wide_text(value: Value) -> Value:
    return cast(value if pa.types.is_float16(value.type) else plain(value), pa.large_string())


def _concat(*values: Value) -> Value:
    empty = constant("", pa.large_string())
    # Arrow's own way to skip nulls makes no value at all of a row of nulls.
    texts = [pc.coalesce(_wide_text(value), empty) for value in values]
    made = pc.binary_join_element_wise(*texts, empty)
    return made if all(value.type == pa.large_string() for value in values) else cast(made, pa.string())


def _concat_ws(separator: Value, *values: Value) -> Value:
    """The values that are not null, with the separator between them."""
    texts = [_wide_text(value) for value in values]
    given = _wide_text(separator)
    rows = next((len(text) for text in (given, *texts) if not is_scalar(text)), 1)
    columns = [[text.as_py()] * rows if is_scalar(text) else text.to_pylist() for text in texts]
    joints = [given.as_py()] * rows if is_scalar(given) else given.to_pylist()
    made = pa.array(
        [
            None if joint is None else joint.join(part for part in row if part is not None)
            for joint, *row in zip(joints, *columns, strict=True)
        ],
        pa.string(),
    )
    return made[0] if all(map(is_scalar, (separator, *texts))) else made


def _coalesce(*values: Value) -> Value:
    """The first value that is not null; what stands behind a constant is not evaluated, as it is never taken."""
    return _first_of(values, common_type(value.type for value in values))


def _nvl(left: Value, right: Value) -> Value:
    return _first_of((left, right), shown_type((left.type, right.type)))


def _first_of(values: Sequence[Value], kind: pa.DataType) -> Value:
    result: Value = constant(None, kind)
    for value in values:
        if is_scalar(result):
            if result.is_valid:
                break
            result = cast_common(value, kind)
        else:
            result = _filled(result, value, kind)
    return result


def _filled(result: Value, value: Value, kind: pa.DataType) -> Value:
    """Nulls replaced; a value that nothing asks for need not convert."""
    if is_scalar(value) or value.type == kind or pa.types.is_nested(kind):
        return pc.coalesce(result, cast_common(value, kind)) if result.null_count else result
    missing = pc.is_null(result)
    return pc.replace_with_mask(result, missing, cast_common(value.filter(missing), kind)) if result.null_count else result


_AS_COMMON = ({"date", "int"}, {"bytes", "text"})
"""Families that do not compare elsewhere."""


def _nullif(left: Value, right: Value) -> Value:
    first, second = as_common((left, right), compared=True)
    pair = (first, second) if {family_of(left.type), family_of(right.type)} in _AS_COMMON else (left, right)
    return pc.if_else(pc.fill_null(compare("=", *pair), False), constant(None, first.type), first)


def _if(condition: Value, then: Value, otherwise: Value) -> Value:
    left, right = as_common((then, otherwise))
    return pc.if_else(pc.fill_null(condition, False), left, right)


def _number(kernel: Callable[[Value], Value]) -> Callable[[Value], Value]:
    def function(value: Value) -> Value:
        if family_of(value.type) == "null":
            return kernel(cast(value, pa.float64()))
        if family_of(value.type) not in ("int", "float", "decimal"):
            raise FilterError(f"expected a number, got {value.type}", cure="CAST it.")
        return kernel(value)

    return function


def _round(value: Value, digits: Value | None = None) -> Value:
    """Halves away from zero; whole numbers as doubles."""
    if family_of(value.type) not in ("int", "float", "decimal", "null"):
        raise FilterError(f"expected a number, got {value.type}", cure="CAST it.")
    number = value if family_of(value.type) in ("float", "decimal") else cast(value, pa.float64(), safe=False)
    return by_digits(number, digits, _round_to)


def _round_to(number: Value, places: int) -> Value:
    if not pa.types.is_decimal(number.type):
        if abs(places) > (38 if number.type == pa.float32() else 308):
            return _round_far(number, places)
        try:
            rounded = pc.round(number, ndigits=places, round_mode="half_towards_infinity")
        except pa.ArrowInvalid:
            return _round_far(number, places)
        if places > 0:
            rounded = pc.if_else(*_whole_when_scaled(number, places), rounded)
        # Arrow leaves the smallest numbers of all as they are.
        least = constant(np.finfo(np.float32 if number.type == pa.float32() else np.float64).tiny.item(), number.type)
        return pc.if_else(pc.less(pc.abs(number), least), pc.multiply(number, constant(0.0, number.type)), rounded)
    kind = number.type
    scale = max(0, min(kind.scale, places))
    wider = decimals.with_carry(kind, scale)
    rounded = decimals.rescale(number, wider) if places >= 0 else decimals.to_tens(number, -places, wider)
    carries = kind.scale == 0 and -kind.precision <= places < 0  # 9999 is 10000, elsewhere digits fall away
    return rounded if carries else pc.cast(rounded, decimals.like(kind, kind.precision, scale))


def _whole_when_scaled(number: Value, places: int) -> tuple[Value, Value]:
    """Which numbers have no further digits, and those scaled and back: Arrow leaves them as they are, which large ones are
    not officially."""
    power = constant(10.0**places, number.type)
    scaled = pc.multiply(number, power)
    return pc.and_(pc.is_finite(scaled), pc.equal(scaled, pc.floor(scaled))), pc.divide(scaled, power)


def _round_far(number: Value, places: int) -> Value:
    """Where so many digits are beyond the type: infinity, or NaN where even a power of ten is none of its numbers."""
    column = repeat(number, 1) if is_scalar(number) else number
    values = numpy_of(pc.fill_null(column, 0.0))
    with np.errstate(all="ignore"):
        power = values.dtype.type(10.0) ** values.dtype.type(places)
        scaled = values * power
        rounded = np.trunc(scaled + np.copysign(values.dtype.type(0.5), scaled)) / power
    made = pc.if_else(column.is_valid(), arrow_of(rounded, column.type), constant(None, column.type))
    return made[0] if is_scalar(number) else made


def _power(base: Value, exponent: Value) -> Value:
    return pc.power(cast(base, pa.float64(), safe=False), cast(exponent, pa.float64(), safe=False))


_PARTS: Mapping[str, Callable[[Value], Value]] = MappingProxyType(
    {
        "year": pc.year, "quarter": pc.quarter, "month": pc.month, "week": pc.iso_week, "day": pc.day, "hour": pc.hour,
        "minute": pc.minute, "second": pc.second, "doy": pc.day_of_year,
        "isodow": lambda value: pc.day_of_week(value, count_from_zero=False, week_start=1),
        "dow": lambda value: pc.day_of_week(value, count_from_zero=True, week_start=7),
        "isoyear": lambda value: pc.struct_field(pc.iso_calendar(value), "iso_year"),
    }
)  # fmt: skip
_OTHER_PARTS: Mapping[str, str] = MappingProxyType(
    {
        other: name
        for name, others in {
            "year": "y yr yrs years", "quarter": "qtr quarters", "month": "mon mons months", "week": "w weeks",
            "day": "d days", "hour": "h hr hrs hours", "minute": "m min mins minutes", "second": "s sec secs seconds",
            "millisecond": "ms msec msecs msecond mseconds milliseconds",
            "microsecond": "us usec usecs usecond useconds microseconds", "nanosecond": "nsec nsecs nanoseconds",
        }.items()
        for other in others.split()
    }
)  # fmt: skip


def _local(value: Value) -> Value:
    if family_of(value.type) in ("text", "null"):
        return cast_as(value, pa.timestamp("ns"), safe=False)
    if family_of(value.type) not in ("date", "timestamp", "time"):
        raise FilterError(f"expected a date or a timestamp, got {value.type}", cure="CAST it.")
    return to_local(value)


def _fine_part(name: str, value: Value) -> Value:
    """Seconds of the minute in a finer unit, or all seconds since 1970 with their fraction."""
    if name == "epoch":
        return _epoch(value)
    stamps = _local(value)
    if family_of(stamps.type) == "date":
        stamps = cast(stamps, pa.timestamp("s"), safe=False)
    nanoseconds = pc.add(pc.multiply(pc.second(stamps), 1_000_000_000), _fraction(stamps))
    return pc.divide(nanoseconds, constant(_FINE[name], pa.int64()))


def _epoch(value: Value) -> Value:
    """Seconds since 1970, or since midnight, with their fraction; a zone does not matter."""
    if family_of(value.type) in ("text", "null"):
        return _epoch(_local(value))
    _local(value)  # refuses what has no time
    if family_of(value.type) == "date":
        stamps: Value = cast(cast(value, pa.date32(), safe=False), pa.timestamp("s"))
    else:
        stamps = value
    ticks = cast(stamps, pa.int32()) if pa.types.is_time32(stamps.type) else cast(stamps, pa.int64())
    return pc.divide(cast(ticks, pa.float64(), safe=False), constant(float(PER_SECOND[stamps.type.unit])))


def _fraction(stamps: Value) -> Value:
    finer = pc.add(pc.multiply(pc.millisecond(stamps), 1_000_000), pc.multiply(pc.microsecond(stamps), 1_000))
    return pc.add(finer, pc.nanosecond(stamps))


_FINE: Mapping[str, int] = MappingProxyType({"millisecond": 10**6, "microsecond": 10**3, "nanosecond": 1, "epoch": 0})


def _duration_part(name: str, value: Value) -> Value:
    """A length of time in a unit, what is left of it cut off; its seconds with a fraction as `epoch`."""
    ticks, per_second = value.cast(pa.int64()), PER_SECOND[value.type.unit]
    if name == "epoch":
        return pc.divide(cast(ticks, pa.float64(), safe=False), constant(float(per_second)))
    nanoseconds = _DURATIONS.get(name)
    if nanoseconds is None:
        raise FilterError(f"a duration has no {name}", cure=f"Known parts: {', '.join(_DURATIONS)}, epoch.")
    own = 10**9 // per_second
    if nanoseconds >= own:
        return pc.divide(ticks, constant(nanoseconds // own, pa.int64()))
    return pc.multiply_checked(ticks, constant(own // nanoseconds, pa.int64()))


_DURATIONS: Mapping[str, int] = MappingProxyType(
    {"week": 604_800 * 10**9, "day": 86_400 * 10**9, "hour": 3600 * 10**9, "minute": 60 * 10**9, "second": 10**9}
    | {"millisecond": 10**6, "microsecond": 10**3, "nanosecond": 1}
)


def _date_part(part: Value, value: Value) -> Value:
    given = str(part.as_py()).lower() if isinstance(part, pa.Scalar) else ""
    name = _OTHER_PARTS.get(given, given)
    if pa.types.is_duration(value.type):
        if is_scalar(value):
            raise FilterError("date_part takes the part of a column of durations, not of a constant one")
        return _duration_part(name, value)
    if name in _FINE:
        return _fine_part(name, value)
    if name not in _PARTS:
        raise FilterError(f"unknown part {name!r} of date_part", cure=f"Known parts: {', '.join([*_PARTS, *_FINE])}.")
    local = _local(value)
    if family_of(local.type) == "date":
        local = cast(local, pa.timestamp("s"), safe=False)  # a date has hours, minutes and seconds: none
    near, eras = _near(local)
    found = cast(_PARTS[name](near), pa.int32())
    if eras is None or name not in ("year", "isoyear"):
        return found
    years = pc.add(cast(found, pa.int64()), pc.multiply(eras, constant(400, pa.int64())))
    return cast(years, pa.int32())


def _near(local: Value) -> tuple[Value, Value | None]:
    """Moments beyond the years that Arrow counts, as those of the same day and weekday in 1970 to 2369, and how many times
    four hundred years were taken away; None where there are none."""
    if not pa.types.is_timestamp(local.type):
        return local, None
    era = 146_097 * 86_400 * PER_SECOND[local.type.unit]
    moments = repeat(local, 1) if isinstance(local, pa.Scalar) else local
    ticks = moments.cast(pa.int64())
    ends = pc.min_max(ticks).as_py()
    if ends["min"] is None or (-40 * era < ends["min"] and ends["max"] < 40 * era):
        return local, None
    eras = arrow_of(np.floor_divide(numpy_of(pc.fill_null(ticks, 0), may_copy=True), era), pa.int64())
    near = pc.subtract(ticks, pc.multiply(eras, constant(era, pa.int64()))).cast(local.type)
    return (near[0], eras[0]) if isinstance(local, pa.Scalar) else (near, eras)


def _part(name: str) -> Callable[[Value], Value]:
    return lambda value: _date_part(constant(name), value)


def _date_trunc(part: Value, value: Value) -> Value:
    name = str(part.as_py()).lower() if isinstance(part, pa.Scalar) else ""
    known = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond")
    if name not in known:
        raise FilterError(f"unknown part {name!r} of date_trunc", cure=f"Known parts: {', '.join(known)}.")
    stamps = _local(value)
    if family_of(stamps.type) == "date":
        stamps = cast(cast(stamps, pa.date32(), safe=False), pa.timestamp("ns"))
    if family_of(stamps.type) == "time" and known.index(name) < known.index("hour"):
        raise FilterError(f"date_trunc of a time to the {name}", cure="A time has hours and what is less.")
    zone = zone_of(value.type)
    if zone is not None and name in ("minute", "second", "millisecond", "microsecond"):
        return with_zone(pc.floor_temporal(without_zone(value), unit=name), zone)
    truncated = pc.floor_temporal(stamps, unit=name)
    if zone is None:
        return truncated
    if name == "hour":
        # An hour that clocks show twice stays the one that it is.
        return with_zone(pc.subtract(without_zone(value), pc.subtract(stamps, truncated)), zone)
    return to_zone(truncated, zone)


def _arrow_cast(value: Value, name: Value, *, safe: bool) -> Value:
    from lance_core.expr.casts import cast_to

    if not is_scalar(name) or name.as_py() is None:
        raise FilterError("arrow_cast takes the name of a type", cure="Write it as 'Int64'.")
    text = str(name.as_py())
    return cast_to(value, text if "(" in text else text.lower(), (), safe=safe)


def _get_field(value: Value, name: Value) -> Value:
    if not pa.types.is_struct(value.type) or not is_scalar(name):
        raise FilterError(f"get_field takes a struct and a constant name, got {value.type}")
    wanted = str(name.as_py())
    if value.type.get_field_index(wanted) < 0:
        raise FilterError(f"no field {wanted!r} in {value.type}")
    return pc.struct_field(value, wanted)


def _named_struct(*parts: Value) -> Value:
    if len(parts) % 2 or not all(is_scalar(name) for name in parts[::2]):
        raise FilterError("named_struct takes a constant name before each value")
    return _structs([str(name.as_py()) for name in parts[::2]], parts[1::2])


def _struct(*values: Value) -> Value:
    return _structs([f"c{number}" for number in range(len(values))], values)


def _structs(names: Sequence[str], values: Sequence[Value]) -> Value:
    return pc.make_struct(*values, field_names=[*names])


def _make_map(*parts: Value) -> Value:
    if len(parts) % 2:
        raise FilterError(f"make_map takes a value for each key, got {len(parts)} arguments")
    return map_of(call("make_array", parts[::2]), call("make_array", parts[1::2]))


_DOUBLES = frozenset(NUMBER_FUNCTIONS) - {"greatest", "least", "nvl2", "nanvl", "atan2"} | {"round", "floor", "ceil"}
_OF_TEXTS = frozenset(
    {"concat", "concat_ws", "reverse", "length", "char_length", "character_length", "left", "right", "lpad", "rpad"}
    | {"substr_index", "substring_index", "translate", "overlay", "find_in_set", "contains_tokens", "regexp_match"}
    | {"regexp_replace", "regexp_count", "regexp_instr", "to_char", "date_format", "array_to_string", "list_to_string"}
    | {"array_join", "list_join", "nvl", "ifnull", "nvl2", "nanvl", "arrow_cast", "arrow_try_cast"}
    | {"coalesce", "nullif", "greatest", "least", "if"}
)
_OF_HALVES = frozenset({"abs", "log"})
"""Functions that give half floats of half floats."""
_AS_THEY_ARE = frozenset({"struct", "row", "named_struct", "make_map", "levenshtein", "log"})
_MANY = 255
_FUNCTIONS: Mapping[str, tuple[int, int, Callable[..., Value]]] = MappingProxyType(
    {
        "lower": (1, 1, _cased(pc.ascii_lower, str.lower, "lower")),
        "upper": (1, 1, _cased(pc.ascii_upper, str.upper, "upper")),
        "trim": (1, 1, _text(lambda value: pc.utf8_trim(value, characters=" "), "trim")),
        "reverse": (1, 1, lambda value: pc.utf8_reverse(as_text(value, "reverse"))),
        "length": (1, 1, _length),
        "char_length": (1, 1, _length),
        "character_length": (1, 1, _length),
        "octet_length": (1, 1, _octet_length),
        "substr": (2, 3, _substring),
        "substring": (2, 3, _substring),
        "concat": (1, _MANY, _concat),
        "concat_ws": (1, _MANY, _concat_ws),
        "starts_with": (2, 2, _search(pc.starts_with, "starts_with")),
        "ends_with": (2, 2, _search(pc.ends_with, "ends_with")),
        "contains": (2, 2, _search(contains, "contains")),
        "regexp_match": (2, 3, _regex_groups),
        "regexp_like": (2, 3, _regex),
        "array_has": (2, 2, array_contains),
        "array_contains": (2, 2, array_contains),
        "list_has": (2, 2, array_contains),
        "list_contains": (2, 2, array_contains),
        "array_has_any": (2, 2, array_has_any),
        "array_has_all": (2, 2, array_has_all),
        "array_length": (1, 2, length_of),
        "list_length": (1, 2, length_of),
        "cardinality": (1, 1, cardinality),
        "arrow_typeof": (1, 1, lambda value: constant(type_name(value.type))),
        "array_element": (2, 2, element),
        "coalesce": (1, _MANY, _coalesce),
        "ifnull": (2, 2, _nvl),
        "nvl": (2, 2, _nvl),
        "nullif": (2, 2, _nullif),
        "if": (3, 3, _if),
        "isnan": (1, 1, _number(pc.is_nan)),
        "abs": (1, 1, _number(pc.abs_checked)),
        "floor": (1, 1, _number(pc.floor)),
        "ceil": (1, 1, _number(pc.ceil)),
        "round": (1, 2, _round),
        "power": (2, 2, _power),
        "pow": (2, 2, _power),
        "date_part": (2, 2, _date_part),
        "datepart": (2, 2, _date_part),
        "year": (1, 1, _part("year")),
        "month": (1, 1, _part("month")),
        "day": (1, 1, _part("day")),
        "hour": (1, 1, _part("hour")),
        "minute": (1, 1, _part("minute")),
        "second": (1, 1, _part("second")),
        "date_trunc": (2, 2, _date_trunc),
        "datetrunc": (2, 2, _date_trunc),
        "json_extract": (2, 2, json_extract),
        "json_exists": (2, 2, json_exists),
        "json_get": (2, 2, json_get),
        "json_get_string": (2, 2, json_getter("json_get_string", to_text, pa.string())),
        "json_get_int": (2, 2, json_getter("json_get_int", to_int, pa.int64())),
        "json_get_float": (2, 2, json_getter("json_get_float", to_float, pa.float64())),
        "json_get_bool": (2, 2, json_getter("json_get_bool", to_bool, pa.bool_())),
        "json_array_contains": (3, 3, json_array_contains),
        "json_array_length": (2, 2, json_array_length),
        "arrow_cast": (2, 2, lambda value, name: _arrow_cast(value, name, safe=False)),
        "arrow_try_cast": (2, 2, lambda value, name: _arrow_cast(value, name, safe=True)),
        "get_field": (2, 2, _get_field),
        "named_struct": (2, _MANY, _named_struct),
        "struct": (1, _MANY, _struct),
        "row": (1, _MANY, _struct),
        "arrays_overlap": (2, 2, array_has_any),
        "list_has_any": (2, 2, array_has_any),
        "list_has_all": (2, 2, array_has_all),
        **TEXT_FUNCTIONS,
        **NUMBER_FUNCTIONS,
        **LIST_FUNCTIONS,
        **REGEX_FUNCTIONS,
        **TIME_FUNCTIONS,
        "map": (2, 2, map_of),
        "make_map": (2, _MANY, _make_map),
        "version": (0, 0, lambda: constant("lance_core", pa.string())),
    }
)
