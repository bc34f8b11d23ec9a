"""Merge: the source's rows put into the table by key, as one Update; the upsert.

::

    main pass      the source's rows are put aside, each once, in files of the attempt        (Spark or local)
    second pass    a few fragments of the table per task: which of those rows match here?     -> deletion files, moved rows,
                   what matches is updated or deleted                                            numbers of the matched rows
    third pass     rows that matched nowhere                                                  -> new fragments
    together       one Update; the files put aside go before it is staged

A commit in between that touched the same rows, or that brought rows with the same keys, makes the commit stage this again.

Keys that several rows of a merge's source have, found once, on the driver, before such rows become new rows.

::

    on id    rows 0..3 with ids 7, 8, 7, null    superseded_rows -> [0]    refuse_repeated -> InputError: id = 7 (2 rows)

A null key matches nothing, so rows that have one are never repeated. Only the key columns are in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
import pyarrow as pa

from lance_core.arrays import Ints
from lance_core.arrow import schema_from_arrow, schema_to_arrow
from lance_core.arrow.buffers import numbers_of
from lance_core.arrow.shown import shown
from lance_core.arrow_numpy import arrow_of, no_rows, numpy_of, true_of
from lance_core.commit.identities import CREATES_PROPERTY
from lance_core.dataset.edit import merge_insert as verb
from lance_core.dataset.edit.key_lookup import plain_keys
from lance_core.dataset.scan.plan import LARGE_BATCH_ROWS
from lance_core.dataset.snapshot.snapshot import snapshot_of
from lance_core.dataset.write.stage import MAX_ROWS_PER_FILE, stage_fragments
from lance_core.errors import InputError, NotFoundError, UnsupportedFeatureError
from lance_core.expr import parse_filter
from lance_core.file.blob.external import KEEP, ExternalUris
from lance_core.format.fragment import Fragment
from lance_core.format.manifest import Manifest
from lance_core.format.schema import Schema
from lance_core.format.version import parse_storage_version
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.jobs.plans.assumptions import assumes_keys
from lance_core.jobs.plans.edit_fragments import count_taken, existing, group_fragments, part_of
from lance_core.jobs.plans.write_fragments import (
    BroughtColumns,
    Replaces,
    fragments_of,
    make_work,
    plan_columns,
    plan_new_contents,
    shape_of,
    size_of,
    storage_version,
)
from lance_core.jobs.runtime.lifecycle import SECOND_PASS
from lance_core.jobs.runtime.protocols import JobSource, Pass, Plan, Runner, StagedOperation, TableState, TaskResult, Work
from lance_core.jobs.runtime.spool import Spool
from lance_core.jobs.sources.conform import Conformer, check_schema
from lance_core.jobs.specs.merge import MergeSpec
from lance_core.pick import keep, take
from lance_core.publish.model import Attempt
from lance_core.shortage import ARROW_ERRORS
from lance_core.table.operations.update import Update
from lance_core.wire.fragments import decode_fragment, encode_fragment
from lance_core.wire.transaction import decode_transaction, encode_transaction

_THIRD_PASS = 2 * SECOND_PASS


@dataclass(frozen=True)
class MatchWork:
    """Finds what matches in the fragments of each task number, and changes it. Pickles."""

    spool: Spool
    attempt: str
    version: int
    groups: tuple[tuple[int, ...], ...]
    merge: verb.MergePlan
    schema: Schema | None = None
    superseded: bytes = field(default=b"", repr=False)

    def __call__(self, partition: int, task_attempt: str, batches: Iterator[pa.RecordBatch]) -> TaskResult:
        """Per group the transaction of its changes, and the numbers of the source's rows that matched (int64)."""
        store = resolve_store(self.spool.uri, self.spool.storage_options)
        numbers = _numbers(batches)
        source, kept = self._source(store) if numbers else (None, np.empty(0, np.int64))
        told: list[bytes] = []
        rows = size = 0
        for number in numbers:
            snapshot = snapshot_of(store, version=self.version, storage_options=self.spool.storage_options)
            if self.schema is not None:  # with the columns that the source adds, null in the rows that are there
                snapshot = replace(snapshot, manifest=replace(snapshot.manifest, schema=self.schema))
            part = part_of(snapshot, self.groups[number])
            edit, matched = verb.stage_merge_part(part, cast("pa.Table", source), self.merge, attempt=self.attempt)
            new: Sequence[Fragment] = edit.transaction.operation.new_fragments  # type: ignore[attr-defined]
            rows, size = rows + sum(item.physical_rows for item in new), size + sum(map(size_of, new))
            told += [encode_transaction(edit.transaction), kept[matched].astype("<i8").tobytes()]
        return TaskResult(SECOND_PASS + partition, task_attempt, rows, rows, size, tuple(told))

    def _source(self, store: Store) -> tuple[pa.Table, Ints]:
        """The rows that count, and their numbers."""
        source = self.spool.read(store)
        kept = np.setdiff1d(np.arange(source.num_rows), np.frombuffer(self.superseded, "<i8"))
        return source if len(kept) == source.num_rows else take(source, arrow_of(kept)), kept


