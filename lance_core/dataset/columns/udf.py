"""Functions that compute columns, and the checkpoint file of their results.

::

    @lance_core.batch_udf(checkpoint_file="embed.db")
    def embed(batch): return pa.RecordBatch.from_pydict({"v": model(batch["text"])})

    ds.add_columns(embed)     killed at batch 70 of 100; done again, it computes from batch 71 on

The file is SQLite. A batch's key is its fragment (id and data files) and first row, its value an Arrow stream; when a
fragment's data file is complete its batches give way to the file's description. Nothing in it is ever unpickled.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_core.commit.naming import data_path
from lance_core.errors import CorruptFileError, InputError, NotFoundError
from lance_core.format.fragment import DataFile, Fragment
from lance_core.format.schema import Schema
from lance_core.io.store import Store
from lance_core.shortage import ARROW_ERRORS
from lance_core.wire.fragments import decode_fragment, encode_fragment

if TYPE_CHECKING:
    import sqlite3

Compute = Callable[[pa.RecordBatch], pa.RecordBatch]

_TABLES = """
CREATE TABLE IF NOT EXISTS lance_batches (fragment TEXT, first_row INT, result BLOB, PRIMARY KEY (fragment, first_row));
CREATE TABLE IF NOT EXISTS lance_fragments (fragment TEXT PRIMARY KEY, data BLOB);
"""


class BatchUDF:
    """A function of a record batch that gives the new columns' batch; made by `batch_udf`."""

    def __init__(
        self,
        func: Callable[[pa.RecordBatch], Any],
        output_schema: pa.Schema | None = None,
        checkpoint_file: str | os.PathLike[str] | None = None,
    ) -> None:
        self.func = func
        self.output_schema = output_schema
        self.checkpoint = None if checkpoint_file is None else Checkpoint(checkpoint_file)

    def __call__(self, batch: pa.RecordBatch) -> Any:
        """What the function gives."""
        return self.func(batch)


def batch_udf(
    output_schema: pa.Schema | None = None, checkpoint_file: str | os.PathLike[str] | None = None
) -> Callable[[Callable[[pa.RecordBatch], Any]], BatchUDF]:
    """Mark a function for `add_columns`: the schema of what it gives (None: it is called with none), where it remembers."""

    def mark(func: Callable[[pa.RecordBatch], Any]) -> BatchUDF:
        return BatchUDF(func, output_schema, checkpoint_file)

    return mark


class Checkpoint:
    """Results on disk, until the columns are committed. InputError for a file that is no such thing."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        with self._open() as db:
            db.executescript(_TABLES)

    def forget(self) -> None:
        """Remove the file: what it remembers is committed."""
        with suppress(FileNotFoundError):
            os.remove(self.path)  # noqa: PTH107

    def remembering(self, fragment: Fragment, compute: Compute) -> Compute:
        """`compute` for the batches of a fragment, in order; what was computed before is not computed again."""
        name, first_row = _name(fragment), 0

        def remembered(batch: pa.RecordBatch) -> pa.RecordBatch:
            nonlocal first_row
            result = self._batch(name, first_row, batch.num_rows)
            if result is None:
                result = compute(batch)
                with self._open() as db:
                    db.execute("REPLACE INTO lance_batches VALUES (?, ?, ?)", (name, first_row, _to_bytes(result)))
            first_row += batch.num_rows
            return result

        return remembered

    def finished(self, store: Store, fragment: Fragment, part: Schema) -> DataFile | None:
        """The data file of the columns `part` that was completed for a fragment, if it still exists."""
        with self._open() as db:
            row = db.execute("SELECT data FROM lance_fragments WHERE fragment = ?", (_name(fragment),)).fetchone()
        if row is None:
            return None
        file = decode_fragment(row[0]).files[0]
        if not {field.id for field in part.fields}.issuperset(file.fields):
            return None
        try:
            return file if store.size(data_path(file.path)) == file.file_size_bytes else None
        except NotFoundError:
            return None

    def finish(self, fragment: Fragment, file: DataFile) -> None:
        """A fragment's data file is complete."""
        data = encode_fragment(Fragment(fragment.id, (file,), fragment.physical_rows))
        with self._open() as db:
            db.execute("REPLACE INTO lance_fragments VALUES (?, ?)", (_name(fragment), data))
            db.execute("DELETE FROM lance_batches WHERE fragment = ?", (_name(fragment),))

    def _batch(self, name: str, first_row: int, num_rows: int) -> pa.RecordBatch | None:
        with self._open() as db:
            query = "SELECT result FROM lance_batches WHERE fragment = ? AND first_row = ?"
            row = db.execute(query, (name, first_row)).fetchone()
        if row is None:
            return None
        found = _from_bytes(row[0], self.path)
        return found if found.num_rows == num_rows else None

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        import sqlite3

        # A connection belongs to one thread, so each use has its own.
        try:
            with closing(sqlite3.connect(self.path)) as connection, connection:
                yield connection
        except sqlite3.DatabaseError as error:
            raise InputError(f"{self.path} is not a checkpoint file: {error}", cure="Pass another file.") from error


def _name(fragment: Fragment) -> str:
    return f"{fragment.id}:" + ",".join(file.path for file in fragment.files)


def _to_bytes(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _from_bytes(data: bytes, path: str) -> pa.RecordBatch:
    try:
        with pa.ipc.open_stream(data) as reader:
            return reader.read_next_batch()
    except (*ARROW_ERRORS, StopIteration) as error:
        raise CorruptFileError(f"{path}: a cached batch cannot be read: {error}", cure="Remove the file.") from error
