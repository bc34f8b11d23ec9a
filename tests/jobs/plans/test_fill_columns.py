"""Columns that exist already: refused, left as they are, or filled where they are null. The official library judges."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core.errors import InputError, SchemaMismatchError
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.edits import AddColumnsSpec
from lance_core.jobs.specs.spec import SourceSpec
from tests.jobs.edit_support import commit, identity, leftovers, make_table, rows

SEEN: list[int] = []


def _of(number: int, kind: str) -> object:
    return {
        "int": number * 2,
        "text": f"row {number}",
        "vector": [float(number), 0.5],
        "list": [number] * (number % 3),
        "struct": {"a": number, "b": str(number)},
    }[kind]


TYPES = {
    "int": pa.int64(),
    "text": pa.string(),
    "vector": pa.list_(pa.float32(), 2),
    "list": pa.list_(pa.int32()),
    "struct": pa.struct([("a", pa.int64()), ("b", pa.string())]),
}


def answer(batch: pa.RecordBatch, kind: str = "int", never: int = -1) -> pa.RecordBatch:
    numbers = batch.column("id").to_pylist()
    SEEN.extend(numbers)
    values = [None if never > 0 and number % never == 0 else _of(number, kind) for number in numbers]
    return pa.record_batch([pa.array(values, TYPES[kind])], names=["made"])


def add(uri: str, key: str, **fields: object) -> AddColumnsSpec:
    return AddColumnsSpec(uri=uri, identity=identity(uri, key), **fields)


def fill(uri: str, key: str, *, reads: tuple[str, ...] | None = ("id",), **kwargs: object) -> AddColumnsSpec:
    return add(uri, key, function=f"{__name__}:answer", reads=reads, kwargs=kwargs, if_exists="fill")


def made(uri: str) -> dict[int, object]:
    table = lance.dataset(uri)
    table.validate()
    found = table.to_table(columns=["id", "made"])
    return dict(zip(found["id"].to_pylist(), found["made"].to_pylist(), strict=True))


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return make_table(str(tmp_path / "t.lance"), rows(0, 10), rows(10, 20), enable_stable_row_ids=request.param)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("reads", [("id",), None], ids=["named", "all columns"])
def test_the_second_day_computes_only_the_second_days_rows(uri: str, kind: str, reads: tuple[str, ...] | None) -> None:
    commit(uri, run_job(fill(uri, "1", reads=reads, kind=kind)))
    first = lance.dataset(uri).get_fragments()[0].metadata.files
    lance.write_dataset(rows(20, 30), uri, mode="append")
    SEEN.clear()
    staged = run_job(fill(uri, "2", reads=reads, kind=kind))
    assert sorted(SEEN) == [*range(20, 30)], "what has a value is not computed"
    assert commit(uri, staged)["num_versions"] == 1
    assert made(uri) == {number: _of(number, kind) for number in range(30)}
    assert lance.dataset(uri).get_fragments()[0].metadata.files == first, "a fragment without nulls keeps its files"
    assert leftovers(uri) == set()


def test_nulls_within_a_fragment_are_tried_again_and_values_stay(uri: str, caplog: pytest.LogCaptureFixture) -> None:
    commit(uri, run_job(fill(uri, "1", never=3)))
    lance.dataset(uri).delete("id = 6")
    lance.dataset(uri).update({"made": "-1"}, where="id = 7")
    SEEN.clear()
    with caplog.at_level("INFO"):
        commit(uri, run_job(fill(uri, "2", never=9)))
    assert sorted(SEEN) == [0, 3, 9, 12, 15, 18], "living rows without a value"
    assert "6 rows had no value and were computed, 3 of them have one now" in caplog.text
    assert "computed again by each run" in caplog.text
    expected = {number: None if number % 9 == 0 else number * 2 for number in range(20)} | {7: -1}
    del expected[6]
    assert made(uri) == expected
    assert leftovers(uri) == set()


def test_where_nothing_is_filled_there_is_no_version(uri: str) -> None:
    commit(uri, run_job(fill(uri, "1", never=3)))
    version = lance.dataset(uri).version
    for key in ("2", "3"):
        commit(uri, run_job(fill(uri, key, never=3)))
    assert lance.dataset(uri).version == version
    assert leftovers(uri) == set()


def test_rows_that_come_while_it_runs_are_filled_by_the_commit(uri: str) -> None:
    commit(uri, run_job(fill(uri, "1")))
    lance.write_dataset(rows(20, 30), uri, mode="append")
    staged = run_job(fill(uri, "2"))
    lance.write_dataset(rows(30, 40), uri, mode="append")
    lance.dataset(uri).delete("id = 25")
    SEEN.clear()
    commit(uri, staged)
    assert sorted(SEEN) == [*range(30, 40)], "what was staged is kept"
    assert made(uri) == {number: number * 2 for number in range(40) if number != 25}
    assert leftovers(uri) == set()


def test_values_that_another_writer_gave_in_the_meantime_stay(uri: str) -> None:
    commit(uri, run_job(fill(uri, "1", never=2)))
    staged = run_job(fill(uri, "2"))
    lance.dataset(uri).update({"made": "77"}, where="id = 4")
    commit(uri, staged)
    assert made(uri) == {number: number * 2 for number in range(20)} | {4: 77}


def test_a_join_and_sql_fill_too(uri: str) -> None:
    commit(uri, run_job(add(uri, "1", columns={"made": "id * 2"}, if_exists="fill")))
    lance.write_dataset(rows(20, 30), uri, mode="append")
    commit(uri, run_job(add(uri, "2", columns={"made": "id * 3", "more": "id + 1"}, if_exists="fill")))
    assert made(uri) == {number: number * (2 if number < 20 else 3) for number in range(30)}
    assert lance.dataset(uri).to_table(columns=["more"])["more"].to_pylist() == [*range(1, 31)]
    lance.write_dataset(rows(30, 32), uri, mode="append")
    source = SourceSpec(callable=f"{__name__}:looked_up")
    commit(uri, run_job(add(uri, "3", source=source, on="id", source_on="key", if_exists="fill")))
    assert {number: made(uri)[number] for number in (3, 30, 31)} == {3: 6, 30: 1000, 31: None}


def looked_up() -> pa.Table:
    return pa.table({"key": [3, 30], "made": pa.array([1, 1000], pa.int64())})


def test_an_index_forgets_what_was_filled_and_nothing_else(uri: str) -> None:
    commit(uri, run_job(fill(uri, "1", kind="vector")))
    table = lance.dataset(uri)
    table.create_index("made", "IVF_FLAT", num_partitions=1)
    lance.write_dataset(rows(20, 30), uri, mode="append")
    commit(uri, run_job(fill(uri, "2", kind="vector")))
    table = lance.dataset(uri)
    assert table.stats.index_stats("made_idx")["num_unindexed_rows"] == 10
    near = {"column": "made", "q": np.array([25.0, 0.5], np.float32), "k": 1}
    assert table.to_table(nearest=near, columns=["id"])["id"].to_pylist() == [25]


def test_another_type_is_refused_and_nothing_is_written(uri: str) -> None:
    commit(uri, run_job(fill(uri, "1")))
    with pytest.raises(SchemaMismatchError, match="it is int64 in the table, but string is computed"):
        run_job(fill(uri, "2", kind="text"))
    assert leftovers(uri) == set()


def test_skip_leaves_what_is_there(uri: str) -> None:
    commit(uri, run_job(fill(uri, "1")))
    version = lance.dataset(uri).version
    commit(uri, run_job(add(uri, "2", columns={"made": "0"}, if_exists="skip")))
    assert lance.dataset(uri).version == version
    commit(uri, run_job(add(uri, "3", columns={"made": "0", "new": "id + 1"}, if_exists="skip")))
    assert made(uri) == {number: number * 2 for number in range(20)}
    assert lance.dataset(uri).to_table(columns=["new"])["new"].to_pylist() == [*range(1, 21)]


def test_the_default_names_the_three(uri: str) -> None:
    commit(uri, run_job(fill(uri, "1")))
    with pytest.raises(InputError) as caught:
        run_job(add(uri, "2", columns={"made": "0"}))
    for word in ("'made' already exists", 'if_exists="fill"', 'if_exists="skip"', 'if_exists="fail"'):
        assert word in str(caught.value)
