"""Write rows as fragments that no reader sees yet: called by `write_dataset`, jobs and Spark executors.

::

    stage_fragments(store, batches, schema, max_rows_per_file=2) over 5 rows
    -> data/0101….lance (2 rows)  data/1100….lance (2)  data/0011….lance (1)     three fragments with id 0

Memory is bounded by one batch and the page buffers of two writers: a file is finished (last pages, sync) in a thread of
its own while the next one begins. When anything fails the files written so far are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa

from lance_core.arrow import BatchCaster
from lance_core.commit import naming
from lance_core.dataset.write.base_paths import WriteTarget
from lance_core.dataset.write.write_progress import FragmentProgress, Progress, WriteProgress
from lance_core.errors import InputError, LanceError
from lance_core.file.blob.external import BASES_ONLY, ExternalUris
from lance_core.file.writer import FileWriter, WrittenFile
from lance_core.format.fragment import Fragment
from lance_core.format.schema import Schema
from lance_core.format.version import DEFAULT_VERSION, FileVersion
from lance_core.io.pool import in_io_pool, in_work_pool
from lance_core.io.store import Store
from lance_core.io.threads import Threads

MAX_ROWS_PER_FILE = 1024 * 1024
MAX_BYTES_PER_FILE = 90 * 1024**3
_MAX_BYTES_APART = 256 << 20
"""A file with more rows that wait than this is finished before the next one begins."""


def stage_fragments(
    store: Store,
    batches: Iterable[pa.RecordBatch],
    schema: Schema,
    *,
    version: FileVersion = DEFAULT_VERSION,
    max_rows_per_file: int = MAX_ROWS_PER_FILE,
    max_bytes_per_file: int | None = None,
    attempt: str | None = None,
    name_data_file: Callable[[], str] | None = None,
    progress: Progress | None = None,
    places: Sequence[WriteTarget] = (),
    external: ExternalUris = BASES_ONLY,
) -> list[Fragment]:
    """Write `batches` as new data files below `data/` and describe them as fragments with id 0. Commits nothing.

    `schema` is what to write, with the table's field ids (see `arrow.check_compatible`); columns are picked by name. A
    file is closed at `max_rows_per_file` rows exactly, or after the batch that brings it to `max_bytes_per_file` bytes. File
    names carry `attempt`, unless `name_data_file` makes them. Files go to `places` in turn, or below the table's own root.
    No rows, no fragments. `external` says which uris of blobs may be stored.

    Raises SchemaMismatchError for missing columns, other types, and nulls where the schema has none.
    """
    if max_rows_per_file < 1 or (max_bytes_per_file is not None and max_bytes_per_file < 1):
        raise InputError("max_rows_per_file and max_bytes_per_file must be at least 1")
    name = name_data_file or (lambda: naming.data_file_name(attempt))
    stage = _Stage(tuple(places) or (WriteTarget(store),), schema, version, name, progress, external)
    limit = MAX_BYTES_PER_FILE if max_bytes_per_file is None else max_bytes_per_file
    try:
        for batch in BatchCaster(schema).stream(batches):
            for piece in stage.cut(batch, max_rows_per_file):
                stage.add(piece)
                if stage.rows_in_file >= max_rows_per_file or stage.bytes_in_file >= limit:
                    stage.finish_file()
        stage.finish()
    except BaseException:
        stage.discard()
        raise
    return stage.fragments


def discard_fragments(store: Store, fragments: Iterable[Fragment], places: Sequence[WriteTarget] = ()) -> None:
    """Remove the files of fragments that were staged and will not be committed. Never fails: what stays is garbage."""
    own = WriteTarget(store)
    by_base = {place.base_id: place for place in places}
    for fragment in fragments:
        for file in fragment.files:
            place = by_base.get(file.base_id, own)
            with suppress(LanceError, OSError):
                place.store.delete(place.path_of(file.path))
                # Blobs are in a folder named like the file.
                folder = place.path_of(file.path.removesuffix(".lance"))
                for name in place.store.list_names(folder):
                    place.store.delete(f"{folder}/{name}")


class _Stage:
    """The file being written and the fragments done."""

    def __init__(
        self,
        places: Sequence[WriteTarget],
        schema: Schema,
        version: FileVersion,
        name: Callable[[], str],
        progress: Progress | None,
        external: ExternalUris,
    ) -> None:
        self.fragments: list[Fragment] = []
        self.rows_in_file = 0
        self._places = places
        self._num_files = 0
        self._schema = schema
        self._version = version
        self._name = name
        self._events = progress if isinstance(progress, FragmentProgress) else None
        self._progress = None if isinstance(progress, FragmentProgress) else progress
        self._external = external
        self._writer: FileWriter | None = None
        self._base_id: int | None = None
        self._rows = 0
        self._bytes = 0
        self._thread: Threads | None = None
        self._finishing: Future[WrittenFile] | None = None

    @property
    def bytes_in_file(self) -> int:
        return 0 if self._writer is None else self._writer.num_bytes

    def cut(self, batch: pa.RecordBatch, max_rows: int) -> Iterator[pa.RecordBatch]:
        """The batch in pieces that end where files end."""
        start = 0
        while start < batch.num_rows:
            room = max_rows - self.rows_in_file
            yield batch.slice(start, room)
            start += room

    def add(self, batch: pa.RecordBatch) -> None:
        if self._writer is None:
            place = self._places[self._num_files % len(self._places)]
            self._num_files += 1
            path = place.path_of(self._name())
            self._writer = FileWriter(place.store, path, self._schema, version=self._version, external=self._external)
            self._base_id = place.base_id
            if self._events is not None:
                self._events.begin(Fragment(id=0, files=(), physical_rows=0))
        self._writer.write_exact(batch)
        self.rows_in_file += batch.num_rows
        self._rows += batch.num_rows
        self._report()

    def finish_file(self) -> None:
        """Finish the file being written, while further rows go into another one."""
        writer, self._writer = self._writer, None
        base_id = self._base_id
        self.rows_in_file = 0
        self._wait()
        if writer is None:
            return
        # A thread of a shared pool must not wait for that pool, not through another thread either.
        if in_work_pool() or in_io_pool() or writer.num_waiting_bytes > _MAX_BYTES_APART:
            self._add(_finish(writer, base_id))
            return
        if self._thread is None:
            self._thread = Threads(max_workers=1, thread_name_prefix="lance-finish")
        self._finishing = self._thread.submit(_finish, writer, base_id)

    def finish(self) -> None:
        """Finish everything; the last file synchronously, because nothing follows it."""
        writer, self._writer = self._writer, None
        if writer is not None:
            written = _finish(writer, self._base_id)
            try:
                self._wait()
            finally:
                self._add(written)  # known, so that a discard finds it
        self._wait()
        self._close()

    def discard(self) -> None:
        """Remove every file of this stage."""
        with suppress(LanceError, OSError):
            self._wait()
        if self._writer is not None:
            with suppress(LanceError, OSError):
                self._writer.abort()
        self._close()
        discard_fragments(self._places[0].store, self.fragments, self._places)

    def _wait(self) -> None:
        finishing, self._finishing = self._finishing, None
        if finishing is not None:
            self._add(finishing.result())

    def _add(self, written: WrittenFile) -> None:
        self._bytes += written.data_file.file_size_bytes or 0
        self.fragments.append(Fragment(id=0, files=(written.data_file,), physical_rows=written.num_rows))
        if self._events is not None:
            self._events.complete(self.fragments[-1])
        self._report()

    def _close(self) -> None:
        if self._thread is not None:
            self._thread.shutdown()

    def _report(self) -> None:
        if self._progress is not None:
            self._progress(WriteProgress(self._rows, len(self.fragments), self._bytes))


def _finish(writer: FileWriter, base_id: int | None) -> WrittenFile:
    with writer:
        written = writer.finish()
    return written if base_id is None else replace(written, data_file=replace(written.data_file, base_id=base_id))
