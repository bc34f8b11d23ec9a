"""Writing a DataFrame by Spark's tasks, whichever way its rows take: tasks write fragments, the driver stages them and,
unless told to only stage, commits.

::

    writer = TableWriter(options, target, overwrite=False)      on the driver; `target` is the Arrow schema of the rows
    result = writer.write(partition, task, batches)             in a task
    writer.commit([result, ...]) or writer.abort()              on the driver

Writer, commit and abort may be called in different processes; the writer is pickled from one to the next, so all
state is in plain fields. Spark also calls `abort` after a `commit` that failed: `abort_after` removes nothing that may be
in a version. Nothing of PySpark is imported here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from lance_core.arrow import schema_to_arrow
from lance_core.commit.manifests import load_manifest
from lance_core.dataset.refs.branches import MAIN, TREE, check_branch_name
from lance_core.errors import CommitConflictError, InputError, RetryableConflictError, SchemaMismatchError
from lance_core.format.declared import is_filled_by_refresh
from lance_core.format.manifest import Manifest
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.jobs.kinds import carry_out, spec_from_plain
from lance_core.jobs.plans.append import plan_append
from lance_core.jobs.plans.assumptions import assumes_predicate
from lance_core.jobs.plans.delete import StageDelete
from lance_core.jobs.plans.edit_fragments import edit_work, group_fragments
from lance_core.jobs.plans.overwrite import plan_overwrite
from lance_core.jobs.plans.replace_where import plan_replace
from lance_core.jobs.runtime.lifecycle import (
    SECOND_PASS,
    Done,
    abort_after,
    clear_dead,
    close_attempt,
    find_done,
    look_at,
    on_tick_of,
    open_attempt,
)
from lance_core.jobs.runtime.local_runner import LocalRunner
from lance_core.jobs.runtime.protocols import Runner, Shape, TaskResult
from lance_core.jobs.sources.source_files import SourceFile
from lance_core.jobs.specs.edits import ReplaceWhereSpec
from lance_core.jobs.specs.identity import random_identity
from lance_core.jobs.specs.spec import AppendSpec, CommitSpec, JobSpec, OverwriteSpec
from lance_core.publish.abort import abort_attempt
from lance_core.publish.decisions import CommittedWork, look
from lance_core.publish.model import Attempt
from lance_core.publish.stage import committed_reference
from lance_core.spark.options import SourceOptions, refuse_search
from lance_core.spark.stream_batch import batch_identity, batch_of, version_of_lance_spark
from lance_core.table.stream_batches import StreamBatch

UNSEEN_SECONDS = 7 * 24 * 3600.0
"""Spark runs the tasks itself and nobody looks on, so they need not say how far they are."""


@dataclass(frozen=True)
class _Written:
    """A source of which only the columns are known: Spark hands the rows to `write`."""

    schema: pa.Schema
    strict_nullability: bool = False
    num_rows: int | None = None
    files: tuple[SourceFile, ...] = ()


class _Planner(Runner):
    """The runner's part that planning needs."""

    name = "spark source"

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def open_source(self, spec: Any, *, table: pa.Schema | None = None) -> _Written:
        """The rows that Spark will pass."""
        return _Written(self._schema)

    def open_tasks(self, num_tasks: int) -> Any:
        """Nothing: a second pass is made by `TableWriter.commit`, in a process that has no plan any more."""
        return None

    def open_expressions(self, *_: Any) -> Any:  # pragma: no cover - a write computes nothing
        raise NotImplementedError

    def run(self, *_: Any) -> Any:  # pragma: no cover - Spark runs the tasks itself
        raise NotImplementedError


