"""Figures of tables and indices: bytes of fields as the official library counts them, and rows of an index."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_core


@pytest.fixture
def ds(tmp_path: Path) -> lance_core.LanceDataset:
    made = lance_core.write_dataset(pa.table({"a": [1]}), tmp_path / "t")
    made.insert(pa.table({"a": [2]}))
    return made


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_bytes_of_fields(tmp_path: Path, version: str) -> None:
    rows = pa.table({"a": range(5000), "s": [{"x": number, "y": [str(number)]} for number in range(5000)]})
    lance.write_dataset(rows, tmp_path / "t", data_storage_version=version, max_rows_per_file=2000)
    found = lance_core.dataset(tmp_path / "t").stats.data_stats().fields
    theirs = lance.dataset(tmp_path / "t").stats.data_stats().fields
    assert [(item.id, item.bytes_on_disk) for item in found] == [(item.id, item.bytes_on_disk) for item in theirs]


def test_figures_of_an_index(ds: lance_core.LanceDataset) -> None:
    ds.create_scalar_index("a", "BTREE")
    assert ds.stats.index_stats("a_idx")["num_indexed_rows"] == 2
