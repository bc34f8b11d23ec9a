"""A count that an index has answered reads no row; one after a delete, or with a second test, is exact all the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.dataset.scan import sinks


@pytest.fixture
def uri(tmp_path: Path) -> str:
    numbers = np.arange(3000)
    table = pa.table({"id": numbers, "kind": numbers % 7, "value": numbers * 0.5})
    made = lance_core.write_dataset(table, str(tmp_path / "t.lance"), max_rows_per_file=1000)
    made.create_scalar_index("kind", "BITMAP")
    return str(tmp_path / "t.lance")


def test_an_answer_of_an_index_is_counted_without_reading(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lance_core.dataset(uri)
    expected = sum(number % 7 == 3 for number in range(3000))
    monkeypatch.setattr(sinks, "_count_of_task", None)
    assert table.count_rows("kind = 3") == expected
    assert table.count_rows("kind IN (1, 3)") == sum(number % 7 in (1, 3) for number in range(3000))
    assert table.count_rows("kind = 9") == 0


def test_deleted_and_appended_rows_are_counted_right(uri: str) -> None:
    table = lance_core.dataset(uri)
    table.delete("id < 1400")
    rows = pa.table({"id": np.arange(3000, 3100), "kind": np.full(100, 3), "value": np.zeros(100)})
    lance_core.write_dataset(rows, uri, mode="append")
    table = lance_core.dataset(uri)
    living = [number for number in range(1400, 3000) if number % 7 == 3]
    assert table.count_rows("kind = 3") == len(living) + 100
    assert table.count_rows("kind = 3 AND id < 2000") == sum(number < 2000 for number in living)
