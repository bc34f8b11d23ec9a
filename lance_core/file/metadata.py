"""Where everything is in one 2.x file, learned with as few requests as possible.

One request brings the last 64 KiB (or the whole of a small file). For most files that holds the footer, both tables and
all column metadata; for wide files the metadata of the wanted columns costs one request more:

    | pages ... | global buffers | column metadata ... | column table | buffer table | footer |
                                          ^-- wanted columns only --^ |<------ tail -------->|

The last bytes of a file: which version it is and where its tables are.

A 2.x file ends with 40 bytes, a legacy file with 16; the version and the magic are last in both:

    2.2      column_metadata_start u64 | CMO_start u64 | GBO_start u64 | global buffers u32 | columns u32 | 2 | 2 | LANC
    legacy                                                                     metadata position u64 | 0 | 2 | LANC
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lance_core.errors import CorruptFileError
from lance_core.fetch import Buffer, ByteRange, Fetch
from lance_core.format.layout import FileColumn
from lance_core.format.version import FileVersion, version_of_numbers
from lance_core.wire.columns import decode_column
from lance_core.wire.file import FileDescriptor, decode_file_descriptor

TAIL_SIZE = 64 << 10
Ranges = npt.NDArray[np.int64]
"""Start and end of each entry of a table: shape (entries, 2)."""


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a file: `data` begins at byte `start`."""

    start: int
    data: memoryview

    def get(self, wanted: ByteRange) -> memoryview | None:
        """The bytes of a range that is in the tail, else None."""
        if wanted.start < self.start:
            return None
        return self.data[wanted.start - self.start : wanted.end - self.start]


def fetch_tail(file_size: int, wanted: int = TAIL_SIZE) -> Fetch[Tail]:
    """The last `wanted` bytes of a file of `file_size` bytes."""
    start = max(0, file_size - wanted)
    if file_size == 0:
        raise CorruptFileError("the file is empty")
    (data,) = yield [ByteRange(start, file_size)]
    return Tail(start, memoryview(data))


@dataclass
class FileMetadata:
    """The tables of an open 2.x file. Column metadata is decoded on first use and kept."""

    footer: Footer
    file_size: int
    tail: Tail
    _column_ranges: Ranges
    global_buffers: tuple[ByteRange, ...]
    _columns: dict[int, FileColumn] = field(default_factory=dict)
    _descriptor: FileDescriptor | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def num_columns(self) -> int:
        """Columns in the file."""
        return self.footer.num_columns

    def load_columns(self, indices: Sequence[int]) -> Fetch[list[FileColumn]]:
        """The columns at `indices`, in that order; only those not yet known are read."""
        for index in indices:
            if not 0 <= index < self.num_columns:
                raise CorruptFileError(f"column {index} was requested, the file has {self.num_columns}")
        missing = sorted({index for index in indices if index not in self._columns})
        if missing:
            blocks = yield from self._get([_range(self._column_ranges, index) for index in missing])
            decoded = {index: self._decode(index, data) for index, data in zip(missing, blocks, strict=True)}
            with self._lock:
                self._columns.update(decoded)
        return [self._columns[index] for index in indices]

    def load_descriptor(self) -> Fetch[FileDescriptor]:
        """Global buffer 0: the file's own schema and number of rows."""
        if self._descriptor is None:
            if not self.global_buffers:
                raise CorruptFileError("the file has no global buffer 0, where its schema should be")
            (data,) = yield from self._get([self.global_buffers[0]])
            self._descriptor = decode_file_descriptor(bytes(data))
        return self._descriptor

    def load_global_buffer(self, number: int) -> Fetch[bytes]:
        """One global buffer."""
        if not 0 <= number < len(self.global_buffers):
            raise CorruptFileError(f"global buffer {number} was requested, the file has {len(self.global_buffers)}")
        (data,) = yield from self._get([self.global_buffers[number]])
        return bytes(data)

    def _get(self, ranges: Sequence[ByteRange]) -> Fetch[list[Buffer]]:
        found: list[Buffer | None] = [self.tail.get(item) for item in ranges]
        missing = [item for item, data in zip(ranges, found, strict=True) if data is None]
        if missing:
            answers = iter((yield missing))
            return [next(answers) if data is None else data for data in found]
        return [data for data in found if data is not None]

    def _decode(self, index: int, data: Buffer) -> FileColumn:
        column = decode_column(bytes(data))
        ranges = [item for page in column.pages for item in page.buffers]
        ranges.extend(column.buffers)
        for item in ranges:
            if item.end > self.file_size:
                raise CorruptFileError(
                    f"column {index} places a buffer of {item.size} bytes at {item.start}, "
                    f"outside the file of {self.file_size} bytes"
                )
        return column


