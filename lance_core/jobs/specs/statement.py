"""SQL statements that change a table, read into the work that does it. Standard library only: a DAG file may import this.

::

    INSERT INTO daily SELECT day, sum(price) AS price FROM orders GROUP BY day       append of a query's rows, by column name
    INSERT OVERWRITE daily SELECT ..., CREATE OR REPLACE TABLE daily AS SELECT ...    overwrite
    INSERT INTO daily REPLACE WHERE day = '2026-01-01' SELECT ...                     replace_where
    UPDATE daily SET price = price * 2 WHERE day = 7, DELETE FROM daily WHERE ...     update, delete
    DELETE FROM users WHERE id IN (SELECT id FROM leavers)                            merge that deletes what matches
    MERGE INTO users USING (SELECT ...) s ON users.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *

Queries inside are left to the engine as they were written. Conditions and expressions over the table's own rows become our
filters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lance_core.errors import InputError

_TOKEN = re.compile(
    r"(?P<space>\s+|--[^\n]*|/\*.*?\*/)"
    r"|(?P<text>'(?:[^']|'')*'|[eE]'(?:[^'\\]|''|\\.)*'|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)|(?P<name>\"(?:[^\"]|\"\")*\"|`[^`]*`)"
    r"|(?P<word>[^\W\d]\w*)|(?P<other>\d[\w.]*|.)",
    re.DOTALL,
)
_QUERY = frozenset({"SELECT", "WITH", "FROM", "VALUES"})
_CHANGES = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE", "CREATE"})
SUPPORTED = "SELECT, INSERT, UPDATE, DELETE, MERGE and CREATE OR REPLACE TABLE ... AS"


@dataclass(frozen=True)
class Statement:
    """What a text asks for. `kind` is that of a job, or "query"; `target` the changed table's name in the text; `query` the
    SELECT that gives rows; `fields` further fields of the job's spec."""

    kind: str
    target: str = ""
    query: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    depth: int
    gap: bool
    """Whether space or a comment is before it."""
    start: int
    """Where it begins in the statement."""
    end: int

    @property
    def word(self) -> str:
        """The keyword that it may be."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def name(self) -> str:
        """The name that it is; "" for none."""
        if self.kind == "name":
            return self.text[1:-1].replace('""', '"') if self.text[0] == '"' else self.text[1:-1]
        return self.text if self.kind == "word" else ""


def read_statement(sql: str) -> Statement:
    """What one statement asks for. InputError for another statement, and for a form that has no job."""
    reader = _Reader(sql)
    first = reader.peek()
    if first in _QUERY:
        return Statement("query", query=reader.rest())
    if first not in _CHANGES:
        raise InputError(f"a statement must begin with one of {SUPPORTED}; got {first or 'nothing'}")
    return {"INSERT": _insert, "CREATE": _create, "UPDATE": _update, "DELETE": _delete, "MERGE": _merge}[first](reader)


def names_in(sql: str) -> frozenset[str]:
    """What a text may mean by name, in lower case: all of its words and quoted names."""
    return frozenset(token.name.lower() for token in _tokens(sql) if token.name)


def _insert(reader: _Reader) -> Statement:
    reader.expect("INSERT")
    if reader.take("OVERWRITE"):
        _ = reader.take("INTO") or reader.take("TABLE")
        return Statement("overwrite", reader.name("a table"), reader.query())
    reader.expect("INTO")
    target = reader.name("a table")
    if reader.take("REPLACE"):
        reader.expect("WHERE")
        predicate = _filter(reader.until(_QUERY), {target})
        return Statement("replace_where", target, reader.query(), {"predicate": predicate})
    if reader.take("BY"):
        reader.expect("NAME")
    columns = reader.names() if reader.peek() == "(" and reader.peek(1) not in _QUERY else []
    query = reader.query()
    if not columns:
        return Statement("append", target, query)
    renamed = _select("*", f"({query}\n) AS rows_of_query({', '.join(map(_quoted, columns))})")
    return Statement("append", target, renamed, {"schema_drift": "fill_missing"})


def _create(reader: _Reader) -> Statement:
    for word in ("CREATE", "OR", "REPLACE", "TABLE"):
        reader.expect(word, "Write CREATE OR REPLACE TABLE ... AS SELECT; LanceCreateTableOperator creates an empty table.")
    target = reader.name("a table")
    reader.expect("AS")
    return Statement("overwrite", target, reader.query())


def _update(reader: _Reader) -> Statement:
    reader.expect("UPDATE")
    target, own = reader.table()
    reader.expect("SET")
    updates = {}
    for part in _split(reader.until({"WHERE", "FROM"}), ","):
        sign = next((number for number, token in enumerate(part) if token.text == "="), 0)
        if not sign or not part[sign - 1].name:
            raise InputError("UPDATE: expected SET column = expression")
        updates[part[sign - 1].name] = _filter(part[sign + 1 :], own)
    if reader.peek() == "FROM":
        raise InputError("UPDATE ... FROM is not supported", cure="Use MERGE INTO ... WHEN MATCHED THEN UPDATE SET *.")
    where = reader.where(own)
    return Statement("update", target, fields={"updates": updates, **({} if where is None else {"where": where})})


def _delete(reader: _Reader) -> Statement:
    reader.expect("DELETE")
    reader.expect("FROM")
    target, own = reader.table()
    matching = _matching(reader.tokens[reader.at + 1 :], own) if reader.peek() == "WHERE" else None
    if matching is not None:
        column, inner = matching
        return _delete_matching(target, column, reader.text(inner))
    where = reader.where(own)
    return Statement("delete", target, fields={"predicate": "true" if where is None else where})


def _matching(tokens: Sequence[_Token], own: set[str]) -> tuple[str, Sequence[_Token]] | None:
    """The column and the query of `column IN (SELECT ...)`, where that is the whole condition."""
    if len(tokens) > 2 and tokens[0].name in own and tokens[1].text == ".":
        tokens = tokens[2:]
    if len(tokens) < 6 or not tokens[0].name or tokens[1].word != "IN" or tokens[3].word not in _QUERY:
        return None
    return (tokens[0].name, tokens[3:-1]) if _closing(tokens, 2) == len(tokens) - 1 else None


def _delete_matching(target: str, column: str, query: str) -> Statement:
    name = _quoted(column)
    source = _select(f"DISTINCT {name}", f"({query}\n) AS rows_of_query({name}) WHERE {name} IS NOT NULL")
    fields = {"on": [column], "when_matched": "delete", "when_not_matched": "keep", "create": False}
    return Statement("merge", target, source, fields)


def _merge(reader: _Reader) -> Statement:
    reader.expect("MERGE")
    reader.expect("INTO")
    target, own = reader.table()
    reader.expect("USING")
    if reader.peek() == "(":
        inner = reader.group()
        query, theirs = reader.text(inner), {reader.alias()}
    else:
        name, theirs = reader.table()
        query = _select("*", _quoted(name))
    nothing = {"when_matched": "keep", "when_not_matched": "keep", "create": False}
    keys, clauses = reader.keys(own, theirs), dict[str, Any]()
    while reader.take("WHEN"):
        clause = _when(reader, own, theirs)
        if not clauses.keys().isdisjoint(clause):
            raise InputError("MERGE: two clauses for the same rows are not supported", cure="Use one MERGE for each.")
        clauses |= clause
    if reader.at < len(reader.tokens):
        raise InputError(f"MERGE: expected WHEN, got {reader.peek()}")
    return Statement("merge", target, query, {**nothing, **clauses, "on": keys})


def _when(reader: _Reader, own: set[str], theirs: set[str]) -> dict[str, Any]:
    is_matched = not reader.take("NOT")
    reader.expect("MATCHED")
    by_source = False
    if reader.take("BY"):
        by_source = reader.take("SOURCE")
        _ = by_source or reader.expect("TARGET")
    condition = reader.until({"THEN"})[1:] if reader.peek() == "AND" else None
    reader.expect("THEN")
    action = [token.word or token.text for token in reader.until({"WHEN"})]
    cure = "Give the columns in USING (SELECT ...), and write UPDATE SET * and INSERT *."
    if is_matched and action in (["UPDATE", "SET", "*"], ["UPDATE"]):
        told = None if condition is None else _filter(condition, own, as_="target", others=theirs, others_as="source")
        return {"when_matched": "update", **({} if told is None else {"when_matched_condition": told})}
    if is_matched and action == ["DELETE"] and condition is None:
        return {"when_matched": "delete"}
    if not is_matched and not by_source and action in (["INSERT", "*"], ["INSERT"]) and condition is None:
        return {"when_not_matched": "insert"}
    if by_source and action == ["DELETE"]:
        told = None if condition is None else _filter(condition, own)
        only = {} if told is None else {"when_not_matched_by_source_condition": told}
        return {"when_not_matched_by_source": "delete", **only}
    raise InputError(f"MERGE: a clause with the action {' '.join(action)} is not supported here", cure=cure)


class _Reader:
    """The tokens of a statement, taken from the left."""

    def __init__(self, sql: str) -> None:
        self.tokens = _tokens(sql)
        self.at = 0
        self._sql = sql

    def text(self, tokens: Sequence[_Token]) -> str:
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

    def table(self) -> tuple[str, set[str]]:
        """Take a table's name and its alias; the name, and what its columns may be qualified with."""
        name = self.name("a table")
        return name, {name, self.alias()} - {""}

    def alias(self) -> str:
        """Take an alias, if there is one."""
        if self.take("AS") or (self.peek() not in ("SET", "WHERE", "USING", "ON", "WHEN", "") and self.tokens[self.at].name):
            return self.name("an alias")
        return ""

    def names(self) -> list[str]:
        """Take names in parentheses."""
        return [token.name for token in self.group() if token.name]

    def group(self) -> Sequence[_Token]:
        """Take what is in parentheses."""
        start, self.at = self.at, _closing(self.tokens, self.at) + 1
        return self.tokens[start + 1 : self.at - 1]

    def until(self, words: set[str] | frozenset[str]) -> Sequence[_Token]:
        """Take everything up to one of some keywords outside of parentheses."""
        start = self.at
        while self.at < len(self.tokens) and not (self.tokens[self.at].depth == 0 and self.tokens[self.at].word in words):
            self.at += 1
        return self.tokens[start : self.at]

    def rest(self) -> str:
        """Take what is left."""
        found, self.at = self.text(self.tokens[self.at :]), len(self.tokens)
        return found

    def query(self) -> str:
        """Take what is left, a query."""
        if self.peek() not in _QUERY and self.peek() != "(":
            raise InputError(f"the statement: expected a query, got {self.peek() or 'the end'}")
        return self.rest()

    def where(self, own: set[str]) -> str | None:
        """Take the condition that ends the statement, if there is one."""
        if self.at == len(self.tokens):
            return None
        self.expect("WHERE")
        tokens, self.at = self.tokens[self.at :], len(self.tokens)
        return _filter(tokens, own)

    def keys(self, own: set[str], theirs: set[str]) -> list[str]:
        """Take `ON a.k = b.k AND ...`, or `USING (k, ...)`; the columns."""
        if self.take("USING"):
            return self.names()
        self.expect("ON")
        found = []
        tokens = self.until({"WHEN"})
        if tokens and tokens[0].text == "(" and _closing(tokens, 0) == len(tokens) - 1:
            tokens = tokens[1:-1]
        for part in _split(tokens, "AND"):
            named = [token.name for token in part if token.name]
            signs = "".join(token.text for token in part if not token.name)
            sides = {named[0], named[2]} if len(named) == 4 else set()
            if signs != ".=." or named[1] != named[3] or not (sides & own) or not (sides & theirs):
                raise InputError("MERGE: ON must compare columns of one name, such as t.id = s.id AND t.day = s.day")
            found.append(named[1])
        return found


