"""Legacy (0.1) files, both ways. The format keeps few nulls: what the official library reads back is the truth."""

from __future__ import annotations

import decimal
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import InputError
from lance_core.file.v1.reader import LegacyFile
from lance_core.format.version import FileVersion
from tests.file import file_columns as columns
from tests.file import file_tables as tables

UNKNOWN = ("map", "fsl_struct")
NAMES = [name for name in columns.VALUES if name not in UNKNOWN]
# With nothing but nulls the official library writes an empty dictionary and then cannot read its own file.
DICTIONARIES = ("dictionary", "dictionary_int")


@pytest.mark.parametrize("name", NAMES)
def test_official_files_are_read(tmp_path: Path, name: str) -> None:
    for nulls in columns.NULLS:
        if name in DICTIONARIES and nulls == "all":
            continue
        for size in (1, 1024, 3000):
            root = tmp_path / f"{nulls}{size}"
            opened = tables.write_official(root, columns.table(name, size, nulls), "0.1")
            assert opened.version is FileVersion.V0_1
            expected = lance.dataset(root).to_table()
            tables.assert_same(tables.read_all(opened, batch_size=700), expected)
            rows = [size - 1, 0, size // 2, 0]
            assert opened.take(opened.schema, rows).column(0).to_pylist() == expected.take(rows).column(0).to_pylist()


@pytest.mark.parametrize("name", NAMES)
def test_our_files_are_read_as_the_official_ones(tmp_path: Path, name: str) -> None:
    for nulls in columns.NULLS:
        if name in DICTIONARIES and nulls == "all":
            continue
        table = columns.table(name, 3000, nulls)
        expected = lance.write_dataset(table, tmp_path / f"official{nulls}", data_storage_version="0.1").to_table()
        root = tmp_path / nulls
        written = tables.write_ours(root, table, "0.1", batch_size=700)
        tables.assert_same(tables.read_all(tables.open_ours(root, written)), expected)
        if name not in DICTIONARIES:  # the official reader looks for dictionaries in the table's manifest
            tables.assert_same(tables.official(root, table, written, "0.1").to_table(), expected)


@pytest.mark.parametrize("name", UNKNOWN)
def test_types_the_format_does_not_have(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="legacy"):
        tables.write_ours(tmp_path, columns.table(name, 3), "0.1")
    assert not list(tmp_path.rglob("*.lance"))


def test_dictionaries_of_batches_are_merged(tmp_path: Path) -> None:
    one = pa.array(["a", "b", "a"]).dictionary_encode()
    two = pa.array(["c", "a", "c"]).dictionary_encode()
    table = pa.table({"c": pa.chunked_array([one, two])})
    written = tables.write_ours(tmp_path, table, "0.1")
    assert tables.read_all(tables.open_ours(tmp_path, written)).column(0).to_pylist() == ["a", "b", "a", "c", "a", "c"]


def test_page_statistics(tmp_path: Path) -> None:
    table = pa.table({"i": list(range(3000)), "s": [f"v{i:05d}" for i in range(3000)], "l": [[1]] * 3000})
    opened = tables.write_official(tmp_path, table, "0.1")
    assert isinstance(opened, LegacyFile)
    numbers = opened.statistics(0)
    assert numbers is not None
    assert numbers.to_pylist() == [
        {"null_count": 0, "min_value": 0, "max_value": 1023},
        {"null_count": 0, "min_value": 1024, "max_value": 2047},
        {"null_count": 0, "min_value": 2048, "max_value": 2999},
    ]
    texts = opened.statistics(1)
    assert texts is not None
    assert texts.to_pylist()[2] == {"null_count": 0, "min_value": "v02048", "max_value": "v02999"}
    assert opened.statistics(2) is None


def test_page_statistics_of_nulls_and_odd_numbers(tmp_path: Path) -> None:
    nan = float("nan")
    floats = pa.array([1.0, nan, -0.0] * 100)
    table = pa.table({"n": pa.nulls(300, pa.int32()), "f": floats, "all_nan": [nan] * 300, "s": ["x" * 200] * 300})
    opened = tables.write_official(tmp_path, table, "0.1")
    assert isinstance(opened, LegacyFile)
    found = [opened.statistics(number) for number in range(4)]
    assert all(item is not None and len(item) == 1 for item in found)
    nulls, numbers, _, texts = [item.to_pylist()[0] for item in found if item is not None]
    assert nulls["null_count"] == 300
    assert numbers["min_value"] <= -0.0 <= 1.0 <= numbers["max_value"]
    assert texts["min_value"] <= "x" * 200 <= texts["max_value"]


def test_packed_structs_are_kept_apart(tmp_path: Path) -> None:
    """Legacy files know nothing of packing: the metadata stays, the fields have pages of their own."""
    rows = pa.array([{"a": 1, "b": "x"}, {"a": 2, "b": "yy"}])
    field = pa.field("p", rows.type, metadata={"lance-encoding:packed": "true"})
    table = pa.Table.from_arrays([rows], schema=pa.schema([field]))
    lance.write_dataset(table, tmp_path / "theirs", data_storage_version="legacy")
    assert lance_core.dataset(str(tmp_path / "theirs")).to_table().to_pylist() == table.to_pylist()
    lance_core.write_dataset(table, str(tmp_path / "ours"), data_storage_version="legacy")
    assert lance_core.dataset(str(tmp_path / "ours")).to_table().to_pylist() == table.to_pylist()
    assert lance.dataset(tmp_path / "ours").to_table().to_pylist() == table.to_pylist()


def test_fields_ascend_whatever_the_order_of_columns(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2], "b": ["x", "y"], "c": [1.5, 2.5]})
    lance_core.write_dataset(table, str(tmp_path / "t"), data_storage_version="legacy")
    lance_core.write_dataset(table.select(["c", "a"]), str(tmp_path / "t"), mode="append")
    dataset = lance.dataset(tmp_path / "t")
    dataset.validate()
    assert [file.fields for part in dataset.get_fragments() for file in part.metadata.files] == [[0, 1, 2], [0, 2]]
    assert dataset.to_table().column("c").to_pylist() == [1.5, 2.5, 1.5, 2.5]


