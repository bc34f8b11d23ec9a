"""Expressions without what a kept difference comes from, where a function of the expression is the cause and no column.

::

    nvl(a, b) -> coalesce(a, b)      power(a, b) -> power(CAST(a AS DOUBLE), b)      interval '1' day -> dur_us

They are asked of the twins of `plain_tables`: there the two libraries must agree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

Rewrite = Callable[[str], str]
_TEXT = r"'(?:[^']|'')*'"


def arguments_at(text: str, begin: int) -> tuple[list[str], int]:
    """What stands between the commas from `begin`, behind a parenthesis, and where its closing one is.

    >>> arguments_at("f(a, g(b, c), ')') + 1", 2)
    (['a', 'g(b, c)', "')'"], 17)
    """
    depth, quoted, parts = 0, False, [""]
    for at in range(begin, len(text)):
        letter = text[at]
        quoted ^= letter == "'"
        if not quoted:
            depth += (letter in "([") - (letter in ")]")
            if depth < 0:
                return [part.strip() for part in parts], at
            if letter == "," and not depth:
                parts.append("")
                continue
        parts[-1] += letter
    return [part.strip() for part in parts], len(text)


def _calls(names: str, make: Callable[[str, Sequence[str]], str]) -> Rewrite:
    """Each call of some functions as what is made of its name and arguments, which are rewritten first."""
    begins = re.compile(rf"\b({names})\(", re.IGNORECASE)

    def rewrite(text: str) -> str:
        found = begins.search(text)
        if found is None:
            return text
        given, end = arguments_at(text, found.end())
        made = make(found[1], [rewrite(part) for part in given])
        return text[: found.start()] + made + rewrite(text[end + 1 :])

    return rewrite


def _of(name: str, given: Sequence[str]) -> str:
    return f"{name}({', '.join(given)})"


def _replaced(pattern: str, new: str) -> Rewrite:
    known = re.compile(pattern, re.IGNORECASE)
    return lambda text: known.sub(new, text)


def _wrapped(number: int, form: str) -> Callable[[str, Sequence[str]], str]:
    """The call with one of its arguments put into a form."""
    return lambda name, given: _of(name, [form.format(part) if at == number else part for at, part in enumerate(given)])


def _log(name: str, given: Sequence[str]) -> str:
    return _of(name, ["2", given[1]] if len(given) == 2 and (given[0] == given[1] or given[1] == "1") else given)


def _microseconds(_name: str, given: Sequence[str]) -> str:
    """A number that becomes a point in time: of microseconds by a function."""
    number = re.fullmatch(r"(.*) AS timestamp", given[0], re.IGNORECASE | re.DOTALL)
    return f"CAST({given[0]})" if number is None else f"to_timestamp_micros({number[1]})"


def _one_unit(text: str) -> str:
    """Constants in the unit of the twin's columns."""
    truncated = _replaced(rf"(date_trunc|datetrunc)\((\s*'\w+'), ({_TEXT})\)", r"CAST(\1(\2, \3) AS TIMESTAMP)")(text)
    cast = _replaced(r"'(Timestamp|Duration)\((Second|Millisecond|Nanosecond)\b", r"'\1(Microsecond")(truncated)
    return _replaced(r"\bto_timestamp(_\w+)?\('", "to_timestamp_micros('")(cast)


def _stamps(text: str) -> str:
    """A column for each constant, and for what becomes a point in time by a CAST."""
    cast = _calls(
        "(?:TRY_)?CAST", lambda name, given: "ts_us" if given[0].upper().endswith(" AS TIMESTAMP") else _of(name, given)
    )
    return cast(_replaced(f"timestamp {_TEXT}", "ts_us")(text))


PLAIN_TEXTS: Mapping[str, Rewrite] = MappingProxyType(
    {
        "units": _one_unit,
        "subtraction across zones": _replaced(r'Some\("[^"]*"\)', "None"),
        "half floats": _replaced("'Float16'", "'Float32'"),
        "zeros of two columns": _replaced(r"-0\.0\b", "0.0"),
        "smallest integer": _replaced("-9223372036854775808", "-9223372036854775807"),
        "hours of a date": _replaced("'Date64'", "'Date32'"),
        "lists of nulls": _replaced(r"\[(NULL)?\]", "[1, 2]"),
        "parts of durations": _replaced(r"\bdur_(ms|us|ns)\b", "dur_s"),
        "hours without minutes": _replaced("%[HkIl]", ""),
        "times beside dates": _replaced(r"'(\d{4}-\d\d-\d\d)[T ][^']*'", r"'\1'"),
        "durations": _replaced(r"interval '[^']*' \w+", "dur_us"),
        "nvl": _calls("nvl|ifnull", lambda _name, given: _of("coalesce", given)),
        "nvl2": _calls("nvl2", lambda _name, given: _of("coalesce", given[1:])),
        "contains_tokens": _calls("contains_tokens", _wrapped(1, "'a b'")),
        "power": _calls("power|pow", _wrapped(0, "coalesce(CAST({} AS DOUBLE), 1.0)")),
        "log of itself": _calls("log", _log),
        "trunc": _calls("trunc", _wrapped(0, "CAST({} AS DOUBLE)")),
        "timestamp constants": _stamps,
        "timestamps of numbers": _calls("CAST", _microseconds),
        "formats of a constant": _calls("to_char|date_format", _wrapped(1, "'%Y'")),
        "lists of other items": _replaced(r"(?<![\w\])])\[([^\[\]]*)\]", r"make_array(\1)"),
        "nulls of a list": _calls("(?:array|list)_(?:has|contains)", _wrapped(0, "ll")),
        "lists without items": _calls("(?:array|list)_has_any|arrays_overlap", lambda name, _given: f"{name}(lt, lt)"),
        "rounded decimals": _calls("round", lambda name, given: f"CAST({_of(name, given)} AS DECIMAL(20, 4))"),
    }
)
"""By the name of a kept difference what takes its cause out of an expression."""
