"""What a job does once in its process: ask whether its work is done, and bring a batch into the table's types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lance_core.arrow import BatchCaster, cast, schema_from_arrow
from lance_core.dataset import dataset, write_dataset
from lance_core.errors import SchemaMismatchError
from lance_core.io.store import Store
from lance_core.jobs.run import run_job
from lance_core.jobs.runtime import lifecycle
from lance_core.jobs.sources import conform
from lance_core.jobs.specs.branches import PublishBranchSpec
from lance_core.jobs.specs.edits import (
    AddColumnsSpec,
    CompactSpec,
    DeleteSpec,
    MergeColumnFilesSpec,
    ReplaceWhereSpec,
    UpdateSpec,
)
from lance_core.jobs.specs.indices import OptimizeIndicesSpec
from lance_core.jobs.specs.merge import MergeSpec
from lance_core.jobs.specs.spec import AppendSpec, CommitSpec, JobSpec, OverwriteSpec, SourceSpec
from lance_core.publish.decisions import DecisionState
from lance_core.publish.model import StagedTransaction

BATCHES = 5
ROWS = 40
SCHEMA = pa.schema([
    pa.field("id", pa.int64(), nullable=False),
    pa.field("v", pa.list_(pa.field("item", pa.float32(), nullable=False))),
])  # fmt: skip


def batches(first: int = 0, kind: str = "int64") -> pa.RecordBatchReader:
    """Rows as a source has them: ids of any width."""
    schema = pa.schema([("id", kind), SCHEMA.field("v")])

    def each() -> Iterator[pa.RecordBatch]:
        for number in range(BATCHES):
            ids = range(first + number * ROWS, first + (number + 1) * ROWS)
            yield pa.record_batch([pa.array(ids, kind), pa.array([[float(i)] for i in ids], SCHEMA.field("v").type)], schema)

    return pa.RecordBatchReader.from_batches(schema, each())


def source(**kwargs: object) -> SourceSpec:
    return SourceSpec(callable=f"{__name__}:batches", kwargs=kwargs)


@pytest.fixture
def uri(tmp_path: Path) -> str:
    path = str(tmp_path / "t.lance")
    write_dataset(pa.Table.from_batches(batches(), batches().schema).cast(SCHEMA), path, max_rows_per_file=2 * ROWS)
    return path


def _counted(monkeypatch: pytest.MonkeyPatch, where: object, name: str, counts: Counter[str]) -> None:
    real: Callable[..., object] = getattr(where, name)

    def counting(*args: object, **kwargs: object) -> object:
        counts[name] += 1
        return real(*args, **kwargs)

    monkeypatch.setattr(where, name, counting)


@pytest.fixture
def casts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    counts: Counter[str] = Counter()
    _counted(monkeypatch, cast.BatchCaster, "cast", counts)
    _counted(monkeypatch, conform.Conformer, "apply", counts)
    return counts


@pytest.mark.parametrize("kind", ["int64", "int32"])
@pytest.mark.parametrize("existing", [True, False], ids=["append", "create"])
def test_an_appended_batch_is_cast_once(uri: str, casts: Counter[str], kind: str, existing: bool) -> None:
    where = uri if existing else f"{uri}.new"
    staged = run_job(AppendSpec(uri=where, identity="one", create=True, source=source(first=1000, kind=kind)))
    assert isinstance(staged, StagedTransaction) and staged.num_rows == BATCHES * ROWS
    assert casts == {"apply": BATCHES}
    run_job(CommitSpec(uri=where, identities=("one",)))
    assert dataset(where).count_rows("id >= 1000") == BATCHES * ROWS


def test_a_batch_that_replaces_rows_is_tested_and_cast_once(uri: str, casts: Counter[str]) -> None:
    run_job(ReplaceWhereSpec(uri=uri, identity="one", predicate="id >= 500", source=source(first=500)))
    assert casts == {"apply": BATCHES}


def test_a_batch_of_an_overwrite_is_cast_once(uri: str, casts: Counter[str]) -> None:
    run_job(OverwriteSpec(uri=uri, identity="one", source=source()))
    assert casts == {"apply": BATCHES}


def test_a_written_batch_is_cast_once_without_a_job(tmp_path: Path, casts: Counter[str]) -> None:
    table = pa.Table.from_batches(batches(), batches().schema).cast(SCHEMA)
    write_dataset(table.to_batches(max_chunksize=ROWS), str(tmp_path / "t.lance"), schema=SCHEMA, max_rows_per_file=10)
    assert casts == {"cast": BATCHES}


def test_a_null_is_still_found_with_its_row(uri: str) -> None:

    with pytest.raises(SchemaMismatchError, match="column 'id' is not nullable but holds a null at row 3"):
        run_job(AppendSpec(uri=uri, identity="one", source=SourceSpec(callable=f"{__name__}:null_at_three")))


def null_at_three() -> pa.Table:
    return pa.table({"id": pa.array([1, 2, 3, None], pa.int64()), "v": pa.array([[1.0]] * 4, SCHEMA.field("v").type)})


def test_exact_batches_of_another_schema_are_cast(tmp_path: Path) -> None:
    stream = cast.ExactBatches(pa.schema([("id", pa.int32())]), iter([pa.record_batch({"id": pa.array([1], pa.int32())})]))

    with pytest.raises(SchemaMismatchError, match="expected int64, got int32"):
        list(BatchCaster(schema_from_arrow(pa.schema([("id", pa.int64())]))).stream(stream))


_SPECS: dict[str, Callable[[str], JobSpec]] = {
    "append": lambda uri: AppendSpec(uri=uri, identity="one", source=source(first=1000)),
    "overwrite": lambda uri: OverwriteSpec(uri=uri, identity="one", source=source()),
    "replace_where": lambda uri: ReplaceWhereSpec(uri=uri, identity="one", predicate="id > 500", source=source(first=501)),
    "merge": lambda uri: MergeSpec(uri=uri, identity="one", on=("id",), when_matched="update", source=source(first=100)),
    "delete": lambda uri: DeleteSpec(uri=uri, identity="one", predicate="id < 7"),
    "update": lambda uri: UpdateSpec(uri=uri, identity="one", updates={"id": "id + 1"}, where="id > 190"),
    "add_columns": lambda uri: AddColumnsSpec(uri=uri, identity="one", columns={"twice": "id * 2"}),
    "compact": lambda uri: CompactSpec(uri=uri, identity="one"),
    "compact_in_waves": lambda uri: CompactSpec(uri=uri, identity="one", groups_per_commit=1),
    "compact_nothing": lambda uri: CompactSpec(uri=uri, identity="one", target_rows_per_fragment=10),
    "merge_files_nothing": lambda uri: MergeColumnFilesSpec(uri=uri, identity="one"),
    "optimize_nothing": lambda uri: OptimizeIndicesSpec(uri=uri, identity="one"),
    "publish_nothing": lambda uri: PublishBranchSpec(uri=uri, identity="one", branch="side"),
}


@pytest.mark.parametrize("name", _SPECS)
def test_a_job_asks_once_whether_its_work_is_done(uri: str, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    if name == "publish_nothing":
        dataset(uri).create_branch("side")
    asked: list[str] = []
    looked, found_done = lifecycle.last_of, lifecycle.find_done

    def counting(store: Store, identity: str) -> DecisionState | None:
        state = looked(store, identity)
        if state is None:  # else `find_done` goes on with it, and is counted
            asked.append(identity)
        return state

    def counting_done(store: Store, spec: JobSpec) -> lifecycle.Done | None:
        asked.append(spec.identity)
        return found_done(store, spec)

    monkeypatch.setattr(lifecycle, "last_of", counting)
    monkeypatch.setattr(lifecycle, "find_done", counting_done)
    first = run_job(_SPECS[name](uri))
    assert asked.count("one") == 1 and len(asked) == len(set(asked))  # a wave has an identity of its own
    asked.clear()
    again = run_job(_SPECS[name](uri))
    assert asked == ["one"]
    assert isinstance(first, StagedTransaction) and isinstance(again, StagedTransaction)
    assert again.identity == first.identity and again.transaction_path == first.transaction_path


@pytest.mark.parametrize("name", ["compact_nothing", "merge_files_nothing", "optimize_nothing", "publish_nothing"])
def test_a_job_without_work_reads_the_attempts_of_its_identity_once(
    uri: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    if name == "publish_nothing":
        dataset(uri).create_branch("side")
    listed: list[str] = []
    real = lifecycle.clear_before

    def counting(store: Store, spec: JobSpec, *, resumes: bool = False) -> object:
        listed.append(spec.identity)
        return real(store, spec, resumes=resumes)

    monkeypatch.setattr(lifecycle, "clear_before", counting)
    version = dataset(uri).version
    run_job(_SPECS[name](uri))
    assert listed == ["one"] and dataset(uri).version == version
