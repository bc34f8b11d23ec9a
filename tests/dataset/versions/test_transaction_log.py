"""What stands beside the history: detached versions, auto cleanup, what a cleanup would do; and `lance branches`."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from click.testing import CliRunner

import lance_core
from lance_core.cli.main import cli
from lance_core.dataset.maintain.validate import check_snapshot
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.durations import parse_duration
from lance_core.errors import CorruptFileError, InputError
from lance_core.table.operations import Delete


def numbers(*values: int) -> pa.Table:
    return pa.table({"a": [*values]})


def rows(ds: Any) -> list[int]:
    return sorted(ds.to_table()["a"].to_pylist())


def test_detached_versions(tmp_path: Path) -> None:
    ds = lance_core.write_dataset(numbers(1, 2), tmp_path / "t")
    ds.insert(numbers(3))
    beside = lance_core.LanceDataset.commit(ds, Delete((), (0,), "a < 3"), ds.version, detached=True)
    assert beside.version >> 63 == 1
    for library in (lance, lance_core):
        handle = library.dataset(tmp_path / "t")
        assert (handle.version, rows(handle)) == (2, [1, 2, 3])
        assert rows(handle.checkout_version(beside.version)) == [3]
    ds.insert(numbers(9), mode="overwrite")
    ds.cleanup_old_versions(retain_versions=1, delete_unverified=True)
    for library in (lance, lance_core):
        assert rows(library.dataset(tmp_path / "t").checkout_version(beside.version)) == [3]


def test_official_detached_versions_are_read(tmp_path: Path) -> None:
    theirs = lance.write_dataset(numbers(1, 2), tmp_path / "t", max_rows_per_file=1)
    (first, _) = theirs.get_fragments()
    operation = lance.LanceOperation.Delete([], [first.fragment_id], "a = 1")
    beside = lance.LanceDataset.commit(theirs, operation, read_version=1, detached=True)
    assert rows(lance_core.dataset(tmp_path / "t").checkout_version(beside.version)) == [2]


def test_auto_cleanup(tmp_path: Path) -> None:
    ds = lance_core.write_dataset(numbers(0), tmp_path / "t", auto_cleanup_options={"interval": 3, "older_than_seconds": 0})
    ds.insert(numbers(1))
    assert len(ds.versions()) == 2
    ds.tags.create("kept", 1)
    ds.delete("a = 0")
    assert [item["version"] for item in ds.versions()] == [1, 3]
    ds.update_config({"lance.auto_cleanup.older_than": "rubbish"})
    for number in (5, 6):
        ds.insert(numbers(number))
    assert ds.version == 6
    assert [item["version"] for item in ds.versions()] == [1, 3, 4, 5, 6]
    assert rows(lance.dataset(tmp_path / "t")) == [1, 5, 6]


def test_auto_cleanup_retains(tmp_path: Path) -> None:
    ds = lance_core.write_dataset(numbers(0), tmp_path / "t")
    ds.update_config({"lance.auto_cleanup.interval": "4", "lance.auto_cleanup.retain_versions": "2"})
    ds.insert(numbers(1))
    ds.insert(numbers(2))
    assert [item["version"] for item in ds.versions()] == [3, 4]


@pytest.mark.parametrize(("text", "seconds"), [("1h", 3600), ("14days", 14 * 86400), ("1h 30m", 5400), ("3600s", 3600)])
def test_durations(text: str, seconds: int) -> None:
    assert parse_duration(text) == dt.timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "soon", "3", "3 parsecs", "-1h"])
def test_no_durations(text: str) -> None:
    with pytest.raises(InputError):
        parse_duration(text)


def test_explain_removes_nothing(tmp_path: Path) -> None:
    ds = lance_core.write_dataset(numbers(1), tmp_path / "t")
    ds.insert(numbers(2), mode="overwrite")
    plan = ds.explain_cleanup_old_versions(older_than=dt.timedelta(0))
    official = lance.dataset(tmp_path / "t").explain_cleanup_old_versions(older_than=dt.timedelta(0)).stats
    assert (plan.stats.old_versions, plan.stats.data_files_removed) == (official.old_versions, official.data_files_removed)
    assert plan.stats.bytes_removed == official.bytes_removed
    assert len(ds.versions()) == 2
    assert ds.fragment_ids() == [*lance.dataset(tmp_path / "t").fragment_ids()]


def test_branches_command(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance_core.write_dataset(numbers(1), uri)
    run = CliRunner().invoke
    made = json.loads(run(cli, ["branches", "create", uri, "exp", "--json"]).output)
    assert made == {"branch": "exp", "version": 1, "uri": f"{uri}/tree/exp"}
    (found,) = json.loads(run(cli, ["branches", "list", uri, "--json"]).output)
    assert (found["branch"], found["parent"], found["version"]) == ("exp", "main", 1)
    assert "exp" in run(cli, ["branches", "list", uri]).output
    assert run(cli, ["branches", "delete", uri, "exp"]).output == "deleted branch exp\n"
    assert lance.dataset(uri).branches.list() == {}


def test_validate_looks_at_indices_and_row_ids(tmp_path: Path) -> None:
    ds = lance_core.write_dataset(numbers(*range(20)), tmp_path / "t", max_rows_per_file=5, enable_stable_row_ids=True)
    ds.create_scalar_index("a", "BTREE")
    ds = lance_core.dataset(tmp_path / "t")
    ds.update({"a": "a + 100"}, where="a < 7")
    lance.dataset(tmp_path / "t").optimize.compact_files()
    ds = lance_core.dataset(tmp_path / "t")
    ds.validate()
    seen: list[tuple[int, int]] = []
    check_snapshot(ds.snapshot, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (len(ds.get_fragments()), len(ds.get_fragments()))
    (index, *_) = ds.snapshot.manifest.indices
    beyond = replace(index, fragment_bitmap=frozenset({999}))
    strange = replace(index, fields=(77,))
    for bad in (beyond, strange):
        broken = Snapshot(ds.snapshot.store, replace(ds.snapshot.manifest, indices=(bad,)))
        with pytest.raises(CorruptFileError):
            check_snapshot(broken, deep=False)
    with pytest.raises(CorruptFileError, match="never assigned"):
        check_snapshot(Snapshot(ds.snapshot.store, replace(ds.snapshot.manifest, next_row_id=3)))
    doubled = [*ds.snapshot.manifest.fragments]
    twin = replace(doubled[0], id=ds.snapshot.manifest.max_fragment_id or 0)
    with pytest.raises(CorruptFileError):
        check_snapshot(Snapshot(ds.snapshot.store, replace(ds.snapshot.manifest, fragments=(*doubled, twin))))
    file = next(iter((tmp_path / "t" / "_indices" / index.uuid).iterdir()))
    file.write_bytes(file.read_bytes() + b"x")
    with pytest.raises(CorruptFileError, match="bytes"):
        lance_core.dataset(tmp_path / "t").validate()
