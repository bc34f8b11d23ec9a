"""Packed structs: the children of a row side by side.

::

    PackedStruct((16, 8), Flat(24)), rows (1, 2), (3, 4)         01 00 02   03 00 04
    VariablePackedStruct(Flat(16) fixed, Variable of 32-bit lengths), row (1, "ab")     01 00   02 00 00 00   61 62

The second exists only in full-zip pages, where a row is the payload; a variable child is encoded value by value with
its own encoding. (Spec: compressive encodings, "packed struct".)
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_core.arrays import Bytes, Ints
from lance_core.codecs.blocks import Block, FixedBlock, Pieces, StructBlock, VariableBlock
from lance_core.codecs.dispatch import Codecs, Values
from lance_core.codecs.encoded import EncodedChunks, EncodedValues
from lance_core.errors import CorruptFileError, UnsupportedEncodingError
from lance_core.format.encoding import PackedField, PackedStruct, VariablePackedStruct
from lance_core.kernels import bytes as kernels

_INT32_MAX = 2**31 - 1


def num_buffers(encoding: PackedStruct | VariablePackedStruct, codecs: Codecs) -> int:
    """One buffer of rows."""
    if isinstance(encoding, VariablePackedStruct):
        raise UnsupportedEncodingError("VariablePackedStruct is only supported in full-zip pages")
    return codecs.num_buffers(encoding.values)


def decode(
    encoding: PackedStruct | VariablePackedStruct, buffers: tuple[Pieces, ...], counts: Ints, codecs: Codecs
) -> Block:
    """StructBlock with a FixedBlock per child."""
    if isinstance(encoding, VariablePackedStruct):
        raise UnsupportedEncodingError("VariablePackedStruct is only supported in full-zip pages")
    return _split(encoding, codecs.decode(encoding.values, buffers, counts))


def decode_block(encoding: PackedStruct | VariablePackedStruct, piece: Pieces, counts: Ints, codecs: Codecs) -> Block:
    """The rows as one buffer."""
    if isinstance(encoding, VariablePackedStruct):
        raise UnsupportedEncodingError("VariablePackedStruct is only supported in full-zip pages")
    return _split(encoding, codecs.decode_block(encoding.values, piece, counts))


def decode_values(encoding: PackedStruct | VariablePackedStruct, payload: Values, codecs: Codecs) -> Block:
    """StructBlock from rows; a row without payload gives zeros and empty values."""
    if isinstance(encoding, PackedStruct):
        return _split(encoding, codecs.decode_values(encoding.values, payload))
    if not isinstance(payload, VariableBlock):
        raise CorruptFileError("a page of VariablePackedStruct rows has payloads of fixed width, expected variable")
    return _walk(encoding, payload, codecs)


def encode_chunks(rows: EncodedChunks, bits: tuple[int, ...]) -> EncodedChunks:
    """Name the children of flat rows (of `join_rows`)."""
    return EncodedChunks(PackedStruct(bits, rows.encoding), rows.counts, rows.buffers)


def join_rows(block: StructBlock) -> tuple[FixedBlock, tuple[int, ...]]:
    """Fixed-width children side by side, and their widths in bits."""
    columns, bits = [], []
    for child in block.children:
        if not isinstance(child, FixedBlock) or child.bits % 8:
            raise UnsupportedEncodingError("the children of a packed struct are not whole bytes wide")
        columns.append(child.data[: child.count * (child.bits // 8)].reshape(block.count, child.bits // 8))
        bits.append(child.bits)
    rows = np.concatenate(columns, axis=1)
    return FixedBlock(sum(bits), rows.reshape(-1), block.count), tuple(bits)


def encode_values(children: list[EncodedValues], count: int) -> EncodedValues:
    """Rows of children that are encoded already, each value alone."""
    fields = tuple(_field(child) for child in children)
    sizes = [_payload_sizes(child, count) for child in children]
    row_sizes = np.sum(sizes, axis=0, dtype=np.int64) if children else np.zeros(count, np.int64)
    offsets = np.append(0, np.cumsum(row_sizes))
    out = np.empty(int(offsets[-1]), np.uint8)
    cursor = offsets[:-1]
    for child, size in zip(children, sizes, strict=True):
        _write_child(child, cursor, out)
        cursor = cursor + size
    narrow = int(offsets[-1]) <= _INT32_MAX
    return EncodedValues(VariablePackedStruct(fields), VariableBlock(offsets.astype(np.int32) if narrow else offsets, out))


def _split(encoding: PackedStruct, rows: Block) -> StructBlock:
    bits = encoding.bits_per_value
    if not bits or any(width <= 0 or width % 8 for width in bits):
        raise UnsupportedEncodingError(f"PackedStruct with children of {bits} bits is not supported")
    if not isinstance(rows, FixedBlock) or sum(bits) != rows.bits:
        raise CorruptFileError(f"PackedStruct children of {bits} bits in rows of another width")
    grid = rows.data[: rows.count * (rows.bits // 8)].reshape(rows.count, rows.bits // 8)
    children, at = [], 0
    for width in bits:
        column = np.ascontiguousarray(grid[:, at // 8 : (at + width) // 8]).reshape(-1)
        children.append(FixedBlock(width, column, rows.count))
        at += width
    return StructBlock(tuple(children), rows.count)


def _walk(encoding: VariablePackedStruct, payload: VariableBlock, codecs: Codecs) -> StructBlock:
    """Read field after field with one cursor for each row."""
    data = np.ascontiguousarray(payload.data)
    present = np.flatnonzero(payload.offsets[1:] > payload.offsets[:-1])
    cursor = payload.offsets[:-1].astype(np.int64)[present]
    ends = payload.offsets[1:].astype(np.int64)[present]
    children = []
    for field in encoding.fields:
        sizes = _fixed_sizes(field, len(present))
        if sizes is None:
            lengths, cursor = _read_lengths(field, data, cursor, ends)
            sizes = lengths
        if (sizes > ends - cursor).any():
            raise CorruptFileError("VariablePackedStruct: a field is longer than its row")
        child = _child_payload(field, data, cursor, sizes, present, payload.count)
        children.append(codecs.decode_values(field.value, child))
        cursor = cursor + sizes
    if (cursor != ends).any():
        raise CorruptFileError("VariablePackedStruct: a row is longer than its fields")
    return StructBlock(tuple(children), payload.count)


def _fixed_sizes(field: PackedField, count: int) -> Ints | None:
    if field.bits_per_value is None:
        return None
    if field.bits_per_value <= 0 or field.bits_per_value % 8 or field.bits_per_value > 1 << 34:
        raise UnsupportedEncodingError(f"VariablePackedStruct field of {field.bits_per_value} bits")
    return np.full(count, field.bits_per_value // 8, np.int64)


def _read_lengths(field: PackedField, data: Bytes, cursor: Ints, ends: Ints) -> tuple[Ints, Ints]:
    if field.bits_per_length not in (32, 64):
        raise CorruptFileError(f"VariablePackedStruct field with lengths of {field.bits_per_length} bits")
    width = field.bits_per_length // 8
    if (ends - cursor < width).any():
        raise CorruptFileError("VariablePackedStruct: a row ends before the length of a field")
    words = data[cursor[:, None] + np.arange(width)].reshape(-1).view(f"<u{width}").astype(np.uint64)
    if (words > np.uint64(len(data))).any():
        raise CorruptFileError("VariablePackedStruct: a field is longer than its page")
    return words.astype(np.int64), cursor + width


def _child_payload(
    field: PackedField, data: Bytes, starts: Ints, sizes: Ints, present: npt.NDArray[np.intp], count: int
) -> FixedBlock | VariableBlock:
    """The field's payloads of all rows; rows without payload get zeros or nothing."""
    all_sizes = np.zeros(count, np.int64)
    if field.bits_per_value is not None:
        all_sizes[:] = field.bits_per_value // 8
    else:
        all_sizes[present] = sizes
    offsets = np.append(0, np.cumsum(all_sizes))
    out = np.zeros(int(offsets[-1]), np.uint8)
    if kernels.copy_runs(data, starts, sizes, offsets[:-1][present], out) < 0:
        raise CorruptFileError("VariablePackedStruct: a field outside its page")
    if field.bits_per_value is not None:
        return FixedBlock(field.bits_per_value, out, count)
    wide = field.bits_per_length == 64 or int(offsets[-1]) > _INT32_MAX
    return VariableBlock(offsets if wide else offsets.astype(np.int32), out)


