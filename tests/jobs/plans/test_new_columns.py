"""Sources that bring columns the table lacks: column and rows land in one version, the official library as the judge."""

from __future__ import annotations

from collections.abc import Callable

import lance
import pyarrow as pa
import pytest

from lance_core.errors import GateFailedError, IncompatibleConflictError, InputError, LanceError, SchemaMismatchError
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.edits import ReplaceWhereSpec
from lance_core.jobs.specs.gates import GateSpec
from lance_core.jobs.specs.merge import MergeSpec
from lance_core.jobs.specs.spec import AppendSpec, JobSpec, SourceSpec, WriteSpec
from tests.jobs.edit_support import commit, identity, leftovers, make_table, rows


def wider(start: int, stop: int, day: int = 0, column: str = "country", kind: str = "string", **_: object) -> pa.Table:
    """Rows with one column more: values are the ids, in its type."""
    ids = pa.array(range(start, stop), pa.int64())
    return rows(start, stop, day).append_column(column, ids.cast(pa.type_for_alias(kind)))


def with_struct(start: int, stop: int) -> pa.Table:
    places = [{"city": f"c{i}", "at": [i * 1.0, i * 2.0]} for i in range(start, stop)]
    return rows(start, stop).append_column("place", pa.array(places)).append_column("none", pa.nulls(stop - start))


def wider_source(name: str = "wider", **kwargs: object) -> SourceSpec:
    return SourceSpec(callable=f"{__name__}:{name}", kwargs=kwargs)


def append(uri: str, key: str, *, drift: str = "add_extra", name: str = "wider", **kwargs: object) -> AppendSpec:
    return AppendSpec(uri=uri, identity=identity(uri, key), source=wider_source(name, **kwargs), schema_drift=drift)


def table(uri: str) -> dict[int, dict[str, object]]:
    """Rows by id, as the official library reads them."""
    dataset = lance.dataset(uri)
    dataset.validate()
    return {row["id"]: row for row in dataset.to_table().to_pylist()}


@pytest.fixture(params=[False, True], ids=["addresses", "stable-ids"])
def uri(tmp_path, request) -> str:
    return make_table(str(tmp_path / "t.lance"), rows(0, 3), rows(3, 6), enable_stable_row_ids=request.param)


def test_an_append_brings_its_column_in_one_version(uri: str) -> None:
    staged = run_job(append(uri, "1", start=6, stop=9))
    assert (staged.operation, staged.num_rows) == ("append", 3)
    assert lance.dataset(uri).schema.names == ["id", "day", "x"]
    result = commit(uri, staged)
    assert (result["version"], result["num_versions"], result["rows_added"], result["fragments_added"]) == (3, 1, 3, 1)
    assert [row["country"] for row in table(uri).values()] == [None] * 6 + ["6", "7", "8"]
    assert leftovers(uri) == set()
    again = run_job(append(uri, "1", start=6, stop=9))
    assert commit(uri, again)["identities"] == {staged.identity: "already_committed"}
    assert len(table(uri)) == 9


def test_many_appends_with_and_without_the_column_are_one_version(uri: str) -> None:
    staged = [run_job(append(uri, str(n), start=10 * n, stop=10 * n + 2)) for n in (1, 2)]
    staged.append(run_job(append(uri, "3", start=30, stop=32, column="city")))
    staged.append(run_job(AppendSpec(uri=uri, identity=identity(uri, "4"), source=wider_source("plain", start=40, stop=42))))
    assert commit(uri, *staged)["num_versions"] == 1
    found = table(uri)
    assert list(found) == [*range(6), 10, 11, 20, 21, 30, 31, 40, 41]
    assert {n: (row["country"], row["city"]) for n, row in found.items() if row["country"] or row["city"]} == {
        10: ("10", None), 11: ("11", None), 20: ("20", None), 21: ("21", None), 30: (None, "30"), 31: (None, "31"),
    }  # fmt: skip


def plain(start: int, stop: int) -> pa.Table:
    return rows(start, stop)


