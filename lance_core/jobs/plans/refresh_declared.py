"""Refresh declared columns: in this process, or in the tasks of an engine, which write files that the driver publishes.

::

    16 fragments that are not noted as fresh     -> tasks of about `rows_per_task` rows: read, call, write a file each
    their results                                -> one version; then the next 16
    all done                                     -> a record of what was done, and the identity counts as committed

Publishing is part of the job, as it is of a compaction in waves: a kill keeps what is published, and values that functions
gave are put aside as they come. The same identity does nothing twice.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrow.buffers import numbers_of
from lance_core.commit.identities import request_property
from lance_core.commit.naming import COLUMNS
from lance_core.computed.cache import CacheListing
from lance_core.computed.declaration import Declaration, find_declared
from lance_core.computed.fragments import DeclaredColumn, FailedRow, PassResult, RowCounts, declared_column
from lance_core.computed.functions import Load
from lance_core.computed.history import add_estimate, write_record
from lance_core.computed.limits import Meter, SpendingLimits
from lance_core.computed.models import models_of_process
from lance_core.computed.refresh import RefreshOptions, RefreshReport, refresh
from lance_core.computed.results import Results, is_waiting, remove_results
from lance_core.computed.workers import HereWorkers, LookedAt, Workers, WorkOptions, end_cache, results_of
from lance_core.dataset.snapshot.snapshot import Snapshot, open_snapshot, snapshot_of
from lance_core.errors import InputError
from lance_core.format.fragment import Fragment
from lance_core.format.fragments import FragmentList
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.jobs.declared_columns import loader, refreshed, work_options
from lance_core.jobs.gates.canary import make_canary
from lance_core.jobs.plans.edit_fragments import group_fragments
from lance_core.jobs.runtime.committed_work import after_clear
from lance_core.jobs.runtime.lifecycle import find_reference, note_nothing_to_do
from lance_core.jobs.runtime.protocols import Report, Runner, Shape, TaskResult
from lance_core.jobs.specs.columns import RefreshColumnsSpec
from lance_core.jobs.specs.identity import random_identity
from lance_core.jobs.specs.load_function import allowed_callables, load_function
from lance_core.jobs.specs.spec import JobSpec
from lance_core.publish.model import StagedTransaction
from lance_core.rowids.bitmap import decode_bitmap, encode_bitmap
from lance_core.wire.fragments import decode_fragment, encode_fragment

log = logging.getLogger(__name__)


def refresh_columns(spec: RefreshColumnsSpec, runner: Runner) -> StagedTransaction | Report:
    """Refresh once by identity; the reference to work that is published. A dry run's report says what it would be."""
    store = resolve_store(spec.uri, spec.resolved_options())
    if spec.dry_run:
        return Report(spec.kind, _estimate(store, spec))
    spec = after_clear(store, spec if spec.identity else spec.with_identity(random_identity()))
    done = find_reference(store, spec)
    if done is not None:
        return done
    refresh_as(spec, spec, runner)
    return note_nothing_to_do(store, spec)


def refresh_as(spec: JobSpec, refresh: RefreshColumnsSpec, runner: Runner) -> None:
    """Refresh as the work of a job, whose identity is to count as committed then."""
    store = resolve_store(refresh.uri, refresh.resolved_options())
    work = _work(refresh)
    workers: Workers = HereWorkers(loader(refresh.functions, held=runner.functions), work)
    if runner.name != "local":
        workers = _RunnerWorkers(refresh, work, runner)
    report = _refresh(refresh, work, workers)
    write_record(store, report, identity=spec.identity, task=task_of(refresh.asked))
    for line in report_lines(report.to_dict()):
        log.info("%s: %s", refresh.uri, line)


def task_of(asked: Mapping[str, Any]) -> str:
    """Who requested a refresh, as "dag/run/task"; "" for nobody that is known."""
    return "/".join(str(asked[name]) for name in ("dag_id", "run_id", "task_id") if asked.get(name))


def report_lines(report: Mapping[str, Any]) -> list[str]:
    """What a refresh did, a line for each column."""
    lines = []
    for name, counts in report["columns"].items():
        told = [f"{counts[key]:,} {word}" for key, word in _WORDS.items() if counts.get(key)]
        lines.append(f"column {name}: {', '.join(told) or 'no rows'}")
    if report.get("stopped"):
        lines.append(f"the budget of {report['stopped']} is used up: the rows that are left stay stale")
    return lines


_WORDS = {
    "fresh": "rows fresh", "new": "new", "changed": "changed", "failed": "failed before", "overwritten": "written over",
    "reused": "reused", "rows_given": "given to the function", "failed_now": "failed", "left": "left stale",
}  # fmt: skip


