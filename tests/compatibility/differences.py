"""The differences from the official library that are kept, each with the narrow rule by which the sweep knows it.

`docs/differences.md` tells users of the same rows; a test compares the two. A rule looks at the functions and operators of
the expression, at the types of its columns, and at what the two answers are.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tests.compatibility.expression_sweep import Difference, Sweep, smallest

_UNIT = re.compile(r"(timestamp|duration|time32|time64)\[(\w+)")
_FINE = ("s", "ms", "us", "ns")
_FAR_PARTS = ("year", "month", "day", "hour", "minute", "second")


@dataclass(frozen=True)
class Kept:
    """`name` as in the table of the page; `example` shows it, `holds` says whether a difference found is of this kind."""

    name: str
    example: str
    holds: Callable[[Difference], bool]


def _calls(found: Difference, *names: str) -> bool:
    return bool(re.search(rf"\b({'|'.join(names)})\(", found.expression))


def _columns(found: Difference) -> dict[str, str]:
    """The columns of the expression with their types."""
    return dict(re.findall(r"(\w+): ([a-z0-9_]+(?:\[[^\]]*\])?(?:\([^)]*\))?(?:<[^>]*>)?)", found.types))


def _has(found: Difference, *families: str) -> bool:
    return any(kind.startswith(families) for kind in _columns(found).values())


def _type(answer: str) -> str:
    """The type of an answer: what stands before its values."""
    return answer.partition(" [")[0]


def _unit_of(answer: str) -> str:
    units = [unit for _, unit in _UNIT.findall(_type(answer))]
    return units[0] if units else ""


def _units(found: Difference) -> bool:
    """Two times of different units, put together: theirs is the coarser, or says that two are equal which are not."""
    kinds = _columns(found).values()
    units = {unit for kind in kinds for _, unit in _UNIT.findall(kind)}
    text = found.expression
    units |= {"us"} if "timestamp '" in text or "AS TIMESTAMP" in text.upper() or "interval '" in text else set()
    units |= {"d"} if any(kind.startswith("date") for kind in kinds) or " AS DATE)" in text or "date '" in text else set()
    units |= {unit[0].lower() for unit in re.findall(r"'(?:Timestamp|Duration|Time\d\d)\((\w+)", text)}
    units |= {"n"} if re.search(r"\b(to_timestamp\w*|date_trunc|from_unixtime)\(", text) else set()
    if not (len(units) > 1 and _PUT_TOGETHER.search(text)):
        return False
    mine, theirs = _unit_of(found.mine), _unit_of(found.theirs)
    if "month_day_nano" in found.theirs:
        return False
    if found.kind == "refused":
        return "out of bounds" in found.mine or "overflow" in found.mine
    coarser = bool(mine and theirs) and _FINE.index(theirs) < _FINE.index(mine)
    return coarser or (
        found.kind in ("value", "rows") and not (mine and theirs and mine == theirs and "duration" not in theirs)
    )


_PUT_TOGETHER = re.compile(
    r" (=|!=|<|<=|>|>=|\+|-|IN|BETWEEN) | IS (NOT )?DISTINCT |"
    r"\b(coalesce|nullif|greatest|least|make_array|make_list|nvl|nvl2|ifnull|array_\w+|list_\w+)\(",
    re.IGNORECASE,
)
_TEXTS = ("string", "string_view", "large_string")


def _nvl(found: Difference) -> bool:
    """Officially a text, or a number that is none of the arguments' types."""
    if not _calls(found, "nvl", "ifnull"):
        return False
    if "interval '" in found.expression and "secs" in found.mine:
        return "secs" in found.theirs
    return _type(found.theirs) in (*_TEXTS, "double", "float") and _type(found.mine) != _type(found.theirs)


def _text_types(found: Difference) -> bool:
    """Texts of 64-bit offsets together with dictionaries: officially views of texts."""
    mine, theirs = _type(found.mine), _type(found.theirs)
    views = {
        mine.replace("large_string", "string"),
        theirs.replace("large_string", "string").replace("string_view", "string"),
    }
    return found.kind == "type" and len(views) == 1 and _has(found, "large_string", "dictionary")


def _arguments(found: Difference, name: str) -> list[str]:
    """The arguments of the first call of a function."""
    begin = re.search(rf"\b{name}\(", found.expression)
    if begin is None:
        return []
    depth, parts = 0, [""]
    for letter in found.expression[begin.end() :]:
        depth += (letter in "([") - (letter in ")]")
        if depth < 0:
            break
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _nvl2(found: Difference) -> bool:
    """The test is of another type than both results."""
    given, known = _arguments(found, "nvl2"), _columns(found)
    kinds = [known.get(part, part) for part in given]
    return len(kinds) == 3 and kinds[0] not in kinds[1:] and found.kind != "broken"


