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
from lance_core.spark.streaming import batch_identity, batches_into, query_id_of
from tests.spark.conftest import ENVIRONMENT

pytestmark = pytest.mark.spark


def _feed(folder: Path, number: int) -> None:
    folder.mkdir(exist_ok=True)
    pq.write_table(
        pa.table({"id": pa.array(range(number * 10, number * 10 + 10), pa.int64())}), folder / f"{number}.parquet"
    )


def _run(spark: Any, folder: Path, checkpoint: Path, write: Any) -> None:
    stream = spark.readStream.schema("id BIGINT").option("maxFilesPerTrigger", 1).parquet(str(folder))
    query = stream.writeStream.foreachBatch(write).option("checkpointLocation", str(checkpoint))
    query.trigger(availableNow=True).start().awaitTermination(120)


def _ids(uri: str) -> list[int]:
    return sorted(lance.dataset(uri).to_table()["id"].to_pylist())


def test_a_batch_lands_once_though_it_runs_again(spark: Any, tmp_path: Path) -> None:
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


def test_staged_only_and_onto_a_branch(spark: Any, tmp_path: Path) -> None:
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


def test_what_cannot_be_is_told(spark: Any, tmp_path: Path) -> None:
    from lance_core.spark.source import LanceSource

    with pytest.raises(InputError, match="Name the query"):
        query_id_of(spark)
    with pytest.raises(InputError, match="foreachBatch"):
        LanceSource({"path": str(tmp_path)}).streamWriter(None, False)
