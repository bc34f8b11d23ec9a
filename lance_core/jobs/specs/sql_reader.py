"""Takes a SQL statement apart from the left.

Queries and expressions that an engine evaluates are slices of the statement, so they stay as they were written. Conditions
and expressions over the table's own rows become our filters (`as_filter`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lance_core.errors import InputError
from lance_core.jobs.specs.sql_tokens import Dialect, Token, closing, literal, split, tokens_of

QUERY = frozenset({"SELECT", "WITH", "FROM", "VALUES"})
_NO_ALIAS = frozenset({"SET", "WHERE", "USING", "ON", "WHEN", ""})
NOTHING: Mapping[str, Any] = {"when_matched": "keep", "when_not_matched": "keep", "create": False}
"""The fields of a merge that changes no row."""


@dataclass(frozen=True)
class Statement:
    """What a text asks for. `kind` is that of a job, or "query"; `target` the changed table's name in the text; `query` the
    SELECT that gives rows; `fields` further fields of the job's spec."""

    kind: str
    target: str = ""
    query: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)


class StatementReader:
    """The tokens of a statement, taken from the left."""

    def __init__(self, sql: str, dialect: Dialect) -> None:
        self.tokens = tokens_of(sql, dialect)
        self.dialect = dialect
        self.at = 0
        self._sql = sql

    def text(self, tokens: Sequence[Token]) -> str:
        """What stands in the statement from the first to the last of some tokens, as it was written."""
        return self._sql[tokens[0].start : tokens[-1].end] if tokens else ""

    def peek(self, ahead: int = 0) -> str:
        """The keyword or sign that comes next; "" at the end."""
        found = self.tokens[self.at + ahead : self.at + ahead + 1]
        return (found[0].word or found[0].text) if found else ""

    def take(self, word: str) -> bool:
        """Whether a keyword comes next; then it is taken."""
        found = self.peek() == word
        self.at += found
        return found

    def expect(self, word: str, cure: str | None = None) -> bool:
        """Take a keyword. InputError when something else comes."""
        if not self.take(word):
            raise InputError(f"the statement: expected {word}, got {self.peek() or 'the end'}", cure=cure)
        return True

    def name(self, what: str) -> str:
        """Take a name."""
        token = self.tokens[self.at] if self.at < len(self.tokens) else None
        if token is None or not token.name:
            raise InputError(f"the statement: expected the name of {what}, got {self.peek() or 'the end'}")
        self.at += 1
        if self.peek() == ".":
            raise InputError("the statement: tables have plain names here", cure="Use the names that `tables` gives.")
        return token.name

    def table(self) -> tuple[str, str]:
        """Take a table's name and its alias, which is the name where there is none."""
        name = self.name("a table")
        return name, self.alias() or name

    def alias(self) -> str:
        """Take an alias, if there is one."""
        if self.take("AS") or (self.peek() not in _NO_ALIAS and self.tokens[self.at].name):
            return self.name("an alias")
        return ""

    def names(self) -> list[str]:
        """Take names in parentheses."""
        return [token.name for token in self.group() if token.name]

    def group(self) -> Sequence[Token]:
        """Take what is in parentheses."""
        if self.peek() != "(":
            raise InputError(f"the statement: expected (, got {self.peek() or 'the end'}")
        start, self.at = self.at, closing(self.tokens, self.at) + 1
        return self.tokens[start + 1 : self.at - 1]

    def until(self, words: set[str] | frozenset[str]) -> Sequence[Token]:
        """Take everything up to one of some keywords outside of parentheses and of CASE."""
        start, cases = self.at, 0
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token.depth == 0:
                is_operator = token.word == "FROM" and self.at > start and self.tokens[self.at - 1].word == "DISTINCT"
                if cases == 0 and token.word in words and not is_operator:
                    break
                cases += (token.word == "CASE") - (token.word == "END")
            self.at += 1
        return self.tokens[start : self.at]

    def rest(self) -> str:
        """Take what is left."""
        return self.text(self.rest_tokens())

    def rest_tokens(self) -> Sequence[Token]:
        """Take what is left."""
        found, self.at = self.tokens[self.at :], len(self.tokens)
        return found

    def query(self) -> str:
        """Take what is left, a query."""
        if self.peek() not in QUERY and self.peek() != "(":
            raise InputError(f"the statement: expected a query, got {self.peek() or 'the end'}")
        return self.rest()

    def where(self) -> Sequence[Token] | None:
        """Take the condition that ends the statement, if there is one."""
        if self.at == len(self.tokens):
            return None
        self.expect("WHERE")
        found = self.rest_tokens()
        if not found:
            raise InputError("the statement: a condition or an expression is missing")
        return found

    def assignments(self, tokens: Sequence[Token], own: set[str]) -> dict[str, Sequence[Token]]:
        """`a = expression, t.b = expression`, by column."""
        found: dict[str, Sequence[Token]] = {}
        for part in split(tokens, ","):
            sign = next((number for number, token in enumerate(part) if token.text == "="), 0)
            before = part[: max(sign - 1, 0)]
            is_own = not before or (len(before) == 2 and before[0].name in own and before[1].text == ".")
            if not sign or not part[sign - 1].name or not is_own:
                raise InputError("UPDATE: expected SET column = expression")
            found[part[sign - 1].name] = part[sign + 1 :]
        if any(not expression for expression in found.values()):
            raise InputError("the statement: a condition or an expression is missing")
        return found

    def select(self, columns: str, source: str) -> str:
        """A SELECT that is put together."""
        # What is put in is the author's own statement, and the engine that reads the query has no files and no network.
        return f"SELECT {columns} FROM {source}"  # nosec B608


def has_query(tokens: Sequence[Token]) -> bool:
    """Whether a subquery is in an expression."""
    return any(token.word in ("SELECT", "EXISTS") for token in tokens)


def as_filter(
    tokens: Sequence[Token],
    own: set[str],
    dialect: Dialect,
    *,
    as_: str = "",
    others: set[str] | None = None,
    others_as: str = "",
) -> str:
    """A condition over a table's rows as our filter: names in backticks, without the table's name or alias."""
    given = dict.fromkeys(own, as_) | dict.fromkeys(others or (), others_as)
    told: list[Token] = []
    gap = False
    for number, token in enumerate(tokens):
        if token.word in ("SELECT", "EXISTS"):
            raise InputError(
                "a subquery is not supported in this condition",
                cure="Use MERGE INTO ... USING (SELECT ...), or a subquery in the WHERE of UPDATE or DELETE.",
            )
        qualifies = number + 1 < len(tokens) and tokens[number + 1].text == "."
        before = tokens[number - 1] if number else None
        if qualifies and given.get(token.name) == "":
            gap = gap or token.gap
        elif token.text == "." and before is not None and given.get(before.name) == "":
            continue
        else:
            told.append(replace(token, text=_shown(token, given, qualifies, dialect), gap=token.gap or gap))
            gap = False
    text = "".join(f" {token.text}" if token.gap else token.text for token in told).strip()
    if not text:
        raise InputError("the statement: a condition or an expression is missing")
    return text


def _shown(token: Token, given: Mapping[str, str], qualifies: bool, dialect: Dialect) -> str:
    if qualifies and token.name in given:
        return given[token.name]
    if token.kind == "text":
        return literal(token, dialect)
    return f"`{token.name}`" if token.kind == "name" else token.text
