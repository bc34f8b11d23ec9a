"""The merge job: upserts once per identity, in parallel, with other writers in between; the official library judges."""

from __future__ import annotations

import lance
import pyarrow as pa
import pytest

from lance_core.errors import IncompatibleConflictError, InputError, NotFoundError, RetryableConflictError
from lance_core.jobs.run import run_job, run_json
from lance_core.jobs.specs.merge import MergeSpec
from tests.jobs.edit_support import commit, identity, ids, leftovers, make_table, rows


def new_rows() -> pa.Table:
    return pa.table({"id": [5, 25, 100, 101], "x": [-1.0, -2.0, -3.0, -4.0]})


def of_ids(ids: list[int], x: float) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "day": pa.array([7] * len(ids), pa.int32()), "x": [x] * len(ids)})


def merge(uri: str, key: str = "1", name: str = f"{__name__}:new_rows", kwargs: dict | None = None, **fields) -> MergeSpec:
    from lance_core.jobs.specs.spec import SourceSpec

    own = {"uri": uri, "identity": identity(uri, key), "on": ("id",), **fields}
    return MergeSpec(source=SourceSpec(callable=name, kwargs=kwargs or {}), **own)


def upsert(uri: str, key: str, ids: list[int], x: float, **fields) -> MergeSpec:
    return merge(uri, key, f"{__name__}:of_ids", {"ids": ids, "x": x}, **fields)


def values(uri: str, filter: str | None = None) -> dict[int, float]:
    table = lance.dataset(uri).to_table(filter=filter)
    return dict(zip(table["id"].to_pylist(), table["x"].to_pylist(), strict=True))


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def uri(request, tmp_path) -> str:
    return make_table(
        str(tmp_path / "t.lance"), rows(0, 10), rows(10, 20), rows(20, 30), enable_stable_row_ids=request.param
    )


@pytest.mark.parametrize("rows_per_task", [1, 15, 1000])
def test_an_upsert_is_one_version_and_leaves_nothing(uri: str, rows_per_task: int) -> None:
    spec = merge(uri, rows_per_task=rows_per_task)
    staged = run_json(spec.to_json())
    assert (staged.operation, staged.num_rows, staged.num_deleted_rows) == ("merge", 4, 2)
    assert run_job(spec) == staged
    assert ids(uri) == [*range(30)]
    assert commit(uri, staged)["num_versions"] == 1
    assert commit(uri, run_job(spec))["identities"] == {staged.identity: "already_committed"}
    assert ids(uri) == [*range(30), 100, 101]
    assert values(uri, "x < 0") == {5: -1.0, 25: -2.0, 100: -3.0, 101: -4.0}
    days = lance.dataset(uri).to_table(filter="x < 0 and day is null")["id"].to_pylist()
    assert sorted(days) == [100, 101]  # updated rows keep what the source lacks
    assert leftovers(uri) == set()


@pytest.mark.parametrize(
    ("clauses", "left", "changed"),
    [
        ({"when_matched": "keep"}, [*range(30), 100, 101], {100, 101}),
        ({"when_matched": "delete", "when_not_matched": "keep"}, sorted({*range(30)} - {5, 25}), set()),
        ({"when_not_matched": "keep"}, [*range(30)], {5, 25}),
        ({"when_matched_condition": "source.x < -1.5 and target.id > 3"}, [*range(30), 100, 101], {25, 100, 101}),
        (
            {"when_not_matched_by_source": "delete", "when_not_matched_by_source_condition": "id >= 20"},
            [*range(20), 25, 100, 101],
            {5, 25, 100, 101},
        ),
        ({"when_not_matched_by_source": "delete"}, [5, 25, 100, 101], {5, 25, 100, 101}),
    ],
)
def test_clauses(uri: str, clauses: dict[str, str], left: list[int], changed: set[int]) -> None:
    commit(uri, run_job(merge(uri, rows_per_task=10, **clauses)))
    assert (ids(uri), set(values(uri, "x < 0"))) == (left, changed)


