"""Streams into a table: every batch once, over restarts and over a driver that dies after the commit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lance_core.errors import InputError
from lance_core.io.resolve import resolve_store
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.maintenance import BranchSpec, GarbageSpec
from lance_core.jobs.specs.spec import CommitSpec
from lance_core.publish.attempts import list_staged
from lance_core.spark.options import SourceOptions
from lance_core.spark.stream_batch import batch_identity, batch_of
from lance_core.spark.streaming import batches_into, query_id_of
from tests.spark.conftest import ENVIRONMENT, needs_format, needs_sources

pytestmark = pytest.mark.spark


def _feed(folder: Path, number: int) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / f"{number}.parquet"
    pq.write_table(pa.table({"id": pa.array(range(number * 10, number * 10 + 10), pa.int64())}), path)
    os.utime(path, (1_700_000_000 + number,) * 2)  # Spark takes files by their times, which may be equal


def _run(spark: Any, folder: Path, checkpoint: Path, write: Any) -> None:
    stream = spark.readStream.schema("id BIGINT").option("maxFilesPerTrigger", 1).parquet(str(folder))
    query = stream.writeStream.foreachBatch(write).option("checkpointLocation", str(checkpoint))
    query.trigger(availableNow=True).start().awaitTermination(120)


def _ids(uri: str) -> list[int]:
    return sorted(lance.dataset(uri).to_table()["id"].to_pylist())


def test_a_batch_lands_once_though_it_runs_again(formats: Any, tmp_path: Path) -> None:
    spark = formats
    uri, feed, checkpoint = str(tmp_path / "t.lance"), tmp_path / "feed", tmp_path / "checkpoint"
    write, seen = batches_into(uri), []

    def dies_after_the_commit(frame: Any, batch: int) -> None:
        write(frame, batch)
        seen.append(batch)
        if len(seen) == 2:
            raise RuntimeError("the driver is gone")

    for number in range(2):
        _feed(feed, number)
    with pytest.raises(Exception, match="the driver is gone"):
        _run(spark, feed, checkpoint, dies_after_the_commit)
    assert _ids(uri) == [*range(20)]
    _feed(feed, 2)
    _run(spark, feed, checkpoint, dies_after_the_commit)
    assert seen == [0, 1, 1, 2]
    assert (_ids(uri), lance.dataset(uri).version) == ([*range(30)], 3)


@pytest.mark.slow
@pytest.mark.parametrize("step", ["rows written", "committed"])
def test_a_query_that_is_killed_and_started_again(tmp_path: Path, step: str) -> None:
    uri, marker = str(tmp_path / "t.lance"), tmp_path / "killed"
    for number in range(3):
        _feed(tmp_path / "feed", number)
    arguments = [uri, str(tmp_path / "feed"), str(tmp_path / "checkpoint"), step, str(marker)]

    def run() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(Path(__file__).with_name("stream_driver.py")), *arguments]
        environment = {**os.environ, **ENVIRONMENT}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)

    killed = run()
    assert marker.exists(), killed.stderr[-3000:]
    assert killed.returncode == -signal.SIGKILL
    assert _ids(uri) == [*range(10 if step == "rows written" else 20)]
    again = run()
    assert again.returncode == 0, again.stderr[-3000:]
    table = lance.dataset(uri)
    table.validate()
    assert (_ids(uri), table.version) == ([*range(30)], 3)
    run_job(GarbageSpec(uri=uri))
    assert list_staged(resolve_store(uri)) == []
    used = {item.path for fragment in table.get_fragments() for item in fragment.metadata.files}
    assert {path.name for path in Path(uri, "data").glob("*.lance")} == used, "nothing of the killed batch is left"


def test_staged_only_and_onto_a_branch(formats: Any, tmp_path: Path) -> None:
    spark = formats
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"id": pa.array([1000], pa.int64())}), uri)
    run_job(BranchSpec(uri=uri, name="live"))
    frame = spark.createDataFrame([(1,), (2,)], "id BIGINT")
    batches_into(uri, query="q", options={"stageOnly": True})(frame, 0)
    assert lance.dataset(uri).version == 1
    result = run_job(CommitSpec(uri=uri, identities=(batch_identity(uri, "q", 0),)))
    assert (result.rows_added, _ids(uri)) == (2, [1, 2, 1000])
    batches_into(uri, query="other", options={"branch": "live"})(frame, 0)
    assert lance.dataset(uri).checkout_version(("live", None)).count_rows() == 3
    live = spark.read.format("lance").option("branch", "live").load(uri)
    assert sorted(row["id"] for row in live.collect()) == [1, 2, 1000]
    first = spark.read.format("lance").option("branch", "live").option("version", 1).load(uri)
    assert [row["id"] for row in first.collect()] == [1000]
    assert _ids(uri) == [1, 2, 1000]


def _commit_as_lance_spark(uri: str, query: str, epoch: int, ids: list[int]) -> None:
    """A batch as the sink of lance-spark leaves it: an append with two properties."""
    fragments = lance.fragment.write_fragments(
        pa.table({"id": pa.array(ids, pa.int64())}), uri, schema=lance.dataset(uri).schema
    )
    properties = {"lance.streaming.queryId": query, "lance.streaming.epochId": str(epoch)}
    version = lance.dataset(uri).version
    lance.LanceDataset.commit(
        uri, lance.Transaction(version, lance.LanceOperation.Append(fragments), transaction_properties=properties)
    )


@needs_format
def test_a_query_comes_from_the_sink_of_lance_spark(spark: Any, tmp_path: Path) -> None:
    """The batch that it committed last runs again here, from its checkpoint; and what we leave is what it looks for."""
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"id": pa.array([0], pa.int64())}), uri)
    for epoch in range(2):
        _commit_as_lance_spark(uri, "events", epoch, [10 + epoch])
    frame, write = spark.createDataFrame([(11,)], "id BIGINT"), batches_into(uri, query="events")
    write(frame, 1)
    assert (_ids(uri), lance.dataset(uri).version) == ([0, 10, 11], 3)
    write(spark.createDataFrame([(12,)], "id BIGINT"), 2)
    batches_into(uri, query="other")(spark.createDataFrame([(20,)], "id BIGINT"), 1)
    assert _ids(uri) == [0, 10, 11, 12, 20]
    theirs: Any = lance.dataset(uri).read_transaction(4)
    assert theirs.transaction_properties["lance.streaming.queryId"] == "events"
    assert theirs.transaction_properties["lance.streaming.epochId"] == "2"
    short = batches_into(uri, query="third", options={"lance.streaming.dedupe.lookback.versions": 1})
    _commit_as_lance_spark(uri, "third", 0, [30])
    lance.dataset(uri).update_config({"owner": "somebody"})
    short(spark.createDataFrame([(30,)], "id BIGINT"), 0)
    assert _ids(uri) == [0, 10, 11, 12, 20, 30, 30], "as with theirs: what is further back than it looks is not seen"


@needs_format
def test_the_last_batch_stands_in_the_configuration(spark: Any, tmp_path: Path) -> None:
    """Over versions of the official library, its overwrite, two batches in one version, and back with a restore."""
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"id": pa.array([0], pa.int64())}), uri)

    def last() -> list[str]:
        return [text for name, text in lance.dataset(uri).config().items() if name.startswith("lance_core.stream.")]

    staged = batches_into(uri, query="q", options={"stageOnly": True})
    for batch in (3, 2):
        staged(spark.createDataFrame([(10 + batch,)], "id BIGINT"), batch)
    run_job(CommitSpec(uri=uri, identities=tuple(batch_identity(uri, "q", number) for number in (3, 2))))
    assert (last(), lance.dataset(uri).version) == (["3"], 2)
    lance.write_dataset(pa.table({"id": pa.array([1], pa.int64())}), uri, mode="append")
    lance.write_dataset(pa.table({"id": pa.array([2], pa.int64())}), uri, mode="overwrite")
    assert last() == ["3"]
    batches_into(uri, query="q")(spark.createDataFrame([(14,)], "id BIGINT"), 4)
    assert (last(), _ids(uri)) == (["4"], [2, 14])
    lance.dataset(uri, version=1).restore()
    assert last() == []


def test_a_query_that_spark_does_not_name(spark: Any) -> None:
    with pytest.raises(InputError, match="Name the query"):
        query_id_of(spark)


@needs_sources
def test_the_python_source_is_no_sink(tmp_path: Path) -> None:
    from lance_core.spark.python_source import LanceSource

    with pytest.raises(InputError, match="foreachBatch"):
        LanceSource({"path": str(tmp_path)}).streamWriter(None, False)


def test_a_batch_without_a_query_is_refused() -> None:
    with pytest.raises(InputError, match="needs streamingQueryId"):
        batch_of(SourceOptions(uri="/t", batch=1))
