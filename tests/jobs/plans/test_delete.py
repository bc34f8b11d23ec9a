"""The delete job: once per identity, with other writers in between, the official library as the judge."""

from __future__ import annotations

import lance
import pytest

from lance_core.errors import FilterError, NotFoundError
from lance_core.jobs.run import run_job, run_json
from lance_core.jobs.specs.edits import DeleteSpec
from tests.jobs.edit_support import commit, identity, ids, leftovers, make_table, rows


def delete(uri: str, predicate: str, key: str = "1", **fields: object) -> DeleteSpec:
    return DeleteSpec(uri=uri, identity=identity(uri, key), predicate=predicate, **fields)


@pytest.fixture
def uri(tmp_path) -> str:
    return make_table(str(tmp_path / "t.lance"), rows(0, 10), rows(10, 20), rows(20, 30))


@pytest.mark.parametrize("rows_per_task", [1, 15, 1000])
def test_rows_go_when_it_is_committed(uri: str, rows_per_task: int) -> None:
    staged = run_job(delete(uri, "id >= 5 and id < 22", rows_per_task=rows_per_task))
    assert (staged.operation, staged.num_rows, staged.num_deleted_rows) == ("delete", 0, 17)
    assert ids(uri) == [*range(30)]
    result = commit(uri, staged)
    assert (result["num_versions"], result["rows_deleted"], result["rows_added"]) == (1, 17, 0)
    assert ids(uri) == [*range(5), *range(22, 30)]
    assert leftovers(uri) == set()


def test_the_same_identity_deletes_once(uri: str) -> None:
    spec = delete(uri, "id < 3")
    first = run_json(spec.to_json())
    assert run_job(spec) == first
    commit(uri, first)
    assert commit(uri, run_job(spec))["identities"] == {first.identity: "already_committed"}
    assert ids(uri) == [*range(3, 30)]
    assert lance.dataset(uri).version == 4


def test_nothing_to_delete_lands_all_the_same(uri: str) -> None:
    result = commit(uri, run_job(delete(uri, "id > 1000")))
    assert (result["num_versions"], result["rows_deleted"]) == (1, 0)
    assert ids(uri) == [*range(30)]


def test_a_writer_in_between_on_other_rows_is_merged(uri: str) -> None:
    staged = run_job(delete(uri, "id < 3"))
    lance.dataset(uri).delete("id = 7")
    lance.write_dataset(rows(30, 33), uri, mode="append")
    assert commit(uri, staged)["re_executed"] == 0
    assert ids(uri) == [3, 4, 5, 6, 8, 9, *range(10, 33)]


def test_a_compaction_in_between_makes_the_commit_stage_it_again(uri: str) -> None:
    staged = run_job(delete(uri, "id < 3"))
    lance.dataset(uri).optimize.compact_files()
    result = commit(uri, staged)
    assert (result["re_executed"], result["identities"]) == (1, {staged.identity: "committed"})
    assert ids(uri) == [*range(3, 30)]
    assert leftovers(uri) == set()


def test_rows_that_somebody_else_deleted_make_the_commit_stage_it_again(uri: str) -> None:
    staged = run_job(delete(uri, "id < 3"))
    lance.dataset(uri).delete("id < 2")
    result = commit(uri, staged)
    assert result["re_executed"] == 1
    assert ids(uri) == [*range(3, 30)]


def test_many_deletes_and_updates_fold(uri: str) -> None:
    staged = [run_job(delete(uri, f"id = {number}", key=str(number))) for number in (1, 2, 11)]
    assert commit(uri, *staged)["num_versions"] == 1
    assert ids(uri) == sorted({*range(30)} - {1, 2, 11})


def test_a_wrong_filter_writes_nothing(uri: str, tmp_path) -> None:
    with pytest.raises(FilterError):
        run_job(delete(uri, "nope = 3"))
    assert leftovers(uri) == set()
    with pytest.raises(NotFoundError, match="no Lance table"):
        run_job(delete(str(tmp_path / "none.lance"), "id = 3"))
