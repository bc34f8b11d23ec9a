"""The compaction job: once per identity, in waves, reported without doing it; the official library as the judge."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import lance
import pytest

from lance_core.errors import InputError, RetryableConflictError
from lance_core.jobs.run import run_job, run_json
from lance_core.jobs.specs.edits import CompactSpec
from tests.jobs.edit_support import commit, identity, ids, leftovers, make_table, rows


def compact(uri: str, key: str = "1", **fields: object) -> CompactSpec:
    return CompactSpec(uri=uri, identity=identity(uri, key), **fields)


def num_fragments(uri: str) -> int:
    return len(lance.dataset(uri).get_fragments())


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def uri(request, tmp_path) -> str:
    parts = [rows(10 * i, 10 * i + 10) for i in range(8)]
    uri = make_table(str(tmp_path / "t.lance"), *parts, enable_stable_row_ids=request.param)
    lance.dataset(uri).delete("id = 3")
    return uri


def test_fragments_are_joined_when_it_is_committed(uri: str) -> None:
    before = ids(uri)
    staged = run_job(compact(uri))
    assert (staged.operation, staged.num_rows) == ("compact", 79)
    version = lance.dataset(uri).version
    assert num_fragments(uri) == 8
    assert commit(uri, staged)["num_versions"] == 1
    assert (num_fragments(uri), ids(uri), lance.dataset(uri).version) == (1, before, version + 1)
    assert leftovers(uri) == set()


def test_the_same_identity_compacts_once_and_nothing_to_do_writes_nothing(uri: str) -> None:
    spec = compact(uri)
    first = run_json(spec.to_json())
    assert run_job(spec) == first
    commit(uri, first)
    assert commit(uri, run_job(spec))["identities"] == {first.identity: "already_committed"}
    version = lance.dataset(uri).version
    nothing = run_job(compact(uri, "2"))
    assert commit(uri, nothing) | {"seconds": 0} == commit(uri, nothing) | {"seconds": 0}
    assert (commit(uri, nothing)["num_versions"], lance.dataset(uri).version) == (0, version)


def test_groups_are_bounded_by_rows_and_bytes(uri: str) -> None:
    report = run_job(compact(uri, dry_run=True, target_rows_per_fragment=20)).to_dict()
    assert [group["fragments"] for group in report["groups"]] == [[0, 1, 2], [3, 4], [5, 6, 7]]
    size = max(sum(file.file_size_bytes for file in item.data_files()) for item in lance.dataset(uri).get_fragments())
    report = run_job(compact(uri, dry_run=True, max_bytes_per_group=3 * size)).to_dict()
    assert [len(group["fragments"]) for group in report["groups"]] == [3, 3, 2]
    assert all(group["bytes_in"] <= 3 * size for group in report["groups"])
    report = run_job(compact(uri, dry_run=True, target_rows_per_fragment=20, max_source_rows=45)).to_dict()
    assert [group["rows"] for group in report["groups"]] == [29]
    assert {item["reason"] for item in report["skipped"]} == {"it exceeds the limits of this run"}


def test_a_dry_run_reports_and_writes_nothing(uri: str) -> None:
    before = {str(path) for path in Path(uri).rglob("*")}
    report = run_job(compact(uri, dry_run=True)).to_dict()
    (group,) = report["groups"]
    assert (group["rows"], group["rows_deleted"]) == (79, 1)
    assert 0 < report["bytes_out"] < report["bytes_in"]
    assert report["peak_memory"] >= report["bytes_in"] // 2
    assert {str(path) for path in Path(uri).rglob("*")} == before
    report = run_job(compact(uri, dry_run=True, target_rows_per_fragment=10, materialize_deletions_threshold=None)).to_dict()
    assert report["groups"] == []
    assert {item["reason"] for item in report["skipped"]} == {"large enough"}


def test_an_append_in_between_does_not_matter_and_a_delete_makes_it_done_again(uri: str) -> None:
    staged = run_job(compact(uri))
    lance.write_dataset(rows(80, 90), uri, mode="append")
    lance.dataset(uri).delete("id = 5")
    result = commit(uri, staged)
    assert (result["re_executed"], num_fragments(uri)) == (1, 2)  # the appended fragment is a later run's
    assert ids(uri) == sorted({*range(90)} - {3, 5})
    assert leftovers(uri) == set()


def test_waves_are_committed_one_after_the_other(uri: str) -> None:
    before, version = ids(uri), lance.dataset(uri).version
    spec = compact(uri, target_rows_per_fragment=20, groups_per_commit=1)
    done = run_job(spec)
    assert (num_fragments(uri), ids(uri), lance.dataset(uri).version) == (3, before, version + 3)
    assert commit(uri, done)["identities"] == {done.identity: "already_committed"}
    assert run_job(spec).identity == done.identity
    assert lance.dataset(uri).version == version + 3
    assert leftovers(uri) == set()


KILLED = """
import os, signal, sys
from lance_core.jobs.plans import compact as compact
from lance_core.jobs.run import run_json
done = []
real = compact.commit
def commit(store, request):
    if len(done) == 1 and sys.argv[2] == "staged":
        os.kill(os.getpid(), signal.SIGKILL)
    result = real(store, request)
    done.append(result)
    if len(done) == 1 and sys.argv[2] == "committed":
        os.kill(os.getpid(), signal.SIGKILL)
    return result
