"""Scans of many tiny fragments: read together, they are what each would have been by itself."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.dataset.scan.small_fragments import MIN_TASKS
from lance_core.dataset.snapshot.fragment_reader import FragmentReader

FRAGMENTS, ROWS = 40, 7


def rows(start: int, count: int) -> pa.Table:
    ids = np.arange(start, start + count)
    return pa.table(
        {
            "id": pa.array(ids),
            "x": pa.array([None if number % 5 == 0 else number / 3 for number in ids.tolist()]),
            "s": [f"text {number}" for number in ids.tolist()],
            "c": pa.array([1] * count, pa.int8()),
            "t": pa.array(ids, pa.timestamp("us", "UTC")),
            "l": [[number, 1] for number in ids.tolist()],
        }
    )


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Fragments of a few rows, one of which lost some, one of many rows, and two with a file more."""
    uri = str(tmp_path_factory.mktemp("tiny") / "t")
    made = lance.write_dataset(rows(0, FRAGMENTS * ROWS), uri, max_rows_per_file=ROWS)
    made.delete("id in (8, 9, 100)")
    lance.write_dataset(rows(10_000, 40_000), uri, mode="append")
    lance_core.write_dataset(rows(1_000, FRAGMENTS * 3), uri, mode="append", max_rows_per_file=3)
    return uri


def opened(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    found: set[int] = set()
    kept = FragmentReader.__init__
    monkeypatch.setattr(
        FragmentReader,
        "__init__",
        lambda self, snapshot, fragment: (found.add(fragment.id), kept(self, snapshot, fragment))[1],
    )
    return found


@pytest.mark.parametrize("columns", [["id"], ["s", "id"], ["x", "c", "t"], ["id", "x", "s", "c", "t"]], ids=",".join)
def test_the_rows_are_those_of_the_official_library(table: str, columns: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = lance.dataset(table).to_table(columns=columns)
    seen = opened(monkeypatch)
    ours = lance_core.dataset(table)
    assert ours.to_table(columns=columns).equals(expected)
    assert len(seen) < MIN_TASKS
    batches = [*ours.to_batches(columns=columns, batch_size=5)]
    assert pa.Table.from_batches(batches).equals(expected)
    assert max(batch.num_rows for batch in batches) == 5
    assert ours.to_table(columns=columns, limit=300, offset=20).equals(expected.slice(20, 300))


@pytest.mark.parametrize(
    "asked",
    [
        {"columns": ["id", "l"]},
        {"columns": ["id"], "with_row_id": True},
        {"columns": {"twice": "id * 2"}},
        {"columns": ["id"], "filter": "id % 3 = 1"},
        {"columns": ["s"], "include_deleted_rows": True, "with_row_id": True},
    ],
    ids=["lists", "row ids", "computed", "filter", "deleted"],
)
def test_other_scans_are_what_they_were(table: str, asked: dict[str, object]) -> None:
    assert lance_core.dataset(table).to_table(**asked).equals(lance.dataset(table).to_table(**asked))


def test_columns_in_files_of_their_own(table: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    made = lance.write_dataset(rows(0, 200).select(["id", "s"]), uri, max_rows_per_file=4)
    made.add_columns({"more": "id + 1"})
    for columns in (["id"], ["more"], ["id", "more"]):
        assert lance_core.dataset(uri).to_table(columns=columns).equals(lance.dataset(uri).to_table(columns=columns))


def test_a_damaged_file_is_told_by_its_path(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    made = lance_core.write_dataset(rows(0, 200).select(["id", "x"]), uri, max_rows_per_file=4)
    file = made.get_fragments()[20].metadata.files[0].path
    path = tmp_path / "t" / "data" / file
    path.write_bytes(bytes(path.stat().st_size))
    with pytest.raises(lance_core.errors.LanceError, match=file):
        lance_core.dataset(uri).to_table()
