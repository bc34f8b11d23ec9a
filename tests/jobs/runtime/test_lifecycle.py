"""Staging jobs without Spark: once per identity, nothing visible before the commit, nothing left after a failure."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lance_core.arrow import schema_from_arrow
from lance_core.commit import naming
from lance_core.errors import InputError, LanceError, NotFoundError, RetryableConflictError, SchemaMismatchError
from lance_core.format.version import DEFAULT_VERSION
from lance_core.io.resolve import resolve_store
from lance_core.jobs.plans.write_fragments import make_work
from lance_core.jobs.run import run_job, run_json
from lance_core.jobs.runtime.lifecycle import find_done, work_of
from lance_core.jobs.runtime.local_runner import LocalRunner
from lance_core.jobs.runtime.progress import PROGRESS, ProgressReport, clear_progress, read_progress
from lance_core.jobs.runtime.protocols import TaskResult
from lance_core.jobs.specs.identity import make_identity
from lance_core.jobs.specs.secret import Secret
from lance_core.jobs.specs.spec import AppendSpec, CommitSpec, OverwriteSpec, SourceSpec
from lance_core.publish.abort import abort_attempt
from lance_core.publish.attempts import list_staged
from lance_core.publish.stage import begin_attempt, find_staged, finish_attempt
from lance_core.table.operations.append import Append
from lance_core.table.transaction import Transaction


def make_table(start: int = 0, num_rows: int = 100, **columns: str) -> pa.Table:
    table = pa.table({"id": pa.array(range(start, start + num_rows), pa.int64())})
    return table.append_column("name", pa.array([None if i % 7 == 0 else f"n{i}" for i in range(start, start + num_rows)]))


def fail_midway(rows: int = 100):
    def batches():
        yield make_table(0, rows).to_batches()[0]
        raise OSError("the network is gone")

    return pa.RecordBatchReader.from_batches(make_table(0, 1).schema, batches())


def make_nulls() -> pa.Table:
    return pa.table({"id": pa.array([1, None], pa.int64()), "name": ["a", "b"]})


def make_vectors() -> pa.Table:
    return pa.table({"id": [1, 2], "v": pa.array([[1.0, 2.0], None], pa.list_(pa.float64()))})


def source(name: str = "make_table", **kwargs: object) -> SourceSpec:
    return SourceSpec(callable=f"{__name__}:{name}", kwargs=kwargs)


def identity(uri: str, key: str) -> str:
    return make_identity(uri, dag_id="d", run_id="r", task_id="t", key=key)


def append(uri: str, key: str, **fields: object) -> AppendSpec:
    return AppendSpec(uri=uri, identity=identity(uri, key), **{"source": source(), **fields})


def commit(uri: str, *staged: object) -> dict:
    return run_job(CommitSpec.of(staged, uri=uri)).to_dict()


def files(uri: str) -> set[str]:
    """All but decisions: that a try was aborted stays on record until records are folded."""
    root = Path(uri)
    found = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    return {name for name in found if not name.startswith("_lance_core/decisions/")}


def data_files(uri: str) -> set[str]:
    return {name for name in files(uri) if name.startswith("data/")}


@pytest.fixture
def uri(tmp_path) -> str:
    return str(tmp_path / "t.lance")


def test_append_creates_then_adds(uri: str) -> None:
    first = run_job(append(uri, "1"))
    assert (first.num_rows, first.read_version, first.creates) == (100, 0, True)
    assert not Path(uri, "_versions").exists()
    assert commit(uri, first)["version"] == 1
    second = run_job(append(uri, "2", source=source(start=100), max_rows_per_file=30))
    assert (second.num_rows, second.read_version) == (100, 1)
    result = commit(uri, second)
    assert (result["version"], result["rows_added"], result["fragments_added"]) == (2, 100, 4)
    table = lance.dataset(uri)
    table.validate()
    assert table.to_table().to_pydict() == pa.concat_tables([make_table(), make_table(100)]).to_pydict()
    assert [fragment.count_rows() for fragment in table.get_fragments()] == [100, 30, 30, 30, 10]


def test_the_same_identity_writes_once(uri: str) -> None:
    spec = append(uri, "1")
    first = run_job(spec)
    before = files(uri)
    assert run_job(spec) == first
    assert files(uri) == before
    assert commit(uri, first)["identities"] == {first.identity: "committed"}
    again = run_job(spec)
    assert again.identity == first.identity
    assert commit(uri, again)["identities"] == {first.identity: "already_committed"}
    assert lance.dataset(uri).count_rows() == 100
    assert len(data_files(uri)) == 1


def test_a_staged_write_whose_files_are_gone_is_staged_anew(uri: str) -> None:
    spec = append(uri, "1")
    run_job(spec)
    for name in data_files(uri):
        Path(uri, name).unlink()
    commit(uri, run_job(spec))
    assert lance.dataset(uri).to_table().num_rows == 100


def test_another_spec_under_the_same_identity_replaces_the_staged_one(uri: str) -> None:
    run_job(append(uri, "1"))
    second = run_job(append(uri, "1", source=source(num_rows=7)))
    assert second.num_rows == 7
    assert len(data_files(uri)) == 1
    commit(uri, second)
    assert lance.dataset(uri).count_rows() == 7


def test_two_first_appends_become_one_table(uri: str) -> None:
    staged = [run_job(append(uri, str(i), source=source(start=100 * i))) for i in range(3)]
    commit(uri, *staged)
    assert sorted(lance.dataset(uri).to_table()["id"].to_pylist()) == list(range(300))


def test_first_appends_that_were_staged_together_land_one_after_the_other(uri: str) -> None:
    staged = [run_job(append(uri, str(i), source=source(start=100 * i))) for i in range(3)]
    versions = [commit(uri, item)["version"] for item in staged]
    assert versions == [1, 2, 3]
    table = lance.dataset(uri)
    table.validate()
    assert sorted(table.to_table()["id"].to_pylist()) == list(range(300))


def test_a_zombie_yields_to_its_retry(uri: str) -> None:
    class Overtaken(LocalRunner):
        """While its task runs, a retry of the same work starts, runs and finishes."""

        def run(self, work, source, shape, on_tick):
            results = super().run(work, source, shape, on_tick)
            winners.append(run_job(append(uri, "1")))
            return results

    winners: list[object] = []
    assert [run_job(append(uri, "1"), runner=Overtaken())] == winners
    assert len(data_files(uri)) == 1
    commit(uri, *winners)
    assert lance.dataset(uri).to_table().to_pydict() == make_table().to_pydict()


def test_a_failing_source_leaves_nothing(uri: str) -> None:
    commit(uri, run_job(append(uri, "1")))
    before = files(uri)
    with pytest.raises(OSError, match="network is gone"):
        run_job(append(uri, "2", source=source("fail_midway")))
    assert files(uri) == before
    assert lance.dataset(uri).version == 1


def test_a_task_that_outlives_its_attempt_leaves_nothing(uri: str) -> None:
    """Spark aborts a write while other tasks of it are still ending: nobody would find what those write then."""
    store, spec, rows = resolve_store(uri), append(uri, "1"), make_table()
    attempt = begin_attempt(store, identity=spec.identity, spec=work_of(spec), read_version=0)
    work = make_work(spec, attempt, schema=schema_from_arrow(rows.schema), target=rows.schema, version=DEFAULT_VERSION)
    assert work(0, "0", iter(rows.to_batches())).rows == 100
    assert len(data_files(uri)) == 1
    abort_attempt(store, spec.identity, attempt.attempt)
    work(1, "1", iter(rows.to_batches()))
    assert data_files(uri) == set()
    with pytest.raises(RetryableConflictError, match="aborted while it ran"):
        finish_attempt(store, attempt, Transaction(0, spec.identity, Append(())), rows=0, bytes=0)


def test_files_of_a_dead_attempt_are_found_by_name(uri: str) -> None:
    store = resolve_store(uri)
    spec = append(uri, "1")
    dead = begin_attempt(store, identity=spec.identity, spec=work_of(spec), read_version=0)
    store.put(naming.data_path(naming.data_file_name(dead.attempt)), b"half a file")
    other = naming.data_path(naming.data_file_name(naming.new_attempt()))
    store.put(other, b"somebody else's")
    run_job(spec)
    assert other in data_files(uri)
    assert not [name for name in data_files(uri) if naming.is_of_attempt(name, dead.attempt)]
    assert [entry.state for entry in list_staged(store)] == ["finished"]


@pytest.mark.parametrize("moment", ["writing", "before finish", "after finish"])
def test_kill_nine_then_again(uri: str, moment: str) -> None:
    spec = append(uri, "1", max_rows_per_file=10)
    code = f"""