compact.commit = commit
run_json(sys.argv[1])
"""


@pytest.mark.parametrize("step", ["staged", "committed"])
def test_a_kill_keeps_finished_groups(uri: str, step: str) -> None:
    before, version = ids(uri), lance.dataset(uri).version
    spec = compact(uri, target_rows_per_fragment=20, groups_per_commit=1)
    killed = subprocess.run([sys.executable, "-c", KILLED, spec.to_json(), step], env=dict(os.environ), timeout=120)
    assert killed.returncode == -signal.SIGKILL
    assert (num_fragments(uri), lance.dataset(uri).version) == (6, version + 1)
    run_job(spec)
    assert (num_fragments(uri), ids(uri), lance.dataset(uri).version) == (3, before, version + 3)
    assert leftovers(uri) == set()


def test_without_re_execution_a_conflict_is_raised(uri: str) -> None:
    staged = run_job(compact(uri))
    lance.dataset(uri).delete("id = 5")
    with pytest.raises(RetryableConflictError):
        commit(uri, staged, re_execute=False)
    assert commit(uri, staged)["re_executed"] == 1


def test_wrong_bounds_are_named(uri: str) -> None:
    with pytest.raises(InputError, match="max_bytes_per_group must be at least 1"):
        compact(uri, max_bytes_per_group=0)


def test_groups_that_nobody_touched_are_kept(tmp_path) -> None:
    uri = make_table(str(tmp_path / "t.lance"), *(rows(start, start + 10) for start in range(0, 60, 10)))
    spec = compact(uri, target_rows_per_fragment=20)
    staged = run_job(spec)
    before = {path.name for path in (tmp_path / "t.lance" / "data").iterdir()}
    lance.dataset(uri).delete("id = 25")
    assert commit(uri, staged)["re_executed"] == 1
    assert [item.count_rows() for item in lance.dataset(uri).get_fragments()] == [20, 19, 20]
    after = {path.name for path in (tmp_path / "t.lance" / "data").iterdir()}
    assert (len(after - before), len(before - after)) == (1, 1)
    assert leftovers(uri) == set()


def test_when_nothing_is_left_of_a_compaction_it_counts_as_done(tmp_path) -> None:
    uri = make_table(str(tmp_path / "t.lance"), rows(0, 10), rows(10, 20))
    staged = run_job(compact(uri))
    lance.dataset(uri).optimize.compact_files()
    version = lance.dataset(uri).version
    assert set(commit(uri, staged)["identities"].values()) == {"already_committed"}
    # Its files go behind a version that says so: another commit may be about to publish them.
    assert (lance.dataset(uri).version, ids(uri), leftovers(uri)) == (version + 1, [*range(20)], set())


def test_groups_are_bounded_in_rows(tmp_path) -> None:
    uri = make_table(str(tmp_path / "t.lance"), *(rows(start, start + 10) for start in range(0, 50, 10)))
    report = run_job(compact(uri, max_rows_per_group=25, dry_run=True)).to_dict()
    assert [group["fragments"] for group in report["groups"]] == [[0, 1], [2, 3]]
    assert report["skipped"] == [
        {"fragment": 4, "reason": "it has no neighbour to be merged with within the limits of a group"}
    ]
    assert all(group["peak_memory"] > 0 and group["bytes_in"] > 0 and group["bytes_out"] > 0 for group in report["groups"])
