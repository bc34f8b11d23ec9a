"""Tables with blobs through the other verbs: compacted, edited and cleaned like any other, their blobs come along."""

from __future__ import annotations

import datetime
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core import blob_array, blob_field
from lance_core.dataset.handle.dataset import LanceDataset
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.io.wrapped import CountingStore

SIZES = (0, 10, 65_537, 200_000, 4_300_000)


def values(first: int) -> list[bytes | None]:
    return [None if (first + i) % 7 == 3 else bytes([first + i]) * SIZES[(first + i) % 5] for i in range(8)]


def blob_table(first: int, version: str) -> pa.Table:
    ids = pa.array(range(first, first + 8), pa.int64())
    if version == "2.2":
        field, column = blob_field("b"), blob_array(values(first))
    else:
        field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
        column = pa.array(values(first), pa.large_binary())
    return pa.table([ids, column], schema=pa.schema([pa.field("id", pa.int64()), field]))


def contents(root: Path) -> dict[int, bytes | None]:
    """What both libraries read."""
    theirs = lance.dataset(root).to_table(blob_handling="all_binary")
    ours = lance_core.dataset(str(root)).to_table()
    expected = dict(zip(theirs.column("id").to_pylist(), theirs.column("b").to_pylist(), strict=True))
    found = [item["data"] if isinstance(item, dict) else item for item in ours.column("b").to_pylist()]
    assert dict(zip(ours.column("id").to_pylist(), found, strict=True)) == expected
    return expected


@pytest.mark.parametrize("writer", ["ours", "theirs"])
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_compaction_and_cleanup(tmp_path: Path, version: str, writer: str) -> None:
    library = lance_core if writer == "ours" else lance
    for first in (0, 8, 16):
        mode = "append" if first else "create"
        library.write_dataset(blob_table(first, version), str(tmp_path), mode=mode, data_storage_version=version)
    dataset = lance_core.dataset(str(tmp_path))
    dataset.delete("id % 4 = 1")
    metrics = dataset.optimize.compact_files(target_rows_per_fragment=1000)
    assert (metrics.fragments_removed, metrics.fragments_added) == (3, 1)
    expected = {first + i: value for first in (0, 8, 16) for i, value in enumerate(values(first)) if (first + i) % 4 != 1}
    assert contents(tmp_path) == expected
    dataset.cleanup_old_versions(older_than=datetime.timedelta(0), delete_unverified=True)
    assert contents(tmp_path) == expected
    assert len(list(tmp_path.glob("data/*.lance"))) == 1
    folders = {path.parent.name for path in tmp_path.rglob("*.blob")}
    assert folders == ({next(tmp_path.glob("data/*.lance")).stem} if version == "2.2" else set())


def test_rows_are_edited(tmp_path: Path) -> None:
    dataset = lance_core.write_dataset(blob_table(0, "2.2"), str(tmp_path))
    dataset.update({"id": "id + 100"}, where="id >= 4")
    expected = {i if i < 4 else i + 100: value for i, value in enumerate(values(0))}
    assert contents(tmp_path) == expected


def test_blobs_below_a_struct_as_files(tmp_path: Path) -> None:
    inner = pa.StructArray.from_arrays(
        [blob_array(values(0)), pa.array(range(8))], fields=[blob_field("b"), pa.field("k", pa.int64())]
    )
    dataset = lance_core.write_dataset(pa.table({"c": inner}), str(tmp_path))
    files = dataset.take_blobs("c.b", indices=[4, 3, 2])
    assert [None if file is None else file.readall() for file in files] == [values(0)[row] for row in (4, 3, 2)]
    theirs = lance.dataset(tmp_path).take_blobs("c.b", indices=[4, 3, 2])
    assert [None if file is None else file.read() for file in theirs] == [values(0)[row] for row in (4, 3, 2)]


@pytest.mark.parametrize(("row", "size"), [(1, 10), (2, 65_537), (4, 4_300_000)])
def test_a_range_costs_a_range(tmp_path: Path, row: int, size: int) -> None:
    """Of blobs in the data file, packed and dedicated: one request of the bytes asked for, and no request before."""
    lance_core.write_dataset(blob_table(0, "2.2"), str(tmp_path))
    plain = lance_core.dataset(str(tmp_path))
    store = CountingStore(plain.snapshot.store)
    counted = LanceDataset.from_snapshot(Snapshot(store, plain.snapshot.manifest))
    (file,) = counted.take_blobs("b", indices=[row])
    assert file is not None and file.size() == size
    assert store.counts.bytes_read < 10_000
    store.reset()
    assert file.read_range(3, 5) == bytes([row]) * 5
    assert (store.counts.requests, store.counts.bytes_read) == (1, 5)
