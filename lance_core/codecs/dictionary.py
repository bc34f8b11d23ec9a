"""Dictionaries: the distinct values once, and a number for each value. In files the page keeps the items in a buffer of
its own and the numbers as its values, so as a compressive encoding this is known but refused.

::

    "red" "blue" "red"   ->   DictionaryBlock(indices 0 1 0, items "red" "blue")
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lance_core.arrays import Ints
from lance_core.codecs.blocks import Block, DictionaryBlock, FixedBlock, ListBlock, Pieces, StructBlock, VariableBlock
from lance_core.codecs.dispatch import Codecs, Values
from lance_core.codecs.gather import pick_uneven
from lance_core.errors import CorruptFileError, UnsupportedEncodingError
from lance_core.format.encoding import Dictionary
from lance_core.kernels import bytes as kernels

_INT32_MAX = 2**31 - 1
_FEW = 8
"""Of a dictionary that has more items than this many for each number, only those that are meant are checked."""
_MAX_PICKED_BYTES = 4 << 20


def num_buffers(encoding: Dictionary, codecs: Codecs) -> int:
    """Refused, see the head of this file."""
    raise UnsupportedEncodingError("Dictionary as a compressive encoding is not supported")


def decode(encoding: Dictionary, buffers: tuple[Pieces, ...], counts: Ints, codecs: Codecs) -> Block:
    """Refused, see the head of this file."""
    raise UnsupportedEncodingError("Dictionary as a compressive encoding is not supported")


def decode_block(encoding: Dictionary, piece: Pieces, counts: Ints, codecs: Codecs) -> Block:
    """Refused, see the head of this file."""
    raise UnsupportedEncodingError("Dictionary as a compressive encoding is not supported")


def decode_values(encoding: Dictionary, payload: Values, codecs: Codecs) -> Block:
    """Refused, see the head of this file."""
    raise UnsupportedEncodingError("Dictionary as a compressive encoding is not supported")


def flatten(block: DictionaryBlock) -> Block:
    """The values spelled out; CorruptFileError for an index outside the items."""
    numbers = index_array(block)
    items = block.items
    if isinstance(items, FixedBlock):
        return _flatten_fixed(items, numbers)
    if isinstance(items, VariableBlock):
        return _flatten_variable(items, numbers)
    if isinstance(items, ListBlock | StructBlock | DictionaryBlock):
        raise UnsupportedEncodingError(f"a dictionary of {type(items).__name__} is not supported")
    raise TypeError(type(items).__name__)


def index_array(block: DictionaryBlock) -> npt.NDArray[Any]:
    """The indices as unsigned numbers, checked against the items."""
    size = block.indices.bits // 8
    if block.indices.bits not in (8, 16, 32, 64):
        raise CorruptFileError(f"dictionary indices of {block.indices.bits} bits are not supported")
    numbers: npt.NDArray[Any] = block.indices.data[: block.indices.count * size].view(f"<u{size}")
    if len(numbers) and int(numbers.max()) >= block.items.count:
        raise CorruptFileError(f"dictionary index {int(numbers.max())} with {block.items.count} items")
    return numbers


def _flatten_fixed(items: FixedBlock, numbers: npt.NDArray[Any]) -> FixedBlock:
    if items.bits == 1:
        bits = np.unpackbits(items.data, count=items.count, bitorder="little")
        return FixedBlock(1, np.packbits(bits[numbers], bitorder="little"), len(numbers))
    size = items.bits // 8
    data = np.ascontiguousarray(items.data[: items.count * size])
    wide = data.view(f"u{size}") if size in (1, 2, 4, 8) else data.reshape(items.count, size)
    return FixedBlock(items.bits, np.take(wide, numbers, axis=0).reshape(-1).view(np.uint8), len(numbers))


def _flatten_variable(items: VariableBlock, numbers: npt.NDArray[Any]) -> VariableBlock:
    if len(numbers) * _FEW < items.count or not kernels.gather_offsets.is_worth_loading(len(numbers), items.offsets.dtype):
        few = _pick(items, numbers)
        if few is not None:
            return few
    picked = np.ascontiguousarray(numbers, np.uint32)
    offsets = np.ascontiguousarray(items.offsets, np.int64)
    if items.offsets.dtype.itemsize == 4:
        lengths = np.diff(offsets)
        # 32-bit offsets are kept where the values fit; a bound is enough to know without a pass over the values.
        small = int(lengths.max(initial=0)) * len(picked) <= _INT32_MAX
    else:
        small = False
    targets: npt.NDArray[Any] = np.empty(len(picked) + 1, np.int32 if small else np.int64)
    size = kernels.gather_offsets(offsets, picked, targets)
    if size < 0:
        raise CorruptFileError(f"dictionary index {int(picked[-1 - size])} with {items.count} items")
    data = np.append(items.data, np.zeros(kernels.SLACK, np.uint8))
    out = np.empty(size + kernels.SLACK, np.uint8)
    if kernels.gather_strings(offsets, data, picked, targets, out) < 0:
        raise CorruptFileError("the offsets of dictionary items point outside their bytes")
    if not small and items.offsets.dtype.itemsize == 4 and size <= _INT32_MAX:
        targets = targets.astype(np.int32)
    return VariableBlock(targets, out[:size])


def _pick(items: VariableBlock, numbers: npt.NDArray[Any]) -> VariableBlock | None:
    """The same without compiled kernels and without a look at the other items; None for many or long ones."""
    starts = items.offsets[numbers].astype(np.int64)
    sizes = items.offsets[numbers + 1].astype(np.int64) - starts
    if (sizes < 0).any() or (starts < 0).any() or int((starts + sizes).max(initial=0)) > len(items.data):
        raise CorruptFileError("the offsets of dictionary items point outside their bytes")
    stops = np.append(0, np.cumsum(sizes))
    if int(stops[-1]) > _MAX_PICKED_BYTES:
        return None
    offsets: npt.NDArray[Any] = stops.astype(items.offsets.dtype)
    return VariableBlock(offsets, pick_uneven(items.data, starts, sizes))
