"""One row at a time goes a way of its own through mini-block pages: it must give what the long way gives."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core

ROWS = 5_000


def _columns() -> dict[str, pa.Array]:
    rng = np.random.default_rng(4)
    mask = rng.random(ROWS) < 0.3
    words = [f"{'word' * int(size)} {number}" for number, size in enumerate(rng.integers(0, 30, ROWS))]
    columns: dict[str, pa.Array] = {
        f"{kind}_{high}": pa.array(rng.integers(0, high, ROWS).astype(kind))
        for kind, high in [
            ("uint8", 7),
            ("uint8", 255),
            ("int16", 900),
            ("int32", 3),
            ("int32", 1 << 29),
            ("int64", 1 << 40),
        ]
    }
    return columns | {
        "constant": pa.array([5] * ROWS),
        "nullable": pa.array(rng.integers(0, 1 << 20, ROWS), mask=mask),
        "flag": pa.array(rng.random(ROWS) < 0.5),
        "nullable_flag": pa.array(rng.random(ROWS) < 0.5, mask=mask),
        "real": pa.array(rng.normal(size=ROWS)),
        "text": pa.array(words),
        "nullable_text": pa.array(words, mask=mask),
        "large": pa.array(words, pa.large_string()),
        "category": pa.array(["red", "green", None, "blue"]).take(pa.array(rng.integers(0, 4, ROWS))),
        "runs": pa.array(np.repeat(np.arange(ROWS // 100), 100)),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(rng.normal(size=4 * ROWS).astype(np.float32)), 4),
        "bytes": pa.array([bytes([number % 256] * 5) for number in range(ROWS)], pa.binary(5)),
        "list": pa.array([[number] * (number % 3) for number in range(ROWS)]),
    }


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("compression", [None, "zstd"])
def test_each_single_row_equals_the_same_row_of_the_whole(version: str, compression: str | None, tmp_path: Path) -> None:
    """Rows at the edges of chunks and some between, of a table that the official library wrote."""
    metadata = {"lance-encoding:compression": compression} if compression else None
    columns = _columns()
    schema = pa.schema([pa.field(name, column.type, metadata=metadata) for name, column in columns.items()])
    table = pa.table(columns, schema=schema)
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(table, uri, data_storage_version=version)
    ours = lance_core.dataset(uri)
    whole = ours.to_table()
    assert whole.equals(lance.dataset(uri).to_table())
    for row in [0, 1, 255, 256, 511, 512, 1023, 1024, 1025, 2047, 2048, 3333, 4095, 4096, ROWS - 2, ROWS - 1]:
        one = ours.take([row])
        assert one.equals(whole.slice(row, 1)), row


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_single_rows_of_a_table_of_our_own(version: str, tmp_path: Path) -> None:
    """What our writer chooses is read by the short way, too."""
    table = pa.table(_columns())
    uri = str(tmp_path / "t.lance")
    lance_core.write_dataset(table, uri, data_storage_version=version)
    ours = lance_core.dataset(uri)
    for row in range(0, ROWS, 97):
        assert ours.take([row]).equals(table.slice(row, 1)), row