@dataclass(frozen=True)
class InsertWork:
    """Writes the rows of each fragment that was put aside, without those that `matched` or do not count. Pickles."""

    spool: Spool
    attempt: str
    schema: Schema
    target: pa.Schema
    starts: tuple[int, ...]
    matched: bytes = field(repr=False)
    max_rows_per_file: int
    max_bytes_per_file: int | None

    def __call__(self, partition: int, task_attempt: str, batches: Iterator[pa.RecordBatch]) -> TaskResult:
        """New fragments, with nulls where the source has no such column."""
        store = resolve_store(self.spool.uri, self.spool.storage_options)
        matched = np.frombuffer(self.matched, "<i8")
        fragments: list[Fragment] = []
        for number in _numbers(batches):
            rows = self.spool.read(store, only=number)
            offsets = matched - self.starts[number]
            mask = np.ones(rows.num_rows, np.bool_)
            mask[offsets[(offsets >= 0) & (offsets < rows.num_rows)]] = False
            left = keep(rows, arrow_of(mask))
            conformer = Conformer(self.target, uri=self.spool.uri)
            fragments += stage_fragments(
                store,
                conformer.stream(left.to_batches(max_chunksize=LARGE_BATCH_ROWS)),
                self.schema,
                attempt=self.attempt,
                version=parse_storage_version(self.spool.version),
                max_rows_per_file=self.max_rows_per_file,
                max_bytes_per_file=self.max_bytes_per_file,
                external=ExternalUris.of((), self.spool.storage_options),
            )
        rows_written = sum(item.physical_rows for item in fragments)
        return TaskResult(
            partition=_THIRD_PASS + partition,
            task_attempt=task_attempt,
            rows_read=rows_written,
            rows=rows_written,
            size=sum(map(size_of, fragments)),
            fragments=tuple(encode_fragment(item) for item in fragments),
        )


@dataclass(frozen=True)
class Merges:
    """Results of the second and third pass become one Update."""

    manifest: Manifest

    def __call__(self, results: Sequence[TaskResult]) -> StagedOperation:
        """New fragments: those of moved rows first, then those of inserted ones."""
        parts = [decode_transaction(data).operation for result in _second(results) for data in result.fragments[::2]]
        updates = [part for part in parts if isinstance(part, Update)]
        inserted = fragments_of([result for result in results if result.partition >= _THIRD_PASS])
        new = (*(fragment for part in updates for fragment in part.new_fragments), *inserted)
        operation = Update(
            removed_fragment_ids=tuple(number for part in updates for number in part.removed_fragment_ids),
            updated_fragments=tuple(fragment for part in updates for fragment in part.updated_fragments),
            new_fragments=new,
            fields_for_preserving_frag_bitmap=tuple(item.id for item in self.manifest.schema.fields),
        )
        taken = count_taken(self.manifest, operation.updated_fragments, operation.removed_fragment_ids)
        return StagedOperation(operation, sum(item.physical_rows for item in new), num_deleted=taken)


