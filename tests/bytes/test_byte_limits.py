"""The official library's own limits that the matrix leaves out: each is checked to be there still.

When one of these tests fails the official library has learned something, and the matrix should learn it too.
"""

from __future__ import annotations

from pathlib import Path

import byte_cases as cases
import byte_files as files
import byte_pools as pools
import lance
import pyarrow as pa
import pytest

LIMITS = [
    (version, name, cases.MAP_OR_LIST_OF_STRUCT)
    for version in ("2.0", "2.1")
    for name in cases.NEEDS_2_2
    if name != "list_map"
] + [("2.0", name, cases.VIEW) for name in cases.VIEWS]


@pytest.mark.parametrize(("version", "name", "reason"), LIMITS)
def test_types_a_version_does_not_have(tmp_path: Path, version: str, name: str, reason: str) -> None:
    column = pools.column(name, 50, "some")
    assert cases.limit_of(name, column, version) == reason
    with pytest.raises((ValueError, RuntimeError, NotImplementedError)):
        files.write_official(tmp_path, pa.table({"c": column}), version)


@pytest.mark.parametrize("name", ["struct", "struct_nulls", "list_struct", "struct_list", "struct_fsl"])
def test_nulls_of_structs_in_2_0(tmp_path: Path, name: str) -> None:
    column = pools.column(name, 50, "some")
    assert cases.limit_of(name, column, "2.0") == cases.NULL_STRUCT
    with pytest.raises(ValueError, match="struct validity"):
        files.write_official(tmp_path, pa.table({"c": column}), "2.0")


def test_fixed_size_lists_of_structs_are_read_alone(tmp_path: Path) -> None:
    table = pa.table({"a": range(50), "f": pools.column("fsl_struct", 50)})
    dataset = lance.write_dataset(table, tmp_path, data_storage_version="2.2")
    with pytest.raises((ValueError, pa.ArrowException), match="differing lengths"):
        dataset.to_table()
    assert dataset.to_table(columns=["f"]).num_rows == 50


# The official writer panics in a task here, which it reports as an internal error.
@pytest.mark.parametrize(("name", "nulls"), [("large_string_long", "none"), ("binary", "all")])
def test_fsst_by_name_in_2_0(tmp_path: Path, name: str, nulls: str) -> None:
    column = pools.column(name, 2500, nulls)
    field = pa.field("c", column.type, metadata={"lance-encoding:compression": "fsst"})
    with pytest.raises(RuntimeError):
        files.write_official(tmp_path, pa.table([column], schema=pa.schema([field])), "2.0")
