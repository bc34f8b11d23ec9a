"""Small verbs and arguments: order and metadata of tags, bytes of fields, what a cleanup and a commit may be told."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import InputError
from lance_core.table.operations import Append, Overwrite


@pytest.fixture
def ds(tmp_path: Path) -> lance_core.LanceDataset:
    made = lance_core.write_dataset(pa.table({"a": [1]}), tmp_path / "t")
    made.insert(pa.table({"a": [2]}))
    return made


def test_tags_in_order_and_their_metadata(ds: lance_core.LanceDataset) -> None:
    for name, version in (("b", 1), ("d", 1), ("a", 1), ("c", 2)):
        ds.tags.create(name, version)
    for order in (None, "asc", "desc"):
        found = [[name for name, _ in library.dataset(ds.uri).tags.list_ordered(order)] for library in (lance_core, lance)]
        assert found[0] == found[1]
    with pytest.raises(InputError):
        ds.tags.list_ordered("up")
    ds.tags.replace_metadata("a", {"owner": "x"})
    lance.dataset(ds.uri).tags.replace_metadata("b", {"owner": "y"})
    for library in (lance, lance_core):
        found = library.dataset(ds.uri).tags.list()
        assert (found["a"]["metadata"], found["b"]["metadata"]) == ({"owner": "x"}, {"owner": "y"})


def test_branches_in_order(ds: lance_core.LanceDataset) -> None:
    for name, version in (("b", 1), ("a", 1), ("c", 2)):
        ds.create_branch(name, version)
    for order in (None, "asc", "desc"):
        found = [[name for name, _ in lib.dataset(ds.uri).branches.list_ordered(order)] for lib in (lance_core, lance)]
        assert found[0] == found[1]


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_bytes_of_fields(tmp_path: Path, version: str) -> None:
    rows = pa.table({"a": range(5000), "s": [{"x": number, "y": [str(number)]} for number in range(5000)]})
    lance.write_dataset(rows, tmp_path / "t", data_storage_version=version, max_rows_per_file=2000)
    found = lance_core.dataset(tmp_path / "t").stats.data_stats().fields
    theirs = lance.dataset(tmp_path / "t").stats.data_stats().fields
    assert [(item.id, item.bytes_on_disk) for item in found] == [(item.id, item.bytes_on_disk) for item in theirs]


def test_figures_of_an_index(ds: lance_core.LanceDataset) -> None:
    ds.create_scalar_index("a", "BTREE")
    assert ds.stats.index_stats("a_idx")["num_indexed_rows"] == 2


def test_a_cleanup_takes_its_time(ds: lance_core.LanceDataset) -> None:
    for _ in range(2):
        ds.insert(pa.table({"a": [3]}), mode="overwrite")
    started = time.monotonic()
    found = ds.cleanup_old_versions(dt.timedelta(0), delete_rate_limit=4, delete_concurrency=2)
    assert found.old_versions == 3
    assert time.monotonic() - started > 0.9  # six files, four a second
    with pytest.raises(InputError):
        ds.cleanup_old_versions(dt.timedelta(0), delete_rate_limit=0)
    assert ds.explain_cleanup_old_versions(dt.timedelta(0), include_files=True, max_files=3).files == ()


def test_arguments_of_a_commit(ds: lance_core.LanceDataset, tmp_path: Path) -> None:
    fragments = lance_core.fragment.write_fragments(pa.table({"a": [5]}), ds)
    with pytest.raises(InputError, match="commit_lock"):
        lance_core.LanceDataset.commit(ds, Append(tuple(fragments)), 2, object())
    done = lance_core.LanceDataset.commit(ds, Append(tuple(fragments)), 2, commit_timeout=dt.timedelta(seconds=9))
    assert done.count_rows() == 3
    born = lance_core.LanceDataset.commit(tmp_path / "new", Overwrite((), ds.lance_schema), enable_v2_manifest_paths=False)
    assert [path.name for path in Path(born.uri, "_versions").glob("*.manifest")] == ["1.manifest"]
    with pytest.raises(TypeError):
        lance_core.LanceDataset.commit(ds, Append(()), 2, commit_tiemout=3)


def test_an_update_in_the_legacy_version_is_refused(ds: lance_core.LanceDataset) -> None:
    with pytest.raises(InputError, match="version"):
        ds.update({"a": "a + 1"}, data_storage_version="legacy")
    assert ds.update({"a": "a + 1"}, data_storage_version="2.2")["num_rows_updated"] == 2