def _filter(
    tokens: Sequence[_Token], own: set[str], *, as_: str = "", others: set[str] | None = None, others_as: str = ""
) -> str:
    """A condition over a table's rows as our filter: names in backticks, without the table's name or alias."""
    given = dict.fromkeys(own, as_) | dict.fromkeys(others or (), others_as)
    told: list[_Token] = []
    gap = False
    for number, token in enumerate(tokens):
        if token.word in ("SELECT", "EXISTS"):
            raise InputError(
                "a subquery is not supported in this condition",
                cure="Use MERGE INTO ... USING (SELECT ...), or DELETE ... WHERE column IN (SELECT ...) alone.",
            )
        qualifies = tokens[number + 1 : number + 2] != [] and tokens[number + 1 : number + 2][0].text == "."
        before = tokens[number - 1] if number else None
        if qualifies and given.get(token.name) == "":
            gap = gap or token.gap
        elif token.text == "." and before is not None and given.get(before.name) == "":
            continue
        else:
            name = (
                given[token.name]
                if qualifies and token.name in given
                else f"`{token.name}`"
                if token.kind == "name"
                else token.text
            )
            told.append(replace(token, text=name, gap=token.gap or gap))
            gap = False
    text = _joined(told)
    if not text:
        raise InputError("the statement: a condition or an expression is missing")
    return text


