"""Functions that look into JSON: columns of type arrow.json, or texts that are JSON.

::

    doc = {"a": 3, "b": {"c": "x"}, "tags": ["p", 1]}
    json_get_int(doc, 'a') = 3                   json_extract(doc, '$.b.c') = '"x"'          (JSON text: strings have quotes)
    json_get_string(json_get(doc, 'b'), 'c')     json_array_contains(doc, '$.tags', 'p')     json_exists(doc, '$.b')

`json_get…` take one key (or the number of an element), the others a path. What is missing or null is null; a value that does
not convert is an error, as the official library has it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from lance_core.errors import FilterError
from lance_core.expr.coerce import Value, family_of, is_scalar, plain, repeat
from lance_core.expr.json_path import MISSING, parse_path, select

_INT64 = 1 << 63


def json_extract(documents: Value, path: Value) -> Value:
    """The JSON text of what is at a path."""
    steps = parse_path(_constant(path, "json_extract"))
    return _each(documents, "json_extract", lambda value: _json_text(select(value, steps)), pa.string())


def json_exists(documents: Value, path: Value) -> Value:
    """Whether there is anything at a path, null included; null for a null document."""
    steps = parse_path(_constant(path, "json_exists"))
    return _each(documents, "json_exists", lambda value: select(value, steps) is not MISSING, pa.bool_())


def json_get(documents: Value, key: Value) -> Value:
    """What is at a key, as JSON: for further json functions."""
    name = _constant(key, "json_get")
    return _each(documents, "json_get", lambda value: _json_text(_at_key(value, name)), pa.string())


def json_array_length(documents: Value, path: Value) -> Value:
    """How many elements the list at a path has; 0 for what is no list, null for what is missing."""
    steps = parse_path(_constant(path, "json_array_length"))

    def length(value: Any) -> int | None:
        found = select(value, steps)
        return None if found is MISSING else len(found) if isinstance(found, list) else 0

    return _each(documents, "json_array_length", length, pa.int64())


def json_array_contains(documents: Value, path: Value, item: Value) -> Value:
    """Whether the list at a path holds a text, or something whose JSON text it is."""
    steps = parse_path(_constant(path, "json_array_contains"))
    wanted = item.as_py() if isinstance(item, pa.Scalar) else None
    if wanted is None:
        raise FilterError("the value of json_array_contains must be a constant", cure="Pass a string or a number.")
    text = wanted if isinstance(wanted, str) else json.dumps(wanted)

    def contains(value: Any) -> bool:
        found = select(value, steps)
        return isinstance(found, list) and any((one if isinstance(one, str) else _json_text(one)) == text for one in found)

    return _each(documents, "json_array_contains", contains, pa.bool_())


def json_getter(name: str, convert: Callable[[Any], Any], to: pa.DataType) -> Callable[[Value, Value], Value]:
    """A `json_get_…`: what is at a key, converted."""

    def function(documents: Value, key: Value) -> Value:
        wanted = _constant(key, name)

        def get(value: Any) -> Any:
            found = _at_key(value, wanted)
            if found is MISSING or found is None:
                return None
            try:
                return convert(found)
            except (ValueError, TypeError, OverflowError):
                raise FilterError(f"{name}: {_json_text(found)} cannot be converted", cure="Use json_extract.") from None

        return _each(documents, name, get, to)

    return function


def to_text(value: Any) -> str:
    """A string as it is, numbers and truth values as JSON writes them."""
    if isinstance(value, (list, dict)):
        raise TypeError
    return value if isinstance(value, str) else str(_json_text(value))


def to_int(value: Any) -> int:
    """Whole numbers of 64 bits; others are rounded, halves away from zero; texts of numbers count as numbers."""
    if isinstance(value, str):
        value = _number(value)
    if isinstance(value, float):
        value = math.floor(abs(value) + 0.5) * (1 if value >= 0 else -1)
    found = int(_plain(value))
    if not -_INT64 <= found < _INT64:
        raise OverflowError
    return found


def to_float(value: Any) -> float:
    """A number as a double."""
    return float(_number(value) if isinstance(value, str) else _plain(value))


def to_bool(value: Any) -> bool:
    """true and false, and texts that say so."""
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise TypeError
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, (list, dict)):
        raise TypeError
    return value


def _number(text: str) -> int | float:
    if text != text.strip() or "_" in text:
        raise ValueError
    try:
        return int(text)
    except ValueError:
        return float(text)


def _at_key(value: Any, key: str) -> Any:
    if isinstance(value, dict):
        return value.get(key, MISSING)
    if isinstance(value, list) and key.isdigit() and int(key) < len(value):
        return value[int(key)]
    return MISSING


def _json_text(value: Any) -> str | None:
    return None if value is MISSING else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _constant(value: Value, what: str) -> str:
    found = value.as_py() if isinstance(value, pa.Scalar) else None
    if not isinstance(found, str):
        raise FilterError(f"the path of {what} must be a constant", cure="Write it as a string, for example '$.a.b'.")
    return found


def _each(documents: Value, what: str, function: Callable[[Any], Any], to: pa.DataType) -> Value:
    texts = plain(documents)
    if family_of(texts.type) not in ("text", "null"):
        raise FilterError(f"{what} expects JSON, got {documents.type}")
    rows = repeat(texts, 1) if is_scalar(texts) else texts
    found: list[Any] = []
    for text in rows.to_pylist():
        try:
            found.append(None if text is None else function(json.loads(text)))
        except (ValueError, RecursionError) as error:
            if isinstance(error, FilterError):
                raise
            raise FilterError(f"{what}: {text[:60]!r} is not JSON") from None
    result: Value = pa.array(found, to)
    return result[0] if is_scalar(texts) else result
