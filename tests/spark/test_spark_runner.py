"""The runner alone: partitions, retries and refusals, with work that writes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from lance_core.errors import InputError, LanceError, SchemaMismatchError, StoreError
from lance_core.jobs.runtime.local_runner import LocalRunner
from lance_core.jobs.runtime.protocols import Shape, TaskResult
from lance_core.jobs.specs.spec import SourceSpec
from lance_core.spark.runner import SparkRunner, one_per_partition

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Counting:
    """Counts rows; fails as told, on one partition, once when `once` names a file."""

    fail: str = ""
    once: str = ""

    def __call__(self, partition: int, task_attempt: str, batches: Iterator[pa.RecordBatch]) -> TaskResult:
        rows = sum(batch.num_rows for batch in batches)
        if partition == 1 and self.fail == "input":
            raise SchemaMismatchError("column 'x' is not nullable", uri="/t")
        if partition == 1 and self.fail == "store" and not Path(self.once).exists():
            Path(self.once).touch()
            raise StoreError("throttled")
        return TaskResult(partition, task_attempt, rows_read=rows, rows=rows, size=8 * rows, fragments=(b"f%d" % partition,))


def numbers(spark, rows: int, partitions: int):
    return spark.range(0, rows, 1, partitions)


def source(runner: SparkRunner, spark, rows: int = 1000, partitions: int = 3):
    numbers(spark, rows, partitions).createOrReplaceTempView("numbers")
    return runner.open_source(SourceSpec(sql="select * from numbers"))


def test_one_result_per_partition(spark) -> None:
    runner = SparkRunner(lambda: spark)
    ticks: list[int] = []
    results = runner.run(Counting(), source(runner, spark), Shape(tick_seconds=0.01), lambda: ticks.append(1))
    assert [result.partition for result in results] == [0, 1, 2]
    assert sum(result.rows for result in results) == 1000
    assert results[2].fragments == (b"f2",)
    assert ticks


@dataclass(frozen=True)
class Listing:
    """Work that brings its own tasks."""

    tasks: tuple[str, ...]

    def __call__(self, partition: int, task_attempt: str, batches: Iterator[pa.RecordBatch]) -> TaskResult:
        (number,) = [value for batch in batches for value in batch["id"].to_pylist()]
        return TaskResult(partition, task_attempt, fragments=(self.tasks[number].encode(),))


@pytest.mark.parametrize("where", ["spark", "local"])
def test_tasks_of_the_works_own(where: str, request: pytest.FixtureRequest) -> None:
    runner = LocalRunner() if where == "local" else SparkRunner(lambda: request.getfixturevalue("spark"))
    work = Listing(("a", "b", "c"))
    results = runner.run(work, runner.open_tasks(3), Shape(), lambda: None)
    assert [result.fragments for result in results] == [(b"a",), (b"b",), (b"c",)]
    assert [result.partition for result in results] == [0, 1, 2]


@pytest.mark.parametrize(
    ("shape", "expected"), [(Shape(num_partitions=2), 2), (Shape(num_partitions=5, repartition=True), 5)]
)
def test_partitioning(spark, shape: Shape, expected: int) -> None:
    runner = SparkRunner(lambda: spark)
    assert len(runner.run(Counting(), source(runner, spark), shape, lambda: None)) == expected


def test_a_task_that_fails_once_is_tried_again(spark, tmp_path) -> None:
    runner = SparkRunner(lambda: spark)
    work = Counting(fail="store", once=str(tmp_path / "failed"))
    results = runner.run(work, source(runner, spark), Shape(), lambda: None)
    assert (tmp_path / "failed").exists()
    assert sum(result.rows for result in results) == 1000


def test_a_refusal_is_not_tried_again_and_keeps_its_type(spark) -> None:
    runner = SparkRunner(lambda: spark)
    with pytest.raises(SchemaMismatchError, match="'x' is not nullable") as caught:
        runner.run(Counting(fail="input"), source(runner, spark), Shape(), lambda: None)
    assert caught.value.uri == "/t"


def test_a_partition_that_reports_twice_is_refused() -> None:
    row = {"partition": 0, "task_attempt": "1", "fragments": [], "rows_read": 0, "rows": 0, "size": 0, "error": None}
    with pytest.raises(LanceError, match="partition 0 reported twice"):
        one_per_partition([row, {**row, "task_attempt": "2"}])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (SourceSpec(format="parquet", paths=("/nowhere/a.parquet",)), "/nowhere/a.parquet does not exist"),
        (SourceSpec(format="csv", paths=("/nowhere/*.csv",)), r"/nowhere/\*.csv does not exist"),
        (SourceSpec(format="nosuch", paths=("/x",)), "nosuch"),
        (SourceSpec(sql="selec 1"), "rejected by Spark"),
        (SourceSpec(sql="select * from not_there"), "not_there"),
        (SourceSpec(callable="builtins:repr"), "returned str"),
    ],
)
def test_bad_sources_are_named(spark, spec: SourceSpec, message: str) -> None:
    with pytest.raises(InputError, match=message):
        SparkRunner(lambda: spark).open_source(spec)
