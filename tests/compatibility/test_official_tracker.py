"""Faults that the official library's tracker tells of: tables here do not have them (docs/tables.md lists them)."""

from __future__ import annotations

import datetime as dt
import importlib
import time
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_core

OLD = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
VALUES = [b"one" * 100, None, b"two" * 70_000, b"", b"three", None, b"four" * 9, b"", b"five" * 30_000, b"six"]


def blobs(version: str, values: list[bytes | None], first: int = 0) -> pa.Table:
    ids = pa.array(range(first, first + len(values)), pa.int64())
    if version < "2.2":
        return pa.table([ids, pa.array(values, pa.large_binary())], schema=pa.schema([("id", pa.int64()), OLD]))
    return pa.table([ids, lance.blob_array(values)], schema=pa.schema([("id", pa.int64()), lance.blob_field("b")]))


def bytes_of(dataset: Any) -> dict[int, bytes | None]:
    found = dataset.to_table(blob_handling="all_binary")
    return dict(zip(found.column("id").to_pylist(), found.column("b").to_pylist(), strict=True))


@pytest.mark.parametrize("writer", [lance, lance_core], ids=["theirs", "ours"])
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("gone", ["id = 1", "id < 0", "id IN (1, 5)", "id = 3"])
def test_compaction_keeps_blobs_nulls_and_empty_values(tmp_path: Path, version: str, gone: str, writer: Any) -> None:
    """7955, 8069: payloads behind a null or an empty value, and nulls that are left when another is deleted."""
    for first in (0, 4):
        part = blobs(version, VALUES[first : first + (4 if not first else 6)], first)
        writer.write_dataset(part, tmp_path, data_storage_version=version, mode="append" if first else "create")
    dataset = lance_core.dataset(tmp_path)
    dataset.delete(gone)
    ids = lance_core.dataset(tmp_path).to_table(columns=["id"]).column("id").to_pylist()
    expected = {number: VALUES[number] for number in ids}
    lance_core.dataset(tmp_path).optimize.compact_files()
    for library in (lance_core, lance):
        found = library.dataset(tmp_path)
        assert len(found.get_fragments()) == 1
        assert bytes_of(found) == expected
    # What one library hands out row by row is the same.
    files = lance_core.dataset(tmp_path).take_blobs("b", indices=range(len(ids)))
    assert [None if file is None else file.read() for file in files] == [expected[number] for number in ids]
    assert not list(_versions_differ(tmp_path))
    lance_core.dataset(tmp_path).cleanup_old_versions(older_than=dt.timedelta(0))
    assert bytes_of(lance.dataset(tmp_path)) == expected


def _versions_differ(path: Path) -> list[int]:
    newest = lance_core.dataset(path).version
    return [
        number
        for number in range(1, newest + 1)
        if bytes_of(lance_core.dataset(path, version=number)) != bytes_of(lance.dataset(path, version=number))
    ]


@pytest.mark.parametrize("values", [[b"p0", b"", None, b"p3"], [b"x" * 70_000, None, b"", b"y" * 5_000_000]])
def test_blobs_inside_structs_are_compacted(tmp_path: Path, values: list[bytes | None]) -> None:
    """8082: a fragment with deleted rows could never be written anew."""
    nested = pa.struct([pa.field("mime", pa.string()), lance.blob_field("payload")])
    assets = pa.StructArray.from_arrays([pa.array(["m"] * 4), lance.blob_array(values)], fields=list(nested))
    table = pa.table([pa.array(range(4)), assets], schema=pa.schema([("id", pa.int64()), ("asset", nested)]))
    lance.write_dataset(table, tmp_path, data_storage_version="2.2")
    dataset = lance_core.dataset(tmp_path)
    dataset.delete("id = 1")
    dataset.optimize.compact_files()
    (fragment,) = lance_core.dataset(tmp_path).get_fragments()
    assert fragment.metadata.physical_rows == 3
    expected = [values[0], values[2], values[3]]
    found = lance.dataset(tmp_path).to_table(blob_handling="all_binary").column("asset").to_pylist()
    assert [item["payload"] for item in found] == expected
    ours = lance_core.dataset(tmp_path).to_table().column("asset").to_pylist()
    assert [item["payload"] and item["payload"]["data"] for item in ours] == expected
    lance.dataset(tmp_path).validate()
    lance_core.dataset(tmp_path).validate(deep=True)


