"""The writing half of the Spark source `lance`: tasks write fragments, the driver stages them and, unless told to only
stage, commits.

Spark calls writer, commit and abort in different Python processes; the writer is pickled from one to the next, so all
state is in plain fields. Spark also calls `abort` after a `commit` that failed: `abort_after` removes nothing that may be
in a version.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from lance_core.dataset.refs.branches import MAIN, TREE, check_branch_name
from lance_core.errors import InputError
from lance_core.io.resolve import resolve_store
from lance_core.jobs.registry import job_of, spec_from_plain
from lance_core.jobs.runtime.lifecycle import abort_after, clear_dead, close_attempt, find_done, look_at, open_attempt
from lance_core.jobs.runtime.protocols import TaskResult
from lance_core.jobs.sources.source_files import SourceFile
from lance_core.jobs.specs.identity import random_identity
from lance_core.jobs.specs.spec import AppendSpec, CommitSpec, OverwriteSpec
from lance_core.jobs.staging.append import plan_append
from lance_core.jobs.staging.overwrite import plan_overwrite
from lance_core.spark.options import SourceOptions
from lance_core.spark.types import arrow_schema

_UNSEEN_SECONDS = 7 * 24 * 3600.0
"""Spark runs the tasks itself and nobody looks on, so they need not say how far they are."""


@dataclass
class TaskMessage(WriterCommitMessage):
    """What a task sends to the driver: its result, None when the work was done before."""

    result: TaskResult | None


@dataclass(frozen=True)
class _Written:
    """A source of which only the columns are known: Spark hands the rows to `write`."""

    schema: pa.Schema
    strict_nullability: bool = False
    num_rows: int | None = None
    files: tuple[SourceFile, ...] = ()


class _Planner:
    """The runner's part that planning needs."""

    name = "spark source"

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def open_source(self, spec: Any) -> _Written:
        """The rows that Spark will pass."""
        return _Written(self._schema)

    def open_tasks(self, num_tasks: int) -> Any:  # pragma: no cover - a write has rows
        raise NotImplementedError

    def open_expressions(self, *_: Any) -> Any:  # pragma: no cover - a write computes nothing
        raise NotImplementedError

    def run(self, *_: Any) -> Any:  # pragma: no cover - Spark runs the tasks itself
        raise NotImplementedError


class LanceWriter(DataSourceArrowWriter):
    """Writes a DataFrame once. With an `identity`, a query that is run again adds nothing."""

    def __init__(self, options: SourceOptions, schema: Any, *, overwrite: bool) -> None:
        self._spec = spec_of(options, overwrite=overwrite)
        self._options = options
        store = self._store()
        self._done = find_done(store, self._spec)
        if self._done is not None:
            return
        clear_dead(store, self._spec.identity)
        table, planner = look_at(store, self._spec), _Planner(arrow_schema(schema))
        if isinstance(self._spec, OverwriteSpec):
            plan = plan_overwrite(self._spec, table, planner)
        else:
            plan = plan_append(self._spec, table, planner)
        self._attempt = open_attempt(self._spec, plan.table)
        self._work = plan.make_work(self._attempt)
        self._conclude, self._properties = plan.conclude, dict(plan.properties)

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """One task."""
        if self._done is not None:
            return TaskMessage(None)
        context = TaskContext.get()
        partition, task = (0, "0") if context is None else (context.partitionId(), str(context.taskAttemptId()))
        return TaskMessage(self._work(partition, task, iterator))

    def commit(self, messages: list[Any]) -> None:
        """Stage, and publish unless `stageOnly`."""
        store = self._store()
        if self._done is None:
            results = [message.result for message in messages if message is not None and message.result is not None]
            close_attempt(store, self._attempt, results, conclude=self._conclude, properties=self._properties)
        if self._options.stage_only or (self._done is not None and self._done.version is not None):
            return
        commit = CommitSpec(
            uri=self._spec.uri, storage_options=self._spec.storage_options, identities=(self._spec.identity,)
        )
        job_of(commit).run(commit, _Planner(pa.schema([])))

    def abort(self, messages: list[Any]) -> None:
        """Remove what the tasks wrote, when it certainly is in no version."""
        if self._done is None:
            abort_after(self._store(), self._attempt, InputError("Spark aborted the write"))

    def _store(self) -> Any:
        return resolve_store(table_of(self._options), self._options.storage)


def table_of(options: SourceOptions) -> str:
    """The place that is written: the table, or one of its branches."""
    if options.branch is None or options.branch == MAIN:
        return options.uri
    return f"{options.uri.rstrip('/')}/{TREE}/{check_branch_name(options.branch)}"


def spec_of(options: SourceOptions, *, overwrite: bool) -> AppendSpec | OverwriteSpec:
    """The job spec of a DataFrame write. InputError for an option value that no spec takes."""
    plain: dict[str, Any] = {
        "kind": "overwrite" if overwrite else "append",
        "uri": table_of(options),
        "storage_options": dict(options.storage),
        "identity": options.identity or random_identity(),
        # The rows are passed over by Spark; the name only says so in the attempt's record.
        "source": {"format": "dataframe"},
        "schema_drift": options.schema_drift,
        "progress_seconds": _UNSEEN_SECONDS,
    }
    for name in ("max_rows_per_file", "max_bytes_per_file", "data_storage_version"):
        if getattr(options, name) is not None:
            plain[name] = getattr(options, name)
    if options.former_identities:
        plain["former_identities"] = [*options.former_identities]
    if overwrite:
        plain["if_moved"] = options.if_moved
    spec = spec_from_plain(plain)
    assert isinstance(spec, (AppendSpec, OverwriteSpec))
    return spec
