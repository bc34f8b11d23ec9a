"""The official library's own limits that the matrix leaves out: each is checked to be there still.

When one of these tests fails the official library has learned something, and the matrix should learn it too.
"""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lance_core.errors import LanceError
from tests.bytes import byte_cases as cases
from tests.bytes import byte_files as files
from tests.bytes import byte_pools as pools

LIMITS = [
    (version, name, cases.MAP_OR_LIST_OF_STRUCT)
    for version in ("2.0", "2.1")
    for name in cases.NEEDS_2_2
    if name not in ("list_map", "large_list_map")
] + [("2.0", name, cases.VIEW) for name in cases.VIEWS]


@pytest.mark.parametrize(("version", "name", "reason"), LIMITS)
def test_types_a_version_does_not_have(tmp_path: Path, version: str, name: str, reason: str) -> None:
    column = pools.column(name, 50, "none" if name == "struct_view" else "some")
    assert cases.limit_of(name, column, version) == reason
    with pytest.raises((ValueError, RuntimeError, NotImplementedError)):
        files.write_official(tmp_path, pa.table({"c": column}), version)


STRUCTS = ["struct", "struct_nulls", "list_struct", "struct_list", "struct_fsl", "struct_json", "struct_view", "struct_null"]


@pytest.mark.parametrize("name", STRUCTS)
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


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_nulls_of_structs_without_fields(tmp_path: Path, version: str) -> None:
    column = pools.column("struct_empty", 50, "some")
    assert cases.limit_of("struct_empty", column, version) == cases.NULL_EMPTY_STRUCT
    with pytest.raises(ValueError, match="Empty structs with rep/def information"):
        files.write_official(tmp_path / "some", pa.table({"c": column}), version)
    files.write_official(tmp_path / "all", pa.table({"c": pools.column("struct_empty", 5, "all")}), version)
    assert files.read_official(tmp_path / "all").column("c").to_pylist() == [{}] * 5


_ROW = pa.struct([("a", pa.int32())])
NEVER = {
    "fsl_of_lists": (pa.list_(pa.list_(pa.int32()), 2), [[[1], [2]], None]),
    "fsl_of_strings": (pa.list_(pa.string(), 2), [["a", "b"], None]),
    "fsl_of_fsl_of_structs": (pa.list_(pa.list_(_ROW, 1), 2), [[[{"a": 1}], [{"a": 2}]]]),
    "dictionary_of_times": (pa.dictionary(pa.int8(), pa.timestamp("us")), [0, 1]),
    "dictionary_of_decimals": (pa.dictionary(pa.int8(), pa.decimal128(20, 2)), [1, 2]),
    "dictionary_of_fixed_binary": (pa.dictionary(pa.int8(), pa.binary(2)), [b"ab", b"cd"]),
}


@pytest.mark.parametrize("version", cases.VERSIONS)
@pytest.mark.parametrize("name", NEVER)
def test_types_no_version_keeps(tmp_path: Path, name: str, version: str) -> None:
    """Types outside the matrix: no file of them can be written and read again, and the two libraries refuse them alike."""
    arrow_type, values = NEVER[name]
    if pa.types.is_dictionary(arrow_type):
        array = pa.array(values, arrow_type.value_type).dictionary_encode().cast(arrow_type)
    else:
        array = pa.array(values, arrow_type)
    table = pa.table({"c": array})
    with pytest.raises(BaseException):  # some of these panic
        files.write_official(tmp_path / "official", table, version)
        files.read_official(tmp_path / "official")
    with pytest.raises(LanceError):
        files.write_ours(tmp_path / "ours", table, version)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_columns_behind_structs_without_fields_are_read_wrong(tmp_path: Path, version: str) -> None:
    table = pa.table({"s": pools.column("struct_empty", 3), "b": ["x", "y", "z"]})
    dataset = lance.write_dataset(table, tmp_path, data_storage_version=version)
    assert dataset.to_table().column("b").to_pylist() == [None] * 3
    assert dataset.to_table(columns=["b"]).column("b").to_pylist() == ["x", "y", "z"]


# The official writer panics in a task here, which it reports as an internal error.
FSST_PANICS = [("large_string_long", "none", 2500), ("binary", "all", 2500), ("string", "all", 1), ("string_long", "all", 3)]


@pytest.mark.parametrize(("name", "nulls", "rows"), FSST_PANICS)
def test_fsst_by_name_in_2_0(tmp_path: Path, name: str, nulls: str, rows: int) -> None:
    column = pools.column(name, rows, nulls)
    field = pa.field("c", column.type, metadata={"lance-encoding:compression": "fsst"})
    with pytest.raises(RuntimeError):
        files.write_official(tmp_path, pa.table([column], schema=pa.schema([field])), "2.0")
