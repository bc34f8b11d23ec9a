"""The examples of the page on dates, zones and numbers."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import lance_core

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "dates-and-numbers.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^\| `(.+)` \| (.+) \|$", PAGE, re.MULTILINE)
MOMENT = dt.datetime(2024, 3, 31, 1, 30, 0, 500_000)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> lance_core.LanceDataset:
    """The one row of the page."""
    row = pa.table(
        {
            "z": pa.array([MOMENT.replace(tzinfo=dt.timezone.utc)], pa.timestamp("us", "Europe/Berlin")),
            "ts": pa.array([MOMENT], pa.timestamp("us")),
            "dec": pa.array([Decimal("99.99")], pa.decimal128(10, 2)),
            "i": pa.array([None], pa.int64()),
        }
    )
    return lance_core.write_dataset(row, str(tmp_path_factory.mktemp("page")))


@pytest.mark.parametrize(("expression", "value"), EXAMPLES)
def test_the_page_tells_the_value(dataset: lance_core.LanceDataset, expression: str, value: str) -> None:
    assert str(dataset.to_table(columns={"x": expression}).column("x")[0].as_py()) == value


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) >= 15
