"""Texts as values of other types: TRY_CAST of odd texts, as a column and as constants, here and officially."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_core

TEXTS = (
    "", " ", "+5", "-5", "+ 5", "5 ", " 5", "0x1F", "1_000", "-0", "+0", "007", "256", "-129", "4294967296", "1e2", "1.",
    ".5", "-.5", "+.5", "-.5e1", "1.2.3", "1.+5", "--5", "-", ".", "3.7", "0.005", "-0.005", "1.005", "99999999.994",
    "99999999.995", "1e400", "1e-400", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "18446744073709551615", "18446744073709551616", "123456789012345678901234567890123456789", "0." + "0" * 80 + "1",
    "9." + "9" * 60, "\u0661", "\u00a012\u2003", "inf", "+inf", "-Infinity", "NaN", "-nan", "infinit", "true", "T",
    "tru", "Yes", "y", " on ", "oFF", "of", "n", "maybe", "2020-02-29", "2020-2-9", "2020-02-9", "2020-2-09",
    "2020-02-30", "1900-02-29", "20200229", "20200230", "+2020-02-29", "-0001-01-01", "0000-01-01", "10000-01-01",
    "+10000-01-01", "+262142-12-31", "+262143-01-01", "-2020-2-9", " 2020-02-29", "2020-02-29 ", "2020-02-29T",
    "2020-02-29T12", "2020-02-29 12:30", "2020-02-29 12:30:45", "2020-02-29t12:30:45z", "2020-02-29 12:30:45.",
    "2020-02-29 12:30:45.5", "2020-02-29 12:30:45.1234567891234567", "2020-02-29 12:30:45.12345678912345 +01",
    "2020-02-29T123045", "2020-02-29T123045Z", "2020-02-29T123045+0200", "2020-02-29T12:30:45+02",
    "2020-02-29T12:30:45-02:00", "2020-02-29T23:30:45-0230", "2020-02-29T12:30:45 +2:00", "2020-02-29 12:30:45 Z",
    "2020-02-29 12:30:45 Europe/Berlin", "2020-02-29 12:30:45Europe/Berlin", "2020-03-29 02:30:45 Europe/Berlin",
    "2020-10-25 02:30:45 Europe/Berlin", "2020-02-29 12:30:45 utc", "2020-02-29 12:30:45 EST", "2020-02-29 12:30:60",
    "2020-02-29 23:59:60", "2020-02-29 24:00:00", "1969-12-31 23:59:59.9", "1969-12-31 23:59:59.9999999",
    "1500-02-28 12:30:45", "9999-12-31 23:59:59", "12:30", "1:05:09 pm", "12:00 AM", "13:00 PM", "0:30 am", "1:3",
    "12:30:45.5", "12:30:45.1234567899", "12:30:60", "24:00:00", "123045", "86399", None,
)  # fmt: skip
"""No time of a whole day or more, which Arrow's times do not hold."""
TYPES = (
    "boolean", "tinyint", "smallint", "int", "bigint", "tinyint unsigned", "int unsigned", "bigint unsigned", "float",
    "double", "decimal(10,2)", "decimal(38,10)", "decimal(5,0)", "decimal(3,3)", "date", "timestamp", "timestamp(0)",
    "timestamp(3)", "timestamp(9)",
)  # fmt: skip
ARROW_TYPES = ("Time64(Nanosecond)", "Time64(Microsecond)", "Time32(Second)", "Time32(Millisecond)")


def _plain(values: Any) -> list[Any]:
    """Values as they compare: far dates and NaN too."""
    if pa.types.is_date32(values.type) or pa.types.is_time32(values.type):
        values = values.cast(pa.int32())
    elif pa.types.is_temporal(values.type):
        values = values.cast(pa.int64())
    return [str(value) if isinstance(value, float) else value for value in values.to_pylist()]


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = str(tmp_path_factory.mktemp("t") / "t")
    lance.write_dataset(pa.table({"s": pa.array(TEXTS, pa.string()), "l": pa.array(TEXTS, pa.large_string())}), place)
    return place


