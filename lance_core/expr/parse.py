"""SQL text to `ast`: sqlglot parses the grammar; its tree is translated by a table and names are resolved by a schema.

::

    parse_filter("`Odd Name` >= 3 and kind in ('a', 'b')", schema)

Names are plain or in backticks; both quotes make text, as the official library has it (`name = "x"`). Names match
exactly, else without case. The finished filter is evaluated on no rows, so that wrong types fail here and not in the
middle of a scan.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from lance_core.errors import FilterError
from lance_core.expr import ast
from lance_core.expr.ast import Expr
from lance_core.expr.column_constants import beside_columns
from lance_core.expr.evaluate import type_of
from lance_core.expr.literals import decode_hex, parse_instant, parse_interval, parse_number
from lance_core.expr.long_lists import cut_long_lists
from lance_core.expr.system import SYSTEM_COLUMNS

MAX_CHARACTERS = 16 << 20
MAX_DEPTH = 256
MAX_OPERATORS = 5000
_PIECES = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|[()\[\]]|\b(?:and|or|not|case)\b", re.IGNORECASE)
Lists = Mapping[str, tuple[ast.Literal, ...]]
_NO_LISTS: Lists = MappingProxyType({})
_JOIN = "To compare with many values, use IN (...) or join with a table of the values."


def parse_filter(sql: str, schema: pa.Schema) -> Expr:
    """The filter in `sql` (what may follow WHERE), names resolved in `schema`.

    Raises FilterError: text that is no filter, with its position; an unknown column, with those that are near; an operation
    the types do not have; a filter whose result is not boolean.
    """
    expr = parse_value(sql, schema)
    if isinstance(expr, ast.Call) and expr.name == "regexp_match":
        # As a condition it means: there is a match.
        expr = ast.Not(ast.IsNull(expr))
    found = type_of(expr, schema)
    if not (pa.types.is_boolean(found) or pa.types.is_null(found)):
        raise FilterError(
            f"the filter {sql!r} returns {found}, expected a boolean", cure="Add a comparison, for example `x > 0`."
        )
    return expr


def parse_value(sql: str, schema: pa.Schema) -> Expr:
    """Any SQL expression over the columns of `schema`, for computed columns. Raises FilterError as `parse_filter` does."""
    if not isinstance(sql, str) or not sql.strip():
        raise FilterError(
            f"expected an SQL expression, got {sql!r}",
            cure='Omit the filter to read all rows; "true" selects all in a delete or an update.',
        )
    if len(sql) > MAX_CHARACTERS:
        check_size(sql)
    tree, lists = _tree_and_lists(sql)
    try:
        expr = beside_columns(ast.settled(_Translator(sql, schema, lists).translate(tree)), schema)
        type_of(expr, schema)
    except FilterError as error:
        if sql in str(error):
            raise
        raise FilterError(f"{str(error).rstrip('.')} (in the expression {_shorten(sql)!r})") from None
    except RecursionError:
        raise _too_deep(sql) from None
    return expr


def translate_tree(tree: Any, schema: pa.Schema, *, whole: bool = True) -> Expr:
    """A tree of sqlglot's, of this dialect or of one with its kinds of nodes. Raises FilterError as `parse_value` does.

    `whole`: it stands alone, or below AND and OR, where a constant takes the type of the column beside it.
    """
    return beside_columns(ast.settled(_Translator("", schema).translate(tree), whole=whole), schema, whole=whole)


def check_size(sql: str) -> None:
    """FilterError for text that is too long, too deep, or has too many operators; in time that grows with its length."""
    if len(sql) > MAX_CHARACTERS:
        raise FilterError(f"the filter has {len(sql):,} characters, the limit is {MAX_CHARACTERS:,}", cure=_JOIN)
    depth = deepest = operators = 0
    for match in _PIECES.finditer(sql):
        piece = match.group()
        if piece in "([":
            depth += 1
            deepest = max(deepest, depth)
        elif piece in ")]":
            depth -= 1
        elif piece[0] not in "'\"`":
            operators += 1
    if deepest > MAX_DEPTH:
        raise _too_deep(sql)
    if operators > MAX_OPERATORS:
        raise FilterError(f"the filter has {operators:,} ANDs, ORs and NOTs, the limit is {MAX_OPERATORS:,}", cure=_JOIN)


def _tree_and_lists(sql: str) -> tuple[Any, Lists]:
    """The tree and the long lists that it has marks for. An error tells places of the whole text."""
    short, lists = cut_long_lists(sql)
    check_size(short)
    if lists:
        with suppress(FilterError):
            return _parse_tree(short), lists
    return _parse_tree(sql), {}


def _parse_tree(sql: str) -> Any:
    from sqlglot.errors import SqlglotError

    from lance_core.expr.dialect import parse_tree

    try:
        return parse_tree(sql)
    except RecursionError:
        raise _too_deep(sql) from None
    except SqlglotError as error:
        raise FilterError(f"cannot parse {_shorten(sql)!r}: {_explain(error)}", cure=_SYNTAX_CURE) from None


_SYNTAX_CURE = (
    "Write the expression as after WHERE; put names with spaces or dots in backticks and strings in single quotes."
)


def _explain(error: Any) -> str:
    """What sqlglot found, with where it found it."""
    details = getattr(error, "errors", None)
    if not details:
        return str(error).splitlines()[0]
    first = details[0]
    line, col, highlight = first.get("line"), first.get("col"), first.get("highlight")
    description = str(first.get("description", error))
    if "missing for" in description:
        description = "an operand is missing"
    return f"{description} at line {line}, column {col}, near {highlight!r}"


def _too_deep(sql: str) -> FilterError:
    return FilterError(f"the filter {_shorten(sql)!r} is nested too deeply", cure="Use IN (...) or fewer parentheses.")


def _shorten(sql: str) -> str:
    return sql if len(sql) <= 200 else sql[:197] + "..."


class _Translator:
    """Turns sqlglot nodes into ours; one method or table row per kind of node."""

    def __init__(self, sql: str, schema: pa.Schema, lists: Lists = _NO_LISTS) -> None:
        self._sql = sql
        self.lists = lists
        self._schema = schema

    def translate(self, node: Any) -> Expr:
        kind = type(node).__name__
        if kind in _COMPARISONS:
            return ast.Compare(
                _COMPARISONS[kind], _compared(self.translate(node.this)), _compared(self.translate(node.expression))
            )
        if kind in _ARITHMETIC:
            return ast.Arithmetic(_ARITHMETIC[kind], self.translate(node.this), self.translate(node.expression))
        handler = _HANDLERS.get(kind)
        if handler is None:
            raise FilterError(f"{node.sql()!r} is not supported in a filter", cure=_SUPPORTED)
        return handler(self, node)

    def all(self, nodes: Iterable[Any]) -> tuple[Expr, ...]:
        return tuple(self.translate(node) for node in nodes)

    def chain(self, node: Any, kind: str) -> tuple[Expr, ...]:
        """Operands of a run of the same connector; sqlglot nests them to the left, thousands deep."""
        operands: list[Any] = []
        pending = [node]
        while pending:
            current = pending.pop()
            while type(current).__name__ == "Paren":
                current = current.this
            if type(current).__name__ == kind:
                pending.extend((current.expression, current.this))
            else:
                operands.append(current)
        return self.all(operands)

    def column(self, names: Sequence[str]) -> Expr:
        """Resolve a path of names; what follows the column descends into structs."""
        head = _match(names[0], self._schema.names)
        if head is None:
            system = _match(names[0], list(SYSTEM_COLUMNS))
            if system is not None and len(names) == 1:
                return ast.Column((system,))
            raise self._unknown(names[0], ".".join(names), [*self._schema.names])
        path = [head]
        field_type = self._schema.field(head).type
        for name in names[1:]:
            known = [item.name for item in field_type] if pa.types.is_struct(field_type) else []
            found = _match(name, known)
            if found is None:
                raise self._unknown(name, ".".join(names), known)
            path.append(found)
            field_type = field_type.field(field_type.get_field_index(found)).type
        return ast.Column(tuple(path))

    def _unknown(self, name: str, full: str, known: Sequence[str]) -> FilterError:
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        at = self._sql.find(name)
        where = f" at position {at}" if at >= 0 else ""
        what = f"no column {full!r}{where}" if full == name else f"no field {name!r} in {full!r}{where}"
        listing = ", ".join(f"`{item}`" for item in (near or list(known)[:20]))
        cure = f"Did you mean {listing}?" if near else f"Known: {listing or 'nothing below it'}."
        text = f" A text has single quotes: '{name}'." if full == name and not near else ""
        return FilterError(what, cure=cure + text)


def _compared(expr: Expr) -> Expr:
    """A side of a comparison: `-(5)` is the constant -5, and `TIMESTAMP '...'` that names a zone, which a cast would forget,
    is that instant."""
    if isinstance(expr, ast.Negate) and isinstance(expr.item, ast.Literal) and type(expr.item.value) is int:
        return ast.Literal(-expr.item.value)
    if not isinstance(expr, ast.Cast) or expr.safe or expr.parameters or expr.type not in ("timestamp", "datetime"):
        return expr
    text = expr.item.value if isinstance(expr.item, ast.Literal) else None
    instant = parse_instant(text) if isinstance(text, str) else None
    return expr if instant is None or instant.zone is None else ast.Literal(instant)


def _match(name: str, known: Sequence[str]) -> str | None:
    """The known name that is meant: exact first, else the only one that differs by case alone."""
    if name in known:
        return name
    folded = [item for item in known if item.lower() == name.lower()]
    return folded[0] if len(folded) == 1 else None


def _names(node: Any) -> list[str] | None:
    """The path of names of a Column or of a Dot on one; None when it starts at something else."""
    kind = type(node).__name__
    if kind == "Column":
        return [part.name for part in node.parts]
    if kind == "Dot":
        below = _names(node.this)
        return None if below is None else [*below, node.expression.name]
    if kind == "Bracket" and len(node.expressions) == 1 and node.expressions[0].is_string:
        below = _names(node.this)
        return None if below is None else [*below, node.expressions[0].this]
    return None


_WITHOUT_BRACKETS = frozenset({"current_date", "current_time", "current_timestamp"})


def _column(translator: _Translator, node: Any) -> Expr:
    names = _names(node)
    if names is None:
        raise FilterError(f"{node.sql()!r} is not supported in a filter", cure=_SUPPORTED)
    if len(names) == 1 and names[0].lower() in _WITHOUT_BRACKETS and not node.this.args.get("quoted"):
        return ast.Call(names[0].lower(), ())  # as the official library has it; a column of this name takes backticks
    return translator.column(names)


def _bracket(translator: _Translator, node: Any) -> Expr:
    if _names(node) is not None:
        return _column(translator, node)
    if len(node.expressions) != 1:
        raise FilterError(f"{node.sql()!r} is not supported in a filter", cure="Use one index, counted from 1.")
    return ast.Element(translator.translate(node.this), translator.translate(node.expressions[0]))


def _literal(_: _Translator, node: Any) -> Expr:
    return ast.Literal(node.this if node.is_string else parse_number(node.this))


def _hex(_: _Translator, node: Any) -> Expr:
    return ast.Literal(decode_hex(node.this))


def _interval(_: _Translator, node: Any) -> Expr:
    amount, unit = node.this, node.args.get("unit")
    return ast.Literal(parse_interval("" if amount is None else amount.name, "" if unit is None else unit.name))


def _negate(translator: _Translator, node: Any) -> Expr:
    item = translator.translate(node.this)
    number = item.value if isinstance(item, ast.Literal) and type(node.this).__name__ != "Paren" else None
    if isinstance(number, (int, float)) and not isinstance(number, bool):
        return ast.Literal(-number)
    return ast.Negate(item)  # also `-(1)`: it takes no type of a column beside it


def _is(translator: _Translator, node: Any) -> Expr:
    item, what = translator.translate(node.this), node.expression
    kind = type(what).__name__
    if kind == "Null":
        return ast.IsNull(item)
    if kind == "Boolean":
        return ast.IsBool(item, bool(what.this))
    raise FilterError(f"{node.sql()!r} is not supported in a filter", cure="IS takes NULL, NOT NULL, TRUE or FALSE.")


def _in(translator: _Translator, node: Any) -> Expr:
    if node.args.get("query") is not None or node.args.get("unnest") is not None or not node.expressions:
        raise FilterError(f"{node.sql()!r} is not supported in a filter", cure="IN needs a list of at least one value.")
    first = node.expressions[0]
    values = translator.lists.get(first.this) if type(first).__name__ == "Literal" and first.is_string else None
    found = tuple(map(_compared, translator.all(node.expressions))) if values is None else values
    return _negated(node, ast.In(translator.translate(node.this), found))


def _between(translator: _Translator, node: Any) -> Expr:
    item = translator.translate(node.this)
    low, high = (_compared(translator.translate(node.args[name])) for name in ("low", "high"))
    return _negated(node, ast.And((ast.Compare(">=", item, low), ast.Compare("<=", item, high))))


def _like(translator: _Translator, node: Any) -> Expr:
    if type(node.expression).__name__ in ("Any", "All"):
        raise FilterError(f"{node.sql()!r} is not supported in a filter", cure="Join several LIKEs with OR.")
    ignore_case = type(node).__name__ == "ILike"
    like = ast.Like(translator.translate(node.this), translator.translate(node.expression), ignore_case)
    return _negated(node, like)


def _escape(translator: _Translator, node: Any) -> Expr:
    character = node.expression.this if node.expression.is_string else ""
    like = translator.translate(node.this)
    if len(character) != 1:
        raise FilterError(f"ESCAPE takes one character, got {node.expression.sql()}")
    if isinstance(like, ast.Not) and isinstance(like.item, ast.Like):
        return ast.Not(replace(like.item, escape=character))
    if isinstance(like, ast.Like):
        return replace(like, escape=character)
    raise FilterError("ESCAPE may only follow LIKE or ILIKE")


def _negated(node: Any, expr: Expr) -> Expr:
    # Newer sqlglot marks NOT IN, NOT LIKE on the node itself, older ones wrap it in Not.
    return ast.Not(expr) if node.args.get("negate") else expr


def _cast(translator: _Translator, node: Any) -> Expr:
    target = node.args["to"]
    parameters = tuple(int(item.name) for item in target.expressions if item.name.isdigit())
    name = target.this.value if hasattr(target.this, "value") else str(target.this)
    return ast.Cast(translator.translate(node.this), str(name).lower(), parameters, safe=type(node).__name__ == "TryCast")


def _call(translator: _Translator, node: Any) -> Expr:
    return ast.Call(str(node.this).lower(), translator.all(node.expressions))


def _case(translator: _Translator, node: Any) -> Expr:
    subject = node.args.get("this")
    default = node.args.get("default")
    result: Expr = ast.Literal(None) if default is None else translator.translate(default)
    for branch in reversed(node.args["ifs"]):
        test = translator.translate(branch.this)
        condition = test if subject is None else ast.Compare("=", translator.translate(subject), test)
        result = ast.Call("if", (condition, translator.translate(branch.args["true"]), result))
    return result


def _if(translator: _Translator, node: Any) -> Expr:
    otherwise = node.args.get("false")
    default = ast.Literal(None) if otherwise is None else translator.translate(otherwise)
    return ast.Call("if", (translator.translate(node.this), translator.translate(node.args["true"]), default))


def _distinct(negated: bool) -> Callable[[_Translator, Any], Expr]:
    return lambda t, n: ast.Distinct(t.translate(n.this), t.translate(n.expression), negated)


_COMPARISONS = {"EQ": "=", "NEQ": "!=", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
_ARITHMETIC = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "IntDiv": "/", "Mod": "%", "DPipe": "||"}
_ARITHMETIC |= {"BitwiseLeftShift": "<<", "BitwiseRightShift": ">>"}
_HANDLERS: dict[str, Callable[[_Translator, Any], Expr]] = {
    "Column": _column,
    "Dot": _column,
    "Bracket": _bracket,
    "Literal": _literal,
    "HexString": _hex,
    "Interval": _interval,
    "Boolean": lambda _, node: ast.Literal(bool(node.this)),
    "Null": lambda _, node: ast.Literal(None),
    "Paren": lambda t, node: t.translate(node.this),
    "And": lambda t, node: ast.And(t.chain(node, "And")),
    "Or": lambda t, node: ast.Or(t.chain(node, "Or")),
    "Not": lambda t, node: ast.Not(t.translate(node.this)),
    "Neg": _negate,
    "Is": _is,
    "NullSafeEQ": _distinct(True),
    "NullSafeNEQ": _distinct(False),
    "In": _in,
    "Between": _between,
    "Like": _like,
    "ILike": _like,
    "Escape": _escape,
    "Cast": _cast,
    "TryCast": _cast,
    "Anonymous": _call,
    "Array": lambda t, node: ast.ListOf(t.all(node.expressions)),
    "Case": _case,
    "If": _if,
}
_SUPPORTED = (
    "Filters support comparisons, AND, OR, NOT, IS NULL, IS TRUE, IN, BETWEEN, LIKE, ILIKE, CASE, CAST, arithmetic, `||`, "
    "`a.b`, `list[1]` and the functions in the documentation."
)
