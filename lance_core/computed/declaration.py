"""A declaration: how a column is computed, as the metadata of its field says it.

::

    declare_column(uri, "doubled", sql="x * 2")
    -> computed_column "true", .kind "sql", .expression "x * 2", .inputs ["x"]            LanceDB's words, which it heeds
       lance_core.column.id "9f2c…"                                                       ties the evidence to this column
       lance_core.column.definition {"version": "", "arguments": {}, …}                   what those words cannot say

The identity of a definition is what its author declares: the expression or the function's name, the inputs, `version`,
arguments, model and revision, `where`. A function's code is not part of it: what it calls cannot be seen, and a comment must
not cost a recomputation. The digest of its module stands beside it, to warn.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from lance_core.computed.policies import DEFAULT_RETRIES, ErrorPolicy, OnError, check_policy
from lance_core.errors import CorruptFileError, InputError, LanceError
from lance_core.format import declared
from lance_core.format.schema import Field, Schema

Kind = Literal["sql", "python"]
_IDENTITY = ("kind", "expression", "inputs", "version", "arguments", "model", "revision", "where")
_TEXTS = ("version", "model", "revision", "where", "code")


@dataclass(frozen=True)
class Declaration:
    """How a column is computed.

    `expression`: SQL, or "module:function". `inputs`: the columns, by dotted path, that it and `where` read; a function gets
    all of them in one batch. `where`: SQL; the other rows are not wanted and hold null. `on_error`, `retries`: what
    becomes of a row for which the function fails (`computed.policies`). `deterministic`: equal inputs give equal values, so
    what was computed for them may stand for them. `cache_bytes`: bytes of values that are kept for that (`computed.cache`).
    `batch_size`, `batch_bytes`, `batch_tokens`: what one call gets at most (`computed.call_sizes`).
    `code` and `packages` warn.
    """

    kind: Kind
    expression: str
    inputs: tuple[str, ...]
    version: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    model: str = ""
    revision: str = ""
    where: str = ""
    on_error: OnError = "fail"
    retries: int = DEFAULT_RETRIES
    batch_size: int | None = None
    batch_bytes: int | None = None
    batch_tokens: int | None = None
    deterministic: bool = True
    cache_bytes: int = 0
    code: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)
    id: str = ""

    @property
    def identity(self) -> bytes:
        """Sixteen bytes that stand for what the author declares: a column of another identity is computed again."""
        told = {name: getattr(self, name) for name in _IDENTITY}
        text = json.dumps(told, sort_keys=True, ensure_ascii=False, allow_nan=False)
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, person=b"lance:definition").digest()

    @property
    def policy(self) -> ErrorPolicy:
        """What is done about an exception of the function."""
        return ErrorPolicy(self.on_error, self.retries)

    def metadata(self) -> dict[str, str]:
        """What the column's field carries."""
        function = {} if self.kind == "sql" else {"function": self.expression}
        rest = {
            **function,
            "version": self.version,
            "arguments": dict(self.arguments),
            "model": self.model,
            "revision": self.revision,
            "where": self.where,
            "on_error": self.on_error if isinstance(self.on_error, str) else dict(self.on_error),
            "retries": self.retries,
            "batch_size": self.batch_size,
            "batch_bytes": self.batch_bytes,
            "batch_tokens": self.batch_tokens,
            "deterministic": self.deterministic,
            "cache_bytes": self.cache_bytes,
            "code": self.code,
            "packages": dict(self.packages),
        }
        return {
            declared.DECLARED: "true",
            declared.KIND: "sql",
            declared.EXPRESSION: self.expression if self.kind == "sql" else _call_of(self.expression, self.inputs),
            declared.INPUTS: json.dumps([*self.inputs]),
            declared.ID: self.id,
            declared.DEFINITION: json.dumps(rest, sort_keys=True),
        }


def _call_of(function: str, inputs: tuple[str, ...]) -> str:
    """A function as LanceDB is shown it. Of the kinds that it knows, sql is the one that leaves other writes alone where it
    cannot compute; a kind that it does not know stops every write to the table."""
    return f"python_function({', '.join([repr(function), *inputs])})"


