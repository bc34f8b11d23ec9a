"""What a constant takes from the column beside it, parts of dates, decimals since 1970: here as in the official library."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lance_core.dataset import LanceDataset, write_dataset

TABLE = pa.table(
    {
        "i": pa.array([7, 4, None], pa.int32()),
        "g": pa.array([0.1, -2.5, None], pa.float32()),
        "d": pa.array([Decimal("100.635"), Decimal("-3.509"), None], pa.decimal128(10, 3)),
        "h": pa.array([Decimal("1700000000.123456789"), Decimal("-0.000000001"), None], pa.decimal128(38, 9)),
        "day": pa.array([18321, -1, None], pa.date32()),
    }
)
STAMPS = ("to_timestamp", "to_timestamp_seconds", "to_timestamp_millis", "to_timestamp_micros", "to_timestamp_nanos")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> LanceDataset:
    return write_dataset(TABLE, str(Path(tmp_path_factory.mktemp("constants")) / "t.lance"))


@pytest.mark.parametrize(
    "expression",
    [
        # A constant that is written as one takes the column's type; a CAST of one keeps its own
        # unless the column's holds it exactly.
        "g - 7.3", "g % CAST(0.7 AS DOUBLE)", "g - CAST(7 AS DOUBLE)", "4 / d", "CAST(4 AS INT) / d", "CAST(4 AS INT) * i",
        "CAST(3 AS DOUBLE) / g",
        *(f"date_part('{part}', day)" for part in ("hour", "minute", "second", "day")),
        *(f"{name}({column})" for name in STAMPS for column in ("d", "h")),
    ],
)  # fmt: skip
def test_values_and_types_are_the_official_ones(table: LanceDataset, expression: str) -> None:
    asked = {"i": "i", "x": expression}
    assert (
        table.to_table(columns=asked)["x"].combine_chunks()
        == lance.dataset(table.uri).to_table(columns=asked)["x"].combine_chunks()
    )
