"""Few rows of many pages of a flat column are read together, and are what the pages give one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_core.errors import CorruptFileError
from lance_core.file import projection
from lance_core.pages import group
from lance_core.pages.read.lists import PageRows
from tests.file.small_pages import opened_small_pages

_ROWS = 60_000


def _table() -> pa.Table:
    rng = np.random.default_rng(8)
    mask = rng.random(_ROWS) < 0.1
    return pa.table(
        {
            "long": pa.array(rng.integers(0, 1 << 60, _ROWS)),
            "small": pa.array(rng.integers(0, 100, _ROWS), pa.int32()),
            "maybe": pa.array(rng.integers(0, 10**6, _ROWS), mask=mask),
            "real": pa.array(rng.normal(size=_ROWS), mask=mask),
            "flag": pa.array(rng.random(_ROWS) < 0.5, mask=mask),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(rng.normal(size=4 * _ROWS).astype(np.float32)), 4),
            "text": pa.array([f"{value:x}" for value in rng.integers(0, 1 << 60, _ROWS)], mask=mask),
            "kind": pa.array(["red", "green", "blue"]).take(pa.array(rng.integers(0, 3, _ROWS))),
            "runs": pa.array(np.repeat(rng.integers(0, 9, _ROWS // 100), 100)),
        }
    )


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of pages of each joint read."""
    found: list[int] = []
    real = group.read_picked

    def spy(layout: Any, parts: Sequence[PageRows], codecs: Any) -> Any:
        found.append(len(parts))
        return real(layout, parts, codecs)

    monkeypatch.setattr(group, "read_picked", spy)
    return found


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_rows_of_many_pages(version: str, calls: list[int]) -> None:
    table = _table()
    opened, schema, _ = opened_small_pages(table, version)
    rng = np.random.default_rng(9)
    for count in (2, 10, 64, 65, 100, 500, 10, 2):
        rows = rng.choice(_ROWS, count, replace=False).tolist()
        taken = opened.take(schema, rows)
        assert pa.Table.from_batches([taken]).equals(table.take(rows).combine_chunks()), count
    assert len(calls) >= 6
    assert max(calls) > 5


@pytest.mark.parametrize("few", [0, 64])
def test_rows_that_share_chunks_and_borders(few: int, calls: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projection, "FEW_ROWS", few)
    table = _table().select(["long", "maybe"])
    opened, schema, _ = opened_small_pages(table, "2.1")
    starts = [int(page.priority) for page in opened.columns([0])[0].pages]
    rows = sorted({row for start in starts for row in (start - 1, start, start + 1) if 0 <= row < _ROWS} | {_ROWS - 1})
    for _ in range(2):
        assert pa.Table.from_batches([opened.take(schema, rows)]).equals(table.take(rows).combine_chunks())
    assert bool(calls) is not bool(few)


@pytest.mark.parametrize(("few", "pages"), [(0, "0-"), (64, "0:")])
def test_damage_names_the_column(few: int, pages: str, calls: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projection, "FEW_ROWS", few)
    opened, schema, store = opened_small_pages(_table().select(["small", "maybe", "vector"]), "2.1")
    rows = [5, 20_000, 40_000]
    opened.take(schema, rows)
    page = opened.columns([0])[0].pages[0]
    data = bytearray(store.get("data/x.lance"))
    data[page.buffers[1].start : page.buffers[1].start + 4] = b"\xff" * 4
    store.put("data/x.lance", bytes(data))
    with pytest.raises(CorruptFileError, match=f"column 'small', page {pages}"):
        opened.take(schema, rows)
    assert calls


def test_few_rows_are_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    table = _table()
    opened, schema, _ = opened_small_pages(table, "2.1")
    rows = [[100], [100, 101], [7, 900, 901], [0, 1, 2, 3], [5, 5, 4], [*range(3, 451, 7)], [*range(3, 458, 7)]]
    found: list[int] = []
    real = group.read_row_values

    def spy(layout: Any, page: Any, index: Any, rows: Sequence[int], codecs: Any) -> Any:
        found.append(len(rows))
        return real(layout, page, index, rows, codecs)

    monkeypatch.setattr(group, "read_row_values", spy)
    for wanted in rows:
        assert pa.Table.from_batches([opened.take(schema, wanted)]).equals(table.take(wanted).combine_chunks())
    assert max(found) == 64
    assert len(found) >= 5 * 5


def test_long_ranges_are_not_spelled_out_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    table = _table().select(["long", "small", "maybe"])
    opened, schema, _ = opened_small_pages(table, "2.1")
    monkeypatch.setattr("lance_core.pages.rows.RowSelection.to_indices", None)
    batches = [*opened.read(schema, ranges=[(10, _ROWS - 10)], batch_size=30_000)]
    assert pa.Table.from_batches(batches).equals(table.slice(10, _ROWS - 20).combine_chunks())
