"""The work of actors: the same calls that operators and the command line make."""

from __future__ import annotations

import datetime as dt
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import lance_core
from lance_core.arrow.buffers import numbers_of
from lance_core.errors import CommitStateUnknownError, LanceError
from lance_core.io.resolve import resolve_store
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.branches import PublishBranchSpec
from lance_core.jobs.specs.edits import (
    AddColumnsSpec,
    CompactSpec,
    DeleteSpec,
    MergeColumnFilesSpec,
    ReplaceWhereSpec,
    UpdateSpec,
)
from lance_core.jobs.specs.indices import BuildIndexSpec, OptimizeIndicesSpec
from lance_core.jobs.specs.maintenance import BranchSpec, CleanupSpec, GarbageSpec, RestoreSpec
from lance_core.jobs.specs.merge import MergeSpec
from lance_core.jobs.specs.spec import AppendSpec, CommitSpec, Drift, JobSpec, OverwriteSpec, SourceSpec
from lance_core.publish.abort import abort_attempt
from lance_core.publish.attempts import list_staged
from lance_core.publish.decisions import settle_by_hand
from lance_core.publish.folding import fold_ledger
from lance_core.publish.model import StagedTransaction
from lance_core.spark.options import SourceOptions
from lance_core.spark.stream_batch import batch_identity
from lance_core.spark.table_writer import TableWriter
from tests.simulation import outsider
from tests.simulation.model import (
    IdentityWork,
    appended,
    deleted,
    increased,
    merged,
    overwritten,
    replaced,
    rows_of_table,
    strictly,
    unchanged,
)
from tests.simulation.stores import URI
from tests.simulation.world import this_actor

HOUR = 3600.0
_NAMESPACE = uuid.UUID("5d7a0c0e-6a53-4b7e-9a55-5b1f7a0c2e11")


def identity_of(name: str) -> str:
    """The same in every run."""
    return str(uuid.uuid5(_NAMESPACE, name))


def source(ids: Sequence[int], value: int = 0) -> SourceSpec:
    """Rows of the serial model."""
    return SourceSpec(callable="tests.simulation.model:rows_of_table", kwargs={"ids": list(ids), "value": value})


def append_work(name: str, ids: Sequence[int], value: int = 0, *, drift: Drift = "fail") -> IdentityWork:
    """Adds rows."""
    spec = AppendSpec(uri=URI, source=source(ids, value), schema_drift=drift, identity=identity_of(name))
    return _work(name, spec, appended(ids, value))


def new_column_work(name: str, ids: Sequence[int], value: int = 0) -> IdentityWork:
    """Adds rows, and the column that they bring."""
    rows = SourceSpec(callable="tests.simulation.model:rows_with_column", kwargs={"ids": list(ids), "value": value})
    spec = AppendSpec(uri=URI, source=rows, schema_drift="fill_and_add", identity=identity_of(name))
    return _work(name, spec, appended(ids, value))


def batch_work(number: int, ids: Sequence[int]) -> IdentityWork:
    """A batch of a stream, which Spark runs again under its number whatever became of it."""
    options = SourceOptions(uri=URI, query="a query", batch=number, stage_only=True)

    def run() -> object:
        rows = rows_of_table(ids)
        writer = TableWriter(options, rows.schema, overwrite=False)
        writer.commit([writer.write(0, "0", iter(rows.to_batches()))])
        return None

    return IdentityWork(f"batch {number}", batch_identity(URI, "a query", number), (appended(ids),), run)


def delete_work(name: str, item: int) -> IdentityWork:
    """Deletes one row."""
    spec = DeleteSpec(uri=URI, predicate=f"id = {item}", identity=identity_of(name))
    return _work(name, spec, deleted(lambda number: number == item))


def update_work(name: str, item: int) -> IdentityWork:
    """Adds one to a row's value."""
    spec = UpdateSpec(uri=URI, updates={"value": "value + 1"}, where=f"id = {item}", identity=identity_of(name))
    return _work(name, spec, increased(lambda number: number == item))


def replace_work(name: str, low: int, ids: Sequence[int], value: int) -> IdentityWork:
    """Replaces the rows from `low` on."""
    spec = ReplaceWhereSpec(uri=URI, predicate=f"id >= {low}", source=source(ids, value), identity=identity_of(name))
    return _work(name, spec, replaced(lambda number: number >= low, ids, value))


def merge_work(name: str, ids: Sequence[int], value: int) -> IdentityWork:
    """Upserts by id."""
    spec = MergeSpec(uri=URI, on=("id",), source=source(ids, value), identity=identity_of(name))
    return _work(name, spec, merged(ids, value))


def overwrite_work(name: str, ids: Sequence[int]) -> IdentityWork:
    """Replaces the table."""
    spec = OverwriteSpec(uri=URI, source=source(ids), identity=identity_of(name), if_moved="overwrite")
    return _work(name, spec, overwritten(ids))


def strict_overwrite(name: str, ids: Sequence[int], *, over: Sequence[int], actor: str) -> IdentityWork:
    """Replaces the table if it still has the rows `over`; nobody stages it again once it is refused."""
    spec = OverwriteSpec(uri=URI, source=source(ids), identity=identity_of(name))
    return IdentityWork(name, spec.identity, (strictly(over, overwritten(ids)),), lambda: run_job(spec), actor=actor)


def compact_work(name: str) -> IdentityWork:
    """Rewrites small fragments."""
    return _work(name, CompactSpec(uri=URI, identity=identity_of(name), target_rows_per_fragment=1000), unchanged)


def merge_files_work(name: str) -> IdentityWork:
    """Merges column files."""
    return _work(name, MergeColumnFilesSpec(uri=URI, identity=identity_of(name), max_files_per_fragment=1), unchanged)


