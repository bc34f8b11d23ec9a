"""A query of an engine's SQL in which expressions are computed as this library computes them: division of integers, casts,
rounding, decimals.

::

    SELECT u.n / 4 AS q FROM users u JOIN s USING (id)
        ->  SELECT lance_1(u.n) AS q FROM users u JOIN s USING (id)        lance_1: `c0 / 4` over c0: int64

The engine joins, groups, sorts and counts; operators and functions that it may answer otherwise become functions of ours,
each for the types that its operands have there. An operand may be anything that the engine computes, such as a sum. What has
no meaning of ours stays the engine's: an unknown function, types that only it has, arithmetic of dates and times.

Importing this file imports sqlglot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Protocol

import pyarrow as pa
from sqlglot import exp, parse
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import SqlglotError

from lance_core.errors import FilterError
from lance_core.expr import ast
from lance_core.expr.ast import Expr
from lance_core.expr.column_constants import constant_beside
from lance_core.expr.evaluate import evaluate_value, type_of
from lance_core.expr.parse import translate_tree
from lance_core.expr.query_rules import differs, is_candidate

Evaluate = Callable[[Sequence[Any]], Any]
"""Columns of one length, at least one, to the column of results."""
_PARSERS = ("CAST", "TRY_CAST", "EXTRACT")
_CONSTANTS = (exp.Literal, exp.Null, exp.Boolean)
_CLOSED = (exp.Query, exp.DataType, exp.Identifier, exp.Column, exp.Interval, exp.Lambda, exp.Star, exp.Var, *_CONSTANTS)
"""What has no operands to look into."""
_ARITHMETIC = (exp.Mul, exp.Div, exp.Add, exp.Sub, exp.Mod)
_BESIDE_COLUMNS = (*_ARITHMETIC, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In)
_SAFE = (exp.Column, exp.Identifier, exp.Paren, exp.Connector, exp.Not, exp.Predicate, *_CONSTANTS)
"""What fails for no row."""
_UNSTEADY = frozenset({"random", "uuid", "gen_random_uuid", "uuidv4", "uuidv7", "nextval", "currval"})
_MOST_GUARDED = 100
"""Operands of one AND or OR; the engine bounds how deep expressions are."""
_BY_ALIAS = (exp.Order, exp.Having, exp.Qualify)
"""Clauses in which a name is first that of a result."""


class SqlEngine(Protocol):
    """What rewriting asks of an engine."""

    def describe(self, query: str) -> pa.Field[Any] | None:
        """Name and type of a query's only column; None for a query that the engine refuses."""

    def type_name(self, found: Any) -> str | None:
        """The engine's name of a type; None for one that it does not have."""

    def add_function(self, name: str, types: Sequence[Any], result: Any, evaluate: Evaluate) -> None:
        """Offer a function."""


class EngineSql(DuckDB):
    """DuckDB's grammar; calls keep their names and arguments."""

    class Parser(DuckDB.Parser):  # type: ignore[misc, valid-type]
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: rule for name, rule in DuckDB.Parser.FUNCTION_PARSERS.items() if name in _PARSERS
        }
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}


def in_our_meaning(query: str, engine: SqlEngine) -> str:
    """The query with functions of ours, which the engine is offered; as it was where it needs none, and where its grammar
    is not known."""
    try:
        trees = parse(query, dialect=EngineSql)
        if len(trees) != 1 or trees[0] is None:
            return query
        rewriter = _Rewriter(engine)
        made = rewriter.query(trees[0])
        return _text(made) if rewriter.changed else query
    except (SqlglotError, RecursionError):
        return query


def _text(node: Any) -> str:
    return str(node.sql(dialect=EngineSql, normalize_functions=False))


