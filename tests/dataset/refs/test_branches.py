"""Branches, tags on them, clones: what one library makes the other reads, writes and deletes."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.commit.loop import WRITER_VERSION
from lance_core.commit.manifests import load_manifest
from lance_core.commit.naming import NamingScheme
from lance_core.commit.put_manifest import put_manifest
from lance_core.dataset.handle.dataset import LanceDataset
from lance_core.errors import (
    AlreadyExistsError,
    CorruptFileError,
    InputError,
    LanceError,
    NotFoundError,
)
from lance_core.format.manifest import BasePath
from lance_core.io.resolve import resolve_store


def numbers(*values: int) -> pa.Table:
    return pa.table({"a": pa.array(values, pa.int64())})


def rows(dataset: object) -> list[int]:
    return sorted(dataset.to_table().column("a").to_pylist())  # type: ignore[attr-defined]


def two_versions(path: Path) -> LanceDataset:
    lance_core.write_dataset(numbers(1, 2, 3), path)
    return lance_core.write_dataset(numbers(4), path, mode="append")


def test_a_branch_goes_its_own_way_in_both_libraries(tmp_path: Path) -> None:
    path = tmp_path / "t"
    main = two_versions(path)
    branch = main.create_branch("feat/x")
    assert (branch.version, rows(branch)) == (2, [1, 2, 3, 4])
    branch.insert(numbers(5))
    branch.delete("a = 1")
    main.insert(numbers(9))
    assert rows(branch) == [2, 3, 4, 5]
    assert rows(main.checkout_version(("feat/x", None))) == [2, 3, 4, 5]
    assert rows(main.checkout_version(("feat/x", 3))) == [1, 2, 3, 4, 5]
    assert rows(branch.checkout_version((None, None))) == rows(branch.checkout_version(("main", 3))) == [1, 2, 3, 4, 9]
    theirs = lance.dataset(path)
    assert rows(theirs.checkout_version(("feat/x", None))) == [2, 3, 4, 5]
    assert rows(theirs) == [1, 2, 3, 4, 9]
    assert theirs.branches.list() == main.branches.list()
    # They write on ours.
    on_branch = theirs.checkout_version(("feat/x", None))
    on_branch.delete("a = 2")
    branch.checkout_latest()
    assert rows(branch) == [3, 4, 5]
    branch.update({"a": "a * 10"}, where="a = 3")
    assert rows(theirs.checkout_version(("feat/x", None))) == [4, 5, 30]
    branch.validate()


def test_the_official_librarys_branches(tmp_path: Path) -> None:
    path = tmp_path / "t"
    theirs = lance.write_dataset(numbers(1, 2), path)
    lance.write_dataset(numbers(3), theirs.create_branch("a"), mode="append")
    theirs.checkout_version(("a", None)).create_branch("b/c")
    ours = lance_core.dataset(path)
    assert ours.branches.list() == theirs.branches.list()
    assert [*ours.branches.list()] == ["a", "b/c"]
    deep = ours.checkout_version(("b/c", None))
    assert rows(deep) == [1, 2, 3]
    deep.insert(numbers(7))
    deep.delete("a < 3")
    assert rows(theirs.checkout_version(("b/c", None))) == [3, 7]
    below = deep.create_branch("d")
    assert theirs.branches.list()["d"]["parent_branch"] == "b/c"
    assert theirs.branches.list()["d"]["branch_identifier"][:2] == ours.branches.list()["b/c"]["branch_identifier"]
    assert rows(below) == rows(theirs.checkout_version(("d", None))) == [3, 7]


def test_files_of_branches_look_like_the_official_ones(tmp_path: Path) -> None:
    for name, library in (("ours", lance_core), ("theirs", lance)):
        lance.write_dataset(numbers(1), tmp_path / name)
        library.dataset(tmp_path / name).create_branch("x")
    ours, theirs = (json.loads((tmp_path / name / "_refs/branches/x.json").read_text()) for name in ("ours", "theirs"))
    assert [*ours] == [*theirs]
    assert (ours["parentBranch"], ours["parentVersion"]) == (theirs["parentBranch"], theirs["parentVersion"])
    manifests = [load_manifest(resolve_store(tmp_path / name / "tree/x")) for name in ("ours", "theirs")]
    assert [item.branch for item in manifests] == ["x", "x"]
    assert manifests[0].reader_feature_flags == manifests[1].reader_feature_flags == 16
    assert [[base.id, base.name, base.is_dataset_root] for item in manifests for base in item.base_paths] == [
        [0, None, True]
    ] * 2


def test_deleting_branches(tmp_path: Path) -> None:
    main = two_versions(tmp_path / "t")
    a = main.create_branch("a")
    a.create_branch("a/b")
    with pytest.raises(InputError, match="branch 'a/b'"):
        main.branches.delete("a")
    main.tags.create("kept", ("a/b", 2))
    with pytest.raises(InputError, match="tag 'kept'"):
        main.branches.delete("a/b")
    main.tags.delete("kept")
    main.create_branch("a/other")
    main.branches.delete("a/b")
    main.branches.delete("a")
    assert rows(main.checkout_version(("a/other", None))) == [1, 2, 3, 4]
    assert [*lance.dataset(tmp_path / "t").branches.list()] == ["a/other"]
    assert not (tmp_path / "t/tree/a/_versions").exists() or not [*(tmp_path / "t/tree/a/_versions").iterdir()]
    again = main.create_branch("a")
    assert rows(again) == [1, 2, 3, 4]
    with pytest.raises(NotFoundError, match="no branch 'nope'"):
        main.branches.delete("nope")


def test_tags_on_branches(tmp_path: Path) -> None:
    main = two_versions(tmp_path / "t")
    branch = main.create_branch("x")
    branch.insert(numbers(5))
    branch.tags.create("here")
    main.tags.create("there", ("x", None))
    main.tags.create("main", 1)
    main.tags.update("main", "here")
    theirs = lance.dataset(tmp_path / "t")
    assert theirs.tags.list() == main.tags.list() == branch.tags.list()
    for tag in ("here", "there", "main"):
        assert rows(main.checkout_version(tag)) == rows(theirs.checkout_version(tag)) == [1, 2, 3, 4, 5]
        assert rows(lance_core.dataset(tmp_path / "t", version=tag)) == [1, 2, 3, 4, 5]
    assert branch.checkout_version("here").uri == branch.uri


@pytest.mark.parametrize("name", ["main", "", "/a", "a/", "a//b", "a..b", "a b", "x.lock", "..", "a/../b", "a\\b"])
def test_names_that_are_none(tmp_path: Path, name: str) -> None:
    table = lance_core.write_dataset(numbers(1), tmp_path / "t")
    with pytest.raises(InputError, match="not a valid branch name"):
        table.create_branch(name)
    assert not (tmp_path / "t/tree").exists()


def test_the_same_name_twice(tmp_path: Path) -> None:
    table = lance_core.write_dataset(numbers(1), tmp_path / "t")
    table.create_branch("x")
    with pytest.raises(AlreadyExistsError, match="already has a branch 'x'"):
        table.create_branch("x")


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("maker", ["ours", "theirs"])
def test_clones(tmp_path: Path, stable: bool, maker: str) -> None:
    path = tmp_path / "t"
    lance.write_dataset(numbers(1, 2, 3), path, enable_stable_row_ids=stable)
    lance.dataset(path).delete("a = 2")
    source = lance_core.dataset(path) if maker == "ours" else lance.dataset(path)
    source.shallow_clone(str(tmp_path / "shallow"), 2)
    source.deep_clone(str(tmp_path / "deep"), 2)
    shallow = lance_core.dataset(tmp_path / "shallow")
    shallow.shallow_clone(tmp_path / "second", 2)
    shallow.deep_clone(tmp_path / "deep2", 2)
    for name in ("shallow", "deep", "second", "deep2"):
        ours = lance_core.dataset(tmp_path / name)
        assert rows(ours) == rows(lance.dataset(tmp_path / name)) == [1, 3]
        ours.validate()
        ours.insert(numbers(8))
        ours.delete("a = 3")
        lance.write_dataset(numbers(10), tmp_path / name, mode="append")
        lance.dataset(tmp_path / name).delete("a = 1")
        assert rows(lance_core.dataset(tmp_path / name)) == rows(lance.dataset(tmp_path / name)) == [8, 10]
        assert lance_core.dataset(tmp_path / name).has_stable_row_ids is stable
    assert rows(lance_core.dataset(path)) == [1, 3]
    for name in ("deep", "deep2"):
        manifest = load_manifest(resolve_store(tmp_path / name), 2)
        assert manifest.base_paths == () and manifest.reader_feature_flags & 16 == 0
    lance_core.dataset(path)
    LanceDataset.drop(path)
    assert rows(lance_core.dataset(tmp_path / "deep2")) == [8, 10]
    with pytest.raises(AlreadyExistsError):
        shallow.shallow_clone(tmp_path / "second", 2)
    with pytest.raises(AlreadyExistsError):
        shallow.deep_clone(tmp_path / "deep2", 2)


def test_deep_clones_take_blobs_and_indices_along(tmp_path: Path) -> None:
    table = pa.table(
        [pa.array([1, 2]), lance.blob_array([b"x" * 100_000, b"y" * 5_000_000])],
        schema=pa.schema([pa.field("a", pa.int64()), lance.blob_field("b")]),
    )
    theirs = lance.write_dataset(table, tmp_path / "t")
    theirs.create_scalar_index("a", "BTREE")
    lance_core.dataset(tmp_path / "t").deep_clone(tmp_path / "deep", 2)
    LanceDataset.drop(tmp_path / "t")
    clone = lance.dataset(tmp_path / "deep")
    assert [file.size() for file in clone.take_blobs("b", indices=[0, 1])] == [100_000, 5_000_000]
    assert clone.to_table(columns=["a"], filter="a = 2").num_rows == 1
    assert "ScalarIndexQuery" in clone.scanner(filter="a = 2", columns=["a"]).explain_plan()


def hostile(tmp_path: Path, base: BasePath, file: str | None = None) -> Path:
    """A table whose newest manifest names `base` for all files."""
    path = tmp_path / "hostile"
    lance_core.write_dataset(numbers(1), path)
    store = resolve_store(path)
    manifest = load_manifest(store)
    (fragment,) = manifest.fragments
    (entry,) = fragment.files
    moved = replace(fragment, files=(replace(entry, base_id=base.id, path=file or entry.path),))
    changed = replace(
        manifest,
        version=2,
        fragments=(moved,),
        base_paths=(base,),
        reader_feature_flags=16,
        writer_feature_flags=16,
        writer_version=WRITER_VERSION,
    )
    put_manifest(store, changed, uuid="x", transaction=None, scheme=NamingScheme.V2)
    return path


def test_files_do_not_climb_out_of_their_base(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    lance_core.write_dataset(numbers(42), secret)
    (file,) = (secret / "data").iterdir()
    (tmp_path / "base").mkdir()
    base = BasePath(id=1, path=str(tmp_path / "base"), is_dataset_root=False)
    for name in (f"../secret/data/{file.name}", str(file), f"x/../../secret/data/{file.name}"):
        path = hostile(tmp_path, base, name)
        with pytest.raises(LanceError):
            lance_core.dataset(path).to_table()
        with pytest.raises(LanceError):
            lance_core.dataset(path).deep_clone(tmp_path / "copy", 2)
        assert not (tmp_path / "copy").exists() or not [*(tmp_path / "copy").rglob("*.lance")]
        LanceDataset.drop(path)


@pytest.mark.parametrize("base", ["../secret", "secret", "gopher://x/y"])
def test_bases_that_are_no_places(tmp_path: Path, base: str) -> None:
    path = hostile(tmp_path, BasePath(id=1, path=base, is_dataset_root=True))
    with pytest.raises((CorruptFileError, InputError)):
        lance_core.dataset(path).to_table()


def test_a_base_that_is_not_defined(tmp_path: Path) -> None:
    path = tmp_path / "t"
    lance_core.write_dataset(numbers(1), path)
    with pytest.raises(CorruptFileError, match="base path 7"):
        lance_core.dataset(path).snapshot.store_of(7)


def test_a_remote_table_does_not_read_this_machine(tmp_path: Path) -> None:
    from lance_core.commit.base_paths import open_base

    for base in (str(tmp_path), "file:///etc", "memory://x"):
        with pytest.raises(CorruptFileError, match="on this machine"):
            open_base(BasePath(id=0, path=base), table_uri="s3://bucket/t.lance", storage_options=None)


def test_a_base_beside_the_data_is_read(tmp_path: Path) -> None:
    other = tmp_path / "other"
    lance_core.write_dataset(numbers(5), other)
    (file,) = (other / "data").iterdir()
    flat = hostile(tmp_path, BasePath(id=1, path=str(other / "data"), is_dataset_root=False), file.name)
    assert rows(lance.dataset(flat)) == rows(lance_core.dataset(flat)) == [5]


def test_cleanup_of_one_line_keeps_what_the_others_need(tmp_path: Path) -> None:
    main = two_versions(tmp_path / "t")
    branch = main.create_branch("x")
    branch.insert(numbers(5))
    branch.insert(numbers(6))
    branch.tags.create("kept", ("x", 3))
    main.insert(numbers(9), mode="overwrite")
    main.insert(numbers(10), mode="overwrite")
    assert main.cleanup_old_versions(retain_versions=1, delete_unverified=True).old_versions == 2
    assert [item["version"] for item in lance.dataset(tmp_path / "t").versions()] == [2, 4]
    branch = main.checkout_version(("x", None))
    stats = branch.cleanup_old_versions(retain_versions=1, delete_unverified=True, error_if_tagged_old_versions=False)
    assert stats.old_versions == 1
    for library in (lance, lance_core):
        handle = library.dataset(tmp_path / "t")
        assert rows(handle) == [10]
        assert rows(handle.checkout_version("kept")) == [1, 2, 3, 4, 5]
        assert rows(handle.checkout_version(("x", None))) == [1, 2, 3, 4, 5, 6]


def test_cleanup_keeps_what_a_clone_elsewhere_reads(tmp_path: Path) -> None:
    main = two_versions(tmp_path / "t")
    main.shallow_clone(tmp_path / "copy", 1)
    main.insert(numbers(9), mode="overwrite")
    main.cleanup_old_versions(retain_versions=1, delete_unverified=True)
    assert rows(lance.dataset(tmp_path / "copy")) == rows(lance_core.dataset(tmp_path / "copy"))
    lance_core.LanceDataset.drop(tmp_path / "copy")
    assert main.cleanup_old_versions(retain_versions=1, delete_unverified=True).old_versions == 0  # the note is too young
    for note in (tmp_path / "t" / "_lance_core" / "clones").iterdir():
        os.utime(note, (0, 0))
    assert main.cleanup_old_versions(retain_versions=1, delete_unverified=True).old_versions == 1
    assert [item["version"] for item in main.versions()] == [3]
