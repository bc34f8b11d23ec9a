"""Digests of values: the same for every physical form of the same logical value, and for no other value.

::

    row_digests([pa.array(["a", None])], seed=b"...")        two rows, sixteen bytes each
    a dictionary, a large or a view type, another unit       the same digests
    -0.0 and 0.0, NaN and NaN with other bits                the same digests
    null, "", [], [null], [null, null]                       five different ones

A row is `seed`, then for each column a cell: one byte that says whether there is a value, and the value in a width that its
type fixes, zeros for a null. What has no fixed width (text, bytes, lists) is a digest of its content there, so a row's bytes
can be read in one way only. docs/freshness.md has the whole rule, with test vectors.

The hash is BLAKE2b, 128 bits of it, not a fast one: whoever writes texts into a table must not be able to write one that is
taken for another. A key would not help, because it would have to stand in the table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.arrow_numpy import numpy_of
from lance_core.errors import InputError
from lance_core.kernels.blake2b import INITIAL, ORDER, digest_slices, first_state

Bytes = npt.NDArray[np.uint8]
DIGEST_SIZE = 16
_ROW = b"lance:row"
_CONTENT = b"lance:content"
_NULLS = b"lance:nulls"
_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def row_digests(columns: Sequence[Any], *, seed: bytes, salt: bytes = b"") -> Bytes:
    """Sixteen bytes for each row (shape: rows, 16) of arrays of one length; `seed` says what the digests are about.

    Two calls with one seed must be about columns of the same `type_signature`s. Another `salt` (sixteen bytes at most) makes
    other hashes of rows and of all that is within them, so that a row's digests with two salts have 256 bits together.
    InputError for a type without a rule.
    """
    cells = [_cell(_plain(column), salt) for column in columns]
    num_rows = len(columns[0]) if columns else 0
    head = np.broadcast_to(np.frombuffer(seed, np.uint8), (num_rows, len(seed)))
    return _digest_matrix(np.concatenate([head, *cells], axis=1), _ROW, salt)


def type_signature(stored: pa.DataType) -> str:
    """What a type says of its values' meaning, without their physical form. InputError for a type without a rule."""
    kind = _storage_of(stored)
    test = pa.types
    if test.is_string(kind) or test.is_large_string(kind) or test.is_string_view(kind):
        return "text"
    if _is_bytes(kind):
        return "bytes"
    if test.is_timestamp(kind):
        return "time" if kind.tz is None else f"time<{kind.tz}>"
    if test.is_duration(kind):
        return "duration"
    if test.is_time(kind):
        return "time of day"
    if test.is_date(kind):
        return "date"
    if test.is_decimal(kind):
        return f"decimal<{kind.scale}>"
    if _is_list(kind):
        return f"list<{type_signature(kind.value_type)}>"
    if test.is_map(kind):
        return f"map<{type_signature(kind.key_type)}, {type_signature(kind.item_type)}>"
    if test.is_struct(kind):
        fields = (kind.field(place) for place in range(kind.num_fields))
        return f"struct<{', '.join(f'{len(item.name)}:{item.name} {type_signature(item.type)}' for item in fields)}>"
    if test.is_null(kind) or test.is_boolean(kind) or test.is_integer(kind) or test.is_floating(kind):
        return str(kind)
    raise InputError(f"values of type {kind} have no digest", cure="Cast the column, or leave it out of the inputs.")


def _storage_of(kind: Any) -> Any:
    """The type without what is only about how its values are kept."""
    while True:
        if isinstance(kind, pa.BaseExtensionType):
            kind = kind.storage_type
        elif pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
            kind = kind.value_type
        else:
            return kind


def _is_bytes(kind: Any) -> bool:
    test = pa.types
    known = (test.is_binary, test.is_large_binary, test.is_binary_view, test.is_fixed_size_binary)
    return any(check(kind) for check in known)


def _is_list(kind: Any) -> bool:
    test = pa.types
    known = (test.is_list, test.is_large_list, test.is_fixed_size_list, test.is_list_view, test.is_large_list_view)
    return any(check(kind) for check in known)