def load_metadata(tail: Tail, *, file_size: int) -> Fetch[FileMetadata]:
    """Read the tables of a 2.x file whose last bytes are in `tail`. CorruptFileError when a position is impossible."""
    footer = parse_footer(tail.data, file_size=file_size)
    tables = ByteRange(footer.column_table_start, file_size - FOOTER.size)
    data: Buffer | None = tail.get(tables)
    if data is None:
        (data,) = yield [tables]
    columns = _table(data, 0, footer.num_columns, file_size)
    offset = footer.buffer_table_start - footer.column_table_start
    buffers = _table(data, offset, footer.num_global_buffers, file_size)
    return FileMetadata(footer, file_size, tail, columns, tuple(_range(buffers, number) for number in range(len(buffers))))


def _table(data: Buffer, offset: int, count: int, file_size: int) -> Ranges:
    """Start and end of each entry. They stay numbers: of a wide file's thousands few are ever read."""
    stored = np.frombuffer(data, "<u8", 2 * count, offset).reshape(count, 2)
    limit = np.uint64(max(0, file_size - FOOTER.size - TABLE_ENTRY_SIZE))
    wrong = (stored[:, 0] > limit) | (stored[:, 1] > limit) | (stored.sum(axis=1, dtype=np.uint64) > limit)
    if wrong.any():
        number = int(np.argmax(wrong))
        start, size = stored[number].tolist()
        raise CorruptFileError(f"table entry {number} places {size} bytes at {start}, outside the file of {file_size} bytes")
    ranges = stored.astype(np.int64)
    ranges[:, 1] += ranges[:, 0]
    return ranges


def _range(table: Ranges, number: int) -> ByteRange:
    start, end = table[number].tolist()
    return ByteRange(start, end)


MAGIC = b"LANC"
FOOTER = struct.Struct("<QQQIIHH4s")
LEGACY_FOOTER = struct.Struct("<QHH4s")
_VERSION = struct.Struct("<HH4s")
TABLE_ENTRY_SIZE = 16
"""Bytes of one entry of the column metadata and global buffer offset tables: position u64, size u64."""


@dataclass(frozen=True, slots=True)
class Footer:
    """Positions are absolute; the tables follow one another, then comes the footer itself."""

    column_metadata_start: int
    column_table_start: int
    buffer_table_start: int
    num_global_buffers: int
    num_columns: int
    version: FileVersion


def parse_version(tail: Buffer) -> FileVersion:
    """The version in the last eight bytes of a file. CorruptFileError when they are not a Lance footer."""
    if len(tail) < _VERSION.size:
        raise CorruptFileError(f"a Lance file needs at least {LEGACY_FOOTER.size} bytes, this one has {len(tail)}")
    major, minor, magic = _VERSION.unpack(bytes(tail[-_VERSION.size :]))
    if magic != MAGIC:
        raise CorruptFileError(f"the file does not end in {MAGIC!r} but in {magic!r}: truncated, or not a Lance file")
    return version_of_numbers(major, minor)


def parse_footer(tail: Buffer, *, file_size: int) -> Footer:
    """The footer of a 2.x file, its positions checked against each other and the file's size."""
    version = parse_version(tail)
    if len(tail) < FOOTER.size:
        raise CorruptFileError(f"a {version.text} file has at least {FOOTER.size} bytes, this one has {len(tail)}")
    metadata, columns, buffers, num_buffers, num_columns, _, _, _ = FOOTER.unpack(bytes(tail[-FOOTER.size :]))
    end = file_size - FOOTER.size
    in_order = metadata <= columns <= buffers <= end
    if not in_order or columns + num_columns * TABLE_ENTRY_SIZE > buffers or buffers + num_buffers * TABLE_ENTRY_SIZE > end:
        raise CorruptFileError(
            f"the footer places {num_columns} columns at {columns} and {num_buffers} global buffers at {buffers} "
            f"after metadata at {metadata}, which does not match a file of {file_size} bytes"
        )
    return Footer(metadata, columns, buffers, num_buffers, num_columns, version)


def parse_legacy_footer(tail: Buffer, *, file_size: int) -> int:
    """Position of the metadata message of a legacy file."""
    if len(tail) < LEGACY_FOOTER.size:
        raise CorruptFileError(f"a legacy file has at least {LEGACY_FOOTER.size} bytes, this one has {len(tail)}")
    position, _, _, _ = LEGACY_FOOTER.unpack(bytes(tail[-LEGACY_FOOTER.size :]))
    if position > file_size - LEGACY_FOOTER.size:
        raise CorruptFileError(f"the footer places the metadata at {position}, outside the file of {file_size} bytes")
    return int(position)


def encode_footer(footer: Footer) -> bytes:
    """The 40 bytes that end a 2.x file."""
    major, minor = footer.version.footer_numbers
    return FOOTER.pack(
        footer.column_metadata_start,
        footer.column_table_start,
        footer.buffer_table_start,
        footer.num_global_buffers,
        footer.num_columns,
        major,
        minor,
        MAGIC,
    )
