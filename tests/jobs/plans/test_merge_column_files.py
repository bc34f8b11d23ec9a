"""The job that merges column files: once per identity, beside other commits, in one commit with deletes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import lance
import pytest

import lance_core
from lance_core.errors import InputError
from lance_core.jobs.run import run_job, run_json
from lance_core.jobs.specs.edits import DeleteSpec, MergeColumnFilesSpec, UpdateSpec
from lance_core.maintenance.facts.history import versions_page
from tests.jobs.edit_support import commit, identity, ids, leftovers, make_table, rows


def merge(uri: str, key: str = "1", **fields: object) -> MergeColumnFilesSpec:
    return MergeColumnFilesSpec(uri=uri, identity=identity(uri, key), **{"max_files_per_fragment": 2, **fields})


def delete(uri: str, key: str, predicate: str) -> DeleteSpec:
    return DeleteSpec(uri=uri, identity=identity(uri, key), predicate=predicate)


def files(uri: str) -> list[int]:
    return [len(fragment.data_files()) for fragment in lance.dataset(uri).get_fragments()]


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Three fragments of ten rows and four files each; row 3 is deleted."""
    parts = [rows(10 * i, 10 * i + 10) for i in range(3)]
    uri = make_table(str(tmp_path / "t.lance"), *parts, enable_stable_row_ids=request.param)
    for number in range(3):
        lance.dataset(uri).add_columns({f"c{number}": f"id + {number}"})
    lance.dataset(uri).delete("id = 3")
    return uri


def test_files_are_merged_when_it_is_committed(uri: str) -> None:
    before = lance.dataset(uri).to_table(with_row_id=True)
    staged = run_job(merge(uri, rows_per_task=10))
    assert (staged.operation, staged.num_rows) == ("merge_column_files", 0)
    assert staged.num_bytes > 0
    assert files(uri) == [4, 4, 4]
    assert commit(uri, staged)["num_versions"] == 1
    assert files(uri) == [2, 2, 2]
    assert lance.dataset(uri).to_table(with_row_id=True).equals(before)
    assert (ids(uri), leftovers(uri)) == ([i for i in range(30) if i != 3], set())
    newest = versions_page(lance_core.dataset(uri).snapshot.store)["versions"][0]
    assert (newest["kind"], newest["rows_changed"]) == ("compact", 0)


def test_the_same_identity_merges_once_and_nothing_to_do_writes_nothing(uri: str) -> None:
    first = run_json(merge(uri).to_json())
    assert run_job(merge(uri)) == first
    commit(uri, first)
    assert commit(uri, run_job(merge(uri)))["identities"] == {first.identity: "already_committed"}
    version = lance.dataset(uri).version
    assert commit(uri, run_job(merge(uri, "2")))["num_versions"] == 0
    assert lance.dataset(uri).version == version


def test_a_dry_run_reports_and_writes_nothing(uri: str) -> None:
    before = {str(path) for path in Path(uri).rglob("*")}
    report = run_job(merge(uri, dry_run=True)).to_dict()
    assert [(item["fragment"], item["files"], item["merged"]) for item in report["fragments"]] == [
        (i, 4, 3) for i in range(3)
    ]
    assert report["files"] == 9 and report["bytes"] > 0
    assert {str(path) for path in Path(uri).rglob("*")} == before


def test_appends_and_deletes_in_between_are_kept_without_another_run(uri: str) -> None:
    staged = run_job(merge(uri))
    lance.write_dataset(rows(30, 40), uri, mode="append")
    lance.dataset(uri).delete("id = 15")
    result = commit(uri, staged)
    assert (result["re_executed"], files(uri)) == (0, [2, 2, 2, 1])
    assert ids(uri) == [i for i in range(40) if i not in (3, 15)]
    assert leftovers(uri) == set()


def test_exchanged_files_make_it_run_again(uri: str) -> None:
    staged = run_job(merge(uri))
    lance.dataset(uri).add_columns({"late": "id * 2"})
    result = commit(uri, staged)
    assert (result["re_executed"], files(uri)) == (1, [2, 2, 2])
    table = lance.dataset(uri).to_table()
    assert table["late"].to_pylist() == [2 * i for i in table["id"].to_pylist()]
    assert leftovers(uri) == set()


def test_one_commit_with_deletes_and_updates_of_the_same_fragments(uri: str) -> None:
    work = [
        run_job(merge(uri)),
        run_job(delete(uri, "2", "id IN (5, 12)")),
        run_job(delete(uri, "3", "id IN (5, 6)")),
        run_job(UpdateSpec(uri=uri, identity=identity(uri, "4"), updates={"c1": "-1"}, where="id = 25")),
        run_job(delete(uri, "5", "id < 10 AND id > 8")),
    ]
    version = lance.dataset(uri).version
    assert commit(uri, *work)["num_versions"] == 1
    assert lance.dataset(uri).version == version + 1
    assert files(uri)[:3] == [2, 2, 2]
    assert ids(uri) == [i for i in range(30) if i not in (3, 5, 6, 9, 12)]
    assert lance.dataset(uri).to_table(filter="c1 = -1", columns=["id"])["id"].to_pylist() == [25]
    assert leftovers(uri) == set()


def test_two_merges_of_the_same_files_land_one_after_the_other(uri: str) -> None:
    before = lance.dataset(uri).to_table()
    work = [run_job(merge(uri, str(key), max_files_per_fragment=key)) for key in (3, 2)]
    result = commit(uri, *work)
    assert result["num_versions"] >= 1
    assert set(files(uri)) <= {2, 3}
    assert lance.dataset(uri).to_table().equals(before)
    lance.dataset(uri).validate()
    assert leftovers(uri) == set()


def test_a_fragment_that_goes_takes_its_merged_file_along(uri: str) -> None:
    work = [run_job(merge(uri)), run_job(delete(uri, "2", "id < 10"))]
    commit(uri, *work)
    assert files(uri) == [2, 2]
    assert ids(uri) == [*range(10, 30)]


KILLED = """
import os, signal, sys
from lance_core.dataset.maintain import column_merge
from lance_core.jobs.run import run_json
real = column_merge.merge_fragment_files
def merge(snapshot, merge, **kwargs):
    result = real(snapshot, merge, **kwargs)
    if merge.fragment.id == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return result
column_merge.merge_fragment_files = merge
run_json(sys.argv[1])
"""


def test_a_kill_leaves_nothing_once_it_ran_again(uri: str) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, merge(uri).to_json()], env=os.environ.copy(), check=False)
    assert killed.returncode == -signal.SIGKILL
    assert leftovers(uri)
    before = lance.dataset(uri).to_table()
    commit(uri, run_job(merge(uri)))
    assert files(uri) == [2, 2, 2]
    assert lance.dataset(uri).to_table().equals(before)
    assert leftovers(uri) == set()


@pytest.mark.parametrize("field", ["max_files_per_fragment", "enough_files", "rows_per_task"])
def test_bounds_must_be_positive(field: str) -> None:
    with pytest.raises(InputError, match="at least 1"):
        MergeColumnFilesSpec(uri="/t", **{field: 0})
