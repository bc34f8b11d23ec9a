"""The replace_where job: the backfill of a day, any number of times, the official library as the judge."""

from __future__ import annotations

import lance
import pyarrow as pa
import pytest

from lance_core.errors import InputError, LanceError, NotFoundError
from lance_core.jobs.run import run_job, run_json
from lance_core.jobs.specs.edits import ReplaceWhereSpec
from tests.jobs.edit_support import commit, identity, ids, leftovers, make_table, rows, source


def replace_day(uri: str, day: int, start: int, stop: int, key: str = "1", **fields: object) -> ReplaceWhereSpec:
    spec = {"source": source(start=start, stop=stop, day=day), **fields}
    return ReplaceWhereSpec(uri=uri, identity=identity(uri, key), predicate=f"day = {day}", **spec)


@pytest.fixture
def uri(tmp_path) -> str:
    mixed = pa.concat_tables([rows(5, 10, 0), rows(10, 15, 1)])
    return make_table(str(tmp_path / "t.lance"), rows(0, 5, 0), mixed, rows(15, 20, 1))


@pytest.mark.parametrize("rows_per_task", [1, 1000])
def test_a_day_is_exchanged_in_one_version(uri: str, rows_per_task: int) -> None:
    staged = run_job(replace_day(uri, 1, 100, 103, rows_per_task=rows_per_task))
    assert (staged.operation, staged.num_rows, staged.num_deleted_rows) == ("replace_where", 3, 10)
    assert ids(uri) == [*range(20)]
    assert commit(uri, staged)["num_versions"] == 1
    assert ids(uri) == [*range(10), 100, 101, 102]
    assert leftovers(uri) == set()


def test_running_a_day_again_leaves_the_same_rows(uri: str) -> None:
    spec = replace_day(uri, 1, 100, 103)
    first = run_json(spec.to_json())
    assert run_job(spec) == first
    commit(uri, first)
    assert commit(uri, run_job(spec))["identities"] == {first.identity: "already_committed"}
    for key in ("2", "3"):  # another DAG run of the same day
        commit(uri, run_job(replace_day(uri, 1, 100, 103, key=key)))
    assert ids(uri) == [*range(10), 100, 101, 102]


def test_a_row_outside_of_the_predicate_stops_it_before_anything_is_staged(uri: str) -> None:
    with pytest.raises(InputError, match=r"row 3 of the source does not satisfy day = 1: \{'day': 2\}"):
        run_job(replace_day(uri, 1, 0, 0, source=source("two_days")))
    assert leftovers(uri) == set()
    assert ids(uri) == [*range(20)]


def test_other_days_commit_side_by_side(uri: str) -> None:
    staged = [run_job(replace_day(uri, day, 100 * day + 100, 100 * day + 103, key=str(day))) for day in (0, 1, 2)]
    for item in staged:
        commit(uri, item)
    assert ids(uri) == [*range(100, 103), *range(200, 203), *range(300, 303)]


def test_two_runs_of_one_day_do_not_double_it(uri: str) -> None:
    staged = [run_job(replace_day(uri, 7, 100, 103, key=key)) for key in ("a", "b")]
    assert [commit(uri, item)["version"] for item in staged] == [4, 5]
    assert ids(uri) == [*range(20), 100, 101, 102]
    assert leftovers(uri) == set()


@pytest.mark.parametrize("day", [1, 7])
def test_two_runs_of_one_day_in_one_commit_do_not_double_it(uri: str, day: int) -> None:
    """Day 7 is empty, so neither of the two takes a row that the other would miss."""
    before = len(ids(uri)) - (10 if day == 1 else 0)
    staged = [run_job(replace_day(uri, day, 700, 703, key=key)) for key in ("1", "2")]
    commit(uri, *staged)
    assert ids(uri)[before:] == [700, 701, 702]
    assert leftovers(uri) == set()


def test_rows_that_were_appended_to_the_day_meanwhile_go_as_well(uri: str) -> None:
    staged = run_job(replace_day(uri, 1, 100, 103))
    lance.write_dataset(rows(50, 53, 1), uri, mode="append")
    lance.write_dataset(rows(60, 63, 5), uri, mode="append")
    commit(uri, staged)
    assert ids(uri) == [*range(10), 60, 61, 62, 100, 101, 102]


def test_a_compaction_in_between_makes_the_commit_stage_it_again(uri: str) -> None:
    staged = run_job(replace_day(uri, 1, 100, 103))
    lance.dataset(uri).optimize.compact_files()
    commit(uri, staged)
    assert ids(uri) == [*range(10), 100, 101, 102]
    assert leftovers(uri) == set()


def test_the_first_days_create_the_table(tmp_path) -> None:
    uri = str(tmp_path / "new.lance")
    staged = [run_job(replace_day(uri, day, 10 * day, 10 * day + 3, key=str(day))) for day in (1, 2)]
    assert all(item.creates for item in staged)
    commit(uri, staged[0])
    commit(uri, staged[1])
    again = run_job(replace_day(uri, 1, 50, 52, key="again"))
    commit(uri, again)
    assert ids(uri) == [20, 21, 22, 50, 51]


def test_bad_input_writes_nothing(uri: str, tmp_path) -> None:
    with pytest.raises(NotFoundError):
        run_job(replace_day(str(tmp_path / "none.lance"), 1, 0, 3, create=False))
    with pytest.raises(LanceError):
        run_job(replace_day(uri, 1, 0, 3, data_storage_version="2.0"))
    with pytest.raises(InputError, match="nope"):
        run_job(ReplaceWhereSpec(uri=uri, predicate="nope = 1", source=source(start=0, stop=1)))
    assert leftovers(uri) == set()
