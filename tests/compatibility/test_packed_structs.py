"""Packed structs by table: read whole and in part, written, changed and compacted by either library in 2.0 to 2.2."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_core

KIND = pa.struct([pa.field("x", pa.int32()), pa.field("y", pa.float32()), pa.field("z", pa.int64())])
COUNT = 10


def rows(version: str, first: int = 0) -> pa.Table:
    """An id and a packed struct; 2.0 spells the request another way."""
    packed = {"packed": "true"} if version == "2.0" else {"lance-encoding:packed": "true"}
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("p", KIND, metadata=packed)])
    ids = range(first, first + COUNT)
    return pa.table({"id": ids, "p": [{"x": i, "y": i / 2, "z": -i} for i in ids]}, schema=schema)


def expected(ids: list[int]) -> list[dict[str, Any]]:
    """The structs of some rows."""
    return [{"x": i, "y": i / 2, "z": -i} for i in ids]


VERSIONS = pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
LIBRARIES = pytest.mark.parametrize("library", [lance_core, lance], ids=["ours", "theirs"])


@VERSIONS
@LIBRARIES
def test_packed_structs_are_read_whole_and_in_part(library: Any, version: str, tmp_path: Path) -> None:
    library.write_dataset(rows(version), str(tmp_path), data_storage_version=version, max_rows_per_file=4)
    dataset = lance_core.dataset(str(tmp_path))
    assert dataset.to_table().column("p").to_pylist() == lance.dataset(tmp_path).to_table().column("p").to_pylist()
    assert dataset.to_table().column("p").to_pylist() == expected(list(range(COUNT)))
    # The official library reads the bytes of x where y is asked for.
    assert dataset.to_table(columns=["p.y"]).column(0).to_pylist() == [i / 2 for i in range(COUNT)]
    assert dataset.to_table(columns=["p.z", "id"]).to_pydict() == {"p.z": [-i for i in range(COUNT)], "id": [*range(COUNT)]}
    assert dataset.take([7, 1]).column("p").to_pylist() == expected([7, 1])
    assert dataset.count_rows("p.z < -6") == 3
    assert dataset.to_table(filter="p.y = 2.5").column("id").to_pylist() == [5]


CHANGES: dict[str, Callable[[Any, str], Any]] = {
    "compact": lambda dataset, _: dataset.optimize.compact_files(),
    "update": lambda dataset, _: dataset.update({"id": "id + 0"}, where="id IN (3, 8)"),
    "add": lambda dataset, _: dataset.add_columns({"twice": "id * 2"}),
    "delete": lambda dataset, _: dataset.delete("id > 100"),
    "merge": lambda dataset, version: (
        dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows(version).slice(4, 3))
    ),
    "index": lambda dataset, _: dataset.create_scalar_index("id", "BTREE"),
    "optimize": lambda dataset, _: dataset.optimize.optimize_indices(),
}


@VERSIONS
@LIBRARIES
@pytest.mark.parametrize("name", CHANGES)
def test_packed_structs_survive_every_change(name: str, library: Any, version: str, tmp_path: Path) -> None:
    writer = lance if library is lance_core else lance_core
    writer.write_dataset(rows(version), str(tmp_path), data_storage_version=version, max_rows_per_file=4)
    try:
        CHANGES[name](library.dataset(str(tmp_path)), version)
    except (OSError, ValueError, pa.ArrowException):
        if library is lance:
            pytest.skip("the official library refuses this itself")
        raise
    for reader in (lance, lance_core):
        table = reader.dataset(str(tmp_path)).to_table().sort_by("id")
        assert table.column("p").to_pylist() == expected(list(range(COUNT)))
    lance_core.dataset(str(tmp_path)).validate()
    assert lance_core.dataset(str(tmp_path)).to_table(filter="p.x = 6").column("id").to_pylist() == [6]


@VERSIONS
def test_a_field_of_a_packed_struct_is_dropped(version: str, tmp_path: Path) -> None:
    lance_core.write_dataset(rows(version), str(tmp_path), data_storage_version=version)
    lance_core.dataset(str(tmp_path)).drop_columns(["p.x"])
    table = lance_core.dataset(str(tmp_path)).to_table()
    assert table.column("p").to_pylist() == [{"y": i / 2, "z": -i} for i in range(COUNT)]
    lance_core.dataset(str(tmp_path)).alter_columns({"path": "p.z", "name": "x"})
    table = lance_core.dataset(str(tmp_path)).to_table()
    assert table.column("p").to_pylist() == [{"y": i / 2, "x": -i} for i in range(COUNT)]
