"""Texts as points in time by a format: each specifier of chrono, here and in the official library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import LanceError

CASES = (
    ("69-01-02", "%y-%m-%d"), ("70-01-02", "%y-%m-%d"), ("68-01-02", "%y-%m-%d"),
    ("2020-01-02 03:04:05.5", "%Y-%m-%d %H:%M:%S.%f"), ("2020-01-02 03:04:05.000000500", "%Y-%m-%d %H:%M:%S.%f"),
    ("2020-01-02 03:04:05.5", "%Y-%m-%d %H:%M:%S%.f"), ("2020-01-02 03:04:05", "%Y-%m-%d %H:%M:%S%.f"),
    ("2020-01-02 03:04:05.123", "%Y-%m-%d %H:%M:%S%.3f"), ("2020-01-02 03:04:05.123456789", "%Y-%m-%d %H:%M:%S%.9f"),
    ("2020-01-02 03:04:05123", "%Y-%m-%d %H:%M:%S%3f"), ("2020-1-2", "%Y-%m-%d"), ("02020-01-02", "%Y-%m-%d"),
    ("20-01-02", "%Y-%m-%d"), ("+2020-01-02", "%Y-%m-%d"), ("2020-01- 2", "%Y-%m-%e"),

    ("2020-01-02 03:04", "%Y-%m-%d %H:%M"), ("2020-01-02", "%F"), ("2020-01-02 03:04", "%F %R"), ("01/02/20", "%D"),
    ("2020-01-02 03:04:05 AM", "%F %r"), ("2-Jan-2020", " %e-%b-%Y"), ("2-Jan-2020", "%v"),
    ("Thu Jan  2 03:04:05 2020", "%c"), ("2020-01-02T03:04:05+01:00", "%+"), ("2020-01-02T03:04:05.25Z", "%+"),
    ("2020-01-02 03:04:05 +0130", "%F %T %z"), ("2020-01-02 03:04:05 +01:30", "%F %T %z"),
    ("2020-01-02 03:04:05 CET", "%F %T %Z"), ("2020 1", "%Y %j"), ("2020 366", "%Y %j"),
    ("2020-W01-4", "%G-W%V-%u"), ("2020 01 4", "%Y %W %w"), ("2020 01 4", "%Y %U %w"), ("20 20-01-02", "%C %y-%m-%d"),
    ("1577934245", "%s"), ("%2020-01-02", "%%%Y-%m-%d"), ("2020-01-02   03:04:05", "%F %T"),
    ("2020-01-02\n03:04:05", "%F%n%T"), ("2020-01-0203:04:05", "%F %T"), ("2020-01-02 03:04:60", "%F %T"),
    ("2020-01-02 24:00:00", "%F %T"), ("january 2 2020", "%B %d %Y"), ("Jan 2 2020", "%B %d %Y"),
    ("January 2 2020", "%b %d %Y"), ("JAN 2 2020", "%b %d %Y"), ("Thu 2 Jan 2020", "%a %d %b %Y"),
    ("Fri 2 Jan 2020", "%a %d %b %Y"), ("Thursday 2 Jan 2020", "%A %d %b %Y"), ("Thu 2 Jan 2020", "%A %d %b %Y"),
    ("2020-01-02", "%Y-%m-%d %H"), ("2020", "%Y"), ("2020-01", "%Y-%m"), ("12:30:00", "%H:%M:%S"),
    ("0001-01-01", "%Y-%m-%d"), ("9999-12-31 23:59:59", "%Y-%m-%d %H:%M:%S"), ("-0001-01-01", "%Y-%m-%d"),
    ("2020.01.02", "%Y.%m.%d"), ("2020_01_02", "%Y_%-m_%-d"), ("2020年01月02日", "%Y年%m月%d日"),
    ("2020-02-30", "%Y-%m-%d"), ("x", "x"), ("", ""),
)  # fmt: skip
"""None has an hour without minutes, which is dropped officially (see `docs/differences.md`)."""
FAR = ("20-", "0001", "9999", "-0001", "2-", "02020")
"""What nanoseconds of 64 bits do not reach is refused officially, whatever the unit."""
FUNCTIONS = ("to_timestamp", "to_timestamp_millis", "to_unixtime", "to_date")


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = str(tmp_path_factory.mktemp("t") / "t")
    rows = pa.table({"s": [text for text, _ in CASES], "f": [form for _, form in CASES], "k": range(len(CASES))})
    lance.write_dataset(rows, place)
    return place


def _answer(library: Any, uri: str, columns: dict[str, str], where: str | None = None) -> Any:
    """The first value, or None where it is refused."""
    try:
        found = library.dataset(uri).to_table(columns=columns, filter=where)["x"]
    except (OSError, ValueError, LanceError):
        return None
    return found.type, found.cast(pa.int32() if pa.types.is_date32(found.type) else pa.int64()).to_pylist()[:1]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("is_column", [False, True], ids=["constants", "columns"])
def test_every_specifier(uri: str, name: str, is_column: bool) -> None:
    different = []
    for number, (text, form) in enumerate(CASES):
        call = f"{name}(s, '{form}')" if is_column else f"{name}('{text}', '{form}')"
        columns, where = {"k": "k", "x": call}, f"k = {number}"
        mine, theirs = (_answer(library, uri, columns, where) for library in (lance_core, lance))
        if mine != theirs and not (theirs is None and text.startswith(FAR)):
            different.append((text, form, mine, theirs))
    assert different == []


def test_a_format_for_each_row_and_the_first_that_fits(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance_core.write_dataset(pa.table({"s": ["69-01-02", "2020-03-04"], "f": ["%y-%m-%d", "%F"]}), uri)
    columns = {"x": "to_unixtime(s, f)", "y": "to_unixtime(s, '%y-%m-%d', '%F')"}
    assert lance_core.dataset(uri).to_table(columns=columns).to_pydict() == {
        "x": [3124310400, 1583280000], "y": [3124310400, 1583280000],
    }  # fmt: skip