class _Rewriter:
    """Rewrites the expressions of one statement; each function is offered once."""

    def __init__(self, engine: SqlEngine) -> None:
        self.changed = False
        self._engine = engine
        self._names: dict[tuple[Expr, pa.Schema], str] = {}
        self._made: dict[int, tuple[Any, Any]] = {}
        """By the identity of a node, which is kept with it: its type, where it is ours."""
        self._described: dict[str, pa.Field[Any] | None] = {}

    def query(self, tree: Any) -> Any:
        """The tree; queries that others read are rewritten first."""
        for scope in _scopes(tree):
            for root in [*_roots(scope)]:
                name = self._name(root, scope)
                made = self._root(root, scope)
                if made is not root:
                    self.changed = True
                    root.replace(made if name is None else exp.alias_(made, name, quoted=True))
        return tree

    def _root(self, root: Any, scope: Any) -> Any:
        if isinstance(root, exp.Literal) and not root.is_string and _is_column(root):
            # Numbers are int64 or doubles here; there they are int32 or decimals.
            return exp.cast(root.copy(), "bigint" if str(root.this).isdecimal() else "double")
        return self._expression(root, scope)

    def _name(self, root: Any, scope: Any) -> str | None:
        """What the engine calls a column of a result to which the query gives no name."""
        if root.arg_key != "expressions" or root.parent is not scope or isinstance(root, (exp.Column, exp.Star)):
            return None
        found = self._describe(root, scope)
        return None if found is None else found.name

    def _expression(self, node: Any, scope: Any) -> Any:
        """The node, its operands rewritten, or what stands in its place."""
        if _is_constant(node):
            return node
        if _is_choice(node) and (found := self._choice(node, scope)) is not None:
            return found
        if isinstance(node, _BESIDE_COLUMNS):
            self._settle_constants(node, scope)
        for child in [*_operands(node)]:
            made = self._expression(child, scope)
            if made is not child:
                self.changed = True
                child.replace(made)
        if isinstance(node, (exp.And, exp.Or)) and type(node.parent) is not type(node):
            return self._guarded(node)
        if not is_candidate(node):
            return node
        may_fail = _is_choice(node) and not all(map(_never_fails, _operands(node)))
        return self._typed(node, scope) if may_fail else self._call(node, scope)

    def _settle_constants(self, node: Any, scope: Any) -> None:
        """Put one constant for quotients of constants right of a column: of floats and decimals 1 / 2 is 0.5."""
        if isinstance(node, _ARITHMETIC) and not _is_whole(node):
            return
        given = node.expressions if isinstance(node, exp.In) else [node.expression]
        quotients = [child for child in given if _is_quotient(child)]
        if not quotients or not isinstance(node.this, exp.Column):
            return
        kind = self._type(node.this, scope)
        if kind is None or not (pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
            return
        for child in quotients:
            found = constant_beside(kind, translate_tree(child.copy(), pa.schema([])))
            if isinstance(found, ast.Literal):
                made: Any = exp.Literal.number(repr(found.value))
            elif isinstance(found, ast.Cast) and isinstance(found.item, ast.Literal):
                made = exp.cast(
                    exp.Literal.number(str(found.item.value)), f"decimal({', '.join(map(str, found.parameters))})"
                )
            else:
                continue
            self.changed = True
            child.replace(made)

    def _call(self, node: Any, scope: Any) -> Any:
        """The call that stands in the place of an operator or a function; the node where the engine's answer stands."""
        found = self._meaning(node, scope)
        if found is None:
            return node
        expr, schema, names = found
        operands = [child for child in _operands(node) if not _is_constant(child)]
        given = [exp.cast(child.copy(), name, dialect=EngineSql) for child, name in zip(operands, names, strict=False)]
        result = _result_of(expr, schema)
        made = exp.Anonymous(this=self._function(expr, schema, result), expressions=given or [exp.Literal.number(0)])
        self._made[id(made)] = made, result
        return made

    def _typed(self, node: Any, scope: Any) -> Any:
        """A choice that stays the engine's, which computes a branch for its own rows only, as one of our type."""
        found = self._meaning(node, scope)
        if found is None:
            return node
        expr, schema, names = found
        for branch in [*_branches(node)]:
            branch.replace(exp.cast(branch.copy(), names[-1], dialect=EngineSql))
        self.changed = True
        self._made[id(node)] = node, _result_of(expr, schema)
        return node

    def _guarded(self, node: Any) -> Any:
        """AND and OR, which the engine may compute in any order: what may fail is computed for rows that what never fails,
        and what stands before it, leave open. `b AND a` is `a AND CASE WHEN a IS FALSE THEN FALSE ELSE b END`, whatever is
        null. Of three or more each is inside the one before it, so nothing is computed more than twice."""
        operands = [*node.flatten(unnest=False)]
        harmless = [each for each in operands if _never_fails(each)]
        others = [each for each in operands if not _never_fails(each)]
        calls = [number for number, each in enumerate(others) if any(id(inner) in self._made for inner in each.walk())]
        if not calls or len(operands) < 2 or len(others) > _MOST_GUARDED:
            return node
        joined, answer = (exp.and_, exp.false) if isinstance(node, exp.And) else (exp.or_, exp.true)

        def unless(settled: Any, rest: Any) -> Any:
            known = exp.Is(this=exp.paren(settled.copy()), expression=answer())
            return exp.Case(ifs=[exp.If(this=known, true=answer())], default=rest)

        made = others[-1]
        for number, each in reversed([*enumerate(others[:-1])]):
            is_guard = number < calls[-1] and _is_steady(each)
            made = unless(each, joined(each, made)) if is_guard else joined(each, made)
        if harmless:
            settled = joined(*harmless)
            made = joined(settled, unless(settled, made))
        self.changed = True
        return made

    def _meaning(self, node: Any, scope: Any) -> tuple[Expr, pa.Schema, list[str]] | None:
        """What an operator or a function means here, over columns of its operands' types, and the engine's names of them and
        of the result; None where the engine's answer stands."""
        types = [self._type(child, scope) for child in _operands(node) if not _is_constant(child)]
        if any(found is None for found in types):
            return None
        schema = pa.schema([pa.field(f"c{number}", found) for number, found in enumerate(types)])
        try:
            expr = translate_tree(_pattern(node), schema, whole=_is_whole(node) or not _bends(types))
            result = _result_of(expr, schema)
        except FilterError:
            return None
        names = [self._engine.type_name(found) for found in (*types, result)]
        if None in names or not differs(node, types, result, lambda: self._type(node, scope)):
            return None
        return expr, schema, [str(name) for name in names]

    def _choice(self, node: Any, scope: Any) -> Any:
        """A CASE or coalesce whose branches we compute, as one call: no branch is for rows that another one takes."""
        if node.find(exp.Query, exp.AggFunc, exp.Window, exp.Lambda) is not None or not any(
            is_candidate(inner) for child in _operands(node) for inner in child.walk()
        ):
            return None
        leaves = [*node.find_all(exp.Column)]
        types = [self._type(leaf, scope) for leaf in leaves]
        if not leaves or any(found is None for found in types):
            return None
        schema = pa.schema([pa.field(f"c{number}", found) for number, found in enumerate(types)])
        made = node.copy()
        for number, leaf in enumerate([*made.find_all(exp.Column)]):
            leaf.replace(exp.column(f"c{number}"))
        try:
            expr = translate_tree(made, schema, whole=False)
            result = _result_of(expr, schema)
        except FilterError:
            return None
        names = [self._engine.type_name(found) for found in (*types, result)]
        branches = [self._type(child, scope) for child in _operands(node) if not _is_constant(child)]
        if None in names or None in branches or not differs(node, branches, result, lambda: self._type(node, scope)):
            return None
        given = [exp.cast(leaf.copy(), str(name), dialect=EngineSql) for leaf, name in zip(leaves, names, strict=False)]
        call = exp.Anonymous(this=self._function(expr, schema, result), expressions=given)
        self._made[id(call)] = call, result
        return call

    def _function(self, expr: Expr, schema: pa.Schema, result: Any) -> str:
        """The name of a function that computes an expression."""
        key = expr, schema
        if key not in self._names:
            name = self._names[key] = f"lance_{len(self._names) + 1}"
            self._engine.add_function(name, schema.types or [pa.int32()], result, _evaluate(expr, schema, result))
        return self._names[key]

    def _type(self, node: Any, scope: Any) -> Any:
        """What the engine is given as an operand; None where that cannot be known."""
        inner = node
        while isinstance(inner, exp.Paren):
            inner = inner.this
        if id(inner) in self._made:
            return self._made[id(inner)][1]
        if isinstance(node, exp.Column) and not node.table and _is_result(node, scope):
            return None
        found = self._describe(node, scope)
        return None if found is None else found.type

    def _describe(self, node: Any, scope: Any) -> pa.Field[Any] | None:
        """Name and type of an expression where it stands, or in a query around it."""
        around = scope
        while True:
            text = _text(_alone(node, around))
            if text not in self._described:
                self._described[text] = self._engine.describe(text)
            found = self._described[text]
            around = None if around is None else around.find_ancestor(exp.Select)
            if found is not None or around is None:
                return found


def _result_of(expr: Expr, schema: pa.Schema) -> Any:
    result = type_of(expr, schema)
    return pa.string() if result == pa.large_string() else result


def _evaluate(expr: Expr, schema: pa.Schema, result: Any) -> Evaluate:
    def evaluate(columns: Sequence[Any]) -> Any:
        arrays = [column.cast(kind) for column, kind in zip(columns, schema.types, strict=False)]
        batch = pa.RecordBatch.from_arrays(arrays, schema=schema) if arrays else _rows(len(columns[0]))
        found = evaluate_value(expr, batch)
        return found if found.type == result else found.cast(result)

    return evaluate


def _rows(count: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(count)], names=["c0"])