def index_work(name: str, *, column: str = "id") -> IdentityWork:
    """Builds an index."""
    spec = BuildIndexSpec(uri=URI, column=column, index_type="BTREE", name=f"by_{column}", identity=identity_of(name))
    return _work(name, spec, unchanged)


def optimize_work(name: str) -> IdentityWork:
    """Covers what no index covers yet."""
    return _work(name, OptimizeIndicesSpec(uri=URI, identity=identity_of(name)), unchanged)


def columns_work(name: str, *, column: str = "twice") -> IdentityWork:
    """Adds a column."""
    return _work(name, AddColumnsSpec(uri=URI, columns={column: "id * 2"}, identity=identity_of(name)), unchanged)


def branch_rows_work(name: str, ids: Sequence[int]) -> IdentityWork:
    """Brings the rows of a branch to the main line; the branch is made here."""
    lance_core.dataset(URI).create_branch(name).insert(rows_of_table(ids))
    return _work(name, PublishBranchSpec(uri=URI, branch=name, identity=identity_of(name)), appended(ids))


def _work(name: str, spec: JobSpec, change: Any) -> IdentityWork:
    return IdentityWork(name, spec.identity, (change,), lambda: run_job(spec))


def stage(*works: IdentityWork) -> list[StagedTransaction]:
    """Stage pieces of work, one after the other."""
    found = [work.stage() for work in works]
    return [item for item in found if isinstance(item, StagedTransaction)]


def commit(*works: IdentityWork, tries: int = 1) -> Callable[[], object]:
    """A commit task of these works; with more tries, its automatic retries of what may be retried."""

    def run() -> object:
        for attempt in range(tries):
            try:
                return run_job(CommitSpec(uri=URI, identities=tuple(work.identity for work in works)))
            except LanceError as error:
                if not error.retryable or attempt == tries - 1:
                    raise
        return None

    return run


def begin_table(*groups: Sequence[int]) -> None:
    """A table with a fragment, and a version, for each group of ids."""
    for number, ids in enumerate(groups):
        commit(_staged(append_work(f"base {number}", ids)))()


def _staged(work: IdentityWork) -> IdentityWork:
    work.stage()
    return work


@dataclass(frozen=True)
class Told:
    """An abort that ended well: of these attempts somebody was told that they are removed."""

    attempts: tuple[tuple[str, str], ...]


def abort(ref: StagedTransaction) -> Callable[[], object]:
    """Abort an attempt that was seen staged."""

    def run() -> object:
        abort_attempt(resolve_store(URI), ref.identity, ref.attempt)
        return Told(((ref.identity, ref.attempt),))

    return run


def abort_listed(work: IdentityWork) -> Callable[[], object]:
    """`lance staged abort`: every attempt of an identity that is listed now."""

    def run() -> object:
        store = resolve_store(URI)
        keys = [(entry.identity, entry.attempt) for entry in list_staged(store) if entry.identity == work.identity]
        for key in keys:
            abort_attempt(store, *key)
        return Told(tuple(keys))

    return run


def settle(work: IdentityWork, ids: Sequence[int]) -> Callable[[], object]:
    """A user who repeats a commit, and where nobody can say whether it landed looks at the rows and records the answer."""

    def run() -> object:
        try:
            return commit(work)()
        except CommitStateUnknownError:
            table = lance_core.dataset(URI)
        store = resolve_store(URI)
        if set(ids) <= set(numbers_of(table.to_table(columns=["id"])["id"])):
            settle_by_hand(store, work.identity, version=table.version)
            return None
        waiting = list_staged(store, identity=work.identity)
        return [abort_attempt(store, entry.identity, entry.attempt, certain=True) for entry in waiting]

    return run


def gc(*, hours_ahead: float = 0.0) -> Callable[[], object]:
    """Collect garbage, by a clock that may be ahead."""
    return skewed(lambda: run_job(GarbageSpec(uri=URI)), hours=hours_ahead)


def skewed(work: Callable[[], object], *, hours: float) -> Callable[[], object]:
    """The same on a machine whose clock is ahead."""

    def run() -> object:
        actor = this_actor()
        if actor is not None:
            actor.skew = hours * HOUR
        return work()

    return run


def cleanup() -> object:
    """Our cleanup, down to one version."""
    return run_job(CleanupSpec(uri=URI, retain_versions=1))


def fold_records() -> object:
    """The ledger's records into segments, however young they are."""
    return fold_ledger(resolve_store(URI), older_than=dt.timedelta(hours=-1))


def restore(version: int) -> Callable[[], object]:
    """An old version again, whatever came since."""
    return lambda: run_job(RestoreSpec(uri=URI, version=version, if_moved="overwrite", identity=identity_of("restore")))


def branch() -> object:
    """A branch at the newest version."""
    return run_job(BranchSpec(uri=URI, name="side", identity=identity_of("branch")))


def outside_append(ids: Sequence[int]) -> Callable[[], object]:
    """The outside writer adds rows."""
    return lambda: outsider.append(ids)


def outside_delete(item: int) -> Callable[[], object]:
    """The outside writer deletes a row."""
    return lambda: outsider.delete(item)


def outside_prune() -> None:
    """The outside writer removes old versions."""
    outsider.prune(resolve_store(URI), now=time.time())


def outside_prune_but(version: int) -> Callable[[], None]:
    """The same where an old version has a tag."""
    return lambda: outsider.prune(resolve_store(URI), now=time.time(), tagged=[version])


def in_turn(*steps: Callable[[], object]) -> Callable[[], object]:
    """One actor that does several things; what one refuses does not keep it from the next."""

    def run() -> object:
        refused: LanceError | None = None
        for step in steps:
            try:
                step()
            except LanceError as error:
                refused = error
        if refused is not None:
            raise refused
        return None

    return run