def _both(uri: str, columns: dict[str, str]) -> tuple[Any, Any]:
    official: Any = lance.dataset(uri).to_table(columns=columns)
    return lance_core.dataset(uri).to_table(columns=columns), official


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("column", ["s", "l"])
def test_a_column_of_texts(uri: str, kind: str, column: str) -> None:
    mine, theirs = _both(uri, {"x": f"try_cast({column} as {kind})"})
    assert mine["x"].type == theirs["x"].type
    rows = zip(TEXTS, _plain(mine["x"]), _plain(theirs["x"]), strict=True)
    is_digitless = {"", " ", "-", "."} if kind.startswith("decimal") else set()
    assert [row for row in rows if row[1] != row[2] and row[0] not in is_digitless] == []


@pytest.mark.parametrize("kind", TYPES)
def test_constants(uri: str, kind: str) -> None:
    texts = [text for text in TEXTS if text is not None and "'" not in text and not text.startswith("0.0")]
    mine, theirs = _both(uri, {"s": "s", **{f"x{at}": f"try_cast('{text}' as {kind})" for at, text in enumerate(texts)}})
    is_digitless = {"", " ", "-", "."} if kind.startswith("decimal") else set()
    different = [
        (text, _plain(mine[f"x{at}"])[:1], _plain(theirs[f"x{at}"])[:1])
        for at, text in enumerate(texts)
        if text not in is_digitless and _plain(mine[f"x{at}"])[:1] != _plain(theirs[f"x{at}"])[:1]
    ]
    assert different == []


@pytest.mark.parametrize("kind", ARROW_TYPES)
def test_times_of_day(uri: str, kind: str) -> None:
    factor = {"Time64(Nanosecond)": 10**9, "Time64(Microsecond)": 10**6, "Time32(Second)": 1, "Time32(Millisecond)": 1000}[
        kind
    ]
    for text in TEXTS:
        if text is None:
            continue
        columns = {"s": "s", "x": f"arrow_cast('{text}', '{kind}')"}
        try:
            theirs: Any = lance.dataset(uri).to_table(columns=columns)
        except Exception:
            continue
        found = _plain(theirs["x"])[0]
        if not 0 <= found < 86_400 * factor:
            continue
        assert _plain(lance_core.dataset(uri).to_table(columns=columns)["x"])[0] == found, text


@pytest.mark.parametrize("kind", ["int", "date", "timestamp", "decimal(10,2)", "boolean"])
def test_cast_refuses_what_try_cast_has_as_null(uri: str, kind: str) -> None:
    values = lance_core.dataset(uri).to_table(columns={"s": "s", "x": f"try_cast(s as {kind})"})
    bad = next(text for text, found in zip(TEXTS, _plain(values["x"]), strict=True) if found is None and text)
    with pytest.raises(lance_core.errors.LanceError, match="is not a"):
        lance_core.dataset(uri).to_table(columns={"x": f"cast(s as {kind})"}, filter=f"s = '{bad}'")


@pytest.mark.parametrize("kind", ["bigint", "int unsigned", "decimal(10,2)", "date", "timestamp", "timestamp(0)"])
def test_columns_of_texts_of_one_form(tmp_path: Path, kind: str) -> None:
    """Where no text is odd a column is read at once: forms that Arrow reads as well, and no other."""
    for name, texts in {
        "digits": ["12", "-0", "007", None], "points": ["1.5", "-.25", "3.", "99.999"], "days": ["2020-02-29", "0001-01-01"],
        "hours": ["2020-02-29T12", "2020-02-29 12:30"], "seconds": ["2020-02-29 12:30:45", "1969-12-31T23:59:59"],
        "fractions": ["2020-02-29 12:30:45.5", "1969-12-31T23:59:59.999999"],
    }.items():  # fmt: skip
        place = str(tmp_path / name)
        lance.write_dataset(pa.table({"s": texts}), place)
        mine, theirs = _both(place, {"x": f"try_cast(s as {kind})"})
        assert _plain(mine["x"]) == _plain(theirs["x"]), name
