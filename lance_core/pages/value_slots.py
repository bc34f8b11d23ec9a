"""Slices and picks of value slots, whatever kind of block holds them. Slices are views where bytes allow it.

::

    slice_slots(FixedBlock(16, 01 00 02 00 03 00, 3), 1, 3)       FixedBlock(16, 02 00 03 00, 2)
    take_slots(VariableBlock([0, 2, 3], "abc"), [1, 0])           VariableBlock([0, 1, 3], "cab")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from lance_core.arrays import Bytes, Ints
from lance_core.codecs.blocks import Block, DictionaryBlock, FixedBlock, ListBlock, StructBlock, VariableBlock
from lance_core.codecs.gather import gather
from lance_core.pages.leaf import ConstantValues, LeafValues
from lance_core.pages.rows import expand_ranges

_LARGE = 2**31 - 1
_FEW_BYTES = 64
_LONG = 32


def slice_slots(values: LeafValues, start: int, end: int) -> LeafValues:
    """Slots `start` to `end`."""
    if start == 0 and end == values.count:
        return values
    if isinstance(values, ConstantValues):
        return ConstantValues(end - start, values.scalar)
    return _SLICE[type(values)](values, start, end)


def take_slots(values: LeafValues, indices: Ints) -> LeafValues:
    """The slots at `indices` (any order, checked by the caller)."""
    if isinstance(values, ConstantValues):
        return ConstantValues(len(indices), values.scalar)
    return _TAKE[type(values)](values, indices)


def take_ranges(values: LeafValues, starts: Ints, ends: Ints) -> LeafValues:
    """The slots of sorted ranges; one range is a slice, and long ones are joined slices."""
    if len(starts) == 1:
        return slice_slots(values, int(starts[0]), int(ends[0]))
    is_long = int((ends - starts).sum()) >= _LONG * len(starts)
    joined = None if isinstance(values, ConstantValues) or not is_long else _join_slices(values, starts, ends)
    return take_slots(values, expand_ranges(starts, ends)) if joined is None else joined


def _join_slices(values: Block, starts: Ints, ends: Ints) -> Block | None:
    """Slices of values of whole bytes, one after the other; None for other values."""
    count = int((ends - starts).sum())
    if isinstance(values, ListBlock) and values.validity is None:
        items = _join_slices(values.items, starts * values.dimension, ends * values.dimension)
        return None if items is None else ListBlock(values.dimension, items, count)
    if not isinstance(values, FixedBlock) or values.bits % 8:
        return None
    width, data = values.bits // 8, values.data
    spans = zip((starts * width).tolist(), (ends * width).tolist(), strict=True)
    return FixedBlock(values.bits, np.concatenate([data[start:end] for start, end in spans]), count)


def _slice_block(values: Block, start: int, end: int) -> Block:
    if start == 0 and end == values.count:
        return values
    return _SLICE[type(values)](values, start, end)


def _slice_bits(bits: Bytes, start: int, end: int) -> Bytes:
    if start % 8 == 0:
        return bits[start // 8 : (end + 7) // 8]
    plain = np.unpackbits(bits[start // 8 : (end + 7) // 8], bitorder="little")
    return np.packbits(plain[start % 8 : start % 8 + end - start], bitorder="little")


def _take_bits(bits: Bytes, indices: Ints) -> Bytes:
    return np.packbits((bits[indices >> 3] >> (indices & 7).astype(np.uint8)) & 1, bitorder="little")


def _slice_fixed(block: FixedBlock, start: int, end: int) -> FixedBlock:
    if block.bits == 1:
        return FixedBlock(1, _slice_bits(block.data, start, end), end - start)
    width = block.bits // 8
    return FixedBlock(block.bits, block.data[start * width : end * width], end - start)


def _take_fixed(block: FixedBlock, indices: Ints) -> FixedBlock:
    if block.bits == 1:
        return FixedBlock(1, _take_bits(block.data, indices), len(indices))
    width = block.bits // 8
    rows = block.data[: block.count * width].reshape(block.count, width)
    return FixedBlock(block.bits, np.take(rows, indices, axis=0).reshape(-1), len(indices))


def _slice_variable(block: VariableBlock, start: int, end: int) -> VariableBlock:
    offsets = block.offsets[start : end + 1]
    return VariableBlock(offsets - offsets[0], block.data[int(offsets[0]) : int(offsets[-1])])


def _take_variable(block: VariableBlock, indices: Ints) -> VariableBlock:
    starts = block.offsets[indices].astype(np.int64)
    return pick_bytes(block.data, starts, block.offsets[indices + 1] - starts, block.offsets.dtype.itemsize * 8)


def pick_bytes(data: Bytes, starts: Ints, sizes: Ints, offset_bits: int) -> VariableBlock:
    """Values that are at `starts` with `sizes` bytes, as a block; offsets are as wide as asked, or wider if needed."""
    ends = np.cumsum(sizes, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    offsets: Any = np.zeros(len(sizes) + 1, np.int32 if offset_bits == 32 and total <= _LARGE else np.int64)
    offsets[1:] = ends
    if len(sizes) and total < _FEW_BYTES * len(sizes):
        return VariableBlock(offsets, data[expand_ranges(starts, starts + sizes)])
    return VariableBlock(offsets, gather(data, starts, sizes))


def _slice_list(block: ListBlock, start: int, end: int) -> ListBlock:
    low, high = start * block.dimension, end * block.dimension
    validity = None if block.validity is None else _slice_bits(block.validity, low, high)
    return ListBlock(block.dimension, _slice_block(block.items, low, high), end - start, validity)


def _take_list(block: ListBlock, indices: Ints) -> ListBlock:
    starts = indices * block.dimension
    items = expand_ranges(starts, starts + block.dimension)
    validity = None if block.validity is None else _take_bits(block.validity, items)
    return ListBlock(block.dimension, _take_block(block.items, items), len(indices), validity)


def _slice_struct(block: StructBlock, start: int, end: int) -> StructBlock:
    return StructBlock(tuple(_slice_block(child, start, end) for child in block.children), end - start)


def _take_struct(block: StructBlock, indices: Ints) -> StructBlock:
    return StructBlock(tuple(_take_block(child, indices) for child in block.children), len(indices))


def _slice_dictionary(block: DictionaryBlock, start: int, end: int) -> DictionaryBlock:
    return DictionaryBlock(_slice_fixed(block.indices, start, end), block.items)


def _take_dictionary(block: DictionaryBlock, indices: Ints) -> DictionaryBlock:
    return DictionaryBlock(_take_fixed(block.indices, indices), block.items)


def _take_block(values: Block, indices: Ints) -> Block:
    return _TAKE[type(values)](values, indices)


_SLICE: Mapping[type, Callable[[Any, int, int], Block]] = {
    FixedBlock: _slice_fixed,
    VariableBlock: _slice_variable,
    ListBlock: _slice_list,
    StructBlock: _slice_struct,
    DictionaryBlock: _slice_dictionary,
}
_TAKE: Mapping[type, Callable[[Any, Ints], Block]] = {
    FixedBlock: _take_fixed,
    VariableBlock: _take_variable,
    ListBlock: _take_list,
    StructBlock: _take_struct,
    DictionaryBlock: _take_dictionary,
}