def plan_merge(spec: MergeSpec, table: TableState, runner: Runner) -> Plan:
    """Check source, keys and conditions. InputError, SchemaMismatchError, FilterError before anything is written."""
    if table.manifest is None and not spec.create:
        raise NotFoundError(
            f"there is no Lance table at {spec.uri}", uri=spec.uri, cure="Create it, or run with create=True."
        )
    types = None if table.manifest is None else schema_to_arrow(table.manifest.schema)
    source = runner.open_source(spec.source, table=types)
    _check_keys(spec, source.schema, where="the source")
    if table.manifest is None:
        contents = spec if spec.when_not_matched == "insert" else None
        if contents is None:
            raise NotFoundError(f"there is no Lance table at {spec.uri}, and this merge inserts nothing", uri=spec.uri)
        return _plan_table(spec, table, source, runner)
    return _plan_passes(spec, table, source, runner)


def _plan_table(spec: MergeSpec, table: TableState, source: JobSource, runner: Runner) -> Plan:
    """The table's first version. Rows are written where they stay, unless those that do not count must first be known."""
    properties = {**spec.properties, **assumes_keys(spec.on, all_rows=False), CREATES_PROPERTY: "append"}
    plan = plan_new_contents(spec, table, source, properties=properties)
    schema = cast("Replaces", plan.conclude).schema
    target = schema_to_arrow(schema)
    version = storage_version(spec, table)

    def spool_of(results: Sequence[TaskResult]) -> Spool:
        fragments = tuple(data for result in results if result.partition < SECOND_PASS for data in result.fragments)
        return Spool(spec.uri, spec.resolved_options(), schema, version.text, fragments)

    def check(attempt: Attempt, results: Sequence[TaskResult]) -> None:
        refuse_repeated(spool_of(results), table.store, spec.on, matched=np.empty(0, np.int64))

    def insert(attempt: Attempt, results: Sequence[TaskResult]) -> tuple[JobSource, Work] | None:
        spool = spool_of(results)
        dropped = superseded_rows(spool, table.store, spec.on).astype("<i8").tobytes()
        return _insertion(spec, spool, attempt, runner, schema=schema, target=target, dropped=dropped)

    if spec.when_duplicate == "fail":
        return replace(plan, then=(Pass(check),))
    kept = plan.conclude

    def conclude(results: Sequence[TaskResult]) -> StagedOperation:
        return kept([result for result in results if result.partition >= _THIRD_PASS])

    def spool_rows(attempt: Attempt) -> Work:
        return make_work(spec, attempt, schema=schema, target=target, version=version, external=KEEP)

    return replace(plan, make_work=spool_rows, conclude=conclude, then=(Pass(insert),), spools=True)


def _insertion(
    spec: MergeSpec, spool: Spool, attempt: Attempt, runner: Runner, *, schema: Schema, target: pa.Schema, dropped: bytes
) -> tuple[JobSource, Work] | None:
    """The pass that writes the rows put aside but the `dropped` ones."""
    if not spool.fragments:
        return None
    work = InsertWork(
        spool=spool,
        attempt=attempt.attempt,
        schema=schema,
        target=target,
        starts=_starts(spool),
        matched=dropped,
        max_rows_per_file=spec.max_rows_per_file or MAX_ROWS_PER_FILE,
        max_bytes_per_file=spec.max_bytes_per_file,
    )
    return runner.open_tasks(len(spool.fragments)), work


