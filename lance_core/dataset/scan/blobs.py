"""Blobs as files: opened by row, read by range, loaded only on request.

::

    open_blobs(snapshot, "video", addresses)    -> [BlobFile(size 5000000), None, ...]
    file.seek(4_000_000); file.read(16)          one request for 16 bytes (and a little ahead)

Descriptors are read from the blob column's pages; where the bytes are depends on their kind. (Spec: blob columns.)
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.arrow.kinds import as_list, as_struct
from lance_core.arrow.logical import BLOB_METADATA, BLOB_V2
from lance_core.commit.base_paths import open_base
from lance_core.commit.naming import DATA
from lance_core.dataset.snapshot.fragment_reader import FragmentReader, reader_of, stored_part
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import CorruptFileError, InputError, UnsupportedFeatureError
from lance_core.fetch import ByteRange
from lance_core.file.blob.external import find_base
from lance_core.file.blob_descriptors import KIND_DEDICATED, KIND_EXTERNAL, KIND_INLINE, KIND_PACKED, sidecar_path
from lance_core.format.fragment import DataFile, Fragment
from lance_core.format.manifest import BasePath
from lance_core.format.schema import NO_PARENT, Field, is_true
from lance_core.io.options import ALLOW_EXTERNAL_BLOBS
from lance_core.io.options import is_true as is_yes
from lance_core.io.scope import is_allowed
from lance_core.io.store import Store
from lance_core.pages.rows import RowSelection

if TYPE_CHECKING:
    from typing_extensions import Buffer

BUFFER_SIZE = 512 << 10


@dataclass(frozen=True, slots=True)
class BlobPlace:
    """Where a blob's bytes are: a store, a path in it, the first byte and how many (both in bytes).

    `is_outside`: they are in an object of somebody else's, who may change it.
    """

    store: Store
    path: str
    start: int
    size: int
    is_outside: bool = False


class BlobFile(io.RawIOBase):
    """A blob as a file that can be read and sought. `read_range` goes past the position and the buffer."""

    def __init__(self, place: BlobPlace, *, buffer_size: int = BUFFER_SIZE) -> None:
        super().__init__()
        if buffer_size < 1:
            raise InputError(f"buffer_size must be at least 1, got {buffer_size}")
        self._place = place
        self._buffer_size = buffer_size
        self._position = 0
        self._ahead = (0, b"")

    def __repr__(self) -> str:
        return f"<BlobFile size={self.size()}>"

    def size(self) -> int:
        """Bytes in the blob."""
        return self._place.size

    def readable(self) -> bool:
        """Whether the blob can be read: always."""
        return True

    def seekable(self) -> bool:
        """Whether the position can be moved: always."""
        return True

    def tell(self) -> int:
        """Return the position in bytes from the start of the blob. ValueError once the file is closed."""
        self._check_open()
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move the position to a number of bytes and return it; reads nothing. Reads beyond the end give nothing.

        ValueError for an unknown `whence`, a negative position and a closed file.
        """
        self._check_open()
        origins = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._place.size}
        if whence not in origins:
            raise ValueError(f"invalid whence {whence}")
        target = origins[whence] + offset
        if target < 0:
            raise ValueError(f"negative seek position {target}")
        self._position = target
        return target

    def read(self, size: int | None = -1) -> bytes:
        """Up to `size` bytes from the position on, all that are left when it is negative or None."""
        self._check_open()
        left = max(self._place.size - self._position, 0)
        count = left if size is None or size < 0 else min(size, left)
        data = self._buffered(self._position, count)
        self._position += len(data)
        return data

    def readall(self) -> bytes:
        """All that is left."""
        return self.read(-1)

    def readinto(self, buffer: Buffer) -> int:
        """Fill a buffer from the position on; how many bytes that were."""
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def read_range(self, offset: int, length: int) -> bytes:
        """Return bytes `offset` to `offset + length`. The position stays. InputError when they are not within the blob."""
        return self.read_ranges([(offset, length)])[0]

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return several (offset, length) ranges, in bytes, in the order given, with as few requests as possible.

        The position stays. Raises InputError for a range that is not within the blob, ValueError for a closed file.
        """
        self._check_open()
        for offset, length in ranges:
            if offset < 0 or length < 0 or offset + length > self._place.size:
                raise InputError(f"range ({offset}, {length}) is not within a blob of {self._place.size} bytes")
        place = self._place
        wanted = [ByteRange(place.start + offset, place.start + offset + length) for offset, length in ranges if length]
        found = iter(place.store.get_ranges(place.path, wanted)) if wanted else iter(())
        return [bytes(next(found)) if length else b"" for _, length in ranges]

    def _buffered(self, start: int, count: int) -> bytes:
        if count == 0:
            return b""
        first, ahead = self._ahead
        if start < first or start + count > first + len(ahead):
            if count >= self._buffer_size:
                return self.read_range(start, count)
            length = min(self._buffer_size, self._place.size - start)
            first, ahead = self._ahead = (start, self.read_range(start, length))
        return ahead[start - first : start - first + count]

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file")


def is_blob(field: Field) -> bool:
    """Whether a field holds blobs, of either kind."""
    return field.extension_name == BLOB_V2 or is_true(field.metadata.get(BLOB_METADATA))


def blob_field(snapshot: Snapshot, name: str) -> Field:
    """The blob column of that name. InputError when there is none, or it holds something else."""
    field = snapshot.manifest.schema.find(name)
    if is_blob(field):
        return field
    raise InputError(f"column {name!r} is not a blob column", cure="Read it with `take`.")


def open_blobs(
    snapshot: Snapshot, name: str, addresses: npt.NDArray[np.uint64], *, buffer_size: int = BUFFER_SIZE
) -> list[BlobFile | None]:
    """One file for each row address, in order, None where the value is null. Reads descriptors, no values.

    Raises InputError for a column that holds no blobs or an address without a row.
    """
    field = blob_field(snapshot, name)
    unique, order = np.unique(addresses, return_inverse=True)
    places: list[BlobPlace | None] = []
    fragments = {fragment.id: fragment for fragment in snapshot.manifest.fragments}
    owners = (unique >> np.uint64(32)).astype(np.int64)
    offsets = (unique & np.uint64(0xFFFFFFFF)).astype(np.int64)
    for number in np.unique(owners).tolist():
        mine = offsets[owners == number]
        if number not in fragments or (mine >= fragments[number].physical_rows).any():
            raise InputError(f"{snapshot.uri} has no row at fragment {number}, offset {int(mine.max())}")
        places.extend(blob_places(reader_of(snapshot, fragments[number]), field, mine))
    found = [places[index] for index in order.tolist()]
    return [None if place is None else BlobFile(place, buffer_size=buffer_size) for place in found]


def largest_blob(snapshot: Snapshot, fragments: Sequence[Fragment]) -> int:
    """Bytes of the largest blob of some fragments, 0 when there are none. Reads descriptors, no values."""
    schema = snapshot.manifest.schema
    ids = [field.id for field in schema.fields if is_blob(field)]
    largest = 0
    for fragment in fragments if ids else ():
        reader = reader_of(snapshot, fragment)
        for file in fragment.files:
            part = stored_part(schema.project(ids), file)
            if part.fields and file.file_major_version:
                for batch in reader.open(file).project(part, blobs="descriptions").read():
                    largest = max([largest, *(_largest_size(column) for column in batch.columns)])
    return largest


def _largest_size(array: pa.Array[Any]) -> int:
    """The largest `size` of the descriptors anywhere in the array."""
    if pa.types.is_struct(array.type):
        names = [field.name for field in array.type]
        if "position" in names and "size" in names:
            return pc.max(as_struct(array).field(names.index("size"))).as_py() or 0
        return max((_largest_size(as_struct(array).field(number)) for number in range(len(names))), default=0)
    if pa.types.is_nested(array.type):
        return _largest_size(as_list(array).values)
    return 0


def blob_places(reader: FragmentReader, field: Field, offsets: npt.NDArray[np.int64]) -> Iterator[BlobPlace | None]:
    """Where the blobs of ascending rows of a fragment are, None for a null. Reads descriptors, no values.

    Raises InputError for an object outside of the table's bases that the reader has not allowed, NotFoundError for one that
    is not there.
    """
    schema = reader.snapshot.manifest.schema.project([field.id])
    file = next((file for file in reader.fragment.files if stored_part(schema, file).fields), None)
    if file is None:
        yield from [None] * len(offsets)  # a column that came later
        return
    projection = reader.open(file).project(stored_part(schema, file), blobs="descriptions")
    for batch in projection.read(ranges=RowSelection.indices(offsets), batch_size=max(len(offsets), 1)):
        column = batch.column(0)
        for name in _below(reader.snapshot, field):
            column = pc.struct_field(column, name)
        for value in cast("list[Any]", column.to_pylist()):
            yield None if _is_null(value) else _place(reader.snapshot, file, value)


def _below(snapshot: Snapshot, field: Field) -> list[str]:
    """Names from the top-level column's child down to the field. InputError below a list: there is no one blob to a row."""
    schema = snapshot.manifest.schema
    names: list[str] = []
    while field.parent_id != NO_PARENT:
        names.insert(0, field.name)
        field = schema.by_id[field.parent_id]
        if field.logical_type != "struct":
            raise InputError(
                f"blobs in {field.name!r} ({field.logical_type}) cannot be taken, because a row may have several",
                cure="Read them with `take`.",
            )
    return names