def _work(spec: RefreshColumnsSpec) -> WorkOptions:
    return work_options(
        dry_run=spec.dry_run,
        deep=spec.deep,
        retry_failed=spec.retry_failed,
        concurrency=spec.concurrency,
        calls_per_second=spec.calls_per_second,
    )


def _refresh(spec: RefreshColumnsSpec, work: WorkOptions, workers: Workers) -> RefreshReport:
    snapshot = open_snapshot(spec.uri, storage_options=spec.resolved_options())
    options = RefreshOptions(
        commit_every=spec.commit_every,
        deep=spec.deep,
        work=work,
        budget=SpendingLimits(spec.max_rows, spec.max_seconds, dict(spec.max_spent)),
        task=task_of(spec.asked),
        properties=request_property(spec.kind, spec.asked),
        canary=make_canary(spec.canary, spec.canary_fragments, spec.gates, refreshed(snapshot, spec.columns)),
    )
    return refresh(snapshot, [*spec.columns] or None, workers, options)


def _estimate(store: Store, spec: RefreshColumnsSpec) -> dict[str, Any]:
    """The report of a dry run, with what computing would cost at the price of the last refresh that told one."""
    report = _refresh(spec, _work(spec), HereWorkers(loader(spec.functions), _work(spec)))
    add_estimate(report, store)
    return {**report.to_dict(), "dry_run": True}


@dataclass(frozen=True)
class _RefreshWork:
    """What a task does: its groups of fragments, by number. Pickles."""

    uri: str
    storage_options: Mapping[str, str] = field(repr=False)
    version: int
    column: str
    groups: tuple[tuple[int, ...], ...]
    functions: tuple[str, ...]
    allowed: tuple[str, ...]
    options: WorkOptions
    budget: SpendingLimits
    canary: int = 0
    """Only so many rows are computed, and put aside; 0 for all, with files for them."""

    def __call__(self, partition: int, task_attempt: str, batches: Iterator[pa.RecordBatch]) -> TaskResult:
        """Look at the fragments whose numbers come in; a record for each in the result."""
        numbers = [number for batch in batches for number in numbers_of(batch.column("id"))]
        if not numbers:
            return TaskResult(partition, task_attempt, has_notes=False)
        store = resolve_store(self.uri, self.storage_options)
        snapshot = snapshot_of(store, version=self.version, storage_options=self.storage_options)
        schema = snapshot.manifest.schema
        column = declared_column(schema, find_declared(schema, self.column))
        here = FragmentList.of(snapshot.manifest.fragments)
        fragments = [here[number] for group in numbers for number in self.groups[group]]
        load = _loader(self.functions, self.allowed)
        workers = HereWorkers(load, self.options, models_of_process(), is_alone=False)
        meter = Meter(self.budget)
        found = list[LookedAt]()
        changed, paths, own = False, tuple[str, ...](), tuple[str, ...]()
        try:
            if self.canary:
                workers.try_first(snapshot, column, fragments, meter, self.canary)
            else:
                found += workers.look(snapshot, column, fragments, meter)
            paths, own = workers.result_paths, workers.own_paths
        finally:
            changed = workers.end_column(is_published=False)
        told = {
            "spent": meter.spent, "paths": [*paths], "own": [*own], "code_changed": changed,
            "calls": meter.calls, "rows": meter.rows,
        }  # fmt: skip
        rows = sum(fragment.physical_rows for fragment in fragments)
        return TaskResult(
            partition,
            task_attempt,
            rows_read=rows,
            rows=rows,
            size=sum(item.file.file_size_bytes or 0 for item in found if item.file is not None),
            fragments=(json.dumps(told).encode(), *map(_encode, found)),
            has_notes=False,
        )


def _loader(functions: Sequence[str], allowed: Sequence[str]) -> Load:
    """The loader of a task: `jobs.declared_columns.loader`, by the list that the driver has."""

    def load(name: str) -> Any:
        if name not in functions and not allowed:
            return loader(functions)(name)  # refuses it
        return load_function(name, allowed=allowed or allowed_callables())

    return load


