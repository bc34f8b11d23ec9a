"""Nested columns that once were not kept as the official library keeps them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lance_core.errors import InputError
from tests.bytes import byte_files as files


def json_under_nulls(metadata: dict[str, str]) -> pa.Table:
    """Rows of a struct with a null; the JSON in it is not nullable."""
    texts = pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a":1}', "true", "[2]", "3"]))
    structs = pa.StructArray.from_arrays(
        [texts], fields=[pa.field("j", pa.json_(), nullable=False)], mask=pa.array([False, True, False, True])
    )
    return pa.table([structs], schema=pa.schema([pa.field("s", structs.type, metadata=metadata)]))


@pytest.mark.parametrize(("version", "packed"), [("2.1", False), ("2.2", False), ("2.2", True)])
def test_json_under_nulls_of_a_struct(tmp_path: Path, version: str, packed: bool) -> None:
    """A packed struct stores its nulls as empty bytes, which are no JSONB."""
    table = json_under_nulls({"lance-encoding:packed": "true"} if packed else {})
    files.write_official(tmp_path / "theirs", table, version)
    assert files.read_by_us(tmp_path / "theirs", table) == []
    files.write_ours(tmp_path / "ours", table, version)
    assert files.read_by_us(tmp_path / "ours", table) == []
    opened = files.open_at(tmp_path / "theirs")
    assert files.batches_of(opened, opened.schema).slice(1, 1).to_pylist() == [{"s": None}]


def lists_in_fixed_size_lists(num_rows: int) -> pa.Table:
    """Fixed-size lists of 70 structs, each with a number and a short list, with nulls of both."""
    count = 70 * num_rows
    numbers = pa.array((number % 5 for number in range(count)), pa.int8())
    lists = pa.array(([None, number % 3] if number % 7 else None for number in range(count)), pa.list_(pa.int8()))
    structs = pa.StructArray.from_arrays([numbers, lists], names=["n", "l"])
    return pa.table({"f": pa.FixedSizeListArray.from_arrays(structs, 70)})


@pytest.mark.filterwarnings("ignore:file version 2.3")
@pytest.mark.parametrize("version", ["2.2", "2.3"])
def test_pages_hold_whole_fixed_size_lists(tmp_path: Path, version: str) -> None:
    """The levels of a leaf take several pages, none of which ends within a list of 70."""
    table = lists_in_fixed_size_lists(900)
    written = files.write_ours(tmp_path, table, version)
    opened = files.open_at(tmp_path)
    assert files.read_by_us(tmp_path, table) == []
    found = files.official_table(tmp_path, table, written, version).to_table()
    assert list(files.differences(found, table)) == []
    assert opened.take(opened.schema, [899]).to_pylist() == table.slice(899).to_pylist()


ITEMS = pa.list_(pa.struct([("v", pa.binary())]), 33)
UNEVEN = {
    "number": pa.struct([("a", pa.uint32()), ("f", ITEMS)]),
    "list_first": pa.struct([("f", ITEMS), ("l", pa.list_(pa.int32()))]),
    "two_sizes": pa.struct([("f", ITEMS), ("g", pa.list_(pa.struct([("w", pa.int8())]), 4))]),
    "deeper": pa.struct([("s", pa.struct([("a", pa.string()), ("f", ITEMS)])), ("m", pa.map_(pa.string(), pa.int32()))]),
}


@pytest.mark.filterwarnings("ignore:file version 2.3")
@pytest.mark.parametrize("name", UNEVEN)
def test_nulls_of_structs_with_fixed_size_lists(tmp_path: Path, name: str) -> None:
    """Of such structs the official library keeps nulls only, and only in 2.3: they are read, the type is refused here."""
    table = pa.table({"s": pa.nulls(300, UNEVEN[name]), "n": pa.array(range(300))})
    files.write_official(tmp_path / "theirs", table, "2.3")
    assert files.read_by_us(tmp_path / "theirs", table) == []
    with pytest.raises(InputError, match="fixed-size list of structs beside other fields"):
        files.write_ours(tmp_path / "ours", table, "2.3", batch_rows=70)


@pytest.mark.filterwarnings("ignore:file version 2.3")
@pytest.mark.parametrize("version", ["2.2", "2.3"])
def test_values_of_structs_with_fixed_size_lists(tmp_path: Path, version: str) -> None:
    """Rows with a value are refused, as are nulls in 2.2; the official library writes such rows and does not read them."""
    structs = pa.array([None, {"a": 1, "f": None}] if version == "2.3" else [None], UNEVEN["number"])
    with pytest.raises(InputError, match="fixed-size list of structs beside other fields"):
        files.write_ours(tmp_path, pa.table({"s": structs}), version, batch_rows=1)