def _field(child: EncodedValues) -> PackedField:
    if isinstance(child.payload, FixedBlock):
        return PackedField(child.encoding, bits_per_value=child.payload.bits)
    return PackedField(child.encoding, bits_per_length=child.payload.offsets.dtype.itemsize * 8)


def _payload_sizes(child: EncodedValues, count: int) -> Ints:
    if isinstance(child.payload, FixedBlock):
        if child.payload.bits % 8:
            raise UnsupportedEncodingError("the children of a packed struct are not whole bytes wide")
        return np.full(count, child.payload.bits // 8, np.int64)
    return np.diff(child.payload.offsets).astype(np.int64) + child.payload.offsets.dtype.itemsize


def _write_child(child: EncodedValues, targets: Ints, out: Bytes) -> None:
    payload = child.payload
    if isinstance(payload, FixedBlock):
        size = payload.bits // 8
        starts = np.arange(payload.count, dtype=np.int64) * size
        kernels.copy_runs(np.ascontiguousarray(payload.data), starts, np.full(payload.count, size), targets, out)
        return
    width = payload.offsets.dtype.itemsize
    sizes = np.diff(payload.offsets).astype(np.int64)
    words = np.ascontiguousarray(sizes.astype(f"<u{width}")).view(np.uint8)
    at = np.arange(payload.count, dtype=np.int64) * width
    kernels.copy_runs(words, at, np.full(payload.count, width), targets, out)
    kernels.copy_runs(np.ascontiguousarray(payload.data), payload.offsets[:-1].astype(np.int64), sizes, targets + width, out)


def is_fixed(block: StructBlock) -> bool:
    """Whether all children are whole bytes wide, so that rows have one width."""
    return all(isinstance(child, FixedBlock) and child.bits % 8 == 0 for child in block.children)