def _plain(column: Any) -> Any:
    """One array without chunks, extensions, dictionaries, run ends or views."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)
    while True:
        kind = column.type
        test = pa.types
        if isinstance(kind, pa.BaseExtensionType):
            column = column.storage
        elif test.is_dictionary(kind):
            column = column.dictionary_decode()
        elif test.is_run_end_encoded(kind):
            column = cast("Any", pc).run_end_decode(column)
        elif test.is_string_view(kind) or test.is_string(kind):
            column = column.cast(pa.large_string())
        elif test.is_binary_view(kind) or test.is_binary(kind):
            column = column.cast(pa.large_binary())
        else:
            return column


def _cell(array: Any, salt: bytes) -> Bytes:
    """(rows, 1 + width): whether there is a value, and it; of a plain array."""
    is_valid = numpy_of(array.is_valid(), may_copy=True).astype(np.uint8)
    payload = _payload(array, salt)
    if array.null_count and payload.shape[1]:
        payload = payload * is_valid[:, None]
    return np.concatenate([is_valid[:, None], payload], axis=1)


def _payload(array: Any, salt: bytes) -> Bytes:
    """(rows, width): values in the width of their type; what stands for a null does not matter."""
    kind = array.type
    for applies, made_by in _PLAIN_PAYLOADS:
        if applies(kind):
            return made_by(array)
    for applies, hashed_by in _HASHED_PAYLOADS:
        if applies(kind):
            return hashed_by(array, salt)
    raise InputError(f"values of type {kind} have no digest", cure="Cast the column, or leave it out of the inputs.")


def _numbers(array: Any, dtype: Any) -> Any:
    """The values buffer of an array of fixed width, as numbers of a type as wide."""
    dtype = np.dtype(dtype)
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.zeros(len(array), dtype)
    return np.frombuffer(buffer, dtype, count=len(array), offset=array.offset * dtype.itemsize)


def _bytes_of(numbers: Any) -> Bytes:
    plain = np.ascontiguousarray(numbers)
    return plain.view(np.uint8).reshape(len(plain), -1) if len(plain) else np.zeros((0, plain.dtype.itemsize), np.uint8)


def _no_payload(array: Any) -> Bytes:
    return np.zeros((len(array), 0), np.uint8)


def _booleans(array: Any) -> Bytes:
    return numpy_of(array.fill_null(False), may_copy=True).astype(np.uint8)[:, None]


def _integers(array: Any) -> Bytes:
    sign = "i" if pa.types.is_signed_integer(array.type) else "u"
    return _bytes_of(_numbers(array, f"<{sign}{array.type.bit_width // 8}"))


def _floats(array: Any) -> Bytes:
    numbers = _numbers(array, f"<f{array.type.bit_width // 8}") + np.zeros(1, f"<f{array.type.bit_width // 8}")  # no -0.0
    numbers[np.isnan(numbers)] = np.nan
    return _bytes_of(numbers)


def _dates(array: Any) -> Bytes:
    if pa.types.is_date32(array.type):
        return _bytes_of(_numbers(array, "<i4").astype("<i8"))
    return _bytes_of(_numbers(array, "<i8") // 86_400_000)


def _times_of_day(array: Any) -> Bytes:
    numbers = _numbers(array, f"<i{array.type.bit_width // 8}").astype("<i8")
    return _bytes_of(numbers * _NANOSECONDS[array.type.unit])


def _moments(array: Any) -> Bytes:
    """Seconds and nanoseconds: nanoseconds alone do not reach as far as seconds do."""
    each = _NANOSECONDS[array.type.unit]
    numbers = _numbers(array, "<i8")
    seconds, rest = np.divmod(numbers, 10**9 // each)
    return np.concatenate([_bytes_of(seconds.astype("<i8")), _bytes_of((rest * each).astype("<u4"))], axis=1)


def _decimals(array: Any) -> Bytes:
    """Two's complement of 32 bytes, whatever the width it is kept in."""
    width = array.type.bit_width // 8
    stored = _numbers(array, f"V{width}").view(np.uint8).reshape(len(array), width)
    wide = np.empty((len(array), 32), np.uint8)
    wide[:, :width] = stored
    wide[:, width:] = np.where(stored[:, width - 1 : width] > 127, 255, 0)
    return wide


def _fixed_bytes(array: Any, salt: bytes) -> Bytes:
    width = array.type.byte_width
    data = array.buffers()[1]
    starts = (np.arange(len(array), dtype=np.int64) + array.offset) * width
    return _digest_slices(data, starts, starts + width, _CONTENT, salt)


def _texts(array: Any, salt: bytes) -> Bytes:
    buffers = array.buffers()
    if not len(array):
        return np.zeros((0, DIGEST_SIZE), np.uint8)
    offsets = np.frombuffer(buffers[1], "<i8", count=len(array) + 1, offset=array.offset * 8)
    return _digest_slices(buffers[2], offsets[:-1], offsets[1:], _CONTENT, salt)


