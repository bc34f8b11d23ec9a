"""Shared by append and overwrite: write fragments, and turn the results into an operation.

One task, on any worker::

    batches of one partition -> Conformer -> stage_fragments -> TaskResult(fragments as wire bytes, counts)

Memory of a task is bounded by a batch and the writer's page buffers. Files carry the attempt's id in their names.
A task that outlives its attempt (Spark aborts a write while other tasks are still ending) takes its own files away again:
the abort looked for files before, and nobody would find them later.

Rows of a source as new fragments of a table that exists, in its own schema and storage version.

What an append stages, and the first pass of a replacement.

Columns of a source that the table lacks, added in the version that brings their rows (`schema_drift="add_extra"`).

::

    table "id", "x"    source "id", "x", "country"   ->   a Merge: the column after the others, every fragment, the new rows
    rows that are there, and rows of sources without the column, read as null; no file of theirs is written again

What the job would stage otherwise (an Append, an Update) says what happens to the fragments.

New contents for a table: a schema taken from the source and all of its rows, as one Overwrite.

What an overwrite stages, and an append to a table that is not there yet.

A source without rows: an append of nothing makes no version; a replacement by nothing is refused unless it was meant.

An upstream that failed halfway gives an empty file as easily as an empty day does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from lance_core.arrow import ExactBatches, schema_from_arrow, schema_to_arrow
from lance_core.commit.references import fragment_paths
from lance_core.dataset.columns.column_files import FirstId, append_fields
from lance_core.dataset.write.stage import MAX_ROWS_PER_FILE, stage_fragments
from lance_core.errors import InputError, SchemaMismatchError, UnsupportedFeatureError
from lance_core.file.blob.external import BASES_ONLY, ExternalUris
from lance_core.format.fragment import Fragment
from lance_core.format.manifest import BasePath, Manifest
from lance_core.format.schema import Schema, contradiction
from lance_core.format.version import DEFAULT_VERSION, FileVersion, parse_storage_version
from lance_core.io.parallel import beside, each
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.jobs.runtime.lifecycle import NothingToDoError
from lance_core.jobs.runtime.progress import HERE, ProgressReport
from lance_core.jobs.runtime.protocols import JobSource, Pass, Plan, Shape, StagedOperation, TableState, TaskResult
from lance_core.jobs.sources.conform import Conformer, added_columns, check_schema, created_schema
from lance_core.jobs.sources.row_predicate import satisfying
from lance_core.jobs.specs.edits import ReplaceWhereSpec
from lance_core.jobs.specs.spec import AppendSpec, Drift, WriteSpec
from lance_core.publish.attempts import is_over
from lance_core.publish.model import Attempt
from lance_core.publish.staged_properties import Growth, next_fragment_id, numbered
from lance_core.table.field_ids import next_field_id
from lance_core.table.operations import Append, Merge, Update
from lance_core.table.operations.overwrite import Overwrite
from lance_core.wire.fragments import decode_fragment, encode_fragment

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WriteWork:
    """Writes one partition's rows as fragments of `schema` (whose Arrow form is `target`). Pickles."""

    uri: str
    storage_options: Mapping[str, str] = field(repr=False)
    attempt: str
    schema: Schema
    target: pa.Schema
    version: FileVersion
    max_rows_per_file: int
    max_bytes_per_file: int | None
    progress_seconds: float
    must_satisfy: str | None = None
    identity: str = ""
    external: ExternalUris = BASES_ONLY

    def __call__(self, partition: int, task_attempt: str, batches: Iterator[pa.RecordBatch]) -> TaskResult:
        """Write what there is; a partition without rows writes no file."""
        store = resolve_store(self.uri, self.storage_options)
        conformer = Conformer(self.target, uri=self.uri)
        report = ProgressReport(
            store, self.attempt, partition=partition, task_attempt=task_attempt, seconds=self.progress_seconds
        )
        fragments = stage_fragments(
            store,
            self._checked(conformer.stream(batches)),
            self.schema,
            attempt=self.attempt,
            version=self.version,
            max_rows_per_file=self.max_rows_per_file,
            max_bytes_per_file=self.max_bytes_per_file,
            progress=lambda done: report.update(done.rows, done.fragments, done.bytes),
            external=self.external,
        )
        result = TaskResult(
            partition=partition,
            task_attempt=task_attempt,
            rows_read=conformer.rows_seen,
            rows=sum(fragment.physical_rows for fragment in fragments),
            size=sum(size_of(fragment) for fragment in fragments),
            fragments=tuple(encode_fragment(fragment) for fragment in fragments),
        )
        if task_attempt == HERE:  # it does not outlive its driver, which is refused when it finishes
            report.finish(result.rows, len(fragments), result.size)
            return replace(result, has_notes=report.has_notes)
        with beside(store, lambda: report.finish(result.rows, len(fragments), result.size)):
            self._give_back_if_aborted(store, fragments)
        return result

    def _give_back_if_aborted(self, store: Store, fragments: Sequence[Fragment]) -> None:
        # Looked at after the files are there: an abort that marked the attempt earlier is seen here, a later one sees them.
        # The result still goes to the driver, which refuses to finish such an attempt or has the reference of its retry.
        # Should only the attempt's record be lost, the commit misses the files that are taken away here, and says so; a task
        # that outlived its driver would leave files that nobody finds.
        if not fragments or not self.identity or not is_over(store, self.identity, self.attempt):
            return
        each(store, [*fragment_paths(fragments)], lambda place, path: place.delete(path))
        log.warning("attempt %s of %s was aborted: the files that its task wrote are removed", self.attempt, self.identity)

    def _checked(self, batches: ExactBatches) -> ExactBatches:
        if self.must_satisfy is None:
            return batches
        return ExactBatches(batches.schema, satisfying(batches, self.must_satisfy, schema=self.target))


