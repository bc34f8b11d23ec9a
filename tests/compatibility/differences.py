"""The differences from the official library that are kept, each with the narrow rule by which the sweep knows it.

`docs/differences.md` tells users of the same rows; a test compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tests.compatibility.expression_sweep import Difference

_TEMPORAL = ("timestamp", "duration", "time32", "time64", "date32", "date64")
_UNIT = re.compile(r"(timestamp|duration|time32|time64)\[(\w+)")


@dataclass(frozen=True)
class Kept:
    """`name` as in the table of the page; `example` shows it, `holds` says whether a difference found is of this kind."""

    name: str
    example: str
    holds: Callable[[Difference], bool]


def _calls(*names: str) -> re.Pattern[str]:
    return re.compile(rf"\b({'|'.join(names)})\(")


def _columns(found: Difference) -> dict[str, str]:
    """The columns of the expression with their types."""
    return dict(re.findall(r"(\w+): ([a-z0-9_]+(?:\[[^\]]*\])?(?:\([^)]*\))?)", found.types))


def _units(found: Difference) -> set[str]:
    return {unit for kind in _columns(found).values() for _, unit in _UNIT.findall(kind)}


def _mixes_units(found: Difference) -> bool:
    kinds = _columns(found).values()
    literal = "timestamp '" in found.expression or "AS TIMESTAMP" in found.expression.upper()
    dates = any(kind.startswith("date") for kind in kinds) or " AS DATE)" in found.expression or "date '" in found.expression
    interval = "interval '" in found.expression
    more = {"us" for _ in range(literal or interval)} | {"d" for _ in range(dates)}
    return bool(_units(found)) and len(_units(found) | more) > 1


def _has(found: Difference, *families: str) -> bool:
    return any(kind.startswith(families) for kind in _columns(found).values())


_NARROW = ("int8", "int16", "int32", "uint8", "uint16", "uint32")
_OPERATOR = re.compile(r" (\+|-|\*|/|%|<<|>>) |\blength\(|^-")
KEPT = (
    Kept("units", "ts_s = ts_ms", lambda d: _mixes_units(d)),
    Kept("durations", "dur_s + dur_ms", lambda d: "month_day_nano_interval" in d.theirs),
    Kept("nvl", "nvl(d32, d32)", lambda d: bool(_calls("nvl", "ifnull").search(d.expression)) and _nvl(d)),
    Kept("nvl2", "nvl2(s, 1, 2)", lambda d: bool(_calls("nvl2").search(d.expression))),
    Kept("contains_tokens", "contains_tokens(s, t)", lambda d: bool(_calls("contains_tokens").search(d.expression))),
    Kept(
        "date_bin", "date_bin(interval '1' day, ts_s)", lambda d: bool(_calls("date_bin").search(d.expression)) and _far(d)
    ),
    Kept("power", "power(dec, 2)", lambda d: bool(_calls("pow", "power").search(d.expression)) and _power(d)),
    Kept(
        "length of bytes",
        "length(raw)",
        lambda d: (
            bool(_calls("length", "char_length", "character_length").search(d.expression)) and _has(d, "binary", "large_b")
        ),
    ),
    Kept(
        "narrow integers",
        "(i8 + i8) << 1",
        lambda d: (
            bool(_OPERATOR.search(d.expression)) and (_has(d, *_NARROW) or "length(" in d.expression) and d.kind != "type"
        ),
    ),
    Kept("half floats", "f16 + u16", lambda d: _has(d, "halffloat")),
    Kept(
        "trunc", "trunc(i64, 1)", lambda d: bool(re.search(r"\btrunc\(", d.expression)) and "float" in d.theirs.split(" ")[0]
    ),
    Kept(
        "empty text",
        "TRY_CAST(s AS DECIMAL(10, 2))",
        lambda d: bool(re.search(r"CAST\(.* AS DECIMAL", d.expression, re.IGNORECASE)) and _has(d, "string", "large_string"),
    ),
    Kept(
        "wide decimals",
        "TRY_CAST(huge AS BIGINT)",
        lambda d: "CAST(" in d.expression and _has(d, "decimal256") and "int64" in d.theirs,
    ),
    Kept(
        "timestamp constants",
        "date_trunc('hour', timestamp '2020-02-29 00:00:00')",
        lambda d: d.kind == "type" and "timestamp '" in d.expression and "[ns" in d.theirs.split(" [")[0],
    ),
    Kept(
        "dictionaries",
        "coalesce(dict, s)",
        lambda d: d.kind == "type" and _has(d, "dictionary"),
    ),
    Kept(
        "negated floats",
        "NOT (f32 = 1e-7)",
        lambda d: "NOT (" in d.expression and _has(d, "float", "halffloat"),
    ),
    Kept(
        "lists of lists",
        "array_position(deep, NULL)",
        lambda d: (
            "deep" in _columns(d) and bool(re.search(r"(position|indexof|positions|replace\w*|remove\w*)\(", d.expression))
        ),
    ),
)


def _nvl(found: Difference) -> bool:
    """Officially these are text, double or float where coalesce has the type of its arguments."""
    return found.theirs.split(" ")[0] in ("string", "string_view", "large_string", "double", "float")


def _far(found: Difference) -> bool:
    """Before 1677 or after 2262, where nanoseconds do not reach."""
    return "-621355" in found.mine or "25340" in found.mine


def _power(found: Difference) -> bool:
    return _has(found, "decimal") or "decimal" in found.expression.lower() or "1.0)" in found.theirs


def kept(found: Difference) -> str | None:
    """The name of the row that a difference belongs to; None: it is none of them."""
    return next((row.name for row in KEPT if row.holds(found)), None)
