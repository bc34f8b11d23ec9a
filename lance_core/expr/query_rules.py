"""Where an engine's answer to an expression may be another than ours, so that ours has to stand in its query.

::

    n / 4          integers divide with a rest in DuckDB          CAST(2.5 AS INT)    it rounds to 3, or to 2
    i32 + 1        an int32 there, an int64 here                   n * 0.1             a decimal there, a double here

Where both answer alike, the engine's stays: it can be pushed into a scan, and it is faster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

Native = Callable[[], Any]
"""The type that the engine gives an expression; None where it refuses it."""
Rule = Callable[[Any, Sequence[Any], Any, Native], bool]


def kind_of(found: Any) -> str:
    """What two types have to share for the engine and us to compute alike."""
    for kind, test in _KINDS.items():
        if test(found):
            return kind
    return "other"


def _is_int(found: Any) -> bool:
    return bool(pa.types.is_integer(found))


def _is_text(found: Any) -> bool:
    return bool(pa.types.is_string(found) or pa.types.is_large_string(found))


_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "int": _is_int,
    "float32": pa.types.is_float32,
    "float64": pa.types.is_float64,
    "decimal": pa.types.is_decimal,
    "text": _is_text,
    "bool": pa.types.is_boolean,
    "date": pa.types.is_date,
    "timestamp": pa.types.is_timestamp,
    "null": pa.types.is_null,
}
_NUMBERS = frozenset({"int", "float32", "float64", "decimal"})
_ALIKE = (frozenset({"int", "float64"}), frozenset({"int", "decimal"}), frozenset({"bool"}), frozenset({"text"}))
"""Kinds whose values both compare alike."""
_LOSSLESS = frozenset(
    {
        ("int", "int"), ("int", "float64"), ("int", "float32"), ("int", "decimal"), ("int", "text"), ("float32", "float64"),
        ("float64", "float32"), ("float32", "float32"), ("float64", "float64"), ("text", "text"), ("bool", "bool"),
        ("bool", "int"), ("bool", "text"), ("int", "bool"), ("date", "text"),
    }
)  # fmt: skip
"""(from, to): casts with one outcome, or an error in both."""


def is_candidate(node: Any) -> bool:
    """Whether ours may be another answer, whatever the types."""
    return node.key in _RULES and (node.key != "anonymous" or str(node.this).lower() in _FUNCTIONS)


def differs(node: Any, types: Sequence[Any], result: Any, native: Native) -> bool:
    """Whether ours may be another answer over operands of these types; `result` is the type that ours has."""
    return _RULES[node.key](node, [kind_of(found) for found in types], result, native)


def _calculation(_: Any, kinds: Sequence[str], result: Any, native: Native) -> bool:
    return _NUMBERS.issuperset(kinds) and kind_of(result) in _NUMBERS and native() != result


def _division(_: Any, kinds: Sequence[str], result: Any, __: Native) -> bool:
    return _NUMBERS.issuperset(kinds) and kind_of(result) in _NUMBERS


def _cast(_: Any, kinds: Sequence[str], result: Any, __: Native) -> bool:
    to = kind_of(result)
    simple = to in _NUMBERS or to in ("text", "bool")
    return simple and all((kind, to) not in _LOSSLESS and kind not in ("null", "other") for kind in kinds)


def _comparison(node: Any, kinds: Sequence[str], _: Any, __: Native) -> bool:
    found = {*kinds, *_literal_kinds(node)}
    return bool(found) and found <= (_NUMBERS | {"text"}) and not any(found <= alike for alike in _ALIKE) and len(found) > 1


def _choice(_: Any, kinds: Sequence[str], result: Any, native: Native) -> bool:
    return kind_of(result) in _NUMBERS and not {*kinds} & {"other", "timestamp", "date"} and native() != result


def _joined(_: Any, kinds: Sequence[str], result: Any, __: Native) -> bool:
    return kind_of(result) == "text" and bool({*kinds} & {"float32", "float64", "decimal", "timestamp"})


def _pattern(node: Any, kinds: Sequence[str], _: Any, __: Native) -> bool:
    is_plain = node.expression.key == "literal" and node.expression.is_string and "\\" not in node.expression.this
    return {*kinds} <= {"text"} and not is_plain


def _call(node: Any, kinds: Sequence[str], result: Any, native: Native) -> bool:
    return _FUNCTIONS[str(node.this).lower()](node, kinds, result, native)


def _rounded(node: Any, kinds: Sequence[str], result: Any, __: Native) -> bool:
    # As a result a whole number stays one, which a column of integers takes.
    whole = {*kinds} <= {"int"} if kinds else all(_is_whole_literal(part) for part in node.expressions[:1])
    is_result = node.parent is not None and node.parent.key in ("select", "alias") and whole
    return _NUMBERS.issuperset(kinds) and kind_of(result) in _NUMBERS and not is_result


def _is_whole_literal(node: Any) -> bool:
    literal = node.this if node.key == "neg" else node
    return literal.key == "literal" and str(literal.this).isdecimal()


def _text_of(_: Any, kinds: Sequence[str], result: Any, __: Native) -> bool:
    return kind_of(result) in ("text", "int") and {*kinds} <= (_NUMBERS | {"text", "bool", "timestamp"})


def _literal_kinds(node: Any) -> set[str]:
    found = set()
    for part in (node.this, *(node.args.get(name) for name in ("expression", "low", "high")), *node.expressions):
        literal = part.this if part is not None and part.key == "neg" else part
        if literal is not None and literal.key == "literal":
            whole = str(literal.this).isdecimal()
            found.add("text" if literal.is_string else "int" if whole else "float64")
    return found


_FUNCTIONS: Mapping[str, Rule] = {
    **dict.fromkeys(("abs", "mod", "signum", "factorial", "gcd", "lcm", "power", "pow"), _calculation),
    **dict.fromkeys(("round", "trunc", "floor", "ceil", "log"), _rounded),
    **dict.fromkeys(("coalesce", "greatest", "least", "nullif", "ifnull", "nvl", "nvl2", "if"), _choice),
    **dict.fromkeys(("concat", "concat_ws"), _joined),
    **dict.fromkeys(
        ("upper", "lower", "initcap", "reverse", "trim", "btrim", "ltrim", "rtrim", "replace", "translate"), _text_of
    ),
    **dict.fromkeys(("substr", "substring", "left", "right", "lpad", "rpad", "split_part", "strpos", "instr"), _text_of),
}
_RULES: Mapping[str, Rule] = {
    **dict.fromkeys(("add", "sub", "mul", "neg"), _calculation),
    **dict.fromkeys(("div", "mod"), _division),
    **dict.fromkeys(("cast", "trycast"), _cast),
    **dict.fromkeys(("eq", "neq", "lt", "lte", "gt", "gte", "nullsafeeq", "nullsafeneq", "in", "between"), _comparison),
    **dict.fromkeys(("case", "if"), _choice),
    **dict.fromkeys(("like", "ilike"), _pattern),
    "dpipe": _joined,
    "anonymous": _call,
}