def _date_bin(found: Difference) -> bool:
    """Before 1677 or after 2262, where nanoseconds do not reach."""
    return _calls(found, "date_bin") and ("-621355" in found.mine or "25340" in found.mine)


def _power(found: Difference) -> bool:
    """Of a decimal, or of null to the power of nothing."""
    if not _calls(found, "pow", "power"):
        return False
    base = (_arguments(found, "power") or _arguments(found, "pow") or [""])[0]
    is_decimal = "decimal" in _columns(found).get(base, base).lower() or "decimal" in _type(found.theirs)
    return is_decimal or ("None)" in found.mine and ("1.0)" in found.theirs or "bool" in found.theirs))


def _narrow(found: Difference) -> bool:
    """An operation on whole numbers below a function or another operator, or one whose result does not fit."""
    if not (_has(found, *_NARROW) or _calls(found, "length", "char_length", "octet_length", "strpos", "levenshtein")):
        return False
    if found.kind == "refused":
        return bool(re.search("does not fit|not in range|is not a supported operation", found.mine))
    nested = _reckons_inside(found.expression) or re.search(r"-\(?\w+\b", found.expression) is not None
    return found.kind in ("value", "rows") and nested and not _has(found, "halffloat")


_NARROW = ("int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64", "int64")


def _reckons_inside(text: str) -> bool:
    """Whether an operator stands within parentheses, at any depth."""
    depth = [text.count("(", 0, at.start()) - text.count(")", 0, at.start()) for at in re.finditer(r" (\+|-|\*|<<) ", text)]
    return any(each > 0 for each in depth)


def _half(found: Difference) -> bool:
    """Half floats together with whole numbers or decimals that they do not hold."""
    others = _has(found, *_NARROW, "decimal", "list<item: int", "large_list<item: int")
    operates = re.search(r" (\+|-|\*|/|%) |\w\(", found.expression)
    if "'Float16'" in found.expression and re.search(r"\b\d{5,}\b", found.expression):
        return found.kind in ("value", "rows", "refused")  # a constant beside one
    return _has(found, "halffloat") and others and operates is not None and found.kind in ("value", "rows", "refused")


def _nested_constant(found: Difference) -> bool:
    """A comparison of a column of floats with a constant below NOT, IS TRUE, CASE or a function."""
    names = "|".join(name for name, kind in _columns(found).items() if kind in ("float", "halffloat"))
    number = r"-?\d*\.?\d+(?:e-?\d+)?"
    operator = r"\s*(?:=|!=|<|<=|>|>=|(?:NOT )?IN|(?:NOT )?BETWEEN|IS (?:NOT )?DISTINCT FROM)\s*\(?"
    beside = rf"\b(?:{names}){operator}{number}|{number}{operator}\b(?:{names})\b|nullif\((?:{names}), {number}"
    return bool(names) and re.search(beside, found.expression) is not None and found.kind in ("value", "rows")


def _zoned_minus(found: Difference) -> bool:
    """A point in time with a zone less one that has none, or the other way round."""
    zoned = any("tz=" in kind for kind in _columns(found).values())
    bare = any(kind.startswith(("timestamp", "date")) and "tz=" not in kind for kind in _columns(found).values())
    literal = re.search(
        r"(timestamp|date) '|AS (DATE|TIMESTAMP)\)|date_trunc\('\w+', '|to_timestamp\w*\('", found.expression, re.IGNORECASE
    )
    zoned = zoned or "Some(" in found.expression
    return zoned and (bare or literal is not None) and " - " in found.expression and "duration" in found.theirs


def _zeros(found: Difference) -> bool:
    """A comparison of floats, none of them a constant, where one of the rows has a zero."""
    compares = re.search(r" (=|!=|<|<=|>|>=|IN|BETWEEN|FROM) \(?(-?[a-zA-Z(])|\bnullif\(", found.expression)
    may_be_null = " IN (" in found.expression and not _has(found, "fixed_size_list")
    nulls = _type(found.theirs) == "bool" and _only(found.theirs, "None") and not may_be_null
    if re.search(r"\(0\.0, ?-0\.0\)|\(-0\.0, ?0\.0\)", found.expression):
        return found.kind == "value"
    made = re.search(r"AS (FLOAT|DOUBLE|REAL)\)", found.expression, re.IGNORECASE) is not None
    return (
        compares is not None
        and not nulls
        and (made or _has(found, "double", "float", "halffloat", "list<item: double", "fixed_size_list<item: float"))
        and found.kind in ("value", "rows")
    )


