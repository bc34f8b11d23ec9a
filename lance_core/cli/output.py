"""How the commands print: text for people, JSON for programs.

::

    text   version  rows            json   [{"version": 1, "rows": 10}]
           1        10

Nothing that a table, a store or a catalog says reaches the terminal as a command to it: see `printable`.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import decimal
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

import click

_COMMANDS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What a terminal carries out instead of showing it: control characters of both sets (ESC, CSI, a carriage return), what
turns the direction of a line, and surrogates, which cannot be written at all. Tabs and ends of lines are left."""


def printable(text: str) -> str:
    """A text whose control characters are written out.

    >>> printable("a\\x1b[2Jb")
    'a\\\\x1b[2Jb'
    """
    return _COMMANDS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def say(text: str, *, err: bool = False) -> None:
    """Print a text for people: every command prints through here."""
    click.echo(printable(text), err=err)


class Output:
    """Where and how a command prints."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    def record(self, values: Mapping[str, Any]) -> None:
        """One thing with named values."""
        if self.as_json:
            self._json(values)
            return
        width = max((len(name) for name in values), default=0)
        for name, value in values.items():
            say(f"{name.ljust(width)}  {_text(value)}")

    def rows(self, rows: Iterable[Mapping[str, Any]], *, empty: str = "nothing") -> None:
        """Many things with the same names; `empty` is said when there are none."""
        found = [*rows]
        if self.as_json:
            self._json(found)
        elif not found:
            say(empty)
        else:
            for line in _table(found):
                say(line)

    def message(self, text: str, **values: Any) -> None:
        """A sentence for people, the values for programs."""
        if self.as_json:
            self._json(values)
        else:
            say(text)

    @contextlib.contextmanager
    def progress(self, label: str) -> Iterator[Callable[[int, int], None]]:
        """A bar for long work, on standard error; silent for programs and without a terminal."""
        if self.as_json or not sys.stderr.isatty():
            yield lambda done, total: None
            return
        with click.progressbar(length=1000, label=label, file=sys.stderr) as bar:

            def show(done: int, total: int) -> None:
                bar.update(max(0, 1000 * done // max(total, 1) - bar.pos))

            yield show

    def _json(self, value: Any) -> None:
        text = json.dumps(value, default=_plain, indent=2, ensure_ascii=False)
        click.echo(_COMMANDS.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def _table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    cells = [[_text(row.get(name)) for name in rows[0]] for row in rows]
    names = [_line(name) for name in rows[0]]
    widths = [max(len(name), *(len(row[at]) for row in cells)) for at, name in enumerate(names)]
    lines = ["  ".join(name.ljust(width) for name, width in zip(names, widths, strict=True)).rstrip()]
    lines += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return lines


_MAX_TEXT = 100


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, bytes):
        value = value.hex()
    if isinstance(value, Mapping):
        value = ", ".join(f"{name}={_text(item)}" for name, item in value.items()) or "-"
    if isinstance(value, (set, frozenset)):
        value = tuple(sorted(value))
    if isinstance(value, tuple):  # of names and numbers; a list is a value of a row, and stays as it is
        value = ", ".join(map(_text, value)) or "-"
    text = _line(str(value))
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"


def _line(text: str) -> str:
    return printable(text).replace("\n", "\\n")


def _plain(value: Any) -> Any:
    for kind, convert in _CONVERSIONS:
        if isinstance(value, kind):
            return convert(value)
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return str(value)


_CONVERSIONS: tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...] = (
    ((dt.datetime, dt.date, dt.time), lambda value: value.isoformat()),
    (bytes, lambda value: value.hex()),
    (decimal.Decimal, str),
    (Mapping, dict),
    ((set, frozenset), sorted),
)


def size_text(size: int) -> str:
    """Bytes for people.

    >>> size_text(1536)
    '1.5 KiB'
    """
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"