def make_work(
    spec: WriteSpec,
    attempt: Attempt,
    *,
    schema: Schema,
    target: pa.Schema,
    version: FileVersion,
    bases: Sequence[BasePath] = (),
    external: ExternalUris | None = None,
) -> WriteWork:
    """The work of a spec; storage options are revealed here, on the driver, and travel inside the pickled work only.

    `external` None: uris of blobs must be below the table's `bases`, unless a storage option allows others.
    """
    return WriteWork(
        uri=spec.uri,
        storage_options=spec.resolved_options(),
        attempt=attempt.attempt,
        schema=schema,
        target=target,
        version=version,
        max_rows_per_file=spec.max_rows_per_file or MAX_ROWS_PER_FILE,
        max_bytes_per_file=spec.max_bytes_per_file,
        progress_seconds=spec.progress_seconds,
        must_satisfy=spec.predicate if isinstance(spec, ReplaceWhereSpec) else None,
        identity=attempt.identity,
        external=ExternalUris.of(bases, spec.resolved_options()) if external is None else external,
    )


def shape_of(spec: WriteSpec) -> Shape:
    """How the spec wants its source cut."""
    return Shape(spec.num_partitions, spec.partitioning == "repartition", spec.progress_seconds, f"{spec.kind} {spec.uri}")


def fragments_of(results: Sequence[TaskResult]) -> tuple[Fragment, ...]:
    """The fragments that the counted tasks wrote, in the order of partitions."""
    return tuple(decode_fragment(data) for result in results for data in result.fragments)


def size_of(fragment: Fragment) -> int:
    """Bytes of a fragment's data files."""
    return sum(file.file_size_bytes or 0 for file in fragment.files)


def plan_new_rows(
    spec: AppendSpec | ReplaceWhereSpec,
    table: TableState,
    source: JobSource,
    manifest: Manifest,
    *,
    conclude: Callable[[Sequence[TaskResult]], StagedOperation],
    properties: Mapping[str, str],
    then: tuple[Pass, ...] = (),
) -> Plan:
    """Plan to write the source's rows. InputError or SchemaMismatchError when they do not fit the table of `manifest`."""
    version = manifest.file_version
    if spec.data_storage_version and parse_storage_version(spec.data_storage_version) != version:
        raise InputError(
            f"the table has storage version {manifest.data_storage_version}, not {spec.data_storage_version}",
            uri=spec.uri,
            cure="Omit data_storage_version; only an overwrite of the table changes it.",
        )
    operation = "update" if isinstance(spec, ReplaceWhereSpec) else "append"
    columns = plan_columns(manifest, source.schema, drift=spec.schema_drift, operation=operation, uri=spec.uri)
    schema, target = columns.schema, schema_to_arrow(columns.schema)
    check_schema(source.schema, target, drift=spec.schema_drift, uri=spec.uri)
    return Plan(
        table=table,
        source=source,
        shape=shape_of(spec),
        make_work=lambda attempt: make_work(
            spec, attempt, schema=schema, target=target, version=version, bases=manifest.base_paths
        ),
        conclude=columns.conclude(conclude),
        properties={**properties, **columns.properties()},
        then=then,
    )


Conclude = Callable[[Sequence[TaskResult]], StagedOperation]


@dataclass(frozen=True)
class BroughtColumns:
    """The version that was read, the schema that its table is to have, and what the transaction says about it."""

    read: Manifest
    schema: Schema
    growth: Growth

    @property
    def manifest(self) -> Manifest:
        """The version as if it had the new columns already: in all its rows they are null."""
        return replace(self.read, schema=self.schema)

    def properties(self) -> dict[str, str]:
        """The property of the transaction; empty when there are no new columns."""
        return self.growth.properties() if self.growth.columns else {}

    def conclude(self, inner: Conclude) -> Conclude:
        """What the results amount to, as one operation that adds the columns as well."""
        return Grows(inner, self) if self.growth.columns else inner