def _plan_passes(spec: MergeSpec, table: TableState, source: JobSource, runner: Runner) -> Plan:
    snapshot = existing(table, spec)
    _check_keys(spec, snapshot.arrow_schema, where="the table")
    columns_added = plan_columns(snapshot.manifest, source.schema, drift=spec.schema_drift, operation="update", uri=spec.uri)
    _check_row_ids(spec, columns_added)
    manifest, target = columns_added.manifest, schema_to_arrow(columns_added.schema)
    snapshot = replace(snapshot, manifest=manifest)
    lacking = spec.schema_drift if spec.schema_drift in ("drop_extra", "fill_and_drop") else "fail"
    kept = [name for name in target.names if name in source.schema.names]
    columns = pa.schema([target.field(name) for name in kept])
    check_schema(source.schema, columns, drift=lacking, uri=spec.uri)
    if spec.when_not_matched == "insert":
        check_schema(source.schema, target, drift="fill_and_drop", uri=spec.uri)
    merge = verb_spec(spec)
    verb.stage_merge_part(part_of(snapshot, ()), no_rows(columns), merge)
    _check_condition(spec, columns, target)
    # The columns of the source as a small schema of their own, for the files it is put aside in.
    spooled = schema_from_arrow(columns, version=manifest.file_version)
    groups = group_fragments(manifest.fragments, rows=spec.rows_per_task)

    def spool_of(results: Sequence[TaskResult]) -> Spool:
        fragments = tuple(data for result in results if result.partition < SECOND_PASS for data in result.fragments)
        version = manifest.data_storage_version
        return Spool(spec.uri, spec.resolved_options(), spooled, version, fragments)

    def superseded(results: Sequence[TaskResult]) -> bytes:
        if spec.when_duplicate == "fail":
            return b""
        return superseded_rows(spool_of(results), table.store, spec.on).astype("<i8").tobytes()

    def match(attempt: Attempt, results: Sequence[TaskResult]) -> tuple[JobSource, Work] | None:
        schema = manifest.schema if columns_added.growth.columns else None
        if not groups:
            return None
        spool, ignored = spool_of(results), superseded(results)
        work = MatchWork(spool, attempt.attempt, attempt.read_version, groups, merge, schema, ignored)
        return runner.open_tasks(len(groups)), work

    def insert(attempt: Attempt, results: Sequence[TaskResult]) -> tuple[JobSource, Work] | None:
        spool = spool_of(results)
        if spec.when_not_matched != "insert" or not spool.fragments:
            return None
        matched = _matched(results)
        if spec.when_duplicate == "fail":
            refuse_repeated(spool, table.store, spec.on, matched=np.frombuffer(matched, "<i8"))
        dropped = matched + superseded(results)
        return _insertion(spec, spool, attempt, runner, schema=manifest.schema, target=target, dropped=dropped)

    return Plan(
        table=table,
        source=source,
        shape=shape_of(spec),
        make_work=lambda attempt: make_work(
            spec,
            attempt,
            schema=spooled,
            target=schema_to_arrow(spooled),
            version=manifest.file_version,
            external=KEEP,  # the files put aside are read again, and judged, by the tasks that insert
        ),
        conclude=columns_added.conclude(Merges(manifest)),
        properties={
            **spec.properties,
            **columns_added.properties(),
            **assumes_keys(spec.on, all_rows=spec.when_not_matched_by_source == "delete"),
        },
        then=(Pass(match), Pass(insert)),
        spools=True,
    )


def verb_spec(spec: MergeSpec) -> verb.MergePlan:
    """The dataset's words for a spec, without insertion, which is a separate pass."""
    missing = spec.when_not_matched_by_source == "delete" and (spec.when_not_matched_by_source_condition or True)
    return verb.MergePlan(
        on=spec.on, matched=spec.when_matched, condition=spec.when_matched_condition, delete_missing=missing
    )


def _check_keys(spec: MergeSpec, schema: pa.Schema, *, where: str) -> None:
    for name in spec.on:
        if name not in schema.names:
            raise InputError(f"no column {name!r} in {where} to merge on", cure=f"Its columns: {', '.join(schema.names)}.")


