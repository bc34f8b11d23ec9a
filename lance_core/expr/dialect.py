"""The SQL dialect of filters: backticks make names, both quotes make text, backslash is a plain character.

::

    s like 'b\\%' and "x" = `x`       two texts, one name

sqlglot's own function table is emptied, so that every call arrives as (name, arguments) and no dialect rewrites it.
Importing this file imports sqlglot (about 0.2 s); `parse` does so on first use.

Words that name a column where an operand is expected, as the official library reads them: `and = 2`, `x > case`.

The parser knows them as operators and clauses. Between operands they are; where an operand has to begin they cannot be.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, ClassVar

from sqlglot import parser, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel, ParseError

_IS: Any = vars(tokens)["TokenType"].IS


_NAMES = frozenset(
    {
        "ALTER", "ANALYZE", "BEGIN", "CACHE", "COMMENT", "COMMIT", "COPY", "CREATE", "CROSS", "DELETE", "DESC",
        "DESCRIBE", "DROP", "EXCEPT", "FETCH", "FOR", "GRANT", "HAVING", "INNER", "INSERT", "INTERSECT", "INTO",
        "JOIN", "KILL", "LATERAL", "LOAD", "MERGE", "ON", "OUTER", "PIVOT", "PRAGMA", "QUALIFY", "RETURNING", "REVOKE",
        "ROLLBACK", "SET", "TABLESAMPLE", "TRUNCATE", "UNCACHE", "UNION", "UNPIVOT", "UPDATE", "USE", "USING", "WHERE",
    }
)  # fmt: skip
"""Words of statements: an expression has none of them, so they name columns, as in the official library."""


class LanceFilters(Dialect):
    """See the module."""

    class Tokenizer(tokens.Tokenizer):
        IDENTIFIERS: ClassVar[list[Any]] = ["`"]
        QUOTES: ClassVar[list[Any]] = ["'", '"']
        STRING_ESCAPES: ClassVar[list[str]] = ["'", '"']
        HEX_STRINGS: ClassVar[list[Any]] = [("x'", "'"), ("X'", "'"), ("0x", "")]
        COMMANDS: ClassVar[set[Any]] = set()
        KEYWORDS: ClassVar[dict[str, Any]] = {
            word: token for word, token in tokens.Tokenizer.KEYWORDS.items() if word not in _NAMES
        }

    class Parser(parser.Parser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: rule for name, rule in parser.Parser.FUNCTION_PARSERS.items() if name in ("CAST", "TRY_CAST")
        }
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
        RANGE_PARSERS: ClassVar[dict[Any, Any]] = {
            token: rule for token, rule in parser.Parser.RANGE_PARSERS.items() if token is not _IS
        }

        def _parse_equality(self, *args: Any, **kwargs: Any) -> Any:
            # sqlglot binds IS tighter than comparisons; SQL reads `a > b IS NULL` as `(a > b) IS NULL`.
            found = super()._parse_equality(*args, **kwargs)
            while found is not None and self._match(_IS):
                found = self._parse_is(found)
            return found


def parse_tree(sql: str) -> Any:
    """The one expression in `sql` as sqlglot's tree. Raises sqlglot's errors."""
    dialect = LanceFilters()
    found = dialect.parser(error_level=ErrorLevel.IMMEDIATE).parse(with_names(dialect.tokenize(sql)), sql)
    if len(found) != 1 or found[0] is None:
        raise ParseError("expected exactly one expression")
    return found[0]


_T: Any = vars(tokens)["TokenType"]


def _kinds(names: str) -> frozenset[Any]:
    return frozenset(getattr(_T, name) for name in names.split() if hasattr(_T, name))


_ALWAYS = _kinds(
    "AND OR ALIAS BETWEEN LIKE ILIKE RLIKE GLOB XOR DISTINCT ELSE THEN WHEN FROM SELECT WITH NOTNULL SIMILAR_TO"
)
"""Nothing that begins an operand."""
_UNLESS_FOLLOWED = _kinds("NOT CASE ANY")
"""What may begin an operand: a name only before what must have an operand in front of it."""
_AFTER_OPERAND = frozenset(
    {_T.EQ, _T.NEQ, _T.GT, _T.GTE, _T.LT, _T.LTE, _T.IS, _T.IN, _T.BETWEEN, _T.LIKE, _T.ILIKE, _T.AND, _T.OR, _T.R_PAREN}
)
_BEFORE_OPERAND = frozenset(
    {
        _T.EQ, _T.NEQ, _T.GT, _T.GTE, _T.LT, _T.LTE, _T.PLUS, _T.DASH, _T.STAR, _T.SLASH, _T.MOD, _T.DPIPE, _T.AND, _T.OR,
        _T.LIKE, _T.ILIKE, _T.BETWEEN, _T.L_PAREN, _T.L_BRACKET, _T.COMMA, _T.WHEN, _T.THEN, _T.ELSE, _T.CASE, _T.FROM,
    }
)  # fmt: skip


def with_names(found: Sequence[Any]) -> list[Any]:
    """The tokens, words in the place of an operand made names."""
    made: list[Any] = []
    expected = True
    for number, token in enumerate(found):
        kind = token.token_type
        if expected and _is_name(found, number):
            made.append(_as_name(token))
            expected = False
            continue
        made.append(token)
        # NOT before an operand leaves it expected; after one, as in NOT IN, it does not.
        expected = kind in _BEFORE_OPERAND or (expected and kind is _T.NOT)
    return made


def _is_name(found: Sequence[Any], number: int) -> bool:
    kind = found[number].token_type
    following = found[number + 1].token_type if number + 1 < len(found) else None
    if kind in _ALWAYS:
        in_case = number > 0 and found[number - 1].token_type is _T.CASE
        return following is not _T.L_PAREN and not (kind is _T.WHEN and in_case)
    is_if = kind is _T.VAR and found[number].text.upper() == "IF"
    return (is_if or kind in _UNLESS_FOLLOWED) and (following is None or following in _AFTER_OPERAND)


def _as_name(token: Any) -> Any:
    named = copy.copy(token)
    named.token_type = _T.IDENTIFIER
    return named
