"""Row id sequences and version sequences as the bytes a manifest holds (`rowids.proto`).

    0a 04 0a 02 10 0a        one segment: Range(0, 10)
    0a 08 0a 04 0a 02 10 0a 10 01        one run: ten rows of version 1

The messages are small and there is one for each fragment, so they are written and walked by hand; only `lance_core.wire` may
hold protobuf classes, and it checks this file against them in its tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lance_core.errors import CorruptFileError
from lance_core.rowids.segment import (
    Array,
    IdRange,
    RangeWithBitmap,
    RangeWithHoles,
    Segment,
    SortedArray,
    UInt64Array,
    check_span,
)
from lance_core.rowids.sequence import RowIdSequence
from lance_core.rowids.versions import VersionRun, VersionSequence
from lance_core.rowids.walk import encode_field, walk_fields

_WIDTHS: dict[int, np.dtype[Any]] = {1: np.dtype("<u2"), 2: np.dtype("<u4")}


def decode_row_ids(data: bytes | memoryview) -> RowIdSequence:
    """A row id sequence; CorruptFileError when the bytes are not one."""
    return RowIdSequence(tuple(_decode_segment(_bytes(value)) for number, value in walk_fields(data) if number == 1))


def encode_row_ids(sequence: RowIdSequence) -> bytes:
    """A serialized RowIdSequence."""
    return b"".join(encode_field(1, _encode_segment(segment)) for segment in sequence.segments)


def decode_versions(data: bytes | memoryview) -> VersionSequence:
    """A version sequence. Only the length of a run's span counts (compaction leaves spans that start anywhere)."""
    return VersionSequence(tuple(_decode_run(_bytes(value)) for number, value in walk_fields(data) if number == 1))


def encode_versions(sequence: VersionSequence) -> bytes:
    """A serialized RowDatasetVersionSequence; spans count up from row 0."""
    parts, start = [], 0
    for run in sequence.runs:
        span = encode_field(1, _encode_segment(IdRange(start, start + run.num_rows)))
        parts.append(encode_field(1, span + encode_field(2, run.version)))
        start += run.num_rows
    return b"".join(parts)


def _decode_run(data: memoryview) -> VersionRun:
    num_rows = version = 0
    for number, value in walk_fields(data):
        if number == 1:
            num_rows = len(_decode_segment(_bytes(value)))
        elif number == 2:
            version = _int(value)
    return VersionRun(num_rows=num_rows, version=version)


def _bytes(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise CorruptFileError("a row id message has a number where a nested message is expected")
    return value


def _int(value: int | memoryview) -> int:
    if not isinstance(value, int):
        raise CorruptFileError("a row id message has bytes where a number is expected")
    return value


def _fields(data: memoryview) -> Mapping[int, int | memoryview]:
    return dict(walk_fields(data))


def _decode_segment(data: memoryview) -> Segment:
    arms = [(number, _bytes(value)) for number, value in walk_fields(data) if number in _DECODERS]
    if not arms:
        raise CorruptFileError("a row id segment has an unknown encoding")
    number, body = arms[-1]
    return _DECODERS[number](body)


def _span(fields: Mapping[int, int | memoryview]) -> tuple[int, int]:
    start, end = _int(fields.get(1, 0)), _int(fields.get(2, 0))
    check_span(start, end)
    return start, end


def _decode_range(data: memoryview) -> Segment:
    return IdRange(*_span(_fields(data)))


def _decode_holes(data: memoryview) -> Segment:
    fields = _fields(data)
    start, end = _span(fields)
    holes = np.sort(_decode_array(_bytes(fields.get(3, memoryview(b"")))))
    if len(holes) and (int(holes[0]) < start or int(holes[-1]) >= end or bool(np.any(holes[1:] == holes[:-1]))):
        raise CorruptFileError(f"the holes of a row id segment are outside {start}..{end} or repeated")
    return RangeWithHoles(start, end, holes)


def _decode_bitmap(data: memoryview) -> Segment:
    fields = _fields(data)
    start, end = _span(fields)
    bitmap = np.frombuffer(_bytes(fields.get(3, memoryview(b""))), dtype=np.uint8)
    if len(bitmap) != (end - start + 7) // 8:
        raise CorruptFileError(f"the bitmap of row id segment {start}..{end} has {len(bitmap)} bytes")
    return RangeWithBitmap(start, end, bitmap)


def _decode_sorted(data: memoryview) -> Segment:
    values = _decode_array(data)
    if bool(np.any(values[1:] <= values[:-1])):
        raise CorruptFileError("a sorted row id segment is not ascending")
    return SortedArray(values)


def _decode_listed(data: memoryview) -> Segment:
    return Array(_decode_array(data))


_DECODERS = {1: _decode_range, 2: _decode_holes, 3: _decode_bitmap, 4: _decode_sorted, 5: _decode_listed}


def _decode_array(data: memoryview) -> UInt64Array:
    for number, value in walk_fields(data):
        fields = _fields(_bytes(value))
        raw = _bytes(fields.get(2, memoryview(b"")))
        width: np.dtype[Any] = _WIDTHS.get(number, np.dtype("<u8"))
        if len(raw) % width.itemsize:
            raise CorruptFileError(f"{len(raw)} bytes of row ids are not a multiple of {width.itemsize}")
        values: UInt64Array = np.frombuffer(raw, dtype=width).astype(np.uint64)
        if number in _WIDTHS:
            values += np.uint64(_int(fields.get(1, 0)))
        return values
    return np.empty(0, dtype=np.uint64)


def _encode_array(values: UInt64Array) -> bytes:
    base = int(values.min()) if len(values) else 0
    spread = int(values.max()) - base if len(values) else 0
    for number, width in _WIDTHS.items():
        if spread <= np.iinfo(width).max:
            offsets = (values - np.uint64(base)).astype(width).tobytes()
            return encode_field(number, _nonzero(1, base) + encode_field(2, offsets))
    return encode_field(3, encode_field(2, values.astype("<u8").tobytes()))


def _nonzero(number: int, value: int) -> bytes:
    return encode_field(number, value) if value else b""


def _encode_segment(segment: Segment) -> bytes:
    if isinstance(segment, SortedArray):
        return encode_field(4, _encode_array(segment.values))
    if isinstance(segment, Array):
        return encode_field(5, _encode_array(segment.values))
    span = _nonzero(1, segment.start) + _nonzero(2, segment.end)
    if isinstance(segment, IdRange):
        return encode_field(1, span)
    if isinstance(segment, RangeWithHoles):
        return encode_field(2, span + encode_field(3, _encode_array(segment.holes)))
    return encode_field(3, span + encode_field(3, segment.bitmap.tobytes()))
