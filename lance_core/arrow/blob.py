"""Values for blob columns: bytes, or an external object (or a range of it).

    blob_array([b"abc", None, Blob.from_uri("s3://b/x", position=10, size=5)])
    storage   struct<data, uri, position, size>    {abc, -, -, -}   null   {-, s3://b/x, 10, 5}

The names and rules are those of the official library. The type is not registered with pyarrow: a table read back shows the
storage, with the extension's name in the field's metadata.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lance_core.arrow.logical import BLOB_V2
from lance_core.errors import InputError

_STORAGE = pa.struct(
    [
        pa.field("data", pa.large_binary()),
        pa.field("uri", pa.string()),
        pa.field("position", pa.uint64()),
        pa.field("size", pa.uint64()),
    ]
)


@dataclass(frozen=True, slots=True)
class Blob:
    """One value: `data`, or the object at `uri`, of which `position` and `size` (bytes, both or neither) pick a part.

    Raises InputError for anything else. A null is None, not a Blob; `Blob.empty()` is a value of no bytes.
    """

    data: bytes | None = None
    uri: str | None = None
    position: int | None = None
    size: int | None = None

    def __post_init__(self) -> None:
        if (self.data is None) == (self.uri is None):
            raise InputError("a blob needs either data or a uri", cure="Use None for a null, Blob.empty() for no bytes.")
        if self.uri == "":
            raise InputError("the uri of a blob is empty")
        if (self.position is None) != (self.size is None) or (self.position is not None and self.uri is None):
            raise InputError("the position and size of a blob must be given together, and with a uri")
        if self.position is not None and self.size is not None and (self.position < 0 or self.size < 1):
            raise InputError(f"a blob needs position >= 0 and size >= 1, got {self.position} and {self.size}")

    @staticmethod
    def from_bytes(data: bytes | bytearray | memoryview) -> Blob:
        """A value held by the table."""
        return Blob(data=bytes(data))

    @staticmethod
    def from_uri(uri: str, position: int | None = None, size: int | None = None) -> Blob:
        """A value held elsewhere."""
        return Blob(uri=uri, position=position, size=size)

    @staticmethod
    def empty() -> Blob:
        """A value of no bytes."""
        return Blob(data=b"")


class BlobType(pa.ExtensionType):  # type: ignore[misc, unused-ignore]  # Any where no stubs are installed
    """The type of a blob column as users write it."""

    def __init__(self) -> None:
        super().__init__(_STORAGE, BLOB_V2)

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> BlobType:
        return cls()


def blob_array(values: Iterable[Any]) -> pa.ExtensionArray[Any]:
    """A column of blobs from bytes, uris (str), `Blob`s and None. InputError for anything else."""
    rows = [None if value is None else _row(value) for value in values]
    return pa.ExtensionArray.from_storage(BlobType(), pa.array(rows, _STORAGE))


def _row(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        value = Blob.from_uri(value)
    elif isinstance(value, bytes | bytearray | memoryview):
        value = Blob.from_bytes(value)
    if not isinstance(value, Blob):
        raise InputError(f"a blob must be bytes, a uri, a Blob or None, got {type(value).__name__}")
    return {"data": value.data, "uri": value.uri, "position": value.position, "size": value.size}


class BlobColumn:
    """The values of a binary column as files, one after the other; None for a null."""

    def __init__(self, blob_column: pa.Array[Any] | pa.ChunkedArray[Any]) -> None:
        stored = blob_column.type
        if not (pa.types.is_binary(stored) or pa.types.is_large_binary(stored)):
            raise InputError(f"expected a binary column, got {stored}")
        self._column = blob_column

    def __iter__(self) -> Iterator[io.BytesIO | None]:
        values: Any = self._column
        for value in values:
            yield io.BytesIO(value.as_py()) if value.is_valid else None


def blob_field(
    name: str,
    *,
    nullable: bool = True,
    inline_size_threshold: int | None = None,
    dedicated_size_threshold: int | None = None,
    pack_file_size_threshold: int | None = None,
) -> pa.Field[Any]:
    """The field of a blob column. The thresholds, in bytes, say where values go when a file is written.

    Up to `inline_size_threshold` (64 KiB) they are in the data file; above `dedicated_size_threshold` (4 MiB) each has a
    file of its own; in between they share files of at most `pack_file_size_threshold` (1 GiB). InputError when negative, or
    when one of the last two is 0.
    """
    sizes = {"inline": inline_size_threshold, "dedicated": dedicated_size_threshold, "pack-file": pack_file_size_threshold}
    metadata = {}
    for key, size in sizes.items():
        if size is None:
            continue
        if isinstance(size, bool) or not isinstance(size, int) or size < (0 if key == "inline" else 1):
            raise InputError(f"the {key} size threshold of a blob field must be a positive number of bytes, got {size!r}")
        metadata[f"lance-encoding:blob-{key}-size-threshold"] = str(size)
    return pa.field(name, BlobType(), nullable=nullable, metadata=metadata or None)