def test_two_tasks_that_add_the_same_column_both_land(uri: str) -> None:
    staged = [run_job(append(uri, str(n), start=10 * n, stop=10 * n + 2)) for n in (1, 2)]
    for item in staged:
        assert commit(uri, item, re_execute=False)["num_versions"] == 1
    names = [lance.dataset(uri).read_transaction(version).operation.__class__.__name__ for version in (3, 4)]
    assert names == ["Merge", "Append"]
    assert [row["country"] for row in table(uri).values()] == [None] * 6 + ["10", "11", "20", "21"]
    assert lance.dataset(uri).schema.names == ["id", "day", "x", "country"]


def test_the_same_column_with_another_type_fails_by_name(uri: str) -> None:
    first = run_job(append(uri, "1", start=10, stop=12))
    other = run_job(append(uri, "2", start=20, stop=22, kind="int32"))
    commit(uri, first)
    with pytest.raises(
        LanceError, match=r"changed the columns of the table in the meantime, and column 'country' is string"
    ):
        commit(uri, other)
    assert len(table(uri)) == 8
    # The staging task that runs again is refused before it writes anything.
    with pytest.raises(SchemaMismatchError, match="'country'"):
        run_job(append(uri, "3", start=20, stop=22, kind="int32"))


def test_of_two_types_in_one_commit_with_partial_one_lands(uri: str) -> None:
    first = run_job(append(uri, "1", start=10, stop=12))
    other = run_job(append(uri, "2", start=20, stop=22, kind="int32"))
    result = commit(uri, first, other, partial=True)
    assert [*result["refused"]] == [other.identity]
    assert [*table(uri)][6:] == [10, 11]


def _append_outside(uri: str) -> None:
    lance.write_dataset(rows(50, 52), uri, mode="append")


def _delete_outside(uri: str) -> None:
    lance.dataset(uri).delete("id = 1")


def _compact_outside(uri: str) -> None:
    lance.dataset(uri).optimize.compact_files()


def _column_outside(uri: str) -> None:
    lance.dataset(uri).add_columns(pa.field("other", pa.int64()))


def _same_column_outside(uri: str) -> None:
    lance.dataset(uri).add_columns(pa.field("country", pa.string()))


def _index_outside(uri: str) -> None:
    lance.dataset(uri).create_scalar_index("id", "BTREE")


def _upsert_outside(uri: str) -> None:
    lance.dataset(uri).merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows(2, 3, 7))


OUTSIDE = (_append_outside, _delete_outside, _compact_outside, _column_outside, _same_column_outside, _index_outside,
           _upsert_outside)  # fmt: skip


@pytest.mark.parametrize("outside", OUTSIDE, ids=lambda item: item.__name__.strip("_"))
def test_commits_of_others_in_between_do_not_matter(uri: str, outside: Callable[[str], None]) -> None:
    """Nothing is staged again for them: the rows do not depend on the table's."""
    staged = run_job(append(uri, "1", start=10, stop=13))
    outside(uri)
    before = table(uri)
    assert commit(uri, staged, re_execute=False)["num_versions"] == 1
    after = table(uri)
    assert {n: row["country"] for n, row in after.items() if n >= 10 and n < 20} == {10: "10", 11: "11", 12: "12"}
    assert {n: {name: row[name] for name in before[0]} for n, row in after.items() if n in before} == before
    assert lance.dataset(uri).to_table(filter="id = 2").num_rows == 1
    _append_outside(uri) if 50 not in after else None
    assert {row["country"] for n, row in table(uri).items() if n not in (10, 11, 12)} == {None}


def test_a_table_that_was_replaced_in_between_is_refused(uri: str) -> None:
    staged = run_job(append(uri, "1", start=10, stop=13))
    lance.write_dataset(rows(0, 1), uri, mode="overwrite")
    with pytest.raises(IncompatibleConflictError, match="Overwrite"):
        commit(uri, staged)