def _of_another_length(found: Difference) -> bool:
    """A column of lists of one length beside a constant list: nulls officially, where one is longer."""
    operator = r"\s*(?:=|!=|<|<=|>|>=|(?:NOT )?IN|(?:NOT )?BETWEEN)\s*"
    beside = re.search(rf"\bvec{operator}\(?\[|\]{operator}vec\b", found.expression)
    return beside is not None and "]" in found.types and _only(found.theirs, "None") and "bool" in found.theirs


def _only(answer: str, *values: str) -> bool:
    """Whether all rows that differ have one of some values."""
    rows = re.findall(r"\(\d+, (.*?)\)(?=[,\]])", answer)
    return bool(rows) and set(rows) <= {*values}


def _null_in_list(found: Difference) -> bool:
    """A list that the expression makes, and a null for false, or no row where false is not."""
    names = ("array_has", "array_contains", "list_has", "list_contains")
    lists = [_arguments(found, name)[0] for name in names if _arguments(found, name)]
    constant = any(not {*re.findall(r"\w+", each)} & {*_columns(found)} for each in lists)
    if constant and _only(found.theirs, "False") and _only(found.mine, "None"):
        return True  # of an empty one
    made = any(each.startswith(("[", "make_array(", "make_list(")) for each in lists)
    if made and any("0.0" in each and "NULL" in each for each in lists):
        return _only(found.theirs, "None", "True") and _only(found.mine, "False")  # zeros are equal there as well
    return made and _only(found.theirs, "None") and _only(found.mine, "False")


def _without_items(found: Difference) -> bool:
    """Whether lists share items, of a null list where no row's list has any."""
    return _calls(found, "array_has_any", "list_has_any", "arrays_overlap") and (
        _only(found.theirs, "False") and _only(found.mine, "None")
    )


def _sliced(found: Difference) -> bool:
    """Something put to a slice of a null list."""
    puts = _calls(found, r"(?:array|list)_(?:append|prepend|concat|cat)")
    return puts and _calls(found, "array_slice", "list_slice") and found.kind == "value" and "None" in found.theirs


def _nan(found: Difference) -> bool:
    """A NaN that was reckoned in a list that is put in order, or the logarithm of a single float beside other numbers."""
    single = any(kind == "float" for kind in _columns(found).values()) and _calls(found, "ln", r"log\w*")
    if _calls(found, "greatest", "least") and single and found.kind == "value":
        return "nan" in found.mine + found.theirs
    orders = _calls(found, r"(?:array|list)_(?:min|max|sort)")
    reckons = re.search(r" (\+|-|\*|/|%) |\b(ln|log\w*|sqrt|power|pow|atan2|acos|asin)\(", found.expression)
    return orders and reckons is not None and found.kind == "value" and "nan" in found.mine + found.theirs


def _without_arguments(name: str, text: str) -> str:
    """The text with nothing in the parentheses of the calls of a function.

    >>> _without_arguments("round", "round(abs(a), 0) + round(b)")
    'round() + round()'
    """
    made, depth = "", 0
    for letter in text:
        depth -= depth > 0 and letter == ")"
        made += "" if depth else letter
        depth += letter == "(" and (depth > 0 or made.endswith(f"{name}("))
    return made


def _rounded(found: Difference) -> bool:
    """Rounded decimals beside others: here with the digits of these, there often without, and then these are cut."""
    beside = re.search(r"\b(coalesce|nvl|ifnull|nvl2|nullif|greatest|least|make_array|CASE)\b.*\bround\(", found.expression)
    operates = re.search(r"round\(\) [-+*/%] |[-+*/%] \(?round\(", _without_arguments("round", found.expression))
    kinds = [re.search(r"decimal\d+\(\d+, (-?\d+)\)", _type(answer)) for answer in (found.mine, found.theirs)]
    if (beside is None and operates is None) or None in kinds:
        return False
    scales = [int(kind[1]) for kind in kinds if kind is not None]
    return found.kind == "type" or (found.kind == "value" and scales[1] < scales[0])


def _counted(found: Difference) -> bool:
    """A number that becomes a point in time below a function."""
    below = re.search(r"\w\(.*CAST\([^()']*(\([^()]*\)[^()']*)? AS timestamp\)", found.expression, re.IGNORECASE)
    return below is not None and found.kind in ("value", "rows") and _has(found, *_NARROW, "double", "float", "decimal")


