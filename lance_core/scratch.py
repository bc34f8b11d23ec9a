"""A folder for temporary files on this machine, and batches of rows in them; when its disk fails the error is typed.

Files are read, never mapped: where a disk fails under a mapped file the process is ended by SIGBUS, which nobody can catch.
"""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from lance_core.errors import LanceError, StoreError, StoreRefusedError

_REFUSED = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EFBIG})


@contextmanager
def scratch_folder(purpose: str) -> Iterator[Path]:
    """A new folder below the temporary directory, removed at the end.

    An OSError inside becomes StoreRefusedError where a retry cannot help (the disk is full, permission is missing), else
    StoreError. LanceErrors pass as they are.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="lance-scratch-", ignore_cleanup_errors=True) as folder:
            yield Path(folder)
    except LanceError:
        raise
    except OSError as error:
        kind = StoreRefusedError if error.errno in _REFUSED else StoreError
        raise kind(
            f"temporary files for {purpose} cannot be written or read: {error.strerror or error}",
            cure="Free space in the temporary directory, or set TMPDIR to one with space and write permission.",
        ) from error


class BatchFile:
    """Record batches of one schema in a file of this machine, each to be read by its number, or all in their order.

    ::

        BatchFile.write(folder / "0.arrow", schema, batches).get(0)

    What reads raises StoreError where the file is not what was written: it was cut, or its bytes are other ones.
    """

    def __init__(self, path: Path, num_batches: int) -> None:
        self.num_batches = num_batches
        self._path = path

    @classmethod
    def write(cls, path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> BatchFile:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        return cls(path, writer.stats.num_record_batches)

    def get(self, number: int) -> pa.RecordBatch:
        """One batch; it owns its memory."""
        with self._opened() as reader:
            return reader.get_batch(number)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return map(self.get, range(self.num_batches))

    @contextmanager
    def _opened(self) -> Iterator[pa.RecordBatchFileReader]:
        try:
            with pa.OSFile(str(self._path), "rb") as source, pa.ipc.open_file(source) as reader:
                if reader.num_record_batches != self.num_batches:
                    raise pa.ArrowInvalid(f"{reader.num_record_batches} batches, expected {self.num_batches}")
                yield reader
        except pa.ArrowInvalid as error:
            raise StoreError(
                f"the temporary file {self._path.name} is not what was written: {error}",
                cure="Run it again; find what else writes in the temporary directory, or set TMPDIR to another one.",
            ) from error