def _structs(array: Any, salt: bytes) -> Bytes:
    fields = [array.field(place) for place in range(array.type.num_fields)]
    return np.concatenate([_no_payload(array), *(_cell(_plain(field), salt) for field in fields)], axis=1)


def _lists(array: Any, salt: bytes) -> Bytes:
    kind = array.type
    if pa.types.is_fixed_size_list(kind):
        starts = (np.arange(len(array), dtype=np.int64) + array.offset) * kind.list_size
        return _digest_lists(array, starts, starts + kind.list_size, array.values, salt)
    offsets = numpy_of(array.offsets, may_copy=True).astype(np.int64)
    if pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        return _digest_lists(array, offsets, offsets + numpy_of(array.sizes, may_copy=True), array.values, salt)
    return _digest_lists(array, offsets[:-1], offsets[1:], array.values, salt)


def _maps(array: Any, salt: bytes) -> Bytes:
    offsets = numpy_of(array.offsets, may_copy=True).astype(np.int64)
    items = pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
    return _digest_lists(array, offsets[:-1], offsets[1:], items, salt)


def _digest_lists(array: Any, starts: Any, ends: Any, items: Any, salt: bytes) -> Bytes:
    """The digest of each list's items; where some are null, of it and of which are."""
    is_valid = numpy_of(array.is_valid(), may_copy=True)
    if not is_valid.any():
        return np.zeros((len(array), DIGEST_SIZE), np.uint8)
    # A null list may stand over items; they are none of its.
    first, last = int(starts[is_valid].min()), int(ends[is_valid].max())
    starts, ends = np.where(is_valid, starts, first), np.where(is_valid, ends, first)
    cells = _cell(_plain(items.slice(first, max(last - first, 0))), salt)
    starts, ends, width = starts - first, ends - first, cells.shape[1] - 1
    content = np.ascontiguousarray(cells[:, 1:])
    digests = _digest_slices(content.reshape(-1), starts * width, ends * width, _CONTENT, salt)
    has_value = np.ascontiguousarray(cells[:, 0])
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(has_value, dtype=np.int64)])
    # Items of no width are counted by the bytes that say whether they are there.
    marked = np.flatnonzero((before[ends] - before[starts] < ends - starts) | (width == 0))
    for row in marked.tolist():
        told = digests[row].tobytes() + has_value[starts[row] : ends[row]].tobytes()
        found = hashlib.blake2b(told, digest_size=DIGEST_SIZE, salt=salt, person=_NULLS)
        digests[row] = np.frombuffer(found.digest(), np.uint8)
    return digests


def _digest_matrix(rows: Bytes, person: bytes, salt: bytes) -> Bytes:
    width = rows.shape[1]
    starts = np.arange(len(rows), dtype=np.int64) * width
    return _digest_slices(np.ascontiguousarray(rows).reshape(-1), starts, starts + width, person, salt)


def _digest_slices(data: Any, starts: Any, ends: Any, person: bytes, salt: bytes) -> Bytes:
    """(slices, 16): BLAKE2b of each."""
    view = np.frombuffer(b"" if data is None else data, np.uint8)
    starts, ends = np.ascontiguousarray(starts, np.int64), np.ascontiguousarray(ends, np.int64)
    out = np.zeros(2 * len(starts), "<u8")
    if digest_slices(view, starts, ends, first_state(person, salt), ORDER, INITIAL, out) < 0:
        raise ValueError("offsets of an Arrow array are beyond its data")
    digests: Bytes = out.view(np.uint8).reshape(len(starts), DIGEST_SIZE)
    return digests


_PLAIN_PAYLOADS: tuple[tuple[Callable[[Any], bool], Callable[[Any], Bytes]], ...] = (
    (pa.types.is_null, _no_payload),
    (pa.types.is_boolean, _booleans),
    (pa.types.is_integer, _integers),
    (pa.types.is_floating, _floats),
    (pa.types.is_date, _dates),
    (pa.types.is_time, _times_of_day),
    (pa.types.is_timestamp, _moments),
    (pa.types.is_duration, _moments),
    (pa.types.is_decimal, _decimals),
)
"""How values of fixed width are written down; the first test that holds."""
_HASHED_PAYLOADS: tuple[tuple[Callable[[Any], bool], Callable[[Any, bytes], Bytes]], ...] = (
    (pa.types.is_fixed_size_binary, _fixed_bytes),
    (pa.types.is_large_string, _texts),
    (pa.types.is_large_binary, _texts),
    (_is_list, _lists),
    (pa.types.is_map, _maps),
    (pa.types.is_struct, _structs),
)
"""How values that hold others, or have no width of their own, are written down, with the salt of their hashes."""
