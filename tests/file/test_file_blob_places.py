"""Blobs beside their file and below other columns: the same files, descriptors and values as the official library's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.arrow import schema_from_arrow
from lance_core.arrow.blob import Blob, blob_array, blob_field
from lance_core.errors import InputError, SchemaMismatchError
from lance_core.file.writer import FileWriter
from lance_core.format.version import FileVersion
from lance_core.io.local.store import LocalStore
from lance_core.io.memory import MemoryStore

MIB = 1 << 20
VALUES = [b"a" * 10, None, b"", b"x" * 65536, b"y" * 65537, b"q" * 100_000, b"z" * (4 * MIB), b"Z" * (4 * MIB + 1)]
ROWS = pa.array(range(8), pa.int32())
HOLE = pa.array([False, False, True, *[False] * 5])


def columns() -> dict[str, tuple[pa.Field, pa.Array]]:
    blobs = lance.blob_array(VALUES)
    inner = lance.blob_field("b")
    struct = pa.StructArray.from_arrays([blobs, ROWS], fields=[inner, pa.field("k", pa.int32())], mask=HOLE)
    items = pa.ListArray.from_arrays(pa.array([0, 2, 3, None, 4, 8]), blobs)
    deep = pa.LargeListArray.from_arrays(pa.array([0, 2, 8]), pa.StructArray.from_arrays([blobs], fields=[inner]))
    sizes = {"inline_size_threshold": 10, "dedicated_size_threshold": 70_000, "pack_file_size_threshold": 100_000}
    return {
        "plain": (lance.blob_field("c"), blobs),
        "sizes": (lance.blob_field("c", **sizes), blobs),
        "struct": (pa.field("c", struct.type), struct),
        "list": (pa.field("c", items.type), items),
        "deep": (pa.field("c", deep.type), deep),
    }


def sidecars(root: Path) -> list[int]:
    return sorted(path.stat().st_size for path in root.rglob("*.blob"))


def table(name: str) -> pa.Table:
    field, array = columns()[name]
    return pa.table([pa.array(range(len(array))), array], schema=pa.schema([pa.field("id", pa.int64()), field]))


@pytest.mark.parametrize("name", list(columns()))
def test_the_same_files_with_the_same_values(tmp_path: Path, name: str) -> None:
    given = table(name)
    lance.write_dataset(given, tmp_path / "theirs")
    lance_core.write_dataset(given, str(tmp_path / "ours"))
    assert sidecars(tmp_path / "ours") == sidecars(tmp_path / "theirs") != []
    read = [lance.dataset(tmp_path / root).to_table(blob_handling="all_binary") for root in ("ours", "theirs")]
    assert read[0].equals(read[1])
    mine = [lance_core.dataset(str(tmp_path / root)).to_table() for root in ("ours", "theirs")]
    assert mine[0].equals(mine[1])
    assert _bytes(mine[0].column("c").to_pylist()) == _bytes(read[0].column("c").to_pylist())
    lance.dataset(tmp_path / "ours").validate()
    assert _bytes(lance_core.dataset(str(tmp_path / "ours")).take([1, 0]).column("c").to_pylist()) == _bytes(
        read[0].column("c").to_pylist()[1::-1]
    )


def _bytes(value: Any) -> Any:
    """Values of blobs as bytes, wherever they are."""
    if isinstance(value, list):
        return [_bytes(item) for item in value]
    if isinstance(value, dict):
        return value["data"] if "data" in value else {key: _bytes(item) for key, item in value.items()}
    return value


def test_kinds(tmp_path: Path) -> None:
    lance_core.write_dataset(table("plain"), str(tmp_path))
    found = lance.dataset(tmp_path).to_table().column("c").to_pylist()
    kinds = [None if item is None else (item["kind"], item["position"], item["size"], item["blob_id"]) for item in found]
    inline, packed, dedicated = range(3)
    assert [None if item is None else item[0] for item in kinds] == [inline, None, inline, inline, *[packed] * 3, dedicated]
    assert kinds[4:] == [
        (packed, 0, 65537, 1),
        (packed, 65537, 100_000, 1),
        (packed, 165_537, 4 * MIB, 1),
        (dedicated, 0, 4 * MIB + 1, 2),
    ]


def test_values_of_one_column_in_many_batches_share_a_file(tmp_path: Path) -> None:
    batch = pa.table([blob_array([b"x" * 100_000] * 3)], schema=pa.schema([blob_field("c")]))
    batches = [part for _ in range(4) for part in batch.to_batches()]
    lance_core.write_dataset(pa.Table.from_batches(batches), str(tmp_path))
    assert sidecars(tmp_path) == [1_200_000]


def test_two_columns_do_not_share(tmp_path: Path) -> None:
    given = pa.table(
        [blob_array([b"x" * 70_000]), blob_array([b"y" * 80_000])], schema=pa.schema([blob_field("c"), blob_field("d")])
    )
    lance_core.write_dataset(given, str(tmp_path))
    assert sidecars(tmp_path) == [70_000, 80_000]
    assert [value["data"] for value in lance_core.dataset(str(tmp_path)).to_table().to_pylist()[0].values()] == [
        b"x" * 70_000,
        b"y" * 80_000,
    ]


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("kind", ["struct", "list"])
def test_old_blobs_below_other_columns(tmp_path: Path, version: str, kind: str) -> None:
    inner = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    values = pa.array([b"one", None, b"", b"x" * 70_000], pa.large_binary())
    if kind == "struct":
        array = pa.StructArray.from_arrays([values, pa.array(range(4))], fields=[inner, pa.field("k", pa.int64())])
    else:
        array = pa.ListArray.from_arrays(pa.array([0, 1, 1, 4]), values, type=pa.list_(inner))
    given = pa.table({"c": array})
    if version == "2.1":  # below lists the official library writes what it cannot read
        with pytest.raises(InputError, match=r"nested blob"):
            lance_core.write_dataset(given, str(tmp_path / "t"), data_storage_version=version)
        return
    lance_core.write_dataset(given, str(tmp_path / "t"), data_storage_version=version)
    theirs = lance.dataset(tmp_path / "t").to_table(blob_handling="all_binary")
    assert theirs.column("c").to_pylist() == array.to_pylist()
    assert _bytes(lance_core.dataset(str(tmp_path / "t")).to_table().column("c").to_pylist()) == array.to_pylist()


@pytest.mark.parametrize("kind", ["struct", "struct_null"])
def test_old_official_blobs_below_structs(tmp_path: Path, kind: str) -> None:
    inner = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    values = pa.array([b"one", None, b"", b"x" * 70_000], pa.large_binary())
    mask = pa.array([False, False, kind == "struct_null", False])
    array = pa.StructArray.from_arrays([values, pa.array(range(4))], fields=[inner, pa.field("k", pa.int64())], mask=mask)
    lance.write_dataset(pa.table({"c": array}), tmp_path, data_storage_version="2.1")
    assert lance_core.dataset(str(tmp_path)).to_table().column("c").to_pylist() == array.to_pylist()


def test_nothing_stays_of_a_file_that_is_given_up() -> None:
    store = MemoryStore("blobs-given-up")
    batch = pa.record_batch([blob_array([b"x" * 70_000, b"y" * 5_000_000])], schema=pa.schema([blob_field("c")]))
    writer = FileWriter(store, "data/a.lance", schema_from_arrow(batch.schema))
    writer.write(batch)
    writer.abort()
    assert not list(store.list(""))


def test_nothing_stays_of_fragments_that_are_given_up(tmp_path: Path) -> None:
    good = pa.record_batch([blob_array([b"x" * 70_000, b"y" * 5_000_000])], schema=pa.schema([blob_field("c")]))
    bad = pa.record_batch([pa.array([1, 2])], names=["c"])

    def batches() -> Any:
        yield good
        yield good
        yield bad

    with pytest.raises(SchemaMismatchError):
        lance_core.write_dataset(batches(), str(tmp_path), schema=good.schema, max_rows_per_file=2)
    assert not [path for path in tmp_path.rglob("*") if path.suffix in (".blob", ".lance")]


def test_what_a_blob_may_be() -> None:
    blobs = blob_array([b"a", "s3://b/x", Blob.from_uri("s3://b/y", 10, 5), Blob.empty(), None, memoryview(b"m")])
    official = lance.blob_array([b"a", "s3://b/x", lance.Blob.from_uri("s3://b/y", 10, 5), lance.Blob.empty(), None, b"m"])
    assert blobs.storage.equals(official.storage)
    sizes = {"inline_size_threshold": 0, "dedicated_size_threshold": 9, "pack_file_size_threshold": 8}
    assert blob_field("c", **sizes).metadata == lance.blob_field("c", **sizes).metadata
    for wrong in (
        {},
        {"data": b"", "uri": "x"},
        {"uri": ""},
        {"uri": "x", "size": 3},
        {"uri": "x", "position": 0, "size": 0},
    ):
        with pytest.raises(InputError):
            Blob(**wrong)
    with pytest.raises(InputError, match="got int"):
        blob_array([1])
    for size in ({"inline_size_threshold": -1}, {"dedicated_size_threshold": 0}, {"pack_file_size_threshold": True}):
        with pytest.raises(InputError, match="threshold"):
            blob_field("c", **size)


def test_sizes_that_are_no_numbers(tmp_path: Path) -> None:
    field = blob_field("c").with_metadata({"lance-encoding:blob-inline-size-threshold": "many"})
    schema = schema_from_arrow(pa.schema([field]))
    with pytest.raises(InputError, match=r"'c'.*number of bytes"):
        FileWriter(LocalStore(tmp_path), "data/a.lance", schema, version=FileVersion.V2_2)
