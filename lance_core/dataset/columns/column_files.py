"""New columns as new data files beside those a fragment has.

::

    fragment 3: a.lance (fields 0, 1)   +   b.lance (field 5)     same physical rows, deleted ones too
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from lance_core.arrow.storable import check_storable
from lance_core.commit.naming import data_file_name, data_path
from lance_core.dataset.columns.udf import Checkpoint
from lance_core.dataset.scan.plan import DEFAULT_BATCH_ROWS
from lance_core.dataset.scan.projection import needs_of
from lance_core.dataset.snapshot.fragment_reader import FragmentReader, reader_of
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import InputError, LanceError
from lance_core.file.writer import FileWriter, WrittenFile
from lance_core.format.fragment import DataFile, Fragment
from lance_core.format.manifest import Manifest
from lance_core.format.schema import NO_PARENT, Schema, unusable_name
from lance_core.io.threads import Threads
from lance_core.pages.rows import RowSelection

Compute = Callable[[pa.RecordBatch], pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class FirstId:
    """The id the first new field gets."""

    value: int


def append_fields(manifest: Manifest, added: Schema, first: FirstId) -> tuple[Schema, Schema]:
    """(the table's schema with new columns at its end, the new columns alone), with ids from `first` on.

    InputError for a name, and for a type that files of the table's version cannot hold beside the columns there are.
    """
    for item in added.top_level:
        if why := unusable_name(item.name):
            raise InputError(f"cannot add columns: {why}", cure="Rename it.")
    shifted = tuple(
        replace(
            item,
            id=item.id + first.value,
            parent_id=NO_PARENT if item.parent_id == NO_PARENT else item.parent_id + first.value,
        )
        for item in added.fields
    )
    schema = replace(manifest.schema, fields=manifest.schema.fields + shifted)
    check_storable(schema, manifest.file_version, before=manifest.schema)
    return schema, Schema(shifted)


def add_files(
    snapshot: Snapshot,
    part: Schema,
    *,
    reads: Sequence[str],
    compute: Compute,
    batch_size: int | None = None,
    attempt: str | None = None,
    checkpoint: Checkpoint | None = None,
) -> tuple[tuple[Fragment, ...], tuple[str, ...]]:
    """Write the columns `part` for every fragment; all fragments with their new file, and the paths written.

    When anything fails the files written so far are removed, unless a `checkpoint` remembers them: the next try goes on.
    """
    fragments = tuple(snapshot.manifest.fragments)
    options: dict[str, Any] = {"reads": reads, "batch_size": batch_size, "attempt": attempt}
    if checkpoint is None:
        files = _write_all(snapshot, fragments, part, compute=compute, **options)
    else:
        files = []
        for fragment in fragments:
            file = checkpoint.finished(snapshot.store, fragment, part)
            if file is None:
                remembering = checkpoint.remembering(fragment, compute)
                file = write_column_file(reader_of(snapshot, fragment), part, compute=remembering, **options)
            checkpoint.finish(fragment, file)
            files.append(file)
    added = zip(fragments, files, strict=True)
    paths = () if checkpoint is not None else tuple(data_path(file.path) for file in files)
    return tuple(replace(fragment, files=(*fragment.files, file)) for fragment, file in added), paths


def _write_all(snapshot: Snapshot, fragments: Sequence[Fragment], part: Schema, **options: Any) -> list[DataFile]:
    """A file for each. It is finished (last pages, sync) in a thread of its own while the next one is computed."""
    files: list[DataFile] = []
    written: list[str] = []
    finishing: Future[WrittenFile] | None = None
    with Threads(max_workers=1, thread_name_prefix="lance-finish") as thread:
        try:
            for fragment in fragments:
                writer = _filled(reader_of(snapshot, fragment), part, **options)
                written.append(writer.path)
                last, finishing = finishing, thread.submit(_finish, writer)
                if last is not None:
                    files.append(last.result().data_file)
            if finishing is not None:
                files.append(finishing.result().data_file)
        except BaseException:
            thread.shutdown()
            for path in written:
                with suppress(LanceError, OSError):
                    snapshot.store.delete(path)
            raise
    return files


def write_column_file(
    reader: FragmentReader,
    part: Schema,
    *,
    reads: Sequence[str],
    compute: Compute,
    batch_size: int | None = None,
    attempt: str | None = None,
) -> DataFile:
    """Compute the columns `part` for every physical row of a fragment and write them as a data file."""
    writer = _filled(reader, part, reads=reads, compute=compute, batch_size=batch_size, attempt=attempt)
    return _finish(writer).data_file


def write_same_columns(
    reader: FragmentReader, part: Schema, *, batch_size: int | None = None, attempt: str | None = None
) -> DataFile:
    """Write columns that a fragment has, for all its physical rows, once more into one data file."""
    rows = RowSelection.span(0, reader.fragment.physical_rows)
    batches = reader.read(part, rows, batch_size=batch_size or DEFAULT_BATCH_ROWS)
    return _finish(_written(reader.snapshot, part, batches, attempt)).data_file


def write_batches(
    reader: FragmentReader, part: Schema, batches: Iterable[pa.RecordBatch], *, attempt: str | None = None
) -> DataFile:
    """Write batches of the columns `part`, a row for each physical row of a fragment, as a data file."""
    return _finish(_written(reader.snapshot, part, batches, attempt)).data_file


def _filled(
    reader: FragmentReader,
    part: Schema,
    *,
    reads: Sequence[str],
    compute: Compute,
    batch_size: int | None,
    attempt: str | None,
) -> FileWriter:
    """A writer that has been given all rows."""
    snapshot, fragment = reader.snapshot, reader.fragment
    needs = needs_of(snapshot.manifest.schema, reads)
    source = snapshot.manifest.schema.project(needs.field_ids)
    rows = RowSelection.span(0, fragment.physical_rows)
    batches = reader.read(source, rows, batch_size=batch_size or DEFAULT_BATCH_ROWS, system=needs.system)
    return _written(snapshot, part, (_computed(batch, compute) for batch in batches), attempt)


def _computed(batch: pa.RecordBatch, compute: Compute) -> pa.RecordBatch:
    computed = compute(batch)
    if computed.num_rows != batch.num_rows:
        raise InputError(f"the function returned {computed.num_rows} rows, expected {batch.num_rows}")
    return computed


def _written(snapshot: Snapshot, part: Schema, batches: Iterable[pa.RecordBatch], attempt: str | None) -> FileWriter:
    path = data_path(data_file_name(attempt))
    writer = FileWriter(snapshot.store, path, part, version=snapshot.manifest.file_version)
    try:
        for batch in batches:
            writer.write(batch)
    except BaseException:
        with suppress(LanceError, OSError):
            writer.abort()
        raise
    return writer


def _finish(writer: FileWriter) -> WrittenFile:
    with writer:
        return writer.finish()