def _scopes(tree: Any) -> Iterator[Any]:
    """The queries of a statement, each after those that it may read."""
    first = [tree.args.get(name) for name in ("with_", "with", "from_", "from", "joins", "laterals")]
    seen: list[Any] = []
    for part in (*first, *tree.args.values()):
        for child in part if isinstance(part, list) else [part]:
            if isinstance(child, exp.Expression) and not any(child is other for other in seen):
                seen.append(child)
                yield from _scopes(child)
    if isinstance(tree, (exp.Select, exp.Values)):
        yield tree


def _roots(scope: Any) -> Iterator[Any]:
    """The whole expressions of a query: its columns, conditions, groups, orders."""
    if isinstance(scope, exp.Values):
        for row in scope.expressions:
            yield from row.expressions if isinstance(row, exp.Tuple) else ()
        return
    yield from (column.this if isinstance(column, exp.Alias) else column for column in scope.expressions)
    for star in (column.this if isinstance(column, exp.Column) else column for column in scope.expressions):
        named = star.args.get("replace") or star.args.get("replace_") if isinstance(star, exp.Star) else None
        yield from (item.this for item in named or ())
    yield from (scope.args[name].this for name in ("where", "having", "qualify") if scope.args.get(name))
    yield from (join.args["on"] for join in scope.args.get("joins") or () if join.args.get("on"))
    for name in ("group", "order"):
        for item in scope.args[name].expressions if scope.args.get(name) else ():
            yield item.this if isinstance(item, exp.Ordered) else item


