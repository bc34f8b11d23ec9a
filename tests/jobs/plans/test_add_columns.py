"""The add_columns job: SQL, functions, joins; checkpoints; what others did meanwhile; the official library as the judge."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lance_core.errors import InputError, LanceError
from lance_core.io.resolve import resolve_store
from lance_core.jobs.run import run_job, run_json
from lance_core.jobs.specs.edits import AddColumnsSpec
from lance_core.jobs.specs.spec import SourceSpec
from lance_core.publish.abort import abort_attempt
from lance_core.publish.collect import collect_garbage
from tests.jobs.edit_support import commit, identity, ids, leftovers, make_table, rows

CALLS: list[int] = []


def twice(batch: pa.RecordBatch, factor: int = 2) -> pa.RecordBatch:
    CALLS.append(batch.num_rows)
    return pa.RecordBatch.from_arrays([pc.multiply(batch.column("id"), factor)], names=["twice"])


def breaks_at_20(batch: pa.RecordBatch) -> pa.RecordBatch:
    if batch.num_rows and batch.column("id")[0].as_py() == 20 and os.environ.get("LANCE_TEST_BREAKS"):
        raise OSError("the worker lost its disk")
    return twice(batch)


def names() -> pa.Table:
    return pa.table({"key": [3, 13, 23, 99], "name": ["a", "b", "c", "z"]})


def add(uri: str, key: str = "1", **fields: object) -> AddColumnsSpec:
    return AddColumnsSpec(uri=uri, identity=identity(uri, key), **fields)


def by_function(uri: str, function: str = "twice", key: str = "1", **fields: object) -> AddColumnsSpec:
    return add(uri, key, function=f"{__name__}:{function}", reads=("id",), **fields)


def column(uri: str, name: str) -> dict[int, object]:
    table = lance.dataset(uri).to_table(columns=["id", name])
    return dict(zip(table["id"].to_pylist(), table[name].to_pylist(), strict=True))


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def uri(request, tmp_path) -> str:
    path = make_table(
        str(tmp_path / "t.lance"), rows(0, 10), rows(10, 20), rows(20, 30), enable_stable_row_ids=request.param
    )
    lance.dataset(path).delete("id = 15")
    return path


LIVING = sorted({*range(30)} - {15})


@pytest.mark.parametrize("rows_per_task", [1, 1000])
def test_sql_columns_appear_when_it_is_committed(uri: str, rows_per_task: int) -> None:
    spec = add(uri, columns={"twice": "id * 2", "big": "x > 5"}, rows_per_task=rows_per_task)
    staged = run_json(spec.to_json())
    assert run_job(spec) == staged
    assert lance.dataset(uri).schema.names == ["id", "day", "x"]
    assert commit(uri, staged)["num_versions"] == 1
    assert commit(uri, run_job(spec))["identities"] == {staged.identity: "already_committed"}
    assert column(uri, "twice") == {i: 2 * i for i in LIVING}
    assert column(uri, "big") == {i: i * 0.5 > 5 for i in LIVING}
    assert leftovers(uri) == set()


def test_a_function_over_batches(uri: str) -> None:
    commit(uri, run_job(by_function(uri, kwargs={"factor": 3})))
    assert column(uri, "twice") == {i: 3 * i for i in LIVING}


def test_a_source_joined_by_key(uri: str) -> None:
    spec = add(uri, source=SourceSpec(callable=f"{__name__}:names"), on="id", source_on="key")
    commit(uri, run_job(spec))
    assert column(uri, "name") == {i: {3: "a", 13: "b", 23: "c"}.get(i) for i in LIVING}
    assert leftovers(uri) == set()


def test_a_retry_computes_only_what_is_unfinished(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = by_function(uri, "breaks_at_20", rows_per_task=1)
    monkeypatch.setenv("LANCE_TEST_BREAKS", "1")
    with pytest.raises(OSError, match="lost its disk"):
        run_job(spec)
    lance.write_dataset(rows(30, 40), uri, mode="append")
    monkeypatch.delenv("LANCE_TEST_BREAKS")
    CALLS.clear()
    staged = run_job(spec)
    assert sum(CALLS) == 10  # the third fragment of the version it was planned on, though the table has grown
    result = commit(uri, staged)
    assert (sum(CALLS), result["re_executed"]) == (20, 1)  # the commit fills in what came meanwhile
    assert column(uri, "twice") == {i: 2 * i for i in [*LIVING, *range(30, 40)]}
    assert leftovers(uri) == set()


def test_an_error_that_no_retry_mends_leaves_nothing(uri: str) -> None:
    with pytest.raises(InputError, match="column 'x' already exists"):
        run_job(add(uri, columns={"x": "id"}))
    with pytest.raises(LanceError, match="nope"):
        run_job(add(uri, "2", columns={"y": "nope + 1"}))
    with pytest.raises(InputError, match="has no function 'nope'"):
        run_job(by_function(uri, "nope", "3"))
    with pytest.raises(InputError, match="exactly one of columns, function, source"):
        add(uri, columns={"y": "1"}, function="a:b")
    assert leftovers(uri) == set()


def test_what_others_did_meanwhile_is_kept(uri: str) -> None:
    staged = run_job(by_function(uri))
    other = run_job(add(uri, "2", columns={"half": "x / 2"}))
    table = lance.dataset(uri)
    table.delete("id = 3")
    table.update({"id": "id + 1000"}, where="id = 12")
    table.add_columns({"outside": "id"})
    lance.write_dataset(table.to_table(filter="id = 4").set_column(0, "id", [pa.array([77])]), uri, mode="append")
    CALLS.clear()
    assert commit(uri, staged)["re_executed"] == 1
    assert sum(CALLS) <= 3  # two new fragments, of a row each, and a look at no rows
    commit(uri, other)
    expected = sorted(({*LIVING} - {3, 12}) | {1012, 77})
    assert column(uri, "twice") == {i: 2 * i for i in expected}
    assert sorted(lance.dataset(uri).schema.names) == ["day", "half", "id", "outside", "twice", "x"]
    halves = lance.dataset(uri).to_table()
    assert halves["half"].to_pylist() == [value / 2 for value in halves["x"].to_pylist()]
    assert leftovers(uri) == set()


def test_columns_keep_their_order_and_values_when_they_are_brought_up(uri: str) -> None:
    staged = run_job(add(uri, columns={"z": "id * 2", "a": "id * 3", "m": "id * 5"}))
    lance.write_dataset(rows(30, 40), uri, mode="append")
    assert commit(uri, staged)["re_executed"] == 1
    assert lance.dataset(uri).schema.names == ["id", "day", "x", "z", "a", "m"]
    for name, factor in (("z", 2), ("a", 3), ("m", 5)):
        assert column(uri, name) == {i: factor * i for i in [*LIVING, *range(30, 40)]}


def test_after_a_compaction_the_new_fragments_are_filled_in(uri: str) -> None:
    staged = run_job(by_function(uri))
    lance.dataset(uri).optimize.compact_files()
    assert commit(uri, staged)["re_executed"] == 1
    assert column(uri, "twice") == {i: 2 * i for i in LIVING}
    assert ids(uri) == LIVING
    assert leftovers(uri) == set()


def test_a_column_of_that_name_came_meanwhile(uri: str) -> None:
    staged = run_job(by_function(uri))
    lance.dataset(uri).add_columns({"twice": "id"})
    with pytest.raises(InputError, match="column 'twice' already exists"):
        commit(uri, staged)


KILLED = """
import os, signal, sys
from lance_core.jobs.plans import column_parts as columns
from lance_core.jobs.run import run_json