class _RunnerWorkers:
    """Work in the tasks of an engine."""

    def __init__(self, spec: RefreshColumnsSpec, options: WorkOptions, runner: Runner) -> None:
        self._spec, self._options, self._runner = spec, options, runner
        self.at_once = spec.commit_every
        self._paths = set[str]()
        self._own = set[str]()
        self._store: Store | None = None
        self._caching: tuple[Declaration, pa.DataType] | None = None
        self._code_changed = False

    def look(
        self, snapshot: Snapshot, column: DeclaredColumn, fragments: Sequence[Fragment], meter: Meter
    ) -> Iterator[LookedAt]:
        """All of them at once."""
        chosen = fragments[: max(1, meter.allowed(len(fragments)))]
        groups = group_fragments(chosen, rows=self._spec.rows_per_task)
        here = {fragment.id: fragment for fragment in chosen}
        for data in self._run(snapshot, column, groups, meter):
            yield _decode(data, here)

    def try_first(
        self, snapshot: Snapshot, column: DeclaredColumn, fragments: Sequence[Fragment], meter: Meter, most: int
    ) -> Results:
        """In one task; SQL here."""
        if column.declaration.kind == "sql":
            return HereWorkers(loader(()), self._options).try_first(snapshot, column, fragments, meter, most)
        for _ in self._run(snapshot, column, (tuple(item.id for item in fragments),), meter, canary=most):
            pass
        declared, kind = column.declaration, snapshot.arrow_schema.field(column.value.name).type
        entries = list(snapshot.store.list(f"{COLUMNS}/{declared.id}/"))
        waiting, cached = [entry for entry in entries if is_waiting(entry)], CacheListing.of(entries)
        found = results_of(snapshot.store, declared, kind, waiting, cached)
        return found or Results(snapshot.store, declared.id, declared.identity, kind, waiting)

    def _run(
        self, snapshot: Snapshot, column: DeclaredColumn, groups: Sequence[Sequence[int]], meter: Meter, canary: int = 0
    ) -> Iterator[bytes]:
        """A task for each group of fragments; what they did with each fragment."""
        self._store, declared = snapshot.store, column.declaration
        if declared.cache_bytes:
            self._caching = declared, snapshot.arrow_schema.field(column.value.name).type
        work = _RefreshWork(
            uri=self._spec.uri,
            storage_options=self._spec.resolved_options(),
            version=snapshot.version,
            column=column.value.name,
            groups=tuple(map(tuple, groups)),
            functions=self._spec.functions,
            allowed=allowed_callables(),
            options=self._options,
            budget=meter.share(len(groups)),
            canary=canary,
        )
        shape = Shape(tick_seconds=self._spec.progress_seconds, title=f"refresh {column.value.name} of {self._spec.uri}")
        for result in self._runner.run(work, self._runner.open_tasks(len(groups)), shape, lambda: None):
            if not result.fragments:
                continue
            told = json.loads(result.fragments[0])
            self._paths.update(told["paths"])
            self._own.update(told["own"])
            self._code_changed = self._code_changed or told["code_changed"]
            meter.note(calls=told["calls"], rows=told["rows"], spent=told["spent"])
            yield from result.fragments[1:]

    def end_column(self, *, is_published: bool) -> bool:
        """The values that tasks put aside are removed where all are published; what they put into the cache is tidied."""
        changed, self._code_changed = self._code_changed, False
        if is_published and self._store is not None and self._caching is not None:
            end_cache(self._store, *self._caching, self._own)
        self._caching = None
        if is_published and self._store is not None:
            remove_results(self._store, sorted(self._paths))
            self._paths.clear()
            self._own.clear()
        return changed


def _encode(looked: LookedAt) -> bytes:
    """A line of JSON, and the new file in a fragment's message."""
    seen = looked.seen
    offsets = np.concatenate([*seen.written, np.zeros(0, np.int64)]).tolist()
    told = {
        "fragment": looked.fragment.id,
        "counts": asdict(seen.counts),
        "is_whole": seen.is_whole,
        "is_checked": seen.is_checked,
        "written": base64.b64encode(encode_bitmap(offsets)).decode(),
        "failed": [[row.offset, row.digest, row.error] for row in seen.failed],
        "kept_failed": seen.kept_failed,
    }
    file = b"" if looked.file is None else encode_fragment(replace(looked.fragment, files=(looked.file,)))
    return json.dumps(told).encode() + b"\n" + file


def _decode(data: bytes, fragments: Mapping[int, Fragment]) -> LookedAt:
    line, _, file = data.partition(b"\n")
    told = json.loads(line)
    fragment = fragments.get(told["fragment"])
    if fragment is None:
        raise InputError(f"a task reported fragment {told['fragment']}, which it was not given")
    written = np.array([*decode_bitmap(base64.b64decode(told["written"]))], np.int64)
    seen = PassResult(
        RowCounts(**told["counts"]),
        told["is_whole"],
        told["is_checked"],
        [written],
        [FailedRow(*row) for row in told["failed"]],
        told["kept_failed"],
    )
    return LookedAt(fragment, decode_fragment(file).files[0] if file else None, seen)