def test_a_column_that_was_dropped_in_between_does_not_come_back(uri: str) -> None:
    staged = run_job(append(uri, "1", start=10, stop=13))
    lance.dataset(uri).drop_columns(["x"])
    with pytest.raises(LanceError, match="the staged column 'x' is not in the table"):
        commit(uri, staged)
    assert lance.dataset(uri).schema.names == ["id", "day"]


def test_structs_come_whole_and_columns_of_nulls_do_not(uri: str) -> None:
    commit(uri, run_job(append(uri, "1", name="with_struct", start=6, stop=8)))
    commit(uri, run_job(append(uri, "2", start=8, stop=9, drift="fill_and_add")))
    assert lance.dataset(uri).schema.names == ["id", "day", "x", "place", "country"]
    found = table(uri)
    assert found[7]["place"] == {"city": "c7", "at": [7.0, 14.0]}
    assert (found[0]["place"], found[8]["place"], found[8]["country"]) == (None, None, "8")


def test_absent_columns_are_refused_unless_they_are_filled(uri: str) -> None:
    with pytest.raises(SchemaMismatchError, match=r"column 'x' is in the table but not in the source"):
        run_job(append(uri, "1", name="narrow", start=6, stop=8))
    commit(uri, run_job(append(uri, "1", name="narrow", start=6, stop=8, drift="fill_and_add")))
    assert table(uri)[7] == {"id": 7, "day": None, "x": None, "city": "7"}


def narrow(start: int, stop: int) -> pa.Table:
    ids = pa.array(range(start, stop), pa.int64())
    return pa.table({"id": ids, "city": ids.cast(pa.string())})


def test_a_field_inside_of_a_struct_is_not_added(uri: str) -> None:
    commit(uri, run_job(append(uri, "1", name="with_struct", start=6, stop=8)))
    with pytest.raises(SchemaMismatchError, match="place"):
        run_job(append(uri, "2", name="with_other_struct", start=8, stop=9))


def with_other_struct(start: int, stop: int) -> pa.Table:
    places = [{"city": "c", "at": [1.0], "zip": "z"} for _ in range(start, stop)]
    return rows(start, stop).append_column("place", pa.array(places))


@pytest.mark.parametrize("column", ["_rowid", "a.b"])
def test_names_that_no_table_can_have_are_refused_first(uri: str, column: str) -> None:
    with pytest.raises(InputError, match=column):
        run_job(append(uri, "1", start=6, stop=8, column=column))
    assert leftovers(uri) == set()


def test_files_of_the_first_format_cannot_take_a_column(tmp_path) -> None:
    uri = make_table(str(tmp_path / "old.lance"), rows(0, 3), data_storage_version="legacy")
    with pytest.raises(LanceError, match=r"file version 0\.1"):
        run_job(append(uri, "1", start=6, stop=8))


@pytest.mark.parametrize("together", [True, False], ids=["one-commit", "two-commits"])
def test_first_appends_with_other_columns_create_the_table_together(tmp_path, together: bool) -> None:
    uri = str(tmp_path / "new.lance")
    specs = [
        append(uri, "1", drift="fill_and_add", start=0, stop=2),
        append(uri, "2", drift="fill_and_add", start=2, stop=4),
    ]
    specs.append(append(uri, "3", drift="fill_and_add", start=4, stop=6, column="city"))
    staged = [run_job(spec) for spec in specs]
    versions = [commit(uri, *staged)["num_versions"]] if together else [commit(uri, item)["num_versions"] for item in staged]
    assert versions == ([2] if together else [1, 1, 1])
    assert [(row["country"], row["city"]) for row in table(uri).values()] == [
        ("0", None), ("1", None), ("2", None), ("3", None), (None, "4"), (None, "5"),
    ]  # fmt: skip


def replace_day(uri: str, key: str, **kwargs: object) -> ReplaceWhereSpec:
    source = wider_source(**kwargs)
    return ReplaceWhereSpec(
        uri=uri, identity=identity(uri, key), predicate="day = 0 AND id < 4", source=source, schema_drift="fill_and_add"
    )


def upsert(uri: str, key: str, **kwargs: object) -> MergeSpec:
    return MergeSpec(
        uri=uri, identity=identity(uri, key), on=("id",), source=wider_source(**kwargs), schema_drift="add_extra"
    )


