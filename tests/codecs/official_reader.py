"""A smallest possible file around encoded values, so that the official library judges our encoders.

One column, one page, no nulls: a mini-block page from EncodedChunks (and levels, and a dictionary) or a full-zip page
from EncodedValues.
"""

from __future__ import annotations

import itertools
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
from lance.file import LanceFileReader

from lance_core.arrow import schema_from_arrow
from lance_core.codecs.blocks import FixedBlock
from lance_core.codecs.encoded import EncodedBlock, EncodedChunks, EncodedLevels, EncodedValues
from lance_core.fetch import ByteRange
from lance_core.format.layout import FileColumn, FullZipLayout, MiniBlockLayout, Page, RepDefLayer
from lance_core.wire.columns import encode_column
from lance_core.wire.file import FileDescriptor, encode_file_descriptor

NUMBERS = {"2.1": (2, 1), "2.2": (2, 2)}


def mini_block(
    encoded: EncodedChunks,
    *,
    version: str,
    levels: EncodedLevels | None = None,
    dictionary: EncodedBlock | None = None,
    num_dictionary_items: int = 0,
) -> tuple[MiniBlockLayout, list[bytes]]:
    """Layout and buffers; `levels` are definition levels, one for each value."""
    large = version != "2.1"
    words, chunks = [], []
    for number, count in enumerate(encoded.counts.tolist()):
        last = number == len(encoded.counts) - 1
        parts = [_piece(pieces, number) for pieces in encoded.buffers]
        head = struct.pack("<H", count if levels else 0)
        if levels:
            level = _piece(levels.pieces, number)
            head += struct.pack("<H", len(level))
            parts.insert(0, level)
        head += b"".join(struct.pack("<I" if large else "<H", len(part)) for part in parts[bool(levels) :])
        body = b"".join(_pad(part) for part in (head, *parts))
        words.append((len(body) // 8 - 1) << 4 | (0 if last else count.bit_length() - 1))
        chunks.append(body)
    layer = RepDefLayer.NULLABLE_ITEM if levels else RepDefLayer.ALL_VALID_ITEM
    layout = MiniBlockLayout(
        encoded.encoding,
        (layer,),
        int(encoded.counts.sum()),
        len(encoded.buffers),
        def_compression=levels.encoding if levels else None,
        dictionary=dictionary.encoding if dictionary else None,
        num_dictionary_items=num_dictionary_items,
        has_large_chunk=large,
    )
    buffers = [np.array(words, "<u4" if large else "<u2").tobytes(), b"".join(chunks)]
    return layout, buffers + ([dictionary.data] if dictionary else [])


def full_zip(encoded: EncodedValues) -> tuple[FullZipLayout, list[bytes]]:
    """Layout and buffers."""
    payload, layer = encoded.payload, (RepDefLayer.ALL_VALID_ITEM,)
    count = payload.count
    if isinstance(payload, FixedBlock):
        data = payload.data.tobytes()
        return FullZipLayout(encoded.encoding, layer, count, count, bits_per_value=payload.bits), [data]
    ends, raw, width = payload.offsets.tolist(), payload.data.tobytes(), payload.offsets.dtype.itemsize
    rows = [(b - a).to_bytes(width, "little") + raw[a:b] for a, b in itertools.pairwise(ends)]
    index = np.cumsum([0, *map(len, rows)])
    word = next(size for size in (1, 2, 4, 8) if int(index[-1]) < 1 << 8 * size)
    layout = FullZipLayout(encoded.encoding, layer, count, count, bits_per_offset=width * 8)
    return layout, [b"".join(rows), index.astype(f"<u{word}").tobytes()]


def read_officially(
    path: Path, field: pa.Field, page: tuple[object, list[bytes]], num_rows: int, *, version: str
) -> pa.Array:
    """Write the file, read it with the official library."""
    layout, buffers = page
    schema = schema_from_arrow(pa.schema([field]))
    body, ranges = b"", []
    for buffer in (*buffers, encode_file_descriptor(FileDescriptor(schema, num_rows))):
        body += b"H" * (-len(body) % 64)
        ranges.append(ByteRange(len(body), len(body) + len(buffer)))
        body += buffer
    descriptor = ranges.pop()
    metadata = encode_column(FileColumn((Page(layout, tuple(ranges), num_rows, 0),)))
    start = len(body)
    body += metadata + struct.pack("<QQ", start, len(metadata)) + struct.pack("<QQ", descriptor.start, descriptor.size)
    table = start + len(metadata)
    body += struct.pack("<QQQIIHH", start, table, table + 16, 1, 1, *NUMBERS[version]) + b"LANC"
    path.write_bytes(body)
    return LanceFileReader(str(path)).read_all().to_table()["c"].combine_chunks()


def _piece(pieces, number: int) -> bytes:
    start = int(pieces.starts[number])
    return pieces.data[start : start + int(pieces.sizes[number])].tobytes()


def _pad(data: bytes) -> bytes:
    return data + b"\xfe" * (-len(data) % 8)
