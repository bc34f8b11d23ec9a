"""Arrow's arrays as numpy's and back, and constants, made from buffers.

`pa.array`, `pa.scalar` and `to_numpy` import pandas when they are first called, where it is installed: half of what a
short process does. The functions here give the same values from the buffers, and call those only for types that they do
not know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.arrays import Bools

_BOOL, _INT64, _FLOAT64, _STRING, _BINARY, _NULL = pa.bool_(), pa.int64(), pa.float64(), pa.string(), pa.binary(), pa.null()
_PLAIN: Mapping[pa.DataType, np.dtype[Any]] = MappingProxyType(
    {
        pa.from_numpy_dtype(np.dtype(code)): np.dtype(code)
        for code in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
    }
)
_ARROW: Mapping[np.dtype[Any], pa.DataType] = MappingProxyType({stored: kind for kind, stored in _PLAIN.items()})
_KINDS: Mapping[type, pa.DataType] = MappingProxyType({int: _INT64, float: _FLOAT64, str: _STRING, bytes: _BINARY})
FALSE: pa.Scalar[Any] = pa.Array.from_buffers(_BOOL, 1, [None, pa.py_buffer(b"\0")])[0]
TRUE: pa.Scalar[Any] = pa.Array.from_buffers(_BOOL, 1, [None, pa.py_buffer(b"\1")])[0]


def numpy_of(values: pa.Array[Any] | pa.ChunkedArray[Any], *, may_copy: bool = False) -> npt.NDArray[Any]:
    """What `values.to_numpy(zero_copy_only=not may_copy)` gives; parts of a chunked array are always joined."""
    if isinstance(values, pa.ChunkedArray):
        if values.null_count or not (values.type in _PLAIN or values.type == _BOOL):
            return values.to_numpy()
        parts = [numpy_of(chunk, may_copy=True) for chunk in values.chunks if len(chunk)]
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else np.empty(0, _PLAIN.get(values.type, np.dtype(bool)))
    stored = _PLAIN.get(values.type)
    if stored is not None and not values.null_count:
        buffer = values.buffers()[1]
        if buffer is None or not len(values):
            return np.empty(0, stored)
        return np.frombuffer(cast("Any", buffer), stored, len(values), values.offset * stored.itemsize)
    if may_copy and values.type == _BOOL and not values.null_count:
        return _bits_of(values)
    return values.to_numpy(zero_copy_only=not may_copy)


def number_type(kind: pa.DataType) -> np.dtype[Any]:
    """The type of numbers that numpy has for one of Arrow's, without pandas, which Arrow's `to_pandas_dtype` needs up to 25.

    Raises KeyError for a type whose values are no numbers of 8 to 64 bits.
    """
    return _PLAIN[kind]


def arrow_of(values: npt.NDArray[Any], kind: pa.DataType | None = None, *, mask: Bools | None = None) -> pa.Array[Any]:
    """What `pa.array(values, kind, mask=mask)` gives; `mask` is true for nulls. Numbers in one piece are not copied."""
    stored = _ARROW.get(values.dtype)
    plain = values.ndim == 1 and (kind is None or kind == stored or (kind == _BOOL and values.dtype == np.bool_))
    if not plain or (stored is None and values.dtype != np.bool_):
        return cast("pa.Array[Any]", pa.array(values, cast("Any", kind), mask=mask))
    body = np.ascontiguousarray(values) if stored is not None else np.packbits(values, bitorder="little")
    valid = None if mask is None else pa.py_buffer(cast("Any", np.packbits(~mask, bitorder="little")))
    made = pa.Array.from_buffers(cast("Any", stored or _BOOL), len(values), [valid, pa.py_buffer(cast("Any", body))])
    return cast("pa.Array[Any]", made)


def constant(value: object, kind: pa.DataType | None = None) -> pa.Scalar[Any]:
    """What `pa.scalar(value, kind)` gives."""
    if value is None:
        return cast("pa.Scalar[Any]", pa.nulls(1, cast("Any", kind or _NULL))[0])
    if type(value) is bool and kind in (None, _BOOL):
        return TRUE if value else FALSE
    wanted = kind or _KINDS.get(type(value))
    if type(value) in _KINDS and (wanted in _PLAIN or wanted in (_STRING, _BINARY)):
        return cast("pa.Scalar[Any]", array_of([value], cast("Any", wanted))[0])
    return cast("pa.Scalar[Any]", pa.scalar(cast("Any", value), cast("Any", kind)))


def _bits_of(values: pa.Array[Any]) -> Bools:
    """Booleans without nulls, a byte each: a tenth of the time that Arrow's cast takes."""
    buffer = values.buffers()[1]
    if buffer is None or not len(values):
        return np.empty(0, np.bool_)
    first, shift = divmod(values.offset, 8)
    count = shift + len(values)
    stored = np.frombuffer(cast("Any", buffer), np.uint8, (count + 7) // 8, first)
    return np.unpackbits(stored, count=count, bitorder="little")[shift:].view(np.bool_)


def array_of(values: Sequence[object], kind: pa.DataType) -> pa.Array[Any]:
    """What `pa.array(values, kind)` gives."""
    stored, types = _PLAIN.get(kind), {type(value) for value in values}
    if stored is not None and (types == {float} or (types == {int} and stored.kind != "f")):
        try:
            return arrow_of(np.array(values, stored), kind)
        except OverflowError:
            pass  # nosec B110: pyarrow refuses it with its own words
    if kind in (_STRING, _BINARY) and types == {str if kind == _STRING else bytes}:
        found = _of_bodies(values, kind)
        if found is not None:
            return found
    return cast("pa.Array[Any]", pa.array(cast("Any", values), cast("Any", kind)))


def _of_bodies(values: Sequence[Any], kind: pa.DataType) -> pa.Array[Any] | None:
    """Texts or bytes as an array; None where their offsets need 64 bits."""
    plain = "".join(values) if kind == _STRING else ""
    if plain.isascii() and kind == _STRING:  # a character is a byte, so that no text is encoded alone
        lengths, whole = map(len, values), plain.encode()
    else:
        bodies = [value.encode() if isinstance(value, str) else value for value in values]
        lengths, whole = map(len, bodies), b"".join(bodies)
    if len(whole) >= 2**31:
        return None
    ends = np.cumsum([0, *lengths])
    buffers = [None, pa.py_buffer(cast("Any", ends.astype(np.int32))), pa.py_buffer(whole)]
    return cast("pa.Array[Any]", pa.Array.from_buffers(cast("Any", kind), len(values), buffers))


def no_values(kind: pa.DataType) -> pa.Array[Any]:
    """An array of this type without values."""
    try:
        return cast("pa.Array[Any]", pa.nulls(0, cast("Any", kind)))
    except pa.ArrowNotImplementedError:
        return cast("pa.Array[Any]", pa.array([], cast("Any", kind)))


def no_rows(schema: pa.Schema) -> pa.Table:
    """What `schema.empty_table()` gives."""
    return pa.Table.from_arrays([no_values(field.type) for field in schema], schema=schema)


def true_of(known: pa.Array[Any] | pa.ChunkedArray[Any]) -> Bools:
    """Where a column of booleans is true: a null counts as false."""
    told: Any = known.fill_null(cast("Any", FALSE)) if known.null_count else known
    return numpy_of(told, may_copy=True)
