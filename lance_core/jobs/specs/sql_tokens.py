"""A SQL statement as tokens that know where they stand in it, in the words of the engine that will run it.

::

    tokens_of('SELECT "a b" FROM t', DUCKDB)    "..." is a name, E'...' and $$...$$ are texts
    tokens_of("SELECT `a b` FROM t", SPARK)     `...` is a name, "..." and r'...' are texts, in which \\ escapes

Standard library only: a DAG file may import this.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lance_core.errors import InputError


@dataclass(frozen=True)
class Dialect:
    """How an engine writes names and texts, and what fails a query from inside of an expression."""

    engine: str
    token: re.Pattern[str]
    quote: str
    fail: str
    escapes: bool

    def quoted(self, name: str) -> str:
        """A name that no keyword is."""
        return self.quote + name.replace(self.quote, self.quote * 2) + self.quote


_NUMBER = r"\d\w*(?:\.\d\w*)?(?:(?<=[eE])[-+]\d\w*)?"
"""With an engine's letters behind it; or a name that begins with a digit, where an engine has such."""


def _pattern(texts: str, names: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?P<space>\s+|--[^\n]*|/\*.*?\*/)|(?P<text>{texts})|(?P<name>{names})|(?P<word>[^\W\d]\w*)|(?P<other>{_NUMBER}|.)",
        re.DOTALL,
    )


DUCKDB = Dialect(
    "duckdb",
    _pattern(r"'(?:[^']|'')*'|[eE]'(?:[^'\\]|''|\\.)*'|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$", r"\"(?:[^\"]|\"\")*\"|`[^`]*`"),
    '"',
    "error",
    False,
)
SPARK = Dialect(
    "spark",
    _pattern(r"[rR]'[^']*'|[rR]\"[^\"]*\"|'(?:[^'\\]|''|\\.)*'|\"(?:[^\"\\]|\"\"|\\.)*\"", r"`(?:[^`]|``)*`"),
    "`",
    "raise_error",
    True,
)
_ESCAPED: Mapping[str, str] = {
    "n": "\n", "t": "\t", "r": "\r", "b": "\b", "0": "\0", "Z": "\x1a", "\\": "\\", "'": "'", '"': '"',
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a name in quotes, a text, or another: a number or a sign."""

    kind: str
    text: str
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
        if self.kind == "name":
            sign = self.text[0]
            return self.text[1:-1].replace(sign * 2, sign)
        return self.text if self.kind == "word" else ""


def tokens_of(sql: str, dialect: Dialect = DUCKDB, *, may_be_several: bool = False) -> list[Token]:
    """The tokens of one statement, without comments and the semicolon that ends it. InputError when there are several, and
    for a parenthesis that none opens."""
    found: list[Token] = []
    depth, gap = 0, False
    for match in dialect.token.finditer(sql):
        kind, text = str(match.lastgroup), match.group()
        if kind == "space":
            gap = True
            continue
        depth += text == "("
        found.append(Token(kind, text, depth, gap, match.start(), match.end()))
        depth -= text == ")"
        if depth < 0 and not may_be_several:  # it would close one that is put around a part
            raise InputError("the statement: a parenthesis is closed that none opens", cure="Take it away, or open it.")
        gap = False
    while found and found[-1].text == ";":
        found.pop()
    if not may_be_several and any(token.text == ";" for token in found):
        raise InputError("one statement at a time, got several", cure="Give each statement a task of its own.")
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
    return "'" + spark_text(token).replace("'", "''") + "'" if dialect.escapes else token.text


def spark_text(token: Token) -> str:
    """What a text of Spark's SQL says. InputError for an escape that is none of its plain ones."""
    if token.text[0] in "rR":
        return token.text[2:-1]
    sign = token.text[0]
    return re.sub(r"\\(.)", _unescaped, token.text[1:-1].replace(sign * 2, sign), flags=re.DOTALL)


def _unescaped(match: re.Match[str]) -> str:
    found = _ESCAPED.get(match[1])
    if found is None:
        raise InputError(
            f"the text holds the escape {match[0]!r}, which a condition over the table's own rows cannot have",
            cure="Write the character itself.",
        )
    return found