def _is_null(value: Mapping[str, Any] | None) -> bool:
    if value is None:
        return True
    if "kind" in value:
        return value["kind"] is None
    # Files of 2.0 have nowhere else to say it: no bytes, at a position that is not 0.
    return bool(value["size"] == 0 and value["position"] != 0)


def _place(snapshot: Snapshot, file: DataFile, value: Mapping[str, Any]) -> BlobPlace:
    store, is_root = snapshot.store_of(file.base_id)
    path = f"{DATA}/{file.path}" if is_root else file.path
    kind, start, size = value.get("kind", KIND_INLINE), value["position"], value["size"]
    if kind == KIND_EXTERNAL:
        return _external(snapshot, value)
    if kind == KIND_INLINE:
        if size and file.file_size_bytes and start + size > file.file_size_bytes:
            raise CorruptFileError(f"{store.uri}: {path}: a blob of {size} bytes at {start} is outside the file")
        return BlobPlace(store, path, start, size)
    if kind in (KIND_PACKED, KIND_DEDICATED):
        return BlobPlace(store, sidecar_path(path, value["blob_id"]), start if kind == KIND_PACKED else 0, size)
    raise UnsupportedFeatureError(f"{store.uri}: {path}: blobs of kind {kind} are not supported by this library")


def _external(snapshot: Snapshot, value: Mapping[str, Any]) -> BlobPlace:
    """An object of somebody else's: named by a path below a base of the table, or by its uri.

    The writer of a row chose its uri, so one that is outside of the registered bases is opened only when the reader says
    so; then, too, neither on another scheme of the web than the table's nor with credentials of the table.
    """
    uri, base_id = value["blob_uri"], value["blob_id"]
    found = (base_id, uri) if base_id else find_base(uri, snapshot.manifest.base_paths)
    if found is not None:
        store, path = snapshot.store_of(found[0])[0], found[1]
    else:
        _require_allowed(snapshot, uri)
        folder, _, path = uri.rpartition("/")
        base = BasePath(id=0, path=folder or "/")
        store = open_base(base, table_uri=snapshot.uri, storage_options=snapshot.storage_options)
    return BlobPlace(store, path, value["position"], value["size"] or store.size(path) - value["position"], is_outside=True)


def _require_allowed(snapshot: Snapshot, uri: str) -> None:
    """InputError for an object outside of the table's bases that the reader has not allowed."""
    options = snapshot.storage_options
    if is_allowed(uri, options) or is_yes((options or {}).get(ALLOW_EXTERNAL_BLOBS)):
        return
    raise InputError(
        f"{snapshot.uri}: a blob refers to {uri!r}, which is outside the table's registered base paths",
        uri=snapshot.uri,
        cure="If every writer of the table is trusted with all data that this machine can read, open it with the storage "
        f'option {ALLOW_EXTERNAL_BLOBS}="true" or with allowed_bases; or register the folder with add_bases.',
    )