def _split(tokens: Sequence[_Token], sign: str) -> list[list[_Token]]:
    """The parts between signs outside of parentheses."""
    parts: list[list[_Token]] = [[]]
    outside = min((token.depth for token in tokens), default=0)
    for token in tokens:
        if token.depth == outside and (token.word or token.text) == sign:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _tokens(sql: str) -> list[_Token]:
    """The tokens of one statement, without comments and the semicolon that ends it."""
    found: list[_Token] = []
    depth, gap = 0, False
    for match in _TOKEN.finditer(sql):
        kind, text = str(match.lastgroup), match.group()
        if kind == "space":
            gap = True
            continue
        depth += text == "("
        found.append(_Token(kind, text, depth, gap, match.start(), match.end()))
        depth -= text == ")"
        gap = False
    while found and found[-1].text == ";":
        found.pop()
    if any(token.text == ";" for token in found):
        raise InputError("one statement at a time, got several", cure="Give each statement a task of its own.")
    return found


def _joined(tokens: Sequence[_Token]) -> str:
    return "".join(f" {token.text}" if token.gap else token.text for token in tokens).strip()


def _closing(tokens: Sequence[_Token], start: int) -> int:
    """Where the parenthesis that opens at `start` is closed. InputError when nowhere."""
    depth = tokens[start].depth
    for number in range(start, len(tokens)):
        if tokens[number].text == ")" and tokens[number].depth == depth:
            return number
    raise InputError("the statement: a parenthesis is not closed")


def _select(columns: str, source: str) -> str:
    # What is put in is the author's own statement, and the engine that reads the query has no files and no network.
    return f"SELECT {columns} FROM {source}"  # nosec B608


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