def _check_row_ids(spec: MergeSpec, columns: BroughtColumns) -> None:
    if columns.growth.columns and columns.read.uses_stable_row_ids:
        raise UnsupportedFeatureError(
            f"the source brings column {columns.growth.columns[0]!r}, which a merge cannot add to a table with stable row "
            "ids: rows that it updates keep their ids, and the operation that adds columns gives new ones",
            uri=spec.uri,
            cure="Add the column first (add_columns), then merge.",
        )


def _check_condition(spec: MergeSpec, source: pa.Schema, target: pa.Schema) -> None:
    if spec.when_matched_condition is not None:
        sides = [pa.field("source", pa.struct([*source])), pa.field("target", pa.struct([*target]))]
        parse_filter(spec.when_matched_condition, pa.schema(sides))


def _numbers(batches: Iterator[pa.RecordBatch]) -> list[int]:
    return [number for batch in batches for number in numbers_of(batch.column("id"))]


def _second(results: Sequence[TaskResult]) -> list[TaskResult]:
    return [result for result in results if SECOND_PASS <= result.partition < _THIRD_PASS]


def _starts(spool: Spool) -> tuple[int, ...]:
    counts = [decode_fragment(data).physical_rows for data in spool.fragments]
    return tuple(np.cumsum([0, *counts[:-1]]).tolist())


def _matched(results: Sequence[TaskResult]) -> bytes:
    parts = [np.frombuffer(data, "<i8") for result in _second(results) for data in result.fragments[1::2]]
    return np.unique(np.concatenate(parts)).tobytes() if parts else b""


_ROW = "__source_row"
_NAMED = 3
"""Keys that an error names at most."""


def superseded_rows(spool: Spool, store: Store, on: Sequence[str]) -> Ints:
    """Numbers of the rows whose key a later row has as well, ascending."""
    keys = _keys(spool, store, on)
    return np.setdiff1d(_rows(keys), _rows(_groups(keys, on), f"{_ROW}_max"))


def refuse_repeated(spool: Spool, store: Store, on: Sequence[str], *, matched: Ints) -> None:
    """InputError where rows that match nothing, and so would be inserted, have the same key."""
    keys = _keys(spool, store, on)
    left = keys.filter(arrow_of(~np.isin(_rows(keys), matched)))
    groups = _groups(left, on)
    counts = _rows(groups, f"{_ROW}_count")
    repeated = groups.filter(arrow_of(counts > 1)).sort_by(f"{_ROW}_max")
    if not repeated.num_rows:
        return
    named = "; ".join(_named(repeated, at, on) for at in range(min(repeated.num_rows, _NAMED)))
    others = repeated.num_rows - _NAMED
    more = f"; and {others} more {'key' if others == 1 else 'keys'}" if others > 0 else ""
    raise InputError(
        f"several new rows of the source have the same key: {named}{more}",
        uri=spool.uri,
        cure='Keep one row per key in the source, or pass when_duplicate="last" to keep the row that is read last.',
    )


def _named(groups: pa.Table, at: int, on: Sequence[str]) -> str:
    key = ", ".join(f"{name} = {shown(groups.column(name)[at])}" for name in on)
    return f"{key} ({groups.column(f'{_ROW}_count')[at].as_py()} rows)"


def _keys(spool: Spool, store: Store, on: Sequence[str]) -> pa.Table:
    """The keys without null of all rows, and the rows' numbers."""
    keys = plain_keys(spool.read(store, columns=on))
    keys = keys.append_column(_ROW, arrow_of(np.arange(keys.num_rows)))
    for name in on:
        keys = keys.filter(arrow_of(true_of(keys.column(name).is_valid())))
    return keys


def _groups(keys: pa.Table, on: Sequence[str]) -> pa.Table:
    try:
        return keys.group_by([*on]).aggregate([(_ROW, "max"), (_ROW, "count")])
    except ARROW_ERRORS as error:
        raise InputError(
            f"cannot merge on {', '.join(on)}: {error}", cure="Name key columns of numbers, text or dates."
        ) from error


def _rows(table: pa.Table, name: str = _ROW) -> Ints:
    found: Ints = numpy_of(table.column(name)).astype(np.int64)
    return found