@dataclass(frozen=True)
class Grows:
    """The operation that the results amount to becomes a Merge."""

    inner: Conclude
    columns: BroughtColumns

    def __call__(self, results: Sequence[TaskResult]) -> StagedOperation:
        """The fragments of the version that was read, as the operation leaves them, then the new ones."""
        staged = self.inner(results)
        operation, read, new = staged.operation, self.columns.read, tuple[Fragment, ...]()
        kept: tuple[Fragment, ...] = tuple(read.fragments)
        if isinstance(operation, Append):
            new = tuple(operation.fragments)
        elif isinstance(operation, Update):
            changed, removed = {item.id: item for item in operation.updated_fragments}, {*operation.removed_fragment_ids}
            kept = tuple(changed.get(item.id, item) for item in kept if item.id not in removed)
            new = operation.new_fragments
        fragments = (*kept, *numbered(new, first=self.columns.growth.first_fragment))
        return replace(staged, operation=Merge(fragments, self.columns.schema, preserves_nullability=True))


def plan_columns(manifest: Manifest, source: pa.Schema, *, drift: Drift, operation: str, uri: str) -> BroughtColumns:
    """Which columns of a source are added to the table of `manifest` by rows that are staged as `operation` otherwise.

    InputError for a name that a table cannot have; UnsupportedFeatureError for a table whose files know no such columns.
    """
    added = added_columns(source, schema_to_arrow(manifest.schema), drift=drift)
    growth = Growth(tuple(added.names), next_fragment_id(manifest), operation)
    if not added.names:
        return BroughtColumns(manifest, manifest.schema, growth)
    if manifest.file_version.is_legacy:
        raise UnsupportedFeatureError(
            f"column {added.names[0]!r} cannot be added to a table of file version {manifest.file_version.text}, whose rows "
            "must have a value in every column",
            uri=uri,
            cure='Overwrite the table with a newer data_storage_version, or pass schema_drift="drop_extra".',
        )
    fields = schema_from_arrow(added, version=manifest.file_version)
    schema, _ = append_fields(manifest, fields, FirstId(next_field_id(manifest)))
    wrong = contradiction(schema.fields)
    if wrong:
        raise InputError(f"columns of the source cannot be added to the table: {wrong}", uri=uri, cure="Rename them there.")
    return BroughtColumns(manifest, schema, growth)


def grows_on_creation(source: pa.Schema, *, drift: Drift) -> dict[str, str]:
    """The property of rows that create the table, for the case that another writer creates it first with fewer columns."""
    names = added_columns(source, pa.schema([]), drift=drift).names
    return Growth(tuple(names), 0, "append").properties() if names else {}


@dataclass(frozen=True)
class Replaces:
    """Results become one Overwrite with this schema."""

    schema: Schema

    def __call__(self, results: Sequence[TaskResult]) -> StagedOperation:
        fragments = fragments_of(results)
        return StagedOperation(Overwrite(fragments, self.schema), sum(item.physical_rows for item in fragments))


def plan_new_contents(spec: WriteSpec, table: TableState, source: JobSource, *, properties: Mapping[str, str]) -> Plan:
    """An Overwrite by the source's rows. A source whose engine marks nullability by accident gives nullable columns.

    Raises InputError or SchemaMismatchError for columns that the format cannot hold.
    """
    found = source.schema
    if not found.names:
        raise SchemaMismatchError("the source has no columns", uri=spec.uri)
    version = storage_version(spec, table)
    schema = schema_from_arrow(found if source.strict_nullability else created_schema(found), version=version)
    target = schema_to_arrow(schema)
    check_schema(found, target, drift="fail", uri=spec.uri, is_new=True)

    return Plan(
        table=table,
        source=source,
        shape=shape_of(spec),
        make_work=lambda attempt: make_work(spec, attempt, schema=schema, target=target, version=version),
        conclude=Replaces(schema),
        properties=properties,
    )


def storage_version(spec: WriteSpec, table: TableState) -> FileVersion:
    """The file version that new contents are written in."""
    if spec.data_storage_version:
        return parse_storage_version(spec.data_storage_version)
    return DEFAULT_VERSION if table.manifest is None else table.manifest.file_version


@dataclass(frozen=True)
class RefusesNoRows:
    """What the results amount to, unless the source had no rows."""

    inner: Conclude
    kind: str
    uri: str

    def __call__(self, results: Sequence[TaskResult]) -> StagedOperation:
        """InputError for no rows; the table is as it was."""
        staged = self.inner(results)
        if not staged.num_rows:
            raise InputError(
                f"{self.kind}: the source has no rows, so rows of the table would go and none would take their place",
                uri=self.uri,
                cure="The table is as it was. Check the source, or pass allow_empty=True where no rows is the right answer.",
            )
        return staged


@dataclass(frozen=True)
class NothingWithoutRows:
    """What the results amount to; without rows the work is done, and makes no version."""

    inner: Conclude
    uri: str

    def __call__(self, results: Sequence[TaskResult]) -> StagedOperation:
        """NothingToDoError for no rows, before anything is finished."""
        staged = self.inner(results)
        if not staged.num_rows:
            log.info("append %s: the source has no rows, so there is no new version", self.uri)
            raise NothingToDoError
        return staged