def data_files(path: Path) -> set[str]:
    return {file.name for file in (path / "data").iterdir()}


def test_files_of_versions_between_a_tag_and_now_are_removed(tmp_path: Path) -> None:
    """8705, 8516: a tag on an old version left the files of newer, removed versions behind for ever."""
    for number in range(3):
        lance_core.write_dataset(pa.table({"a": [number]}), tmp_path, mode="overwrite" if number else "create")
        if number == 0:
            lance_core.dataset(tmp_path).tags.create("keep", 1)
    lance_core.dataset(tmp_path).cleanup_old_versions(older_than=dt.timedelta(0), error_if_tagged_old_versions=False)
    assert [item["version"] for item in lance_core.dataset(tmp_path).versions()] == [1, 3]
    assert len(data_files(tmp_path)) == 2
    assert lance_core.dataset(tmp_path, version=1).to_table().column("a").to_pylist() == [0]


def test_files_that_no_version_owns_are_removed_however_new(tmp_path: Path) -> None:
    """8942: files of abandoned writes, newer than the oldest version that is kept, were never listed."""
    lance_core.write_dataset(pa.table({"a": [1]}), tmp_path)
    lance_core.write_dataset(pa.table({"a": [2]}), tmp_path, mode="append")
    kept = data_files(tmp_path)
    lance.fragment.write_fragments(pa.table({"a": [3]}), str(tmp_path))
    assert len(data_files(tmp_path)) == 3
    lance_core.dataset(tmp_path).cleanup_old_versions(older_than=dt.timedelta(days=1), delete_unverified=True)
    assert data_files(tmp_path) == kept
    assert lance_core.dataset(tmp_path).count_rows() == 2


def test_cleanup_keeps_what_branches_tags_and_indices_read(tmp_path: Path) -> None:
    """Whatever a version that stays refers to, stays: of branches, of tags, of indices, of deletions."""
    lance_core.write_dataset(pa.table({"a": range(100)}), tmp_path)
    dataset = lance_core.dataset(tmp_path)
    dataset.create_scalar_index("a", "BTREE")
    branch = lance_core.dataset(tmp_path).create_branch("side")
    branch.delete("a < 10")
    lance_core.dataset(tmp_path).tags.create("t", 2)
    lance_core.write_dataset(pa.table({"a": range(100, 150)}), tmp_path, mode="overwrite")
    lance_core.dataset(tmp_path).delete("a = 120")
    lance_core.dataset(tmp_path).cleanup_old_versions(
        older_than=dt.timedelta(0), delete_unverified=True, error_if_tagged_old_versions=False
    )
    for library in (lance_core, lance):
        newest = library.dataset(tmp_path)
        assert newest.count_rows() == 49
        assert newest.checkout_version("t").count_rows("a = 50") == 1
        side = newest.checkout_version(("side", None))
        assert side.count_rows() == 90
        assert side.count_rows("a = 5") == 0
    lance_core.dataset(tmp_path).validate(deep=True)
    lance_core.dataset(tmp_path).checkout_version("t").validate(deep=True)