def test_a_row_that_must_not_match_fails_and_stages_nothing(uri: str) -> None:
    with pytest.raises(InputError, match="match"):
        run_job(merge(uri, when_matched="fail"))
    assert leftovers(uri) == set()
    twice = upsert(uri, "2", [5, 5], 1.0)
    with pytest.raises(InputError, match="several rows of the source match one row of the table: id = 5"):
        run_job(twice)
    assert leftovers(uri) == set()


def test_a_merge_that_meets_a_key_inserted_since_is_done_again(uri: str) -> None:
    staged = run_job(upsert(uri, "1", [7, 100, 101], -1.0))
    lance.write_dataset(rows(100, 101, 3), uri, mode="append")
    with pytest.raises(RetryableConflictError, match="has since added rows"):
        commit(uri, staged, re_execute=False)
    commit(uri, staged)
    assert ids(uri) == [*range(30), 100, 101]
    assert values(uri, "x < 0") == {7: -1.0, 100: -1.0, 101: -1.0}
    assert leftovers(uri) == set()


def test_an_append_of_other_keys_does_not_matter_and_a_compaction_makes_it_done_again(uri: str) -> None:
    staged = run_job(upsert(uri, "1", [7, 100], -1.0))
    lance.write_dataset(rows(200, 203), uri, mode="append")
    assert commit(uri, staged)["re_executed"] == 0
    staged = run_job(upsert(uri, "2", [8, 101], -2.0))
    lance.dataset(uri).optimize.compact_files()
    commit(uri, staged)
    assert ids(uri) == [*range(30), 100, 101, 200, 201, 202]
    assert values(uri, "x < 0") == {7: -1.0, 100: -1.0, 8: -2.0, 101: -2.0}
    assert leftovers(uri) == set()


def test_merges_of_one_commit_that_insert_the_same_key_leave_it_once(uri: str) -> None:
    first, second = run_job(upsert(uri, "1", [100, 101], -1.0)), run_job(upsert(uri, "2", [101, 102], -2.0))
    result = commit(uri, first, second)
    assert set(result["identities"].values()) == {"committed"}
    assert ids(uri) == [*range(30), 100, 101, 102]
    assert values(uri, "x < 0") == {100: -1.0, 101: -2.0, 102: -2.0}


def test_a_merge_creates_its_table_once(tmp_path) -> None:
    uri = str(tmp_path / "new.lance")
    first, second = run_job(upsert(uri, "1", [1, 2], -1.0)), run_job(upsert(uri, "2", [2, 3], -2.0))
    commit(uri, first)
    commit(uri, second)
    assert (ids(uri), values(uri)) == ([1, 2, 3], {1: -1.0, 2: -2.0, 3: -2.0})
    with pytest.raises(NotFoundError):
        run_job(upsert(str(tmp_path / "none.lance"), "3", [1], 1.0, create=False))


def test_what_is_wrong_is_told_before_anything_is_written(uri: str) -> None:
    with pytest.raises(InputError, match="no column 'nope' in the source"):
        run_job(merge(uri, on=("nope",)))
    with pytest.raises(InputError, match="nope"):
        run_job(merge(uri, when_matched_condition="source.nope > 1"))
    with pytest.raises(InputError, match="nothing would change"):
        merge(uri, when_matched="keep", when_not_matched="keep")
    with pytest.raises(InputError, match="requires when_matched"):
        merge(uri, when_matched="delete", when_matched_condition="true")
    assert leftovers(uri) == set()


def test_work_that_hid_a_secret_says_what_to_do(uri: str) -> None:
    spec = upsert(uri, "1", [7], -1.0)
    from dataclasses import replace

    hidden = replace(spec, source=replace(spec.source, callable=f"{__name__}:with_secret", kwargs={"token": "abc"}))
    staged = run_job(hidden)
    lance.dataset(uri).delete("id = 7")
    with pytest.raises(IncompatibleConflictError, match=r"source\.kwargs\.token contained a secret.*clear its staging task"):
        commit(uri, staged)


