"""Deletions that meet: merged by affected rows where they can be, refused where two writers changed the same row."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core.commit.deletion_files import (
    BITMAP_FROM,
    decode_deletions,
    deletion_file_path,
    encode_deletions,
    read_deletions,
    write_deletions,
)
from lance_core.commit.loop import commit_transaction
from lance_core.commit.manifests import load_manifest
from lance_core.commit.rebase import deletion_store
from lance_core.errors import CorruptFileError, FormatError, RetryableConflictError
from lance_core.format.fragment import Fragment
from lance_core.io.local.store import LocalStore
from lance_core.io.store import Store
from lance_core.table.operations import Delete, Update
from lance_core.table.transaction import Transaction
from tests.commit.commit_support import append, create, paths, write_fragment


def fragment_without(store: Store, version: int, number: int, rows: Sequence[int]) -> Fragment:
    """A fragment of a version, less some more rows."""
    (found,) = [item for item in load_manifest(store, version).fragments if item.id == number]
    gone = np.union1d(read_deletions(store, found), np.array(rows, np.int64))
    return replace(found, deletion_file=write_deletions(store, number, gone, read_version=version))


def delete(store: Store, rows: dict[int, Sequence[int]], *, read_version: int, whole: Sequence[int] = ()) -> Transaction:
    updated = tuple(fragment_without(store, read_version, number, gone) for number, gone in rows.items())
    return Transaction(read_version, str(uuid.uuid4()), Delete(updated, tuple(whole), "test"))


def values(store: Store) -> list[int]:
    dataset = lance.dataset(store.uri)
    dataset.validate()
    return sorted(dataset.to_table()["a"].to_pylist())


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    store = LocalStore(tmp_path / "t")
    create(store, range(10))
    append(store, range(10, 20))
    return store


def test_deletes_of_one_fragment_are_merged(store: LocalStore) -> None:
    first = delete(store, {0: [1, 2], 1: [0]}, read_version=2)
    second = delete(store, {0: [7]}, read_version=2)
    commit_transaction(store, first)
    manifest = commit_transaction(store, second, attempt="0123456789abcdef")
    assert values(store) == [0, 3, 4, 5, 6, 8, 9, *range(11, 20)]
    file = manifest.fragments[0].deletion_file
    assert file is not None
    assert (file.file_type, file.read_version, file.num_deleted_rows) == ("bitmap", 3, 3)
    assert file.id >> 24 == 0x0123456789
    assert lance.dataset(store.uri).read_transaction(4).read_version == 3


def test_deletions_that_lie_below_a_base_path_are_merged(tmp_path: Path) -> None:
    """A shallow clone has the deletion file of its source until it deletes rows itself."""
    source, clone = LocalStore(tmp_path / "t"), LocalStore(tmp_path / "clone")
    create(source, range(10))
    commit_transaction(source, delete(source, {0: [1]}, read_version=1))
    lance.dataset(source.uri).shallow_clone(clone.uri, 2)
    start = load_manifest(clone)
    (found,) = start.fragments
    assert found.deletion_file is not None
    assert found.deletion_file.base_id is not None
    before = read_deletions(deletion_store(clone, start, found), found)
    for row in (4, 7):
        gone = write_deletions(clone, 0, np.union1d(before, [row]), read_version=start.version)
        updated = (replace(found, deletion_file=gone),)
        commit_transaction(clone, Transaction(start.version, str(uuid.uuid4()), Delete(updated, (), "test")))
    assert values(clone) == [0, 2, 3, 5, 6, 8, 9]
    with pytest.raises(CorruptFileError, match="base path 5, which is not defined"):
        deletion_store(clone, start, replace(found, deletion_file=replace(found.deletion_file, base_id=5)))


def test_with_the_official_writer_in_between(store: LocalStore) -> None:
    mine = delete(store, {0: [1], 1: [5]}, read_version=2)
    lance.dataset(store.uri).delete("a = 3 or a = 12")
    lance.dataset(store.uri).delete("a = 19")
    commit_transaction(store, mine)
    assert values(store) == [0, 2, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 16, 17, 18]


def test_the_same_row_twice_is_a_conflict(store: LocalStore) -> None:
    first = delete(store, {0: [1, 2]}, read_version=2)
    second = delete(store, {0: [2, 3]}, read_version=2)
    commit_transaction(store, first)
    before = {path for path in paths(store) if not path.startswith("_transactions")}
    with pytest.raises(RetryableConflictError, match="row 2"):
        commit_transaction(store, second)
    assert {path for path in paths(store) if not path.startswith("_transactions")} == before
    assert values(store) == [0, *range(3, 20)]


def test_a_fragment_that_loses_its_last_rows_goes(store: LocalStore) -> None:
    first = delete(store, {0: range(5)}, read_version=2)
    second = delete(store, {0: range(5, 10)}, read_version=2)
    commit_transaction(store, first)
    manifest = commit_transaction(store, second)
    assert [item.id for item in manifest.fragments] == [1]
    assert values(store) == list(range(10, 20))


def test_whole_fragment_against_one_row(store: LocalStore) -> None:
    one = delete(store, {1: [4]}, read_version=2)
    whole = delete(store, {0: [0]}, read_version=2, whole=[1])
    commit_transaction(store, one)
    with pytest.raises(RetryableConflictError):
        commit_transaction(store, whole)


def test_update_of_moved_rows_meets_a_delete(store: LocalStore) -> None:
    moved = write_fragment(store, (100,))
    update = Update(updated_fragments=(fragment_without(store, 2, 0, [4]),), new_fragments=(moved,), fields_modified=(0,))
    commit_transaction(store, delete(store, {0: [5]}, read_version=2))
    commit_transaction(store, Transaction(2, str(uuid.uuid4()), update))
    assert values(store) == [0, 1, 2, 3, 6, 7, 8, 9, *range(10, 20), 100]


def test_compaction_in_between_is_a_conflict(store: LocalStore) -> None:
    mine = delete(store, {0: [1]}, read_version=2)
    lance.dataset(store.uri).optimize.compact_files()
    with pytest.raises(RetryableConflictError):
        commit_transaction(store, mine)
    assert values(store) == list(range(20))


def test_lost_base_version_cannot_be_rebased(store: LocalStore) -> None:
    mine = delete(store, {0: [1]}, read_version=2)
    commit_transaction(store, delete(store, {0: [5]}, read_version=2))
    store.delete("_versions/18446744073709551613.manifest")
    with pytest.raises(RetryableConflictError):
        commit_transaction(store, mine)


@pytest.mark.parametrize("count", [1, BITMAP_FROM - 1, BITMAP_FROM, 40_000])
def test_deletion_files_there_and_back(store: LocalStore, count: int) -> None:
    rows = np.sort(np.random.default_rng(count).choice(100_000, count, replace=False)).astype(np.int64)
    file = write_deletions(store, 7, rows, read_version=3)
    assert file.file_type == ("array" if count < BITMAP_FROM else "bitmap")
    path = deletion_file_path(7, file)
    found = decode_deletions(store.get(path), file_type=file.file_type, where=path)
    assert np.array_equal(found, rows)
    fragment = Fragment(7, (), 100_000, deletion_file=file)
    assert np.array_equal(read_deletions(store, fragment), rows)
    with pytest.raises(CorruptFileError, match="the manifest says"):
        read_deletions(store, replace(fragment, deletion_file=replace(file, num_deleted_rows=count + 1)))
    with pytest.raises(CorruptFileError, match="deletes row"):
        read_deletions(store, replace(fragment, physical_rows=int(rows[-1])))


def test_reads_the_official_deletion_files(tmp_path: Path) -> None:
    uri = str(tmp_path / "o")
    dataset = lance.write_dataset(pa.table({"a": pa.array(range(20_000), pa.int64())}), uri)
    dataset.delete("a < 10")
    store = LocalStore(uri)
    assert read_deletions(store, load_manifest(store).fragments[0]).tolist() == list(range(10))
    dataset.delete("a < 9000")
    assert len(read_deletions(store, load_manifest(store).fragments[0])) == 9000


@pytest.mark.parametrize("file_type", ["array", "bitmap"])
def test_damaged_deletion_files(file_type: str) -> None:
    data = encode_deletions(np.arange(0, 9000, 3), file_type=file_type)
    for size in range(0, len(data), max(1, len(data) // 200)):
        with pytest.raises(FormatError):
            decode_deletions(data[:size], file_type=file_type, where="x")