def legacy_pair(tmp_path: Path, table: pa.Table) -> tuple[lance.LanceDataset, lance_core.LanceDataset]:
    """The table written by each library, opened by the other: theirs by us last."""
    lance.write_dataset(table, tmp_path / "theirs", data_storage_version="legacy")
    lance_core.write_dataset(table, tmp_path / "ours", data_storage_version="legacy")
    return lance.dataset(tmp_path / "ours"), lance_core.dataset(tmp_path / "theirs")


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
def test_empty_values_of_required_columns_are_no_nulls(tmp_path: Path, kind: pa.DataType) -> None:
    values = pa.array(["a", "", "bb", ""], pa.string()).cast(kind)
    inside = pa.struct([pa.field("x", kind, nullable=False)])
    schema = pa.schema([pa.field("r", kind, nullable=False), pa.field("n", kind), pa.field("s", inside)])
    table = pa.table([values, values, pa.StructArray.from_arrays([values], fields=[inside.field(0)])], schema=schema)
    by_them, by_us = legacy_pair(tmp_path, table)
    expected = lance.dataset(tmp_path / "theirs").to_table()
    assert expected.column("r").null_count == 0
    assert expected.column("n").null_count == 2
    assert by_us.to_table().equals(expected)
    assert by_them.to_table().equals(expected)
    assert by_us.take([3, 0]).equals(expected.take([3, 0]))
    assert lance_core.dataset(tmp_path / "ours").to_table().equals(expected)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([["a", "b"]], pa.list_(pa.string(), 2)),
        pa.array([[None, None]], pa.list_(pa.null(), 2)),
        pa.array([{}], pa.struct([])),
    ],
    ids=["texts", "nulls", "no fields"],
)
def test_columns_that_nobody_could_read_back_are_refused(tmp_path: Path, column: pa.Array) -> None:
    with pytest.raises(InputError, match=r"legacy|fixed width"):
        tables.write_ours(tmp_path, pa.table({"c": column}), "0.1")
    assert not list(tmp_path.rglob("*.lance"))


def test_decimals_in_fixed_size_lists_are_stored(tmp_path: Path) -> None:
    table = pa.table(
        {"c": pa.array([[decimal.Decimal("1.50"), decimal.Decimal("-2.25")]], pa.list_(pa.decimal128(9, 2), 2))}
    )
    by_them, by_us = legacy_pair(tmp_path, table)
    assert by_them.to_table().equals(table)
    assert by_us.to_table().equals(table)


def test_keys_that_are_all_null_have_a_value_to_point_at(tmp_path: Path) -> None:
    table = pa.table({"c": pa.array([None, None], pa.dictionary(pa.int8(), pa.string()))})
    lance_core.write_dataset(table, tmp_path, data_storage_version="legacy")
    for found in (lance.dataset(tmp_path), lance_core.dataset(tmp_path)):
        assert found.to_table().column(0).to_pylist() == [None, None]
