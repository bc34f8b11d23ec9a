"""The update job: once per identity, with other writers in between, the official library as the judge."""

from __future__ import annotations

import lance
import pytest

from lance_core.errors import InputError
from lance_core.jobs.run import run_job, run_json
from lance_core.jobs.specs.edits import DeleteSpec, UpdateSpec
from tests.jobs.edit_support import commit, identity, ids, leftovers, make_table, rows


def update(uri: str, updates: dict[str, str], where: str | None = None, key: str = "1", **fields: object) -> UpdateSpec:
    return UpdateSpec(uri=uri, identity=identity(uri, key), updates=updates, where=where, **fields)


def values(uri: str) -> dict[int, float]:
    table = lance.dataset(uri).to_table()
    return dict(zip(table["id"].to_pylist(), table["x"].to_pylist(), strict=True))


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def uri(request, tmp_path) -> str:
    return make_table(
        str(tmp_path / "t.lance"), rows(0, 10), rows(10, 20), rows(20, 30), enable_stable_row_ids=request.param
    )


@pytest.mark.parametrize("rows_per_task", [1, 1000])
def test_rows_change_when_it_is_committed(uri: str, rows_per_task: int) -> None:
    staged = run_job(update(uri, {"x": "x + 100", "day": "7"}, "id >= 5 and id < 22", rows_per_task=rows_per_task))
    assert (staged.operation, staged.num_rows, staged.num_deleted_rows) == ("update", 17, 17)
    assert values(uri) == {i: i * 0.5 for i in range(30)}
    commit(uri, staged)
    assert ids(uri) == [*range(30)]
    assert values(uri) == {i: i * 0.5 + (100 if 5 <= i < 22 else 0) for i in range(30)}
    assert lance.dataset(uri).count_rows("day = 7") == 17
    assert leftovers(uri) == set()


def test_the_same_identity_updates_once(uri: str) -> None:
    spec = update(uri, {"x": "x + 100"}, "id < 3")
    first = run_json(spec.to_json())
    assert run_job(spec) == first
    commit(uri, first)
    assert commit(uri, run_job(spec))["identities"] == {first.identity: "already_committed"}
    assert values(uri)[2] == 101.0
    assert ids(uri) == [*range(30)]


def test_all_rows_without_a_filter(uri: str) -> None:
    commit(uri, run_job(update(uri, {"x": "0.0"})))
    assert set(values(uri).values()) == {0.0}


def test_an_update_that_meets_a_delete_of_the_same_row_is_done_again(uri: str) -> None:
    staged = run_job(update(uri, {"x": "x + 100"}, "id < 3"))
    lance.dataset(uri).delete("id = 1")
    lance.dataset(uri).optimize.compact_files()
    assert commit(uri, staged)["re_executed"] == 1
    found = values(uri)
    assert (found[0], found[2], 1 in found) == (100.0, 101.0, False)
    assert ids(uri) == [0, *range(2, 30)]
    assert leftovers(uri) == set()


def test_update_and_delete_of_other_rows_become_one_version(uri: str) -> None:
    first = run_job(update(uri, {"x": "x + 100"}, "id < 3"))
    second = run_job(DeleteSpec(uri=uri, identity=identity(uri, "2"), predicate="id = 9"))
    assert commit(uri, first, second)["num_versions"] == 1
    assert ids(uri) == sorted({*range(30)} - {9})
    assert values(uri)[2] == 101.0


@pytest.mark.parametrize(
    ("updates", "where", "words"),
    [({"nope": "1"}, None, "no column 'nope'"), ({"x": "'a'"}, None, "column 'x'"), ({"x": "1.0"}, "nope = 3", "nope")],
)
def test_a_wrong_update_writes_nothing(uri: str, updates: dict[str, str], where: str | None, words: str) -> None:
    with pytest.raises(InputError, match=words):
        run_job(update(uri, updates, where))
    assert leftovers(uri) == set()
    with pytest.raises(InputError, match="updates is empty"):
        update(uri, {})


def test_update_and_delete_of_the_same_row_in_one_commit_land_one_after_the_other(uri: str) -> None:
    first = run_job(update(uri, {"x": "x + 100"}, "id < 3"))
    second = run_job(DeleteSpec(uri=uri, identity=identity(uri, "2"), predicate="id = 2"))
    result = commit(uri, first, second)
    assert (result["num_versions"], set(result["identities"].values())) == (2, {"committed"})
    assert ids(uri) == sorted({*range(30)} - {2})
    assert values(uri)[1] == 100.5
    assert leftovers(uri) == set()
