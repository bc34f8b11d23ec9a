"""Regular expressions as Rust's `regex` reads them, written for the Python module `regex`, version 1.

::

    a$          a\\Z                 the end is the end: a line break before it counts
    (?m)a$      (?m)a$              the end of each line
    [[:^alpha:]&&\\w]  [[^A-Za-z]&&\\w]   classes within classes are known to both; names mean ASCII letters
    \\x{e9} \\b{start}   \\U000000e9 \\m    {name} -> \\{name}    (?U)a+ -> (?:)a+?
    (?i)i               (?i)(?-i:[iI])       \u0130 and \u0131 are no case of i

What Rust refuses and the module knows (look-around, references to groups, atomic groups, recursion) is refused.
https://docs.rs/regex/latest/regex/#syntax
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from lance_core.errors import FilterError

_CLASSES = MappingProxyType(
    {
        "alpha": "A-Za-z", "digit": "0-9", "alnum": "0-9A-Za-z", "upper": "A-Z", "lower": "a-z", "space": r" \t\n\v\f\r",
        "blank": r" \t", "word": "0-9A-Za-z_", "xdigit": "0-9A-Fa-f", "cntrl": r"\x00-\x1f\x7f", "print": " -~",
        "graph": r"!-\~", "punct": r"!-/:-@\[-`{-\~", "ascii": r"\x00-\x7f",
    }
)  # fmt: skip
"""What the named classes mean: ASCII, as in RE2."""
_NAMED = re.compile(rf"\[:(\^?)({'|'.join(_CLASSES)}):\]")
_CODE = re.compile(r"\\(?:[xuU]\{([0-9A-Fa-f]{1,8})\}|x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))")
_PROPERTY = re.compile(r"\\[pP](?:\{[^}]*\}|\w)")
_BORDER = re.compile(r"\\(?:b\{(start|end|start-half|end-half)\}|([<>]))")
_BORDERS = MappingProxyType(
    {"start": r"\m", "<": r"\m", "end": r"\M", ">": r"\M", "start-half": r"(?<!\w)", "end-half": r"(?!\w)"}
)
_FLAGGED = re.compile(r"\(\?([A-Za-z]*)(?:-([A-Za-z]+))?([:)])")
_NAMED_GROUP = re.compile(r"\(\?P?<[^\W\d]")
_ESCAPES = frozenset("afntrvAzbBdDsSwWpPxuU<>")
"""Letters that mean something behind a backslash; digits would be references to groups."""
_DOTTED = MappingProxyType({"i": "[iI]", "I": "[iI]", "\u0130": "\u0130", "\u0131": "\u0131"})
"""Letters that the module takes for one another where case is ignored, and what each means to Rust."""
_REPEATED = re.compile(r"[*+?]|\{\d+(?:,\d*)?\}")
ONLY_HERE = re.compile(
    r"\\[uUxb]\{|\\[uU<>]|\[.*(?:&&|--|~~)|\[[^\]]*\[(?!:)|\(\?[a-zA-Z]*-?[a-zA-Z]*[xuR]|\(\?[=!(>]|\(\?<[=!]"
)
"""Patterns that RE2 refuses or reads otherwise; some that it would read are among them."""


@dataclass(frozen=True)
class _Flags:
    """Those that change how what follows is written."""

    multi_line: bool = False
    verbose: bool = False
    swap_greed: bool = False
    ignore_case: bool = False

    def with_letters(self, letters: str, *, on: bool) -> _Flags:
        names = {"m": "multi_line", "x": "verbose", "U": "swap_greed", "i": "ignore_case"}
        return replace(self, **{names[letter]: on for letter in letters if letter in names})


def _exactly(letter: str) -> str:
    return f"(?-i:{_DOTTED[letter]})"


def for_module(pattern: str) -> str:
    """The pattern for the module `regex`. Raises FilterError for what it cannot tell, or not without end.

    >>> for_module("a$")
    'a\\\\Z'
    """
    return _Writer(pattern).written()


@dataclass
class _Writer:
    pattern: str
    flags: _Flags = _Flags()
    at: int = 0
    parts: list[str] = field(default_factory=list)
    outer: list[_Flags] = field(default_factory=list)

    def written(self) -> str:
        while self.at < len(self.pattern):
            self._next(self.pattern[self.at])
        return "".join(self.parts)

    def _next(self, letter: str) -> None:
        if letter == "[" or _PROPERTY.match(self.pattern, self.at):
            self._class()
        elif letter == "\\":
            self._escape()
        elif letter == "(":
            self._group()
        elif letter == "#" and self.flags.verbose:
            end = self.pattern.find("\n", self.at)
            self.at = len(self.pattern) if end < 0 else end
        elif found := _REPEATED.match(self.pattern, self.at):
            self._repeat(found[0])
        else:
            if letter == ")" and self.outer:
                self.flags = self.outer.pop()
            if self.flags.ignore_case and letter in _DOTTED:
                self._put(_exactly(letter), 1)
                return
            plain = {"$": "$" if self.flags.multi_line else r"\Z", "{": r"\{", "}": r"\}"}
            self._put(plain.get(letter, letter), 1)

    def _put(self, text: str, length: int) -> None:
        self.parts.append(text)
        self.at += length

    def _escape(self) -> None:
        if code := _CODE.match(self.pattern, self.at):
            number = int(next(filter(None, code.groups())), 16)
            if number > 0x10FFFF:
                raise self._refused(f"{code[0]} is no character")
            dotted = self.flags.ignore_case and chr(number) in _DOTTED
            self._put(_exactly(chr(number)) if dotted else f"\\U{number:08x}", len(code[0]))
        elif border := _BORDER.match(self.pattern, self.at):
            self._put(_BORDERS[border[1] or border[2]], len(border[0]))
        elif name := _PROPERTY.match(self.pattern, self.at):
            self._put(name[0], len(name[0]))
        elif (letter := self.pattern[self.at + 1 : self.at + 2]).isascii() and letter.isalnum() and letter not in _ESCAPES:
            raise self._refused(f"\\{letter} means nothing")
        else:
            self._put(self.pattern[self.at : self.at + 2], 2)

    def _class(self) -> None:
        """A class, or the letters of a property; where case is ignored, the i of Turkish are no cases of i."""
        write = self._plain_class if self.pattern[self.at] == "[" else self._escape
        if not self.flags.ignore_case:
            write()
            return
        begin, flags = len(self.parts), self.flags
        self.flags = replace(flags, ignore_case=False)
        write()
        self.flags = flags
        text = "".join(self.parts[begin:])
        self.parts[begin:] = [f"(?:(?-i:(?![\u0130\u0131])){text}|(?-i:(?=[\u0130\u0131]){text}))"]

    def _plain_class(self) -> None:
        """A class with those in it; white space in it counts for nothing where the pattern is verbose."""
        depth, begins = 0, False
        while self.at < len(self.pattern):
            letter = self.pattern[self.at]
            named = _NAMED.match(self.pattern, self.at)
            if named and depth:
                inner = _CLASSES[named[2]]
                self._put(f"[^{inner}]" if named[1] else inner, len(named[0]))
            elif letter == "\\":
                self._escape()
            elif letter == "[":
                depth, begins = depth + 1, True
                head = "[^" if self.pattern.startswith("[^", self.at) else "["
                self._put(head, len(head))
                continue
            elif letter == "]" and not begins:
                self._put("]", 1)
                depth -= 1
                if not depth:
                    return
            elif self.flags.verbose and letter.isspace():
                self.at += 1
                continue
            else:
                self._put(rf"\{letter}" if letter in "]|" else letter, 1)
            begins = False

    def _group(self) -> None:
        flagged = _FLAGGED.match(self.pattern, self.at)
        if flagged is None:
            if self.pattern.startswith("(?", self.at) and not _NAMED_GROUP.match(self.pattern, self.at):
                raise self._refused("groups look neither around nor back, and have no other marks than flags and names")
            self.outer.append(self.flags)
            self._put("(", 1)
            if self.pattern.startswith("?", self.at):
                self._put("?", 1)
            return
        given, taken, end = flagged[1], flagged[2] or "", flagged[3]
        if set(given + taken) - set("imsxUu") or "u" in taken:
            raise self._refused(f"the flags {flagged[0]!r} are not known here")
        if end == ":":
            self.outer.append(self.flags)
        self.flags = self.flags.with_letters(given, on=True).with_letters(taken, on=False)
        kept, gone = ("".join(letter for letter in letters if letter in "imsx") for letters in (given, taken))
        letters = kept + (f"-{gone}" if gone else "")
        self._put(f"(?{letters}{end}" if letters or end == ":" else "(?:)", len(flagged[0]))

    def _repeat(self, count: str) -> None:
        behind = self.pattern[self.at + len(count) : self.at + len(count) + 1]
        if behind in ("+", "*"):
            raise self._refused(f"{count + behind!r} repeats what is repeated")
        lazy = (behind == "?") != self.flags.swap_greed
        self._put(count + ("?" if lazy else ""), len(count) + (behind == "?"))

    def _refused(self, why: str) -> FilterError:
        return FilterError(
            f"{self.pattern[:200]!r} is no regular expression: {why} (at character {self.at + 1})",
            cure="Patterns are those of Rust's regex: https://docs.rs/regex/latest/regex/#syntax",
        )