def _is_column(root: Any) -> bool:
    """Whether a whole expression is a value of a result, and not the number of a column to order by."""
    holder = root.parent if isinstance(root.parent, exp.Alias) else root
    return holder.arg_key == "expressions" and isinstance(holder.parent, (exp.Select, exp.Tuple))


def _operands(node: Any) -> Iterator[Any]:
    """The expressions right below a node; branches of a CASE are below it."""
    if isinstance(node, _CLOSED):
        return
    for part in node.args.values():
        for child in part if isinstance(part, list) else [part]:
            if isinstance(child, exp.If) and isinstance(node, exp.Case):
                yield from _operands(child)
            elif isinstance(child, exp.Expression) and not isinstance(child, (exp.DataType, exp.Identifier, exp.Var)):
                yield child


def _is_choice(node: Any) -> bool:
    """Whether not all operands are for all rows."""
    return node.key in ("case", "if") or (
        node.key == "anonymous" and str(node.this).lower() in ("coalesce", "ifnull", "nvl")
    )


def _branches(choice: Any) -> Iterator[Any]:
    """The values among the operands of a choice, one of which is the result."""
    if isinstance(choice, exp.Case):
        yield from (branch.args["true"] for branch in choice.args["ifs"])
        yield from (part for part in (choice.args.get("default"),) if part is not None)
    elif isinstance(choice, exp.If):
        yield from (part for name in ("true", "false") if (part := choice.args.get(name)) is not None)
    else:
        yield from choice.expressions


