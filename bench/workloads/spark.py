"""Five million everyday rows through Spark: appended from Parquet, and read back, against Spark's own Parquet.

Both contenders run in one session (`local[2]`), from the same Parquet files; the append is the
job that operators run, its commit included. What is read goes to Spark's `noop` sink, so that nothing but reading counts.
Beside `format("lance")` runs "ready": a Python data source that decodes nothing, the floor under any format read that way.
Needs Java 17: JAVA_HOME, or the one that `make setup` found.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from bench.measure import Case
from bench.workloads.mixed import make_table

FILES = 4
ARROW_UNCHECKED = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"


def cases(folder: Path, scale: float) -> Iterator[Case]:
    """Append and read back, in two ways."""
    rows = int(5_000_000 * scale)
    source = folder / "source"
    num_bytes = _write_source(source, rows)
    spark = open_session()
    try:
        yield _append(spark, source, folder, num_bytes, rows)
        yield from _reads(spark, folder, num_bytes, rows)
    finally:
        spark.stop()


def prepare_environment() -> None:
    """What a Spark on this machine needs before its session: Java, this Python, and these modules in its workers."""
    repository = Path(__file__).resolve().parents[2]
    sys.path.insert(0, str(repository / "demo"))
    from java import find_java  # type: ignore[import-not-found]

    os.environ.setdefault("JAVA_HOME", str(find_java()))
    os.environ.update({"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable})
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(repository), os.environ.get("PYTHONPATH", "")]))


def session_builder() -> Any:
    """Of a Spark on two cores of this machine, with this Python."""
    prepare_environment()
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    return (
        builder.master("local[2]")
        .appName("bench")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.log.level", "ERROR")
    )


def open_session() -> Any:
    """A session with the Python source."""
    from lance_core.spark.source import register

    spark = (
        session_builder()
        # Arrow's own bounds checks in the JVM, for both contenders alike (docs/spark.md).
        .config("spark.driver.extraJavaOptions", ARROW_UNCHECKED)
        # As the entry that operators submit sets it.
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "65536")
        .getOrCreate()
    )
    register(spark)
    return spark


def _write_source(source: Path, rows: int) -> int:
    table = make_table(rows)
    if not source.exists():
        source.mkdir(parents=True)
        step = -(-rows // FILES)
        for number in range(FILES):
            pq.write_table(table.slice(number * step, step), source / f"part-{number}.parquet")
    return int(table.nbytes)


def _append(spark: Any, source: Path, folder: Path, num_bytes: int, rows: int) -> Case:
    lance, parquet = folder / "t.lance", folder / "t.parquet"

    def ours() -> int:
        from lance_core.jobs.run import run_job
        from lance_core.jobs.specs.spec import AppendSpec, CommitSpec, SourceSpec
        from lance_core.spark.runner import SparkRunner

        spec = AppendSpec(uri=str(lance), source=SourceSpec(format="parquet", paths=(str(source),)))
        staged = run_job(spec, runner=SparkRunner(lambda: spark))
        done = run_job(CommitSpec(uri=str(lance), identities=(staged.identity,)))  # type: ignore[union-attr]
        return int(done.rows_added)  # type: ignore[union-attr]

    def theirs() -> int:
        spark.read.parquet(str(source)).write.mode("append").parquet(str(parquet))
        return rows

    places: dict[str, Path] = {"lance_core": lance, "parquet": parquet}
    contenders: dict[str, Callable[[], object]] = {"lance_core": ours, "parquet": theirs}
    return Case(
        "append 5M mixed rows from Parquet",
        contenders,
        num_bytes=num_bytes,
        rows=rows,
        before=lambda name: shutil.rmtree(places[name], ignore_errors=True),
        check=_equal,
        repeats=7,
    )


def _reads(spark: Any, folder: Path, num_bytes: int, rows: int) -> Iterator[Case]:
    from bench.ready_batches import ReadyBatches, write_ready
    from lance_core.spark.frame import read_table

    lance, parquet = str(folder / "t.lance"), str(folder / "t.parquet")

    def to_nothing(frame: Any) -> None:
        frame.write.format("noop").mode("overwrite").save()

    write_ready(make_table(rows), folder / "ready", parts=len(list((folder / "t.parquet").glob("*.parquet"))))
    spark.dataSource.register(ReadyBatches)

    def theirs() -> None:
        to_nothing(spark.read.parquet(parquet))

    ways: dict[str, dict[str, Callable[[], object]]] = {
        "read 5M mixed rows back, read_table": {
            "lance_core": lambda: to_nothing(read_table(spark, lance)),
            "parquet": theirs,
        },
        'read 5M mixed rows back, format("lance")': {
            "lance_core": lambda: to_nothing(spark.read.format("lance").load(lance)),
            "parquet": theirs,
            "ready": lambda: to_nothing(spark.read.format("ready").load(str(folder / "ready"))),
        },
    }
    for name, contenders in ways.items():
        yield Case(name, contenders, num_bytes=num_bytes, rows=rows, repeats=15)


def _equal(results: Any) -> None:
    assert results["lance_core"] == results["parquet"], results