left = int(sys.argv[1])
record = columns.add_record

def add(*args, **kwargs):
    global left
    found = record(*args, **kwargs)
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return found

columns.add_record = add
run_json(sys.argv[2])
"""


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_killed_after_some_fragments(tmp_path: Path, parts: int) -> None:
    uri = make_table(str(tmp_path / "t.lance"), rows(0, 10), rows(10, 20), rows(20, 30))
    spec = by_function(uri)
    paths = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(parts), spec.to_json()], env={**os.environ, "PYTHONPATH": paths}, timeout=120
    )
    assert killed.returncode == -signal.SIGKILL
    CALLS.clear()
    staged = run_job(spec)
    assert sum(CALLS) == 30 - 10 * parts
    commit(uri, staged)
    assert column(uri, "twice") == {i: 2 * i for i in range(30)}
    assert (lance.dataset(uri).version, leftovers(uri)) == (4, set())
    assert not [*(Path(uri) / "_lance_core" / "progress").rglob("*.json")]


def test_what_nobody_came_back_for_is_collected(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANCE_TEST_BREAKS", "1")
    with pytest.raises(OSError):
        run_job(by_function(uri, "breaks_at_20", rows_per_task=1))
    store = resolve_store(uri)
    assert collect_garbage(store).files == ()
    import time

    assert len(collect_garbage(store, now=time.time() + 7200).files) == 2
    assert leftovers(uri) == set()
    staged = run_job(by_function(uri, key="2"))
    abort_attempt(store, staged.identity, staged.attempt)
    assert leftovers(uri) == set()
