"""Compaction and cleanup: the rows stay, the official library agrees, nothing that is needed goes."""

from __future__ import annotations

import datetime as dt
import json
import shutil
import uuid
from dataclasses import replace
from pathlib import Path

import lance
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_core
from lance_core.commit.references import is_referenced, referenced_files
from lance_core.dataset.maintain.compact_options import CompactionOptions
from lance_core.dataset.maintain.compact_plan import plan_compaction
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.versions.cleanup import plan_cleanup, run_cleanup
from lance_core.dataset.write.retry import StagedEdit, commit_with_retry
from lance_core.errors import InputError, NotFoundError, StoreError
from lance_core.format.fragment import DeletionFile, Fragment
from lance_core.format.index import IndexDetails
from lance_core.table.operations.create_index import CreateIndex
from lance_core.table.transaction import Transaction
from tests.dataset.dataset_tables import flat, mixed, same, snapshot_of_files
from tests.io.faulty_stores import FaultyStore


def check(uri: str) -> None:
    ours, theirs = lance_core.dataset(uri), lance.dataset(uri)
    theirs.validate()
    ours.validate()
    same(ours.to_table(), theirs.to_table())
    columns = ["_rowid", "_rowaddr", "_row_created_at_version", "_row_last_updated_at_version"]
    same(ours.to_table(columns=columns), theirs.to_table(columns=columns))


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
def test_compaction(tmp_path: Path, stable: bool) -> None:
    uri = str(tmp_path / "t.lance")
    ds = lance_core.write_dataset(mixed(600), uri, max_rows_per_file=50, enable_stable_row_ids=stable)
    ds.update({"name": "'u'"}, where="id % 20 = 3")
    ds.delete("id % 7 = 0")
    ds.add_columns({"twice": "id * 2"})
    ds.insert(mixed(40, first=600).select(["id", "name"]))
    before = ds.to_table(with_row_id=stable)
    metrics = ds.optimize.compact_files(target_rows_per_fragment=200)
    assert (metrics.fragments_removed, metrics.fragments_added) == (14, 2)
    same(ds.to_table(with_row_id=stable), before)
    assert [fragment.num_deletions for fragment in ds.get_fragments()] == [0, 0]
    check(uri)
    assert ds.optimize.compact_files(target_rows_per_fragment=200).fragments_removed == 0
    lance.dataset(uri).delete("id < 30")
    lance.dataset(uri).optimize.compact_files()
    check(uri)