@pytest.mark.parametrize("window", [0, 1])
def test_indices_of_removed_versions_are_removed_with_them(tmp_path: Path, window: int) -> None:
    """8321: with a short window, index files outlived the manifests that named them, for a week."""
    dataset = lance_core.write_dataset(pa.table({"a": range(20)}), tmp_path)
    dataset.create_scalar_index("a", "BTREE")
    for step in range(1, 5):
        lance_core.write_dataset(pa.table({"a": range(20 * step, 20 * step + 20)}), tmp_path, mode="append")
        lance_core.dataset(tmp_path).optimize.optimize_indices()
        if window:
            time.sleep(0.05)
        lance_core.dataset(tmp_path).cleanup_old_versions(older_than=dt.timedelta(milliseconds=20 * window))
    lance_core.dataset(tmp_path).cleanup_old_versions(older_than=dt.timedelta(0))
    named = {index["uuid"] for index in lance_core.dataset(tmp_path).list_indices()}
    assert {folder.name for folder in (tmp_path / "_indices").iterdir() if [*folder.iterdir()]} <= named
    assert lance.dataset(tmp_path).count_rows("a = 47") == lance_core.dataset(tmp_path).count_rows("a = 47") == 1


def test_positions_survive_merges_of_an_unindexed_tail(tmp_path: Path) -> None:
    """7653: merging rows into an index with positions crashed, and cleanup never came to run."""
    texts = [f"one two{number % 9} three {'four ' * (number % 4)}end{number}" for number in range(600)]
    dataset = lance_core.write_dataset(pa.table({"id": range(200), "s": texts[:200]}), tmp_path)
    dataset.create_scalar_index("s", "INVERTED", with_position=True)
    for first in (200, 300, 450):
        last = {200: 300, 300: 450, 450: 600}[first]
        lance_core.write_dataset(pa.table({"id": range(first, last), "s": texts[first:last]}), tmp_path, mode="append")
        lance_core.dataset(tmp_path).optimize.optimize_indices()
    expected = [number for number, text in enumerate(texts) if "two3 three four" in text]
    for library in (lance_core, lance):
        query = importlib.import_module(f"{library.__name__}.query").PhraseQuery("two3 three four", "s")
        found = library.dataset(tmp_path).to_table(full_text_query=query, columns=["id"])
        assert sorted(found.column("id").to_pylist()) == expected
    lance_core.dataset(tmp_path).validate(deep=True)


@pytest.mark.parametrize("kind", ["INVERTED", "NGRAM", "BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER"])
def test_indices_are_optimised_while_their_values_grow(tmp_path: Path, kind: str) -> None:
    """8310: merging an index whose vocabulary grows, with rows deleted, rewritten and emptied in between."""
    words = [f"word{number} shared{number % 7} ünï{number % 3}" for number in range(240)]
    dataset = lance_core.write_dataset(pa.table({"id": range(40), "s": words[:40]}), tmp_path)
    dataset.create_scalar_index("s", kind)
    for step in range(1, 6):
        part = range(40 * step, 40 * (step + 1))
        texts = [None if number % 11 == 0 else words[number] for number in part]
        dataset = lance_core.write_dataset(pa.table({"id": part, "s": texts}), tmp_path, mode="append")
        dataset.delete(f"id % 9 = {step}" if step != 3 else "id >= 80 AND id < 120")
        if step % 2:
            dataset.optimize.compact_files()
        dataset.optimize.optimize_indices(**({"num_indices_to_merge": 1} if step != 4 else {}))
    dataset = lance_core.dataset(tmp_path)
    dataset.validate(deep=True)
    for library in (lance_core, lance):
        found = library.dataset(tmp_path)
        for number in (3, 130, 215):
            plain = found.to_table(filter=f"s = '{words[number]}'", columns=["id"], use_scalar_index=False)
            assert found.to_table(filter=f"s = '{words[number]}'", columns=["id"]).equals(plain)
        if kind == "INVERTED":
            ids = sorted(found.to_table(full_text_query="shared3", columns=["id"]).column("id").to_pylist())
            rows = found.to_table().to_pylist()
            assert ids == sorted(row["id"] for row in rows if row["s"] is not None and "shared3" in row["s"])
