"""Maps a job's work over a DataFrame's partitions with `mapInArrow`; only tiny results come back to the driver.

::

    executor   partition 3: batches -> Work -> one row (3, task 17, [fragment bytes], rows read, rows, bytes, error)
    driver     collect() of those rows -> one TaskResult per partition

No RDD API, no accumulators, no broadcast: it works through Spark Connect. Spark may run a partition twice (a retry, a
speculative copy, a lost executor); only the result that Spark itself hands to the driver counts, and the files of the
others carry the attempt's id and are collected. An InputError of a task comes back as a row instead of failing the task:
Spark would only repeat it three times.

Partitions: by default those of the source. `coalesce(n)` lowers their number without a shuffle, `repartition(n)` shuffles.
Every partition with rows writes at least one data file, so many small partitions make many small fragments.

The files of a source as Spark has listed them, without a further request.

::

    spark.read.csv("s3a://raw/day=1").where(...)   its plan's leaves have a file index, which Spark filled when it analysed
    -> (SourceFile("s3://raw/day=1/a.csv", 60, 1764000000.0), ...)

One call into the JVM for each leaf, however many files there are. Spark Connect shows no plan: there a source has no files.

`collect()` that can be stopped: it runs in a thread while the caller waits, reports progress, and handles signals.

A signal's exception raised inside PySpark's own call is of no use: its clean-up asks the JVM something on the connection
that is busy with the job, and waits until the job ends. So the caller's thread never is inside that call; when it is
stopped, it cancels the job from outside.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lance_core.errors import LanceError
from lance_core.jobs.runtime.error_transport import failure_from_plain, failure_to_plain
from lance_core.jobs.runtime.protocols import ROW, JobSource, Read, Runner, Shape, TaskResult, Work
from lance_core.jobs.sources.conform import Conformer
from lance_core.jobs.sources.source_files import SourceFile, canonical_path
from lance_core.jobs.specs.spec import SourceSpec
from lance_core.shortage import shortages
from lance_core.spark.direct_parquet import DirectParquet, plan_direct, wrap
from lance_core.spark.lance_tables import LanceTables
from lance_core.spark.sources import evaluate_sql, open_spark_source, refused_record
from lance_core.spark.types import arrow_schema, readable_schema, spark_schema

RESULT_DDL = (
    "partition INT, task_attempt STRING, fragments ARRAY<BINARY>, rows_read BIGINT, rows BIGINT, size BIGINT, error STRING"
)
_RESULT_FIELDS: list[tuple[str, Any]] = [
    ("partition", pa.int32()),
    ("task_attempt", pa.string()),
    ("fragments", pa.list_(pa.binary())),
    ("rows_read", pa.int64()),
    ("rows", pa.int64()),
    ("size", pa.int64()),
    ("error", pa.string()),
]
RESULT_SCHEMA = pa.schema(_RESULT_FIELDS)


@dataclass(frozen=True)
class SparkRows:
    """A DataFrame as work sees it. Spark marks `not null` by derivation, not on purpose.

    `direct`: how executors read the same rows without Spark's help; None where they cannot. `spec` and `table` are what was
    opened: a record that Spark refuses is looked up in the source, because Spark names neither its row nor its column.
    """

    frame: Any
    strict_nullability: bool = False
    num_rows: int | None = None
    direct: DirectParquet | None = None
    spec: SourceSpec | None = None
    table: pa.Schema | None = None
    files: tuple[SourceFile, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        """Arrow types in which the columns will arrive."""
        return arrow_schema(self.frame.schema)


class SparkRunner(Runner):
    """Work on the executors of a Spark session (classic or Connect).

    `session` is called when a source is opened: a job that finds its work done starts no Spark. `tables`: how Lance tables
    that are sources are read.
    """

    name = "spark"

    def __init__(self, session: Callable[[], Any], tables: LanceTables | None = None) -> None:
        self._session = session
        self._tables = tables or LanceTables()

    def open_source(self, spec: SourceSpec, *, table: pa.Schema | None = None) -> SparkRows:
        """A source through the session."""
        frame = open_spark_source(self._session(), spec, tables=self._tables, table=table)
        direct = plan_direct(spec, frame, arrow_schema(frame.schema))
        return SparkRows(frame, direct=direct, files=source_files(frame, spec), spec=spec, table=table)

    def open_tasks(self, num_tasks: int) -> SparkRows:
        """Task numbers, each a separate partition."""
        return SparkRows(self._session().range(0, num_tasks, 1, max(num_tasks, 1)))

    def open_expressions(self, read: Read, num_tasks: int, schema: pa.Schema, columns: Mapping[str, str]) -> SparkRows:
        """Rows and expressions in one stage, so that rows stay in their tasks and in their order."""
        tasks = self.open_tasks(num_tasks).frame
        rows = tasks.mapInArrow(read_function(read, readable_schema(schema)), spark_schema(schema))
        return SparkRows(evaluate_sql(rows, ROW, columns))

    def run(self, work: Work, source: JobSource, shape: Shape, on_tick: Callable[[], None]) -> Sequence[TaskResult]:
        """The partitions of the source through `work`; raises what a task refused, or what Spark raised."""
        if not isinstance(source, SparkRows):
            raise TypeError(f"the Spark runner cannot read a source of type {type(source).__name__}")
        rows_of, what = source.frame, work
        if source.direct is not None and not (shape.repartition and shape.num_partitions is not None):
            rows_of, what = self.open_tasks(len(source.direct.tasks)).frame, wrap(source.direct, work)
        frame = _cut(rows_of, shape).mapInArrow(task_function(what), RESULT_DDL)
        try:
            rows = collect(frame, tick_seconds=shape.tick_seconds, on_tick=on_tick, what=f"lance {shape.title}".strip())
        except Exception as error:
            raise refused_record(error, source.spec, source.table) or error from error.__cause__
        return one_per_partition(rows)


def _cut(frame: Any, shape: Shape) -> Any:
    if shape.num_partitions is None:
        return frame
    return frame.repartition(shape.num_partitions) if shape.repartition else frame.coalesce(shape.num_partitions)


def task_function(work: Work) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What Spark runs on an executor, once per partition (and again when it retries)."""

    def run_partition(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield run_work(work, iter(batches))

    return run_partition


def read_function(read: Read, schema: pa.Schema) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What Spark runs before the expressions: rows in the types that it takes."""

    def read_partition(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        conformer = Conformer(schema, uri="")
        for batch in read(iter(batches)):
            yield conformer.apply(batch)

    return read_partition


def run_work(work: Work, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch:
    """One task on an executor: its result, or its final refusal, as one row of `RESULT_SCHEMA`."""
    from pyspark import TaskContext

    context = TaskContext.get()
    partition, task_attempt = (0, "0") if context is None else (context.partitionId(), str(context.taskAttemptId()))
    error: str | None = None
    try:
        with shortages():
            result = work(partition, task_attempt, batches)
    except LanceError as failure:
        if failure.retryable:
            raise
        result, error = TaskResult(partition, task_attempt), json.dumps(failure_to_plain(failure))
    row = {
        "partition": result.partition,
        "task_attempt": result.task_attempt,
        "fragments": list(result.fragments),
        "rows_read": result.rows_read,
        "rows": result.rows,
        "size": result.size,
        "error": error,
    }
    return pa.RecordBatch.from_pylist([row], schema=RESULT_SCHEMA)


def one_per_partition(rows: Sequence[Any]) -> Sequence[TaskResult]:
    """Results in the order of partitions. Raises the first refusal; a LanceError when a partition reported twice."""
    results: dict[int, TaskResult] = {}
    for row in sorted(rows, key=lambda row: int(row["partition"])):
        if row["error"]:
            raise failure_from_plain(json.loads(row["error"]))
        partition = int(row["partition"])
        if partition in results:
            raise LanceError(
                f"partition {partition} reported twice (tasks {results[partition].task_attempt} and {row['task_attempt']})",
                cure="Nothing was staged; this is a bug in how the result reached the driver.",
            )
        results[partition] = TaskResult(
            partition=partition,
            task_attempt=str(row["task_attempt"]),
            rows_read=int(row["rows_read"]),
            rows=int(row["rows"]),
            size=int(row["size"]),
            fragments=tuple(bytes(fragment) for fragment in row["fragments"]),
        )
    return [results[partition] for partition in sorted(results)]


_BETWEEN = "\x00"
_STATUS = re.compile(r"path=(?P<path>.*?); isDirectory=false; length=(?P<size>\d+);.*?modification_time=(?P<time>\d+)", re.S)


def source_files(frame: Any, spec: SourceSpec) -> tuple[SourceFile, ...]:
    """The files that the frame of a source reads; of a query those of all its views. () where Spark does not say."""
    if spec.callable:
        return ()
    frames = [frame] if not spec.sql else [frame.sparkSession.table(name) for name in spec.views]
    try:
        return tuple(dict.fromkeys(file for item in frames for file in _of_plan(item)))
    except (ValueError, OSError):
        return ()


def _of_plan(frame: Any) -> list[SourceFile]:
    try:
        leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    except Exception:  # Spark Connect's frames have no plan here
        return []
    return [file for number in range(leaves.size()) for file in _of_leaf(leaves.apply(number))]


def _of_leaf(leaf: Any) -> list[SourceFile]:
    try:
        files = leaf.relation().location().allFiles()
        num_files, texts = files.size(), str(files.mkString(_BETWEEN)).split(_BETWEEN)
    except Exception:  # Py4J's: no files behind it, or a catalog's, which are listed when they are read
        return []
    if not num_files:
        return []
    found = [match for text in texts if (match := _STATUS.search(text)) is not None]
    if len(found) != num_files:
        raise ValueError(f"{len(found)} of {num_files} files were understood")
    return [SourceFile(canonical_path(item["path"]), int(item["size"]), int(item["time"]) / 1000) for item in found]


log = logging.getLogger(__name__)

_CANCEL_SECONDS = 20.0


def collect(frame: Any, *, tick_seconds: float, on_tick: Callable[[], None], what: str) -> list[Any]:
    """The rows of a (small) DataFrame. Calls `on_tick` every `tick_seconds`; any exception here cancels the Spark job."""
    job = _Collecting(frame, what)
    job.thread.start()
    try:
        while not job.done.wait(tick_seconds):
            on_tick()
    except BaseException:
        job.cancel()
        raise
    return job.result()


class _Collecting:
    def __init__(self, frame: Any, what: str) -> None:
        self._frame = frame
        self._spark = frame.sparkSession
        self._tag = f"lance-{uuid.uuid4().hex}"
        self._what = what
        self._rows: list[Any] = []
        self._error: BaseException | None = None
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._run, name="lance-collect", daemon=True)

    def result(self) -> list[Any]:
        if self._error is not None:
            raise self._error
        return self._rows

    def cancel(self) -> None:
        """Stop the job's tasks; waits a little so that they are gone before their files are removed."""
        with suppress(Exception):  # the JVM may be what died
            if _is_connect(self._spark):
                self._spark.interruptTag(self._tag)
            else:
                self._spark.sparkContext.cancelJobGroup(self._tag)
        if not self.done.wait(_CANCEL_SECONDS):
            log.warning("the Spark job did not stop within %.0f s", _CANCEL_SECONDS)

    def _run(self) -> None:
        try:
            # Groups and tags belong to the thread that starts the job.
            if _is_connect(self._spark):
                self._spark.addTag(self._tag)
            else:
                self._spark.sparkContext.setJobGroup(self._tag, self._what, True)
            self._rows = self._frame.collect()
        except BaseException as error:
            self._error = error
        finally:
            self.done.set()


def _is_connect(spark: Any) -> bool:
    return "connect" in type(spark).__module__.split(".")