def test_compaction_and_appends_do_not_hurt_each_other(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    ds = lance_core.write_dataset(flat(100), uri, max_rows_per_file=10)
    lance.write_dataset(flat(10, first=100), uri, mode="append")
    ds.optimize.compact_files()
    assert sorted(ds.to_table()["id"].to_pylist()) == list(range(110))
    check(uri)


def test_compaction_of_changed_fragments_is_planned_again(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    stale = lance_core.write_dataset(flat(100), uri, max_rows_per_file=10)
    lance.dataset(uri).delete("id = 5")
    stale.optimize.compact_files()
    assert stale.count_rows() == 99
    check(uri)
    named = {path.name for path in (Path(uri) / "data").iterdir()}
    versions = [lance_core.dataset(uri, version=number) for number in range(1, stale.version + 1)]
    assert named == {file.path for ds in versions for f in ds.get_fragments() for file in f.data_files()}


def with_future_index(uri: str) -> None:
    """Turn the only index of a table into one of a kind that nobody knows yet."""
    (known,) = lance_core.dataset(uri).snapshot.manifest.indices
    odd = replace(known, uuid=str(uuid.uuid4()), details=IndexDetails("/x.FutureIndexDetails", b""))
    shutil.copytree(Path(uri) / "_indices" / known.uuid, Path(uri) / "_indices" / odd.uuid)

    def stage(snapshot: Snapshot) -> StagedEdit:
        return StagedEdit(Transaction(snapshot.version, str(uuid.uuid4()), CreateIndex((odd,), (known,))))

    commit_with_retry(lance_core.dataset(uri).snapshot, stage)


def test_fragments_stay_where_an_index_cannot_follow(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance_core.write_dataset(flat(60), uri, max_rows_per_file=10)
    lance.dataset(uri).create_scalar_index("name", "BTREE")
    with_future_index(uri)
    ds = lance_core.write_dataset(flat(40, first=60), uri, mode="append", max_rows_per_file=10)
    plan = ds.optimize.plan_compaction()
    assert [len(group) for group in plan.groups] == [4]
    assert {reason for _, reason in plan.skipped} == {"an index refers to its rows by address"}
    ds.optimize.compact_files()
    check(uri)
    assert ds.to_table(filter="id = 33")["id"].to_pylist() == [33]
    assert [set(index["fragment_ids"]) for index in ds.list_indices()] == [set(range(6))]


def test_a_text_index_follows(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance_core.write_dataset(flat(60), uri, max_rows_per_file=10)
    lance.dataset(uri).create_scalar_index("name", "INVERTED")
    ds = lance_core.write_dataset(flat(40, first=60), uri, mode="append", max_rows_per_file=10)
    assert [len(group) for group in ds.optimize.plan_compaction().groups] == [6, 4]
    ds.optimize.compact_files()
    check(uri)
    found = lance.dataset(uri).to_table(columns=["id"], full_text_query="n3")
    assert sorted(found["id"].to_pylist()) == list(range(3, 100, 10))


def test_indices_follow_stable_row_ids(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance_core.write_dataset(flat(60), uri, max_rows_per_file=10, enable_stable_row_ids=True)
    lance.dataset(uri).create_scalar_index("name", "BITMAP")
    ds = lance_core.write_dataset(flat(40, first=60), uri, mode="append", max_rows_per_file=10)
    assert [len(group) for group in ds.optimize.plan_compaction().groups] == [6, 4]
    ds.optimize.compact_files()
    theirs = lance.dataset(uri)
    assert "ScalarIndexQuery" in theirs.scanner(filter="name = 'n3'").explain_plan()
    assert theirs.to_table(filter="name = 'n3'")["id"].to_pylist() == list(range(3, 100, 10))
    check(uri)


def test_wrong_options(tmp_path: Path) -> None:
    ds = lance_core.write_dataset(flat(5), tmp_path / "t.lance")
    for options in ({"target_rows_per_fragment": 0}, {"materialize_deletions_threshold": -0.5}):
        with pytest.raises(InputError):
            ds.optimize.compact_files(**options)
    with pytest.raises(TypeError):
        ds.optimize.compact_files(target=3)


def _fragment(number: int, rows: int, deleted: int) -> Fragment:
    deletion = DeletionFile("array", 1, 1, deleted) if deleted else None
    return Fragment(number, (), rows, deletion)


@given(
    rows=st.lists(st.tuples(st.integers(1, 50), st.integers(0, 50)), max_size=30),
    target=st.integers(1, 120),
    bound=st.one_of(st.none(), st.integers(1, 10)),
)
def test_plans_cover_each_fragment_once(rows, target: int, bound: int | None) -> None:
    fragments = [_fragment(at, physical, min(deleted, physical)) for at, (physical, deleted) in enumerate(rows)]
    options = CompactionOptions(target_rows_per_fragment=target, max_source_fragments=bound)
    plan = plan_compaction(fragments, options, read_version=1)
    grouped = [fragment.id for group in plan.groups for fragment in group]
    assert sorted([*grouped, *(number for number, _ in plan.skipped)]) == list(range(len(fragments)))
    for group in plan.groups:
        ids = [fragment.id for fragment in group]
        assert ids == list(range(ids[0], ids[0] + len(ids)))
    if bound is not None and len(plan.groups) > 1:
        assert len(grouped) <= bound


def _everything_old(uri: str) -> dict[str, object]:
    return {"older_than": dt.timedelta(0)}


def test_cleanup(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    ds = lance_core.write_dataset(flat(50), uri, max_rows_per_file=10)
    ds.delete("id < 15")
    ds.update({"name": "'u'"}, where="id = 20")
    ds.optimize.compact_files()
    ds.insert(flat(5, first=50))
    assert ds.cleanup_old_versions().old_versions == 0
    stats = ds.cleanup_old_versions(older_than=dt.timedelta(0))
    assert stats.old_versions == 5
    assert stats.data_files_removed > 0
    assert stats.bytes_removed > 0
    assert [entry["version"] for entry in ds.versions()] == [6]
    assert [entry["version"] for entry in lance.dataset(uri).versions()] == [6]
    check(uri)
    left = {path for path in snapshot_of_files(Path(uri)) if not path.startswith(("_versions", "_lance_core"))}
    assert left == set(referenced_files(ds.snapshot.manifest))
    with pytest.raises(NotFoundError):
        lance_core.dataset(uri, version=1)


def test_cleanup_keeps_tagged_and_recent_versions(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    ds = lance_core.write_dataset(flat(20), uri)
    for number in range(1, 6):
        ds.insert(flat(5, first=20 * number))
    ds.tags.create("keep", 2)
    before = snapshot_of_files(Path(uri))
    with pytest.raises(InputError, match="tagged 'keep'"):
        ds.cleanup_old_versions(older_than=dt.timedelta(0))
    with pytest.raises(InputError):
        ds.cleanup_old_versions(retain_versions=0)
    with pytest.raises(InputError):
        ds.cleanup_old_versions(versions=[99])
    assert snapshot_of_files(Path(uri)) == before
    ds.cleanup_old_versions(retain_versions=2, error_if_tagged_old_versions=False)
    assert [entry["version"] for entry in ds.versions()] == [2, 5, 6]
    assert lance_core.dataset(uri, version="keep").to_table().num_rows == 25
    ds.cleanup_old_versions(versions=[5])
    assert [entry["version"] for entry in ds.versions()] == [2, 6]
    check(uri)


def test_cleanup_leaves_files_of_writers_at_work(tmp_path: Path) -> None:
    from lance_core.fragment import write_fragments
    from lance_core.table.operations.append import Append

    uri = str(tmp_path / "t.lance")
    ds = lance_core.write_dataset(flat(20), uri)
    fragments = write_fragments(flat(5, first=20), uri)
    ds.cleanup_old_versions(older_than=dt.timedelta(0))
    assert lance_core.LanceDataset.commit(uri, Append(tuple(fragments)), read_version=1).count_rows() == 25
    write_fragments(flat(5), uri)
    later = plan_cleanup(
        ds.snapshot.store, now=dt.datetime.now().timestamp() + 8 * 86_400, older_than=dt.timedelta(days=400)
    )
    assert later.stats.data_files_removed == 1
    assert ds.cleanup_old_versions(delete_unverified=True).data_files_removed == 1
    check(uri)


def test_a_killed_cleanup_is_finished_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = str(tmp_path / "t.lance")
    ds = lance_core.write_dataset(flat(20), uri)
    ds = lance_core.write_dataset(flat(30), uri, mode="overwrite")
    store = ds.snapshot.store
    plan = plan_cleanup(store, older_than=dt.timedelta(0))
    dying = FaultyStore(store, fail_at=1, matches=lambda name, path: name == "delete" and path.startswith("data/"))
    with pytest.raises(StoreError):
        run_cleanup(dying, plan)
    assert [item["version"] for item in ds.versions()] == [2]
    again = plan_cleanup(store, older_than=dt.timedelta(0))
    assert {entry.path for entry in again.files} <= {entry.path for entry in plan.files}
    run_cleanup(store, again)
    check(uri)
    needed = frozenset(referenced_files(ds.snapshot.manifest))
    assert all(is_referenced(entry.path, needed) for entry in store.list("data/"))


def test_plain_results(tmp_path: Path) -> None:
    ds = lance_core.write_dataset(flat(20), tmp_path / "t.lance")
    plan = plan_cleanup(ds.snapshot.store)
    assert (plan.versions, plan.files) == ((), ())
    assert json.dumps(plan.stats.__class__.__name__)