def test_a_replaced_partition_brings_its_column(uri: str) -> None:
    staged = run_job(replace_day(uri, "1", start=0, stop=2))
    assert (staged.operation, staged.num_rows, staged.num_deleted_rows) == ("replace_where", 2, 4)
    assert commit(uri, staged)["num_versions"] == 1
    assert {n: row["country"] for n, row in table(uri).items()} == {4: None, 5: None, 0: "0", 1: "1"}
    assert leftovers(uri) == set()


def test_an_upsert_brings_its_column(tmp_path) -> None:
    uri = make_table(str(tmp_path / "t.lance"), rows(0, 3), rows(3, 6))
    staged = run_job(upsert(uri, "1", start=4, stop=8))
    assert (staged.operation, staged.num_rows, staged.num_deleted_rows) == ("merge", 4, 2)
    assert commit(uri, staged)["num_versions"] == 1
    assert {n: row["country"] for n, row in table(uri).items()} == {
        0: None, 1: None, 2: None, 3: None, 4: "4", 5: "5", 6: "6", 7: "7",
    }  # fmt: skip
    assert leftovers(uri) == set()


def test_an_upsert_of_moved_row_ids_says_what_to_do(tmp_path) -> None:
    uri = make_table(str(tmp_path / "t.lance"), rows(0, 3), enable_stable_row_ids=True)
    with pytest.raises(LanceError, match=r"stable row ids.*Add the column first"):
        run_job(upsert(uri, "1", start=1, stop=8))
    assert leftovers(uri) == set()


@pytest.mark.parametrize("outside", OUTSIDE, ids=lambda item: item.__name__.strip("_"))
@pytest.mark.parametrize("make", [replace_day, upsert], ids=["replace_where", "merge"])
def test_edits_that_bring_columns_are_staged_again_where_others_were_first(
    tmp_path, make: Callable[..., WriteSpec], outside: Callable[[str], None]
) -> None:
    uri = make_table(str(tmp_path / "t.lance"), rows(0, 3), rows(3, 6))
    staged = run_job(make(uri, "1", start=2, stop=4))
    outside(uri)
    before = table(uri)
    assert commit(uri, staged)["num_versions"] == 1
    after = table(uri)
    assert {n: row["country"] for n, row in after.items() if row["country"]} == {2: "2", 3: "3"}
    gone = set() if make is upsert else {n for n, row in before.items() if row["day"] == 0 and n < 2}
    assert set(after) == set(before) - gone
    assert leftovers(uri) == set()


def test_gates_see_the_new_column(uri: str) -> None:
    staged = run_job(append(uri, "1", start=6, stop=8))
    beside = run_job(AppendSpec(uri=uri, identity=identity(uri, "2"), source=wider_source("plain", start=40, stop=42)))
    refusal = GateSpec(name="known", no_rows="country = '7'")
    with pytest.raises(GateFailedError, match="gate 'known': 1 rows"):
        commit(uri, staged, beside, gates=(refusal,))
    assert lance.dataset(uri).version == 2
    with pytest.raises(GateFailedError, match="4 rows are added, expected at least 5"):
        commit(uri, staged, beside, gates=(GateSpec(min_rows=5),))
    commit(uri, staged, beside, gates=(GateSpec(min_rows=4, unique=("id",)),))


def test_a_merge_by_key_knows_rows_that_came_with_a_column(tmp_path) -> None:
    """Rows of a Merge count as brought: an upsert staged before them must find their keys."""
    uri = make_table(str(tmp_path / "t.lance"), rows(0, 3))
    plainly: JobSpec = MergeSpec(
        uri=uri, identity=identity(uri, "m"), on=("id",), source=wider_source("plain", start=10, stop=12)
    )
    staged = run_job(plainly)
    commit(uri, run_job(append(uri, "1", start=11, stop=13)))
    commit(uri, staged)
    assert sorted(lance.dataset(uri).to_table()["id"].to_pylist()) == [0, 1, 2, 10, 11, 12]