import os, signal, sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
import lance_core.jobs.runtime.lifecycle as stage, lance_core.jobs.plans.write_fragments as write
from lance_core.jobs.run import run_json
def die(*args, **kwargs): os.kill(os.getpid(), signal.SIGKILL)
moment = {moment!r}
if moment == "writing":
    report = write.ProgressReport.update
    write.ProgressReport.update = die
elif moment == "before finish":
    stage.finish_attempt = die
else:
    stage.clear_progress = die
run_json({spec.to_json()!r})
"""
    killed = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])})
    assert killed.returncode == -signal.SIGKILL
    assert files(uri)
    commit(uri, run_job(spec))
    table = lance.dataset(uri)
    assert table.to_table().to_pydict() == make_table().to_pydict()
    assert table.version == 1
    assert len(data_files(uri)) == 10


def test_refusals_leave_the_table_as_it_was(uri: str, tmp_path) -> None:
    strict = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())])
    lance.write_dataset(make_table().cast(strict), uri, data_storage_version="2.2")
    before = files(uri)
    with pytest.raises(SchemaMismatchError, match="'id' is not nullable but holds a null at row 1"):
        run_job(append(uri, "1", source=source("make_nulls")))
    with pytest.raises(SchemaMismatchError, match="'v' is in the source"):
        run_job(append(uri, "2", source=source("make_vectors")))
    with pytest.raises(InputError, match=r"/nowhere/x\.csv does not exist"):
        run_job(append(uri, "3", source=SourceSpec(format="csv", paths=("/nowhere/x.csv",))))
    with pytest.raises(InputError, match="unknown storage option"):
        run_job(append(uri, "4", storage_options={"regoin": Secret(value="x")}))
    with pytest.raises(InputError, match="has storage version"):
        run_job(append(uri, "5", data_storage_version="2.0"))
    assert files(uri) == before
    with pytest.raises(NotFoundError, match="no Lance table"):
        run_job(append(str(tmp_path / "none.lance"), "5", create=False))
    (tmp_path / "csvs").mkdir()
    (tmp_path / "csvs" / "a.csv").write_text("a")
    with pytest.raises(NotFoundError, match=r"not a Lance table and not empty \(it holds a.csv\)"):
        run_job(append(str(tmp_path / "csvs"), "6"))


def test_vectors_are_restored(uri: str) -> None:
    schema = pa.schema([("id", pa.int32()), ("v", pa.list_(pa.float32(), 2))])
    lance.write_dataset(pa.table({"id": [0], "v": [[0.5, 0.5]]}, schema=schema), uri)
    commit(uri, run_job(append(uri, "1", source=source("make_vectors"))))
    table = lance.dataset(uri)
    table.validate()
    assert table.schema == schema
    assert table.to_table()["v"].to_pylist() == [[0.5, 0.5], [1.0, 2.0], None]


def test_overwrite_replaces_schema_and_rows(uri: str) -> None:
    commit(uri, run_job(append(uri, "1")))
    spec = OverwriteSpec(uri=uri, identity=identity(uri, "o"), source=source("make_vectors"))
    staged = run_job(spec)
    assert (staged.operation, staged.read_version) == ("overwrite", 1)
    assert lance.dataset(uri).count_rows() == 100
    commit(uri, staged)
    table = lance.dataset(uri)
    table.validate()
    assert table.to_table().to_pydict() == make_vectors().to_pydict()
    assert lance.dataset(uri, version=1).count_rows() == 100


def test_overwrite_of_a_table_that_moved(uri: str) -> None:
    commit(uri, run_job(append(uri, "1")))
    strict = run_job(OverwriteSpec(uri=uri, identity=identity(uri, "o"), source=source(num_rows=5)))
    forced = run_job(OverwriteSpec(uri=uri, identity=identity(uri, "p"), source=source(num_rows=6), if_moved="overwrite"))
    commit(uri, run_job(append(uri, "2")))
    with pytest.raises(LanceError, match="moved") as caught:
        commit(uri, strict)
    assert not caught.value.retryable
    assert lance.dataset(uri).count_rows() == 200
    commit(uri, forced)
    assert lance.dataset(uri).count_rows() == 6


def test_counts_must_agree(uri: str) -> None:
    class Losing(LocalRunner):
        def run(self, work, source, shape, on_tick):
            (result,) = super().run(work, source, shape, on_tick)
            return [TaskResult(0, "0", result.rows_read + 1, result.rows, result.size, result.fragments)]

    with pytest.raises(LanceError, match="row counts differ"):
        run_job(append(uri, "1"), runner=Losing())
    assert not data_files(uri)


def test_files_and_formats(uri: str, tmp_path) -> None:
    import pyarrow.parquet

    pyarrow.parquet.write_table(make_table(), tmp_path / "a.parquet")
    spec = append(uri, "1", source=SourceSpec(format="parquet", paths=(str(tmp_path / "*.parquet"),)))
    staged = run_json(spec.to_json())
    commit(uri, staged)
    assert lance.dataset(uri).to_table().to_pydict() == make_table().to_pydict()


def test_nothing_to_append(uri: str) -> None:
    commit(uri, run_job(append(uri, "1", source=source(num_rows=0))))
    assert lance.dataset(uri).count_rows() == 0
    commit(uri, run_job(append(uri, "2", source=source(num_rows=0))))
    assert lance.dataset(uri).count_rows() == 0


def test_only_counted_tasks_leave_files(uri: str) -> None:
    class Speculating(LocalRunner):
        """Runs the one task twice and counts the second, as Spark may."""

        def run(self, work, source, shape, on_tick):
            work(0, "1", source.batches())
            return [work(0, "2", source.batches())]

    staged = run_job(append(uri, "1", max_rows_per_file=30), runner=Speculating())
    assert (staged.num_rows, len(data_files(uri))) == (100, 4)
    commit(uri, staged)
    table = lance.dataset(uri)
    table.validate()
    assert table.to_table().to_pydict() == make_table().to_pydict()


def test_secrets_stay_out_of_the_registry(uri: str) -> None:
    spec = append(uri, "1", storage_options={"region": Secret(value="hunter2")})
    run_job(spec)
    assert not [name for name in files(uri) if b"hunter2" in Path(uri, name).read_bytes()]
    # The same work with other options is the same work.
    assert find_done(resolve_store(uri), append(uri, "1")) is not None
    assert find_staged(resolve_store(uri), spec.identity, spec=work_of(spec)) is not None
    assert json.loads(spec.to_json())["storage_options"] == {"region": "hunter2"}


def test_progress_is_seen_by_the_driver(tmp_path) -> None:
    store = resolve_store(str(tmp_path))
    for partition, task, rows in [(0, "7", 10), (0, "9", 25), (1, "8", 5)]:
        report = ProgressReport(store, "0" * 16, partition=partition, task_attempt=task, seconds=0.0)
        report.update(rows // 2, 0, 0)
        report.update(rows, 1, 100)
    seen = read_progress(store, "0" * 16)
    assert (seen.tasks, seen.rows, seen.fragments, seen.size) == (2, 30, 2, 200)
    assert seen.line() == "30 rows, 2 fragments, 0.0 MiB from 2 tasks"
    clear_progress(store, "0" * 16)
    assert not list(store.list(f"{PROGRESS}/"))


def test_a_finished_job_leaves_no_progress(uri: str) -> None:
    run_job(append(uri, "1"))
    assert not [name for name in files(uri) if name.startswith(PROGRESS)]
