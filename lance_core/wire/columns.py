"""file2.proto <-> `Column`: the pages of one column of a 2.x file, with their layouts.

A layout travels as an `Any` inside the page's encoding; its type says which generation of encodings it is:

    .../lance.encodings.ArrayEncoding        2.0
    .../lance.encodings21.PageLayout         2.1 and 2.2
    .../lance.encodings23.PlanarLayout       2.3
"""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.any_pb2 import Any

from lance_core.errors import CorruptFileError, UnsupportedEncodingError
from lance_core.fetch import ByteRange
from lance_core.format.encoding20 import BlobColumnEncoding
from lance_core.format.layout import (
    BlobLayout,
    ConstantLayout,
    FileColumn,
    FullZipLayout,
    MiniBlockLayout,
    Page,
    SparseLayout,
)
from lance_core.wire import encodings20, encodings21, encodings23
from lance_core.wire.pb import encodings_v2_0_pb2, file2_pb2
from lance_core.wire.schema import parse_message

_ARRAY_ENCODING = "lance.encodings.ArrayEncoding"
_COLUMN_ENCODING = "lance.encodings.ColumnEncoding"
_PAGE_LAYOUT = "lance.encodings21.PageLayout"
_PLANAR_LAYOUT = "lance.encodings23.PlanarLayout"
_PAGE_DECODERS = {
    _ARRAY_ENCODING: encodings20.decode_array_encoding,
    _PAGE_LAYOUT: encodings21.decode_page_layout,
    _PLANAR_LAYOUT: encodings23.decode_planar_layout,
}
_NEW_LAYOUTS = (MiniBlockLayout, ConstantLayout, FullZipLayout, BlobLayout)


def decode_column(data: bytes) -> FileColumn:
    """One ColumnMetadata block. Positions are as the file says, not yet checked against the file's size.

    Raises CorruptFileError for bytes that are no such message, UnsupportedEncodingError for layouts of another generation.
    """
    message = parse_message(file2_pb2.ColumnMetadata, data, what="column metadata")
    return FileColumn(
        pages=tuple(_decode_page(page, number) for number, page in enumerate(message.pages)),
        buffers=_ranges(message.buffer_offsets, message.buffer_sizes),
        encoding=_decode_column_encoding(message),
    )


def _decode_page(page: file2_pb2.ColumnMetadata.Page, number: int) -> Page:
    type_name, value = _direct(page.encoding, f"page {number}")
    decode = _PAGE_DECODERS.get(type_name)
    if decode is None:
        raise UnsupportedEncodingError(
            f"page {number} has the encoding {type_name!r}, which this library does not support",
            cure="Rewrite the table with storage version 2.2.",
        )
    return Page(decode(value), _ranges(page.buffer_offsets, page.buffer_sizes), page.length, page.priority)


def _ranges(offsets: Sequence[int], sizes: Sequence[int]) -> tuple[ByteRange, ...]:
    if len(offsets) != len(sizes):
        raise CorruptFileError(f"{len(offsets)} buffer offsets but {len(sizes)} buffer sizes")
    return tuple(ByteRange(start, start + size) for start, size in zip(offsets, sizes, strict=True))


def _direct(encoding: file2_pb2.Encoding, what: str) -> tuple[str, bytes]:
    if encoding.WhichOneof("location") != "direct":
        raise UnsupportedEncodingError(f"{what} keeps its encoding outside the column metadata, which is not supported")
    wrapped = parse_message(Any, encoding.direct.encoding, what=f"description of {what}")
    # Prefixes of type urls changed over time; the last path component is what counts.
    return wrapped.type_url.rsplit("/", 1)[-1], wrapped.value


def _decode_column_encoding(message: file2_pb2.ColumnMetadata) -> object:
    if message.encoding.WhichOneof("location") != "direct":
        return None
    type_name, value = _direct(message.encoding, "the column")
    if type_name != _COLUMN_ENCODING:
        raise UnsupportedEncodingError(f"the column has the encoding {type_name!r}, which this library does not support")
    decoded = parse_message(encodings_v2_0_pb2.ColumnEncoding, value, what="column encoding")
    if decoded.WhichOneof("column_encoding") == "blob":
        return BlobColumnEncoding()
    # A zone index only adds pruning facts beside ordinary values.
    return None


def encode_column(column: FileColumn, *, planar: bool = False) -> bytes:
    """The ColumnMetadata block of a column; `planar`: in the words of 2.3."""
    return encode_columns([column], planar=planar)[0]


def encode_columns(columns: Sequence[FileColumn], *, planar: bool = False) -> list[bytes]:
    """The blocks of many columns; a layout that several pages share is encoded once."""
    plain = _column_encoding(None)
    known: dict[int, bytes] = {}
    blocks = []
    for column in columns:
        message = file2_pb2.ColumnMetadata()
        for page in column.pages:
            added = message.pages.add(length=page.num_rows, priority=page.priority)
            added.buffer_offsets.extend([item.start for item in page.buffers])
            added.buffer_sizes.extend([item.size for item in page.buffers])
            # The columns keep their layouts alive, so that an id is not used again.
            layout = known.get(id(page.layout))
            if layout is None:
                layout = known[id(page.layout)] = _encode_layout(page.layout, planar=planar)
            added.encoding.direct.encoding = layout
        message.buffer_offsets.extend([item.start for item in column.buffers])
        message.buffer_sizes.extend([item.size for item in column.buffers])
        encoding = plain if column.encoding is None else _column_encoding(column.encoding)
        message.encoding.direct.encoding = encoding
        blocks.append(bytes(message.SerializeToString()))
    return blocks


def _column_encoding(encoding: object) -> bytes:
    described = encodings_v2_0_pb2.ColumnEncoding()
    if isinstance(encoding, BlobColumnEncoding):
        described.blob.inner.values.SetInParent()
    else:
        described.values.SetInParent()
    return _wrapped(_COLUMN_ENCODING, described.SerializeToString())


def _encode_layout(layout: object, *, planar: bool) -> bytes:
    if planar and isinstance(layout, (MiniBlockLayout, ConstantLayout, FullZipLayout, SparseLayout)):
        return _wrapped(_PLANAR_LAYOUT, encodings23.encode_planar_layout(layout))
    if isinstance(layout, _NEW_LAYOUTS):
        return _wrapped(_PAGE_LAYOUT, encodings21.encode_page_layout(layout))
    return _wrapped(_ARRAY_ENCODING, encodings20.encode_array_encoding(layout))


def _wrapped(type_name: str, value: bytes) -> bytes:
    return bytes(Any(type_url=f"/{type_name}", value=value).SerializeToString())