def _never_fails(node: Any) -> bool:
    """Whether an operand may be computed for rows that do not need it: columns, constants, and how they compare."""
    return all(isinstance(inner, _SAFE) or _is_typed_constant(inner) for inner in node.walk(prune=_is_typed_constant))


def _is_steady(node: Any) -> bool:
    """Whether computing an operand twice gives the same, at no great price."""
    return not any(
        isinstance(inner, exp.Query) or (isinstance(inner, exp.Anonymous) and str(inner.this).lower() in _UNSTEADY)
        for inner in node.walk()
    )


def _is_typed_constant(node: Any) -> bool:
    return isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal)


def _bends(types: Sequence[Any]) -> bool:
    """Whether a constant beside such columns is another where it takes their type."""
    return any(pa.types.is_float32(found) or pa.types.is_decimal(found) for found in types)


def _is_whole(node: Any) -> bool:
    """Whether an expression stands alone, or below AND and OR: there a constant takes the type of a column of floats."""
    around = node.parent
    while isinstance(around, (exp.Paren, exp.And, exp.Or, exp.Alias)):
        around = around.parent
    scope = node.find_ancestor(exp.Select)
    group = None if scope is None else scope.args.get("group")
    if isinstance(around, exp.AggFunc) or (group is not None and node in group.expressions):
        return True  # what a query groups by is one value wherever it stands
    return not isinstance(around, (exp.Binary, exp.Unary, exp.Func, exp.Case, exp.If, exp.In, exp.Between, exp.Cast))


def _is_constant(node: Any) -> bool:
    inner = node.this if isinstance(node, (exp.Neg, exp.Paren)) else node
    return isinstance(inner, (*_CONSTANTS, exp.Interval))


def _is_quotient(node: Any) -> bool:
    """Whether a node is arithmetic on numbers that are written out, with a division."""
    inner = node.unnest()
    parts = [*inner.walk()] if isinstance(inner, exp.Binary) else []
    known = all(isinstance(part, (*_ARITHMETIC, exp.Paren, exp.Neg, exp.Literal)) for part in parts)
    return known and any(isinstance(part, exp.Div) for part in parts)


def _pattern(node: Any) -> Any:
    """The node over columns c0, c1, ... in the places of its operands."""
    made = node.copy()
    found = [child for child in _operands(made) if not _is_constant(child)]
    for number, child in enumerate(found):
        inner = child
        while isinstance(inner, exp.Paren):
            inner = inner.this
        column = exp.column(f"c{number}")
        # A constant takes the type of a column beside it, and not that of another expression.
        child.replace(column if isinstance(inner, exp.Column) else exp.Anonymous(this="coalesce", expressions=[column]))
    return made


def _is_result(column: Any, scope: Any) -> bool:
    """Whether a name may be that of a result, in a clause where it would mean that."""
    if column.find_ancestor(*_BY_ALIAS, exp.Select) is scope:
        return False
    names = {item.alias.lower() for item in scope.expressions if isinstance(item, exp.Alias)}
    return column.name.lower() in names


def _alone(node: Any, scope: Any) -> Any:
    """A query for one expression over what the query reads."""
    made = exp.Select(expressions=[node.copy()])
    if scope is None:
        return made
    for name in ("from_", "from", "joins", "laterals"):
        part = scope.args.get(name)
        if part:
            made.set(name, [item.copy() for item in part] if isinstance(part, list) else part.copy())
    tables: dict[str, Any] = {}
    recursive, at = False, scope
    while at is not None:
        found = at.args.get("with_") or at.args.get("with")
        if found is not None:
            recursive = recursive or bool(found.args.get("recursive"))
            tables = {item.alias.lower(): item for item in found.expressions} | tables
        at = at.parent
    if tables:
        key = "with_" if "with_" in exp.Select.arg_types else "with"
        made.set(key, exp.With(expressions=[item.copy() for item in tables.values()], recursive=recursive))
    return made
