"""Spark DDL schema text -> Arrow, for jobs that run without Spark.

::

    "id BIGINT NOT NULL, tags ARRAY<STRING>, at TIMESTAMP"
    -> id: int64 not null, tags: list<string>, at: timestamp[us, UTC]
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from lance_core.errors import InputError

_TOKEN = re.compile(r"\s*(`(?:[^`]|``)+`|[A-Za-z_][\w]*|\d+|[<>(),:])")

_SIMPLE: Mapping[str, Any] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "byte": pa.int8(),
    "smallint": pa.int16(),
    "short": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "varchar": pa.string(),
    "char": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ltz": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


def parse_ddl(text: str) -> pa.Schema:
    """An Arrow schema from DDL text. InputError shows the position of the error."""
    parser = _Parser(text)
    fields = parser.fields(end=None)
    return pa.schema(fields)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._at = 0

    def fields(self, *, end: str | None) -> list[Any]:
        found = []
        while True:
            found.append(self._field())
            if self._peek() != ",":
                break
            self._next()
        self._expect(end)
        return found

    def _field(self) -> Any:
        name = self._next()
        if not name or name in "<>(),:":
            raise self._error("a column name", name)
        if self._peek() == ":":
            self._next()
        kind = self._type()
        nullable = True
        if self._peek().lower() == "not":
            self._next()
            if self._next().lower() != "null":
                raise self._error("NULL after NOT", "")
            nullable = False
        return pa.field(name.strip("`").replace("``", "`"), kind, nullable=nullable)

    def _type(self) -> Any:
        name = self._next().lower()
        if name == "array":
            self._expect("<")
            item = self._type()
            self._expect(">")
            return pa.list_(item)
        if name == "map":
            self._expect("<")
            key = self._type()
            self._expect(",")
            value = self._type()
            self._expect(">")
            return pa.map_(key, value)
        if name == "struct":
            self._expect("<")
            return pa.struct(self.fields(end=">"))
        numbers = self._numbers() if self._peek() == "(" else []
        if name in ("decimal", "dec", "numeric"):
            precision, scale = ([*numbers, 0] if len(numbers) == 1 else numbers) or (10, 0)
            return pa.decimal128(precision, scale)
        if name not in _SIMPLE:
            raise self._error("a type", name)
        return _SIMPLE[name]

    def _numbers(self) -> list[int]:
        self._expect("(")
        found = [int(self._next())]
        while self._peek() == ",":
            self._next()
            found.append(int(self._next()))
        self._expect(")")
        return found

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def _expect(self, token: str | None) -> None:
        found = self._next()
        if found != (token or ""):
            raise self._error(repr(token) if token else "the end", found)

    def _error(self, expected: str, got: str) -> InputError:
        return InputError(
            f"schema {self._text!r}: expected {expected}, got {got or 'the end'!r}",
            cure='Write Spark DDL, such as "id BIGINT, name STRING".',
        )


def _tokens(text: str) -> list[str]:
    tokens, at = [], 0
    stripped = text.rstrip()
    while at < len(stripped):
        match = _TOKEN.match(stripped, at)
        if match is None:
            raise InputError(f"schema {text!r}: unexpected {stripped[at:]!r}")
        tokens.append(match.group(1))
        at = match.end()
    return tokens
