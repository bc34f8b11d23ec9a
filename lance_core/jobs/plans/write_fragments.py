"""Shared by append and overwrite: write fragments, and turn the results into an operation.

One task, on any worker::

    batches of one partition -> Conformer -> stage_fragments -> TaskResult(fragments as wire bytes, counts)

Memory of a task is bounded by a batch and the writer's page buffers. Files carry the attempt's id in their names.
A task that outlives its attempt (Spark aborts a write while other tasks are still ending) takes its own files away again:
the abort looked for files before, and nobody would find them later.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from lance_core.arrow import ExactBatches
from lance_core.commit.references import fragment_paths
from lance_core.dataset.write.stage import MAX_ROWS_PER_FILE, stage_fragments
from lance_core.file.blob.external import BASES_ONLY, ExternalUris
from lance_core.format.fragment import Fragment
from lance_core.format.manifest import BasePath
from lance_core.format.schema import Schema
from lance_core.format.version import FileVersion
from lance_core.io.parallel import beside, each
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.jobs.runtime.progress import HERE, ProgressReport
from lance_core.jobs.runtime.protocols import Shape, TaskResult
from lance_core.jobs.sources.conform import Conformer
from lance_core.jobs.sources.row_predicate import satisfying
from lance_core.jobs.specs.edits import ReplaceWhereSpec
from lance_core.jobs.specs.spec import WriteSpec
from lance_core.publish.attempts import is_over
from lance_core.publish.model import Attempt
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