def with_secret(token: str) -> pa.Table:
    return of_ids([7], -1.0)


def test_the_source_may_come_in_many_parts(uri: str) -> None:
    spec = merge(uri, name="tests.jobs.edit_support:rows", kwargs={"start": 28, "stop": 33, "day": 4}, max_rows_per_file=2)
    commit(uri, run_job(spec))
    assert ids(uri) == [*range(33)]
    assert lance.dataset(uri).count_rows("day = 4") == 5


def of_values(ids: list[int | None], xs: list[float]) -> pa.Table:
    days = pa.array([7] * len(ids), pa.int32())
    return pa.table({"id": pa.array(ids, pa.int64()), "day": days, "x": pa.array(xs, pa.float64())})


def repeated(uri: str, ids: list[int | None], key: str = "1", **fields) -> MergeSpec:
    return merge(uri, key, f"{__name__}:of_values", {"ids": ids, "xs": [-1.0 - at for at in range(len(ids))]}, **fields)


@pytest.mark.parametrize("is_new", [False, True], ids=["a table", "its first version"])
@pytest.mark.parametrize("max_rows_per_file", [None, 2])
def test_new_keys_that_are_there_twice_are_refused_by_name(uri, tmp_path, is_new: bool, max_rows_per_file) -> None:
    where = str(tmp_path / "new.lance") if is_new else uri
    doubled = [100, 101, 100, 102, 101, 103, 103, 103, 104, 105, 104, None, None]
    with pytest.raises(InputError) as caught:
        run_job(repeated(where, doubled, max_rows_per_file=max_rows_per_file))
    assert "id = 100 (2 rows); id = 101 (2 rows); id = 103 (3 rows); and 1 more key" in str(caught.value)
    assert 'when_duplicate="last"' in str(caught.value)
    assert not list((tmp_path / "new.lance").rglob("*.lance")) if is_new else leftovers(where) == set()


@pytest.mark.parametrize("is_new", [False, True], ids=["a table", "its first version"])
@pytest.mark.parametrize("max_rows_per_file", [None, 2])
def test_the_last_row_of_a_key_counts_where_that_is_chosen(uri, tmp_path, is_new: bool, max_rows_per_file) -> None:
    where = str(tmp_path / "new.lance") if is_new else uri
    fields = {"when_duplicate": "last", "max_rows_per_file": max_rows_per_file, "rows_per_task": 10}
    ids_read = [100, 5, 101, 100, 5, 25, None, 101, 101, None]
    commit(where, run_job(repeated(where, ids_read, **fields)))
    found = lance.dataset(where).to_table(filter="x < 0")
    last = {key: -1.0 - max(at for at, other in enumerate(ids_read) if other == key) for key in (100, 101, 5, 25)}
    pairs = zip(found["id"].to_pylist(), found["x"].to_pylist(), strict=True)
    assert sorted(pairs, key=str) == sorted([*last.items(), (None, -7.0), (None, -10.0)], key=str)
    assert leftovers(where) == set()
    commit(where, run_job(repeated(where, [100, 101, 102, 102], "2", **fields)))  # the next day
    assert lance.dataset(where).count_rows("id >= 100") == 3


def test_rows_that_are_kept_out_may_have_the_same_key(uri: str) -> None:
    staged = run_job(repeated(uri, [5, 100, 100], when_not_matched="keep"))
    commit(uri, staged)
    assert values(uri, "x < 0") == {5: -1.0}


def test_keys_of_several_columns_are_the_same_where_all_are(tmp_path) -> None:
    uri = str(tmp_path / "new.lance")
    commit(uri, run_job(repeated(uri, [1, 2, 2], on=("id", "x"))))
    assert ids(uri) == [1, 2, 2]
    with pytest.raises(InputError, match=r"id = 3, day = 7 \(2 rows\)"):
        run_job(repeated(uri, [3, 3], "2", on=("id", "day")))
