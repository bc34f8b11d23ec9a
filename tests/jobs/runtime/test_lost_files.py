"""Files that vanish under a running task: the task is told to run again, and nothing looks like a damaged table."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import NotFoundError, RetryableConflictError
from lance_core.io.resolve import resolve_store
from lance_core.jobs.run import run_job
from lance_core.jobs.runtime.lifecycle import clear_dead
from lance_core.jobs.specs.edits import AddColumnsSpec, UpdateSpec
from lance_core.jobs.specs.merge import MergeSpec
from lance_core.jobs.specs.spec import AppendSpec, CommitSpec, JobSpec, SourceSpec
from lance_core.publish.attempts import started_keys

IDENTITY = "4ae18f4f-fe67-484d-8082-df968f79a389"


def _table(ids: range) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "n": pa.array([0] * len(ids), pa.int64())})


def rows_while_replaced(uri: str) -> pa.RecordBatchReader:
    """Rows of a try that a further try takes for dead while it runs."""

    def batches() -> Iterator[pa.RecordBatch]:
        yield from _table(range(5, 15)).to_batches()
        assert started_keys(resolve_store(uri), IDENTITY)
        clear_dead(resolve_store(uri), IDENTITY)

    return pa.RecordBatchReader.from_batches(_table(range(1)).schema, batches())


def rows_while_pruned(uri: str) -> pa.Table:
    """Rows of a task whose version another library removes while it runs."""
    lance.write_dataset(_table(range(100)), uri, mode="overwrite")
    lance.dataset(uri).cleanup_old_versions(timedelta(0), delete_unverified=True)
    return _table(range(5, 15))


def doubled_while_replaced(batch: pa.RecordBatch, uri: str) -> pa.RecordBatch:
    """A column of a try that a further try takes for dead."""
    clear_dead(resolve_store(uri), IDENTITY)
    return pa.record_batch({"twice": pa.array([2 * value for value in batch["id"].to_pylist()], pa.int64())})


def _source(name: str, uri: str) -> SourceSpec:
    return SourceSpec(callable=f"{__name__}:{name}", kwargs={"uri": uri})


def _specs(uri: str) -> dict[str, JobSpec]:
    rows = _source("rows_while_replaced", uri)
    return {
        "append": AppendSpec(uri=uri, identity=IDENTITY, source=rows),
        "merge": MergeSpec(uri=uri, identity=IDENTITY, source=rows, on=("id",)),
        "add_columns": AddColumnsSpec(
            uri=uri,
            identity=IDENTITY,
            function=f"{__name__}:doubled_while_replaced",
            kwargs={"uri": uri},
            reads=("id",),
        ),
    }


@pytest.mark.parametrize("kind", ["append", "merge", "add_columns"])
def test_a_try_that_was_taken_for_dead_is_told_to_run_again(tmp_path: Path, kind: str) -> None:
    uri = str(tmp_path / "t.lance")
    lance_core.write_dataset(_table(range(10)), uri)
    with pytest.raises(RetryableConflictError, match="was aborted while it ran") as caught:
        run_job(_specs(uri)[kind])
    assert caught.value.uri == uri
    assert "again" in str(caught.value)
    assert lance_core.dataset(uri).version == 1


def test_a_task_whose_version_was_removed_is_told_to_run_again(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance_core.write_dataset(_table(range(10)), uri)
    spec = MergeSpec(uri=uri, identity=IDENTITY, source=_source("rows_while_pruned", uri), on=("id",))
    with pytest.raises(RetryableConflictError, match="a cleanup removed version 1 while attempt") as caught:
        run_job(spec)
    assert "keep versions for longer" in str(caught.value)
    lance_core.dataset(uri).validate()


def test_a_lost_file_of_a_version_that_is_there_is_not_hidden(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance_core.write_dataset(_table(range(10)), uri)
    next((tmp_path / "t.lance" / "data").iterdir()).unlink()
    with pytest.raises(NotFoundError, match=r"no object 'data/.*t\.lance") as caught:
        run_job(UpdateSpec(uri=uri, identity=IDENTITY, updates={"n": "n + 1"}))
    assert not caught.value.retryable


def test_the_next_run_finishes_the_work(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance_core.write_dataset(_table(range(10)), uri)
    with pytest.raises(RetryableConflictError):
        run_job(_specs(uri)["merge"])
    fixed = MergeSpec(uri=uri, identity=IDENTITY, source=SourceSpec(callable=f"{__name__}:rows"), on=("id",))
    run_job(CommitSpec.of([run_job(fixed)], uri=uri))
    assert sorted(lance.dataset(uri).to_table()["id"].to_pylist()) == [*range(15)]


def rows() -> pa.Table:
    """Rows of a try that nobody disturbs."""
    return _table(range(5, 15))