def declaration_of(item: Field) -> Declaration:
    """The declaration that a field carries, ours or LanceDB's. CorruptFileError where it cannot be read."""
    kind = declared.text_of(item.metadata, declared.KIND)
    if kind != "sql":
        raise InputError(
            f"column {item.name!r} is declared with kind {kind!r}, which this release cannot compute",
            cure="Refresh it with the library that declared it.",
        )
    rest = _rest_of(item)
    _check_policy(item, rest)
    function = _text(item, rest, "function")
    return Declaration(
        kind="python" if function else "sql",
        expression=function or declared.text_of(item.metadata, declared.EXPRESSION),
        inputs=declared.inputs_of(item),
        arguments=_mapping(item, rest, "arguments"),
        packages=_mapping(item, rest, "packages"),
        on_error=rest.get("on_error", "fail"),
        retries=rest.get("retries", DEFAULT_RETRIES),
        batch_size=_size(item, "batch_size", rest.get("batch_size")),
        batch_bytes=_size(item, "batch_bytes", rest.get("batch_bytes")),
        batch_tokens=_size(item, "batch_tokens", rest.get("batch_tokens")),
        deterministic=rest.get("deterministic", True) is not False,
        cache_bytes=_size(item, "cache_bytes", rest.get("cache_bytes") or None) or 0,
        id=declared.text_of(item.metadata, declared.ID),
        **{name: _text(item, rest, name) for name in _TEXTS},
    )


def _check_policy(item: Field, rest: Mapping[str, Any]) -> None:
    try:
        check_policy(rest.get("on_error", "fail"), rest.get("retries", DEFAULT_RETRIES))
    except InputError:
        raise _damaged(item, "on_error") from None


def _rest_of(item: Field) -> Mapping[str, Any]:
    text = declared.text_of(item.metadata, declared.DEFINITION)
    try:
        rest = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        rest = None
    if not isinstance(rest, dict):
        raise _damaged(item, declared.DEFINITION)
    return rest


def _mapping(item: Field, rest: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = rest.get(name, {})
    if not isinstance(value, dict):
        raise _damaged(item, name)
    return value


def _text(item: Field, rest: Mapping[str, Any], name: str) -> str:
    value = rest.get(name, "")
    if not isinstance(value, str):
        raise _damaged(item, name)
    return value


def _size(item: Field, name: str, value: Any) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return value
    raise _damaged(item, name)


def _damaged(item: Field, what: str) -> CorruptFileError:
    return CorruptFileError(f"the declaration of column {item.name!r} is damaged: {what} is not what it must be")


def find_declared(schema: Schema, name: str) -> Field:
    """The field of a declared column. InputError when it is none."""
    item = next((item for item in declared.declared_fields(schema) if item.name == name), None)
    if item is None:
        known = ", ".join(item.name for item in declared.declared_fields(schema)) or "none"
        raise InputError(f"column {name!r} is not declared", cure=f"Declared columns: {known}.")
    return item


def caching_columns(schema: Schema) -> set[str]:
    """The ids of declared columns that keep values, or may; what cannot be read counts as one."""
    found = set()
    for item in declared.declared_fields(schema):
        column_id = declared.text_of(item.metadata, declared.ID)
        try:
            keeps = declaration_of(item).cache_bytes > 0
        except LanceError:
            keeps = True
        if keeps and declared.is_column_id(column_id):
            found.add(column_id)
    return found


def in_order(schema: Schema) -> list[str]:
    """Declared columns, each after those that it reads. InputError for a circle."""
    waits = {
        item.name: {path.partition(".")[0] for path in declared.inputs_of(item)} for item in declared.declared_fields(schema)
    }
    ordered: list[str] = []
    while len(ordered) < len(waits):
        ready = [name for name, inputs in waits.items() if name not in ordered and not inputs & (waits.keys() - {*ordered})]
        if not ready:
            circle = sorted(waits.keys() - {*ordered})
            raise InputError(f"declared columns {', '.join(circle)} read each other", cure="Undeclare one of them.")
        ordered += ready
    return ordered
