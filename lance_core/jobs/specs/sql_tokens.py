"""A SQL statement as tokens that know where they stand in it, in the words of the engine that will run it.

::

    tokens_of('SELECT "a b" FROM t', DUCKDB)    "..." is a name, E'...' and $$...$$ are texts
    tokens_of("SELECT `a b` FROM t", SPARK)     `...` is a name, "..." and r'...' are texts, in which \\ escapes

sqlglot cuts the text, and is imported when the first one is cut: a DAG file may import this.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

from lance_core.errors import InputError


@dataclass(frozen=True)
class Dialect:
    """How an engine writes names, and what fails a query from inside of an expression."""

    engine: str
    quote: str
    fail: str

    def quoted(self, name: str) -> str:
        """A name that no keyword is."""
        return self.quote + name.replace(self.quote, self.quote * 2) + self.quote


DUCKDB = Dialect("duckdb", '"', "error")
SPARK = Dialect("spark", "`", "raise_error")
_TEXTS = ("STRING", "RAW_STRING", "BYTE_STRING", "HEREDOC_STRING")
_KINDS = {"VAR": "word", "IDENTIFIER": "name", **dict.fromkeys(_TEXTS, "text")}


@cache
def _tokenizer(engine: str) -> Any:
    """sqlglot's for an engine; keywords are words like others for it, and longer signs are several."""
    from sqlglot.dialects.dialect import Dialect as Known

    own = {"IDENTIFIERS": ["`"], "STRING_ESCAPES": ["\\", "'", '"']}
    if engine == "duckdb":
        own = {"IDENTIFIERS": ['"', "`"], "STRING_ESCAPES": ["'"], "BYTE_STRING_ESCAPES": ["'", "\\"]}
    known = Known.get_or_raise(engine).tokenizer_class
    return type("Words", (known,), {"KEYWORDS": {}, "NUMERIC_LITERALS": {}, **own})


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a name in quotes, a text, or another: a number or a sign."""

    kind: str
    text: str
    value: str
    """What a text or a name in quotes says."""
    depth: int
    """In how many parentheses it is; both signs of a pair are inside."""
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
        return self.value if self.kind in ("name", "word") else ""


def tokens_of(sql: str, dialect: Dialect = DUCKDB, *, may_be_several: bool = False) -> list[Token]:
    """The tokens of one statement, without comments and the semicolon that ends it. InputError when there are several, for
    a parenthesis that none opens, and for what is not closed."""
    from sqlglot.errors import TokenError

    text, scanner = f"{sql}\n;", _tokenizer(dialect.engine)(dialect=dialect.engine)
    with suppress(TokenError):  # the tokens show how far it came
        scanner.tokenize(text)
    found: list[Token] = []
    depth = end = 0
    for known in scanner.tokens:
        start, gap, end = known.start, known.start > end, known.end + 1
        depth += text[start] == "("
        kind = "other" if text[start].isdecimal() else _KINDS.get(known.token_type.name, "other")
        found.append(Token(kind, text[start:end], known.text, depth, gap, start, end))
        depth -= text[start] == ")"
        if depth < 0 and not may_be_several:  # it would close one that is put around a part
            raise InputError("the statement: a parenthesis is closed that none opens", cure="Take it away, or open it.")
    is_closed = end == len(text)
    while found and found[-1].text == ";":
        found.pop()
    if not may_be_several and any(token.text == ";" for token in found):
        raise InputError("one statement at a time, got several", cure="Give each statement a task of its own.")
    if not may_be_several and not is_closed:
        raise InputError("the statement: a text, a name in quotes or a comment is not closed")
    return found


def names_in(sql: str, dialect: Dialect = DUCKDB) -> frozenset[str]:
    """What a text may mean by name, in lower case: all of its words and quoted names."""
    return frozenset(token.name.lower() for token in tokens_of(sql, dialect) if token.name)


def closing(tokens: Sequence[Token], start: int) -> int:
    """Where the parenthesis that opens at `start` is closed. InputError when nowhere."""
    depth = tokens[start].depth
    for number in range(start, len(tokens)):
        if tokens[number].text == ")" and tokens[number].depth == depth:
            return number
    raise InputError("the statement: a parenthesis is not closed")


def split(tokens: Sequence[Token], sign: str) -> list[list[Token]]:
    """The parts between signs outside of parentheses. The AND of a BETWEEN, and what is inside of a CASE, cut nothing."""
    parts: list[list[Token]] = [[]]
    outside = tokens[0].depth - (tokens[0].text == "(") if tokens else 0
    between = cases = 0
    for token in tokens:
        here = token.depth == outside
        cases += here and (token.word == "CASE") - (token.word == "END")
        between += here and cases == 0 and token.word == "BETWEEN"  # one in a CASE has its AND there too
        if here and cases == 0 and (token.word or token.text) == sign:
            if sign != "AND" or not between:
                parts.append([])
                continue
            between -= 1
        parts[-1].append(token)
    return parts


def literal(token: Token, dialect: Dialect) -> str:
    """A text as Lance's own SQL writes it."""
    return "'" + spark_text(token).replace("'", "''") + "'" if dialect is SPARK else token.text


def spark_text(token: Token) -> str:
    """What a text of Spark's SQL says. InputError for an escape that is none of its plain ones."""
    escapes = [] if token.text[0] in "rR" else re.findall(r"\\.", token.text, re.DOTALL)
    found = next((escape for escape in escapes if escape[1] not in "ntrb\\'\""), None)
    if found is not None:
        raise InputError(
            f"the text holds the escape {found!r}, which a condition over the table's own rows cannot have",
            cure="Write the character itself.",
        )
    return token.value
