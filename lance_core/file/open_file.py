"""What every open data file offers, whatever its version.

opened.num_rows, opened.schema, opened.version
opened.read(schema, ranges=[(0, 10)], batch_size=8192)     batches in order
opened.take(schema, [7, 3, 3])                             one batch, in the requested order
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy.typing as npt
import pyarrow as pa

from lance_core.file.error_location import located
from lance_core.file.projection import DEFAULT_BATCH_SIZE, Blobs, FileProjection, Ranges
from lance_core.format.schema import Schema
from lance_core.format.version import FileVersion
from lance_core.io.store import Store


class OpenFile(ABC):
    """An open data file. Holds no file handle; safe to share between threads."""

    def __init__(self, store: Store, path: str, *, version: FileVersion, file_size: int) -> None:
        self.store = store
        self.path = path
        self.version = version
        self.file_size = file_size
        self._last: FileProjection | None = None

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """The file's own schema."""

    @property
    @abstractmethod
    def num_rows(self) -> int:
        """Rows in the file, as the file says."""

    @property
    @abstractmethod
    def num_global_buffers(self) -> int:
        """Global buffers, the descriptor included; 0 for legacy files."""

    @abstractmethod
    def global_buffer(self, number: int) -> bytes:
        """One global buffer; 0 is the descriptor."""

    @abstractmethod
    def _project(self, schema: Schema, blobs: Blobs) -> FileProjection:
        """The readers of some fields."""

    def project(self, schema: Schema, *, blobs: Blobs = "binary") -> FileProjection:
        """The fields of `schema` (a table's schema, or a part of it), ready to be read.

        Fields that have no column in this file read as null. `blobs` says what top-level blob columns give: their bytes,
        or only the descriptors that say where the bytes are.
        """
        last = self._last
        if last is None or last.blobs != blobs or (last.schema is not schema and last.schema != schema):
            with located(self.path):
                last = self._project(schema, blobs)
            self._last = last
        return last

    def read(
        self, schema: Schema | None = None, *, ranges: Ranges | None = None, batch_size: int = DEFAULT_BATCH_SIZE
    ) -> Iterator[pa.RecordBatch]:
        """Batches of the fields in `schema` (all of the file's own when None); see `Projection.read`."""
        return self.project(self.schema if schema is None else schema).read(ranges=ranges, batch_size=batch_size)

    def take(self, schema: Schema, indices: npt.ArrayLike) -> pa.RecordBatch:
        """The rows at `indices`, in that order; see `Projection.take`."""
        return self.project(schema).take(indices)