class TableWriter:
    """Writes a DataFrame once. With an `identity`, a query that is run again adds nothing. `overwrite`: all rows, and the
    schema; `where`: the rows go that this filter selects, and the new ones must satisfy it. `read_version`: of the table
    when the rows were computed from it, so that the commit refuses when others have added or changed rows since."""

    def __init__(
        self,
        options: SourceOptions,
        target: pa.Schema,
        *,
        overwrite: bool,
        where: str | None = None,
        read_version: int | None = None,
    ) -> None:
        batch = batch_of(options)
        if batch is not None:
            options = replace(options, identity=batch_identity(options.uri, batch.query, batch.number))
        self._spec = spec_of(options, overwrite=overwrite, where=where)
        self._options = options
        store = self._store()
        self._done = find_done(store, self._spec)
        if self._done is not None:
            return
        clear_dead(store, self._spec.identity)
        table = look_at(store, self._spec)
        if read_version is not None:
            table = replace(table, manifest=load_manifest(store, read_version))
        if batch is not None:
            self._done = done_by_lance_spark(store, self._spec, batch, table.manifest, lookback=options.lookback)
            if self._done is not None:
                return
        self._refreshed = frozenset() if overwrite or table.manifest is None else filled_by_refresh(table.manifest)
        planner = _Planner(without_columns(target, self._refreshed))
        if isinstance(self._spec, OverwriteSpec):
            plan = plan_overwrite(self._spec, table, planner)
        elif isinstance(self._spec, ReplaceWhereSpec):
            plan = plan_replace(self._spec, table, planner)
        else:
            plan = plan_append(self._spec, table, planner)
        self._attempt = open_attempt(self._spec, plan.table)
        self._work = plan.make_work(self._attempt)
        self._conclude, self._properties = plan.conclude, dict(plan.properties)
        if batch is not None:
            self._properties |= batch.properties(self._spec.identity)
        if read_version is not None and not overwrite:
            self._properties |= assumes_predicate("TRUE")

    def write(self, partition: int, task: str, batches: Iterator[pa.RecordBatch]) -> TaskResult | None:
        """One task, by the number of its partition and a name of its try. None when the work was done before."""
        if self._done is not None:
            return None
        return self._work(partition, task, without_values(batches, self._refreshed, uri=self._spec.uri))

    def commit(self, results: Sequence[TaskResult | None], *, again: bool = False) -> None:
        """Stage, and publish unless `stageOnly`. `again`: who was asked first has died, at whatever step."""
        store = self._store()
        if self._done is None and not (again and is_staged(store, self._attempt)):
            known = [result for result in results if result is not None]
            known += self._replaced(store)
            attempt = replace(self._attempt, has_more=again)
            close_attempt(store, attempt, known, conclude=self._conclude, properties=self._properties)
        if self._options.stage_only or (self._done is not None and self._done.version is not None):
            return
        publish(self._spec, self._attempt.attempt if self._done is None else self._done.staged.attempt)

    def _replaced(self, store: Any) -> list[TaskResult]:
        """What becomes of the rows that `where` selects: found and deleted here, by the driver."""
        if not isinstance(self._spec, ReplaceWhereSpec) or not self._attempt.read_version:
            return []
        manifest = load_manifest(store, self._attempt.read_version)
        groups = group_fragments(manifest.fragments, rows=self._spec.rows_per_task)
        staging = StageDelete(self._spec.predicate)
        work = edit_work(
            self._spec,
            self._attempt,
            groups,
            staging,
            progress_seconds=self._spec.progress_seconds,
            first_partition=SECOND_PASS,
        )
        runner = LocalRunner()
        return [*runner.run(work, runner.open_tasks(len(groups)), Shape(), on_tick_of(store, self._attempt))]

    def abort(self) -> None:
        """Remove what the tasks wrote, when it certainly is in no version."""
        if self._done is None:
            abort_after(self._store(), self._attempt, InputError("Spark aborted the write"))

    def _store(self) -> Any:
        return resolve_store(table_of(self._options), self._options.storage)


def filled_by_refresh(manifest: Manifest) -> frozenset[str]:
    """The columns whose values come from a refresh. SQL has a null for each of them in every row, a source need not."""
    schema = schema_to_arrow(manifest.schema)
    return frozenset(field.name for field in schema if is_filled_by_refresh(field.metadata or {}))


def without_columns(schema: pa.Schema, names: frozenset[str]) -> pa.Schema:
    """The columns that a write brings."""
    return pa.schema([field for field in schema if field.name not in names])