def _is_century(found: Difference) -> bool:
    """Texts that are the same but for the century of five-digit years: `:0` for 100."""
    pairs = zip(_texts_of(found.mine), _texts_of(found.theirs), strict=False)
    return all(re.fullmatch(re.sub(r":(\d)", r"(?::\1|10\1)", re.escape(theirs)), mine) for mine, theirs in pairs)


def _texts_of(answer: str) -> list[str]:
    return re.findall(r"\(\d+, '([^']*)'\)", answer)


def _formats(found: Difference) -> bool:
    """A constant date by formats that differ from row to row."""
    date, form = (_arguments(found, "to_char") or _arguments(found, "date_format") or ["", ""])[:2]
    constant = re.match(r"(date|time|timestamp) '|(TRY_)?CAST\('", date, re.IGNORECASE)
    return constant is not None and found.kind == "value" and bool(_columns(found)) and not re.fullmatch(r"'[^']*'", form)


def _named_zone(found: Difference) -> bool:
    """A column of a zone beside a constant that names one."""
    names = re.search(r"timestamp '[^']*(Z|[+-]\d\d:?\d\d)'", found.expression, re.IGNORECASE)
    zoned = any("tz=" in kind for kind in _columns(found).values())
    return names is not None and zoned and found.kind in ("value", "rows")


def _time_beside_date(found: Difference) -> bool:
    """A date beside a constant text that names a time of day as well."""
    is_date = _has(found, "date") or re.search(r"\bdate '|AS DATE\)", found.expression, re.IGNORECASE) is not None
    return (
        is_date and re.search(r"'\d{4}-\d\d-\d\d[T ]\d\d:", found.expression) is not None and found.kind in ("value", "rows")
    )


def _hour_alone(found: Difference) -> bool:
    """A format that has hours and no minutes."""
    reads = _calls(found, r"to_timestamp\w*", "to_unixtime", "to_date")
    return reads and re.search("%[HkIl]", found.expression) is not None and re.search("%[MTRrXc]", found.expression) is None


