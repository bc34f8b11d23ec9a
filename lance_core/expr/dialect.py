"""The SQL dialect of filters: backticks make names, both quotes make text, backslash is a plain character.

::

    s like 'b\\%' and "x" = `x`       two texts, one name

sqlglot's own function table is emptied, so that every call arrives as (name, arguments) and no dialect rewrites it.
Importing this file imports sqlglot (about 0.2 s); `parse` does so on first use.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import parser, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel, ParseError

from lance_core.expr.names import with_names

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
