"""Values that few tables have: vectors of bfloat16, text from Polars, structs without fields."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.arrow import BFloat16Type

import lance_core

VERSIONS = pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])


def half_floats() -> pa.Table:
    """Two vectors of bfloat16."""
    stored = pa.array([b"\x00\x3f"] * 4 + [b"\x80\x3f"] * 4, pa.binary(2))
    items = pa.ExtensionArray.from_storage(BFloat16Type(), stored)
    return pa.table({"id": [1, 2], "v": pa.FixedSizeListArray.from_arrays(items, 4)})


@VERSIONS
@pytest.mark.parametrize("writer", [lance_core, lance], ids=["ours", "theirs"])
def test_vectors_of_bfloat16(writer: Any, version: str, tmp_path: Path) -> None:
    writer.write_dataset(half_floats(), str(tmp_path), data_storage_version=version)
    dataset = lance_core.dataset(str(tmp_path))
    assert dataset.count_rows("id = 1") == 1
    assert dataset.schema.equals(lance.dataset(tmp_path).schema)
    assert dataset.to_table().equals(lance.dataset(tmp_path).to_table())
    dataset.delete("id = 1")
    lance_core.write_dataset(half_floats(), str(tmp_path), mode="append")
    lance_core.write_dataset(dataset.to_table(), str(tmp_path), mode="append")
    lance_core.dataset(str(tmp_path)).optimize.compact_files()
    theirs = lance.dataset(tmp_path)
    assert theirs.schema.field("v").type == half_floats().schema.field("v").type
    found = sorted([float(str(value)) for value in row] for row in theirs.to_table().column("v").to_pylist())
    assert found == [[0.5] * 4, *[[1.0] * 4] * 3]


def test_text_from_polars_is_merged(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    lance.write_dataset(pa.table({"id": [1, 2], "s": ["a", "b"]}), tmp_path)
    for on, ids, texts in (("id", [2, 3], ["x", "y"]), ("s", [7, 8], ["x", "q"])):
        merge = lance_core.dataset(str(tmp_path)).merge_insert(on).when_matched_update_all().when_not_matched_insert_all()
        merge.execute(polars.DataFrame({"id": ids, "s": texts}))
    table = lance.dataset(tmp_path).to_table().sort_by("id")
    assert table.to_pydict() == {"id": [1, 3, 7, 8], "s": ["a", "y", "x", "q"]}