KEPT = (
    Kept("zones of constants", "z_nyc < timestamp '2024-10-27T01:00:00Z'", _named_zone),
    Kept("subtraction across zones", "z_ind - ts_us", _zoned_minus),
    Kept("units", "ts_s = ts_ms", _units),
    Kept("durations", "dur_s + dur_ms", lambda d: "month_day_nano_interval" in d.theirs),
    Kept("nvl", "nvl(d32, d32)", _nvl),
    Kept("nvl2", "nvl2(s, 1, 2)", _nvl2),
    Kept(
        "contains_tokens",
        "contains_tokens(s, t)",
        lambda d: not (_arguments(d, "contains_tokens") or ["", "'"])[1].startswith("'"),
    ),
    Kept("date_bin", "date_bin(interval '1' day, ts_s)", _date_bin),
    Kept("power", "power(dec, 2)", _power),
    Kept(
        "log of itself",
        "log(f64, f64)",
        lambda d: len(_arguments(d, "log")) == 2 and (len({*_arguments(d, "log")}) == 1 or _arguments(d, "log")[-1] == "1"),
    ),
    Kept(
        "length of bytes",
        "length(raw)",
        lambda d: _calls(d, "length", "char_length", "character_length") and _has(d, "binary", "large_b"),
    ),
    Kept("narrow integers", "(i8 + i8) << 1", _narrow),
    Kept("half floats", "f16 + u16", _half),
    Kept("trunc", "trunc(i64, 1)", lambda d: _calls(d, "trunc") and _type(d.theirs) == "float"),
    Kept(
        "empty text",
        "TRY_CAST(s AS DECIMAL(10, 2))",
        lambda d: (
            bool(re.search(r"CAST\(.* AS DECIMAL", d.expression, re.IGNORECASE)) and "None)]" in d.mine and "0" in d.theirs
        ),
    ),
    Kept(
        "wide decimals",
        "TRY_CAST(huge AS BIGINT)",
        lambda d: (
            _has(d, "decimal")
            and (
                ("_CAST(" in d.expression.upper() and _has(d, "decimal256") and "None)" in d.mine)
                or (_calls(d, r"to_timestamp\w*") and "out of the range" in d.mine)
            )
        ),
    ),
    Kept(
        "timestamp constants",
        "date_trunc('hour', timestamp '2020-02-29 00:00:00')",
        lambda d: (
            re.search("arrow_cast\\(timestamp '", d.expression) is not None
            or (
                d.kind == "type"
                and re.search("timestamp '|AS TIMESTAMP", d.expression, re.I) is not None
                and "[ns" in _type(d.theirs)
                and "[us" in _type(d.mine)
            )
        ),
    ),
    Kept("timestamps of numbers", "to_unixtime(CAST(i32 AS timestamp))", _counted),
    Kept("formats of a constant", "to_char(date '2020-02-29', s)", _formats),
    Kept("long texts", "replace(dict, s, ls)", _text_types),
    Kept("dictionaries", "coalesce(dict, s)", lambda d: d.kind == "type" and "dictionary<" in _type(d.theirs)),
    Kept("zeros of two columns", "f64 = -f64", _zeros),
    Kept("constants beside floats", "NOT (f32 = 1e-7)", _nested_constant),
    Kept(
        "lists of other items",
        "lll >= [1.5]",
        lambda d: (
            len(re.findall("list<|list_size|\\[2\\]", d.types)) + d.expression.count("[") > 1
            and bool(re.search(r" (<|<=|>|>=) ", d.expression))
            and "bool" in d.theirs
        ),
    ),
    Kept("lists of another length", "vec = [1.5]", _of_another_length),
    Kept(
        "lists of lists",
        "array_position(deep, NULL)",
        lambda d: (
            "list<item: list" in d.types
            and bool(
                re.search(
                    r"\w*(position|indexof|positions)\(|(replace\w*|remove\w*)\((deep, (li|ll|lll),|.*NULL)", d.expression
                )
            )
        ),
    ),
    Kept(
        "far years",
        "date_part('year', to_timestamp_micros(i64))",
        lambda d: (
            (_calls(d, "date_part", "datepart", *_FAR_PARTS) and _only(d.theirs, "None") and d.kind == "value")
            or (_calls(d, "to_char", "date_format") and "%C" in d.expression and _is_century(d))
        ),
    ),
    Kept("nulls of a list", "array_has([NULL, 2], i32)", _null_in_list),
    Kept("lists without items", "array_has_any(make_array(t), string_to_array(left(s, 0), t))", _without_items),
    Kept("slices of null", "array_append(array_slice(li, 0, -1), 7)", _sliced),
    Kept("signs of NaN", "array_min(make_array(f64 - f64, 1.0))", _nan),
    Kept("rounded decimals", "coalesce(round(dec, 0), dec)", _rounded),
    Kept(
        "parts of durations",
        "date_part('epoch', dur_ms)",
        lambda d: _calls(d, "date_part", "datepart", "extract") and _has(d, "duration[ms", "duration[us", "duration[ns"),
    ),
    Kept("hours without minutes", "to_timestamp('2020-01-02 03', '%Y-%m-%d %H')", _hour_alone),
    Kept("times beside dates", "nullif(d32, '2020-02-29T12:30:00')", _time_beside_date),
    Kept("smallest integer", "CAST(-9223372036854775808 AS string)", lambda d: "-9223372036854775808" in d.expression),
    Kept(
        "hours of a date",
        "arrow_cast('2020-02-29T12:30:45Z', 'Date64')",
        lambda d: (
            "'Date64'" in d.expression
            and "date64" in d.mine
            and re.search(r"\('date', -?\d+\.0*[1-9]", d.theirs) is not None
        ),
    ),
    Kept(
        "lists of nulls",
        "array_remove([NULL], NULL)",
        lambda d: "list<item: null>" in _type(d.mine) and _calls(d, r"(array|list)_(concat|cat|union|remove\w*)"),
    ),
)


def explained(sweep: Sweep, found: Difference) -> str | None:
    """The name of the row that a difference of an expression belongs to, however much of the expression differs.

    It is one of a row where it begins (see `smallest`), and on the row's twin the whole expression has no difference but
    those of other rows.
    """
    begin = smallest(sweep, found)
    return next((row.name for row in KEPT if row.holds(begin) and _is_gone(sweep, row.name, found)), None)


def _is_gone(sweep: Sweep, name: str, found: Difference) -> bool:
    """Whether the twin of a row has no difference of the expression but those of other rows."""
    twin, expression = sweep.plain(name, found.expression)
    left = [smallest(twin, each) for each in twin.differences(expression) if each.kind != "refused"]
    return all(any(row.name != name and row.holds(each) for row in KEPT) for each in left)


def kept(found: Difference) -> str | None:
    """The name of the row that a difference belongs to; None: it is none of them."""
    return next((row.name for row in KEPT if row.holds(found)), None)