def without_values(batches: Iterator[pa.RecordBatch], names: frozenset[str], *, uri: str) -> Iterator[pa.RecordBatch]:
    """Rows without the columns that a refresh fills. SchemaMismatchError for a value in one of them."""
    for batch in batches:
        given = [name for name in batch.schema.names if name in names]
        full = [name for name in given if batch.column(name).null_count < batch.num_rows]
        if full:
            raise SchemaMismatchError(
                f"column {full[0]!r} is declared, and its values come from refresh",
                uri=uri,
                cure="Write no value for it, or undeclare it first.",
            )
        yield batch.drop_columns(given) if given else batch


def table_of(options: SourceOptions) -> str:
    """The place that is written: the table, or one of its branches. InputError for a search."""
    refuse_search(options)
    if options.branch is None or options.branch == MAIN:
        return options.uri
    return f"{options.uri.rstrip('/')}/{TREE}/{check_branch_name(options.branch)}"


def done_by_lance_spark(
    store: Store, spec: JobSpec, batch: StreamBatch, manifest: Manifest | None, *, lookback: int
) -> Done | None:
    """A batch that lance-spark's sink has committed, before the stream came here."""
    version = version_of_lance_spark(store, batch, manifest, lookback=lookback)
    if version is None:
        return None
    work = CommittedWork(spec.identity, version, "")
    return Done(committed_reference(store.uri, work, operation=spec.kind), version)


def is_staged(store: Store, attempt: Attempt) -> bool:
    """Whether it is staged or committed, as a commit that was begun before may have left it."""
    state = look(store, attempt.identity)
    return state.is_finished(attempt.attempt) or state.committed is not None


def publish(spec: JobSpec, attempt: str) -> None:
    """Commit what an attempt staged under a spec's identity. What is refused is aborted: nobody else would commit it.

    RetryableConflictError where others made the statement's rows wrong.
    """
    commit = CommitSpec(uri=spec.uri, storage_options=spec.storage_options, identities=(spec.identity,))
    try:
        carry_out(commit, LocalRunner())
    except CommitConflictError as error:
        abort_attempt(resolve_store(spec.uri, spec.resolved_options()), spec.identity, attempt)
        if not isinstance(error, RetryableConflictError):
            raise
        raise RetryableConflictError(
            f"other writers changed {spec.uri} while the statement ran, so that its rows are no longer right",
            uri=spec.uri,
            cure="The rows of the table are as they were. Run the statement again.",
        ) from error


def asked_by_statement(options: SourceOptions, statement: str) -> dict[str, Any]:
    """Who asks for a write: nobody else commits it, unless it is only staged, to be committed by others."""
    return {} if options.stage_only else {"statement": statement}


def spec_of(
    options: SourceOptions, *, overwrite: bool, where: str | None = None
) -> AppendSpec | OverwriteSpec | ReplaceWhereSpec:
    """The job spec of a DataFrame write. InputError for an option value that no spec takes."""
    kind = "overwrite" if overwrite else "append" if where is None else "replace_where"
    plain: dict[str, Any] = {
        "kind": kind,
        "uri": table_of(options),
        "storage_options": dict(options.storage),
        "identity": options.identity or random_identity(),
        # The rows are passed over by Spark; the name only says so in the attempt's record.
        "source": {"format": "dataframe"},
        "schema_drift": options.schema_drift,
        "progress_seconds": UNSEEN_SECONDS,
        "asked": asked_by_statement(options, kind),
    }
    for name in ("max_rows_per_file", "max_bytes_per_file", "data_storage_version"):
        if getattr(options, name) is not None:
            plain[name] = getattr(options, name)
    if overwrite:
        plain["if_moved"] = options.if_moved
    if where is not None:
        plain["predicate"] = where
    if kind != "append":
        plain["allow_empty"] = options.allow_empty
    spec = spec_from_plain(plain)
    assert isinstance(spec, (AppendSpec, OverwriteSpec, ReplaceWhereSpec))
    return spec
