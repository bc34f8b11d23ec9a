"""Compaction by copying pages: the same rows, whoever reads; refused or encoded anew where something has to be decoded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import InputError


def rows(first: int, count: int) -> pa.Table:
    """Columns of many shapes and encodings."""
    rng = np.random.default_rng(first)
    numbers = np.arange(first, first + count)
    return pa.table(
        {
            "id": numbers,
            "few": pa.array([f"word {number % 7}" for number in numbers]),
            "many": pa.array([None if number % 11 == 0 else f"text of row {number} " * (number % 5) for number in numbers]),
            "same": pa.array([7] * count),
            "none": pa.array([None] * count, pa.float32()),
            "wide": pa.FixedSizeListArray.from_arrays(pa.array(rng.random(count * 16, dtype=np.float32)), 16),
            "list": pa.array([[*range(number % 4)] if number % 5 else None for number in numbers], pa.list_(pa.int16())),
            "struct": pa.array([{"a": int(number), "b": [str(number)]} if number % 3 else None for number in numbers]),
            "big": pa.array([b"x" * 5000 if number % 50 == 0 else b"" for number in numbers]),
        }
    )


def make(uri: str, version: str, *, stable: bool = False) -> Any:
    for first in (0, 3000, 3100, 5000):
        part = rows(first, 3000 if first == 0 else 100)
        lance.write_dataset(part, uri, mode="append", data_storage_version=version, enable_stable_row_ids=stable)
    return lance_core.dataset(uri)


@pytest.mark.parametrize(("version", "stable"), [("2.1", False), ("2.2", True)])
def test_pages_are_copied(tmp_path: Path, version: str, stable: bool) -> None:
    ds = make(str(tmp_path / "t"), version, stable=stable)
    ds.add_columns({"twice": "id * 2"})
    names = [*ds.schema.names, *(["_row_created_at_version"] if stable else [])]
    before = ds.to_table(columns=names, with_row_id=stable)
    metrics = ds.optimize.compact_files(compaction_mode="force_binary_copy")
    assert (metrics.fragments_removed, metrics.fragments_added) == (4, 1)
    (fragment,) = ds.snapshot.manifest.fragments
    assert len(fragment.files) == 1
    ds.validate()
    lance.dataset(ds.uri).validate()
    assert ds.to_table(columns=names, with_row_id=stable).equals(before)
    assert lance.dataset(ds.uri).to_table(columns=names, with_row_id=stable).equals(before)
    picked = [0, 2999, 3000, 3150, 3299]
    assert ds.take(picked).equals(before.select(ds.schema.names).take(picked))
    assert lance.dataset(ds.uri).take(picked).equals(ds.take(picked))


def test_several_files_and_a_row_more(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    ds = lance_core.write_dataset(pa.table({"a": [*range(101)]}), uri, max_rows_per_file=10)
    ds.optimize.compact_files(compaction_mode="force_binary_copy", target_rows_per_fragment=30)
    assert [item.physical_rows for item in ds.snapshot.manifest.fragments] == [30, 30, 41]
    ds.create_scalar_index("a", "BTREE")
    ds.optimize.compact_files(compaction_mode="try_binary_copy")
    assert lance.dataset(uri).to_table(filter="a = 77")["a"].to_pylist() == [77]
    assert ds.to_table()["a"].to_pylist() == [*range(101)]


@pytest.mark.parametrize("what", ["deletions", "nulls", "old version", "blobs", "blobs of 2.2"])
def test_what_has_to_be_decoded(tmp_path: Path, what: str) -> None:
    table = pa.table({"a": [*range(10)]})
    if "blobs" in what:
        blob = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
        table = table.append_column(blob, pa.array([b"x"] * 10, pa.large_binary()))
    version = {"old version": "2.0", "blobs": "2.1"}.get(what, "2.2")
    ds = lance_core.write_dataset(table, tmp_path / "t", max_rows_per_file=3, data_storage_version=version)
    if what == "deletions":
        ds.delete("a = 4")
    if what == "nulls":
        ds.add_columns(pa.field("n", pa.int64()))
    files = sorted(Path(ds.uri, "data").iterdir())
    with pytest.raises(InputError, match="copied"):
        ds.optimize.compact_files(compaction_mode="force_binary_copy")
    assert sorted(Path(ds.uri, "data").iterdir()) == files
    before = ds.to_table(columns=["a"])
    ds.optimize.compact_files(compaction_mode="try_binary_copy")
    assert len(ds.get_fragments()) == 1
    assert ds.to_table(columns=["a"]).equals(before)
    lance.dataset(ds.uri).validate()


def test_modes(tmp_path: Path) -> None:
    ds = lance_core.write_dataset(pa.table({"a": [1]}), tmp_path / "t")
    with pytest.raises(InputError, match="compaction_mode"):
        ds.optimize.compact_files(compaction_mode="fast")


def test_auto_cleanup_is_switched(tmp_path: Path) -> None:
    ds = lance_core.write_dataset(pa.table({"a": [1]}), tmp_path / "t")
    ds.optimize.enable_auto_cleanup({"interval": 3, "older_than_seconds": 60})
    assert lance.dataset(ds.uri).config() == {"lance.auto_cleanup.interval": "3", "lance.auto_cleanup.older_than": "60s"}
    ds.optimize.disable_auto_cleanup()
    assert ds.config() == {}
