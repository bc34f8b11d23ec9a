"""Blobs as files: the same bytes as the official library gives, read lazily."""

from __future__ import annotations

import io
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.dataset.handle.dataset import LanceDataset
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import InputError
from lance_core.io.wrapped import CountingStore

VALUES = [b"abc", None, b"", bytes(range(256)) * 400, b"y" * 5_000_000, b"end"]


def blob_table(version: str, values: list[bytes | None]) -> pa.Table:
    ids = pa.array(range(len(values)), pa.int64())
    if version == "2.2":
        return pa.table(
            [ids, lance.blob_array(values)], schema=pa.schema([pa.field("id", pa.int64()), lance.blob_field("b")])
        )
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    return pa.table([ids, pa.array(values, pa.large_binary())], schema=pa.schema([pa.field("id", pa.int64()), field]))


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("writer", ["ours", "theirs"])
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_blobs_of_every_version(tmp_path: Path, version: str, writer: str, stable: bool) -> None:
    library = lance_core if writer == "ours" else lance
    options = {"data_storage_version": version, "enable_stable_row_ids": stable}
    library.write_dataset(blob_table(version, VALUES), str(tmp_path / "t"), max_rows_per_file=4, **options)
    lance.dataset(tmp_path / "t").delete("id = 0")
    ours, theirs = lance_core.dataset(tmp_path / "t"), lance.dataset(tmp_path / "t")
    wanted = [4, 0, 2, 1, 1, 3]
    living = VALUES[1:]
    files = ours.take_blobs("b", indices=wanted)
    others = theirs.take_blobs("b", indices=wanted)
    for index, file, other in zip(wanted, files, others, strict=True):
        if living[index] is None:
            assert file is None and other is None
            continue
        assert file is not None
        assert file.size() == other.size() == len(living[index])
        assert file.readall() == other.read() == living[index]
    ids = ours.to_table(columns=["id"], with_row_id=True, with_row_address=True)
    by_id = ours.take_blobs("b", ids=ids.column("_rowid"))
    by_address = ours.take_blobs("b", addresses=ids.column("_rowaddr").to_pylist())
    for found in (by_id, by_address):
        assert [None if file is None else file.read() for file in found] == living
    mine, other_bytes = ours.read_blobs("b", indices=[0, 1, 2]), theirs.read_blobs("b", indices=[0, 1, 2])
    assert [item[1] for item in mine] == [item[1] for item in other_bytes]


def one_blob(tmp_path: Path, size: int) -> tuple[LanceDataset, bytes]:
    data = np.random.default_rng(1).integers(0, 256, size, np.uint8).tobytes()
    lance.write_dataset(blob_table("2.2", [data]), tmp_path / "t", data_storage_version="2.2")
    return lance_core.dataset(tmp_path / "t"), data


@pytest.mark.parametrize("size", [1000, 100_000, 5_000_000])
def test_a_file_that_can_be_sought(tmp_path: Path, size: int) -> None:
    dataset, data = one_blob(tmp_path, size)
    (file,) = dataset.take_blobs("b", indices=[0], buffer_size=300)
    assert file is not None
    plain = io.BytesIO(data)
    rng = np.random.default_rng(2)
    for _ in range(60):
        offset, count = int(rng.integers(0, size + 5)), int(rng.choice([0, 1, 100, 299, 300, 301, 5000]))
        assert file.seek(offset) == plain.seek(offset)
        assert file.read(count) == plain.read(count)
        assert file.read(7) == plain.read(7)
        assert file.tell() == plain.tell()
    assert file.seek(-3, io.SEEK_END) == size - 3
    assert file.read() == data[-3:] and file.read(5) == b"" and file.read() == b""
    file.seek(0)
    buffered = io.BufferedReader(file)
    assert buffered.read(10) == data[:10]
    buffered.detach()
    assert file.read_ranges([(5, 3), (0, 0), (size - 2, 2)]) == [data[5:8], b"", data[-2:]]
    for bad in [(-1, 2), (0, size + 1), (size, 1), (3, -1)]:
        with pytest.raises(InputError, match="not within"):
            file.read_range(*bad)
    with pytest.raises(ValueError, match="negative"):
        file.seek(-1)


def test_a_range_reads_only_that_range(tmp_path: Path) -> None:
    dataset, data = one_blob(tmp_path, 5_000_000)
    store = CountingStore(dataset.snapshot.store)
    counted = LanceDataset.from_snapshot(Snapshot(store, dataset.snapshot.manifest))
    (file,) = counted.take_blobs("b", indices=[0])
    assert file is not None
    assert store.counts.bytes_read < 100_000
    store.reset()
    assert file.read_range(4_000_000, 100) == data[4_000_000:4_000_100]
    assert (store.counts.requests, store.counts.bytes_read) == (1, 100)


def test_columns_that_hold_no_blobs(tmp_path: Path) -> None:
    dataset, _ = one_blob(tmp_path, 10)
    with pytest.raises(InputError, match="not a blob column"):
        dataset.take_blobs("id", indices=[0])
    with pytest.raises(InputError, match="exactly one"):
        dataset.take_blobs("b")
    with pytest.raises(InputError, match="exactly one"):
        dataset.take_blobs("b", ids=[0], indices=[0])
    with pytest.raises(InputError):
        dataset.take_blobs("b", indices=[1])
    with pytest.raises(InputError):
        dataset.take_blobs("b", addresses=[1 << 32])
    with pytest.raises(InputError):
        dataset.take_blobs("b", addresses=[5])


def test_external_blobs(tmp_path: Path) -> None:
    (tmp_path / "outside.bin").write_bytes(b"0123456789")
    uri = (tmp_path / "outside.bin").as_uri()
    table = pa.table([lance.blob_array([uri])], schema=pa.schema([lance.blob_field("b")]))
    lance.write_dataset(table, tmp_path / "t", data_storage_version="2.2", allow_external_blob_outside_bases=True)
    allowed = {"allow_external_blob_outside_bases": "true"}
    (file,) = lance_core.dataset(tmp_path / "t", storage_options=allowed).take_blobs("b", indices=[0])
    (other,) = lance.dataset(tmp_path / "t").take_blobs("b", indices=[0])
    assert file is not None
    assert (file.size(), file.read_range(3, 4)) == (other.size(), b"3456")
