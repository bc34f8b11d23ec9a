"""Declared columns are computed in Spark's tasks: the driver publishes, and what a task put aside is found again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.computed import refresh as refreshing
from lance_core.computed.history import read_records
from lance_core.errors import GateFailedError
from lance_core.io.local.store import LocalStore
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.columns import RefreshColumnsSpec
from lance_core.jobs.specs.edits import AddColumnsSpec
from lance_core.jobs.specs.gates import GateSpec
from lance_core.jobs.specs.identity import random_identity
from lance_core.spark.runner import SparkRunner
from tests.computed.functions import EMBED, MODEL, SHOUT, expected_vector
from tests.computed.slow_batches import BATCH_ROWS, MORTAL, WORKERS


@pytest.fixture
def uri(tmp_path: Path) -> str:
    path = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"id": range(100), "text": [f"text {i}" for i in range(100)]}), path, max_rows_per_file=15)
    lance.dataset(path).delete("id % 10 = 4")
    lance_core.declare_column(path, "loud", function=SHOUT, inputs=["text"], type=pa.string(), on_error="skip", batch_size=8)
    return path


def _run(spark: Any, uri: str, **fields: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"functions": (EMBED, SHOUT), "commit_every": 4, "rows_per_task": 20, **fields}
    spec = RefreshColumnsSpec(uri=uri, identity=random_identity(), **given)
    run_job(spec, runner=SparkRunner(lambda: spark))
    record = read_records(LocalStore(uri))[0]
    assert record.identity == spec.identity
    return dict(record.report)


def test_tasks_compute_and_the_driver_publishes(spark: Any, uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lance.dataset(uri).update({"text": "'secret!'"}, where="id = 7")
    lance_core.declare_column(uri, "length", sql="octet_length(loud)")
    real, calls = refreshing.commit_transaction, list[int]()

    def commit(*arguments: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr(refreshing, "commit_transaction", commit)
    with pytest.raises(KeyboardInterrupt):
        _run(spark, uri)
    report = _run(spark, uri)
    counts = report["columns"]["loud"]
    assert (counts["fresh"] + counts["new"], counts["failed_now"], counts["left"]) == (90, 1, 0)
    assert counts["reused"] > 0, "what the tasks of the killed try put aside"
    assert counts["rows_given"] < 60
    rows = lance.dataset(uri).to_table(columns=["id", "text", "loud", "length"]).to_pylist()
    for row in rows:
        assert row["loud"] == (None if row["id"] == 7 else row["text"].upper())
        assert row["length"] == (None if row["id"] == 7 else len(row["text"]))
    (failed,) = lance_core.failed_rows(uri, "loud").rows
    assert failed.error.startswith("ValueError at functions.py:")
    again = _run(spark, uri, retry_failed=False)
    assert (again["columns"]["loud"]["left"], again["columns"]["loud"]["rows_given"], again["num_versions"]) == (1, 0, 0)

    lance_core.declare_column(uri, "vector", function=EMBED, inputs=["text"], type=pa.list_(pa.float32(), 4))
    stopped = _run(spark, uri, columns=("vector",), max_rows=30)
    assert stopped["stopped"] == "rows"
    assert stopped["columns"]["vector"]["rows_given"] <= 30
    report = _run(spark, uri, columns=("vector",))
    assert stopped["columns"]["vector"]["rows_given"] + report["columns"]["vector"]["rows_given"] == 90
    assert report["spent"]["vector"]["cents"] == report["columns"]["vector"]["rows_given"]
    found = lance.dataset(uri).to_table(columns=["text", "vector"]).to_pylist()
    assert all(row["vector"] == expected_vector(row["text"]) for row in found)


def test_a_worker_loads_a_model_once_and_a_canary_is_computed_in_a_task(spark: Any, uri: str, tmp_path: Path) -> None:
    log, functions = tmp_path / "log", {"function": MODEL, "inputs": ["text"], "type": pa.int64(), "batch_size": 8}

    def lines(what: str, plus: int) -> list[str]:
        return [line.split()[2] for line in log.read_text().splitlines() if line.startswith(f"{what} {plus} ")]

    lance_core.undeclare_column(uri, "loud")
    lance_core.declare_column(uri, "size", arguments={"log": str(log)}, **functions)
    report = _run(spark, uri, functions=(MODEL,), commit_every=2, rows_per_task=10)
    assert report["columns"]["size"]["rows_given"] == 90
    processes = {*lines("call", 0)}
    assert sorted(lines("setup", 0)) == sorted(processes), "seven tasks, one model for each process"
    assert len(processes) <= 2
    assert len(lines("call", 0)) >= 7

    lance_core.declare_column(uri, "size", arguments={"log": str(log), "plus": 500}, **functions)
    gate = GateSpec(name="drift", max_drift={"size": 0.5})
    with pytest.raises(GateFailedError, match="column 'size', canary of 20 rows: gate 'drift'"):
        _run(spark, uri, functions=(MODEL,), canary=20, gates=(gate,))
    assert all(row["size"] == len(row["text"]) for row in lance.dataset(uri).to_table(columns=["size", "text"]).to_pylist())
    report = _run(spark, uri, functions=(MODEL,), canary=20, gates=(GateSpec(max_null_rates={"size": 0.0}),))
    counts = report["columns"]["size"]
    assert (report["canaries"], counts["rows_given"], counts["reused"]) == ({"size": 20}, 70, 20)
    rows = lance.dataset(uri).to_table(columns=["size", "text"]).to_pylist()
    assert all(row["size"] == len(row["text"]) + 500 for row in rows)
    assert {*lines("setup", 500)} == {*lines("call", 500)}
    for process in {*lines("setup", 500)} & processes:
        assert process in lines("close", 0), "the former model was closed before"


@pytest.mark.slow
@pytest.mark.parametrize("at", [137, 611])
def test_a_killed_worker_of_slow_batches_repeats_those_that_were_under_way(spark: Any, tmp_path: Path, at: int) -> None:
    uri, log, num_rows = str(tmp_path / "slow.lance"), tmp_path / "batches", 1_000 * BATCH_ROWS
    lance.write_dataset(pa.table({"id": range(num_rows)}), uri, max_rows_per_file=num_rows // 8)
    lance_core.declare_column(
        uri, "triple", function=MORTAL, inputs=["id"], type=pa.int64(), batch_size=BATCH_ROWS,
        arguments={"log": str(log), "at": at},
    )  # fmt: skip
    report = _run(spark, uri, functions=(MORTAL,), rows_per_task=num_rows // 8, concurrency=WORKERS)
    assert Path(f"{log}.killed").exists()
    given = log.read_text().splitlines()
    assert len(given) - len({*given}) <= WORKERS
    assert len({*given}) == 1_000
    assert report["columns"]["triple"]["left"] == 0
    table = lance.dataset(uri)
    table.validate()
    rows = table.to_table(columns=["id", "triple"]).sort_by("id")
    assert rows["triple"].to_pylist() == [3 * number for number in range(num_rows)]
    assert [*Path(uri, "_lance_core", "columns").rglob("*.arrow")] == []


@pytest.mark.slow
def test_maintained_columns_are_declared_and_refreshed_in_tasks(spark: Any, uri: str) -> None:
    def run(**fields: Any) -> dict[str, Any]:
        spec = AddColumnsSpec(uri=uri, identity=random_identity(), maintained=True, rows_per_task=20, **fields)
        run_job(spec, runner=SparkRunner(lambda: spark))
        return dict(read_records(LocalStore(uri))[0].report["columns"])

    function = {"function": "tests.spark.test_spark_refresh:size_of", "reads": ("text",)}
    assert run(columns={"letters": "length(text)"})["letters"]["new"] == 90
    assert run(**function)["size"]["new"] == 90
    lance_core.dataset(uri).update({"text": "'other'"}, where="id = 7")
    lance_core.write_dataset(pa.table({"id": [100], "text": ["appended"]}), uri, mode="append")
    for name, counts in {**run(columns={"letters": "length(text)"}), **run(**function)}.items():
        assert (name, counts["fresh"], counts["stale"]) == (name, 89, 2)
    rows = lance.dataset(uri).to_table(columns=["text", "letters", "size"]).to_pylist()
    assert all(row["letters"] == row["size"] == len(row["text"]) for row in rows)


def size_of(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A column of its own name."""
    return pa.record_batch({"size": pa.array([len(text) for text in batch.column("text").to_pylist()], pa.int64())})
