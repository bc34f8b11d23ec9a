"""Decide whether a dictionary is worthwhile: distinct values are counted up to a limit, so that a "no" is found early.

::

    1,000 strings, 4 of them distinct   ->   DictionaryBlock(indices of 32 bits, 4 items)        else None
"""

from __future__ import annotations

import numpy as np

from lance_core.codecs.blocks import Block, DictionaryBlock, FixedBlock, VariableBlock
from lance_core.codecs.options import EncodingOptions
from lance_core.codecs.statistics import FixedStatistics, has_many_distinct, number_fixed, number_variable, pick
from lance_core.format.version import FileVersion

MIN_VALUES = 100
_INDEX_BYTES = 4
_WORTHWHILE = 0.9
"""A dictionary of numbers must save a tenth over packing them directly, which reads faster."""


def choose_dictionary(block: Block, options: EncodingOptions) -> DictionaryBlock | None:
    """The block as a dictionary with 32-bit indices, or None when that does not pay.

    Numbers of 64 and 128 bits from 2.2 on, byte strings in every version. The caller encodes `indices` with
    `choose_chunks` and `items` with `choose_block`.
    """
    if block.count < MIN_VALUES or options.compression == "none":
        return None
    if isinstance(block, VariableBlock):
        return _of_strings(block, options)
    if isinstance(block, FixedBlock) and block.bits in (64, 128) and options.version >= FileVersion.V2_2:
        return _of_numbers(block, options)
    return None


def _of_strings(block: VariableBlock, options: EncodingOptions) -> DictionaryBlock | None:
    width = block.offsets.dtype.itemsize
    plain = int(block.offsets[-1]) - int(block.offsets[0]) + (block.count + 1) * width
    room = options.dict_size_ratio * plain - block.count * width
    limit = min(_cap(block.count, options), int(room / (plain / block.count + width)))
    found = None if has_many_distinct(block, limit) else number_variable(block, limit)
    return None if found is None else _split(block, *found)


def _of_numbers(block: FixedBlock, options: EncodingOptions) -> DictionaryBlock | None:
    size = block.bits // 8
    room = (options.dict_size_ratio * size - _INDEX_BYTES) * block.count
    limit = min(_cap(block.count, options), int(room / 16))
    found = None if has_many_distinct(block, limit) else number_fixed(block, limit)
    if found is None:
        return None
    codes, firsts = found
    direct = block.count * size
    if block.bits == 64:
        statistics = FixedStatistics.of(block)
        direct = min(direct, statistics.packed_size, statistics.rle_size)
    packed = FixedStatistics.of(FixedBlock(32, codes.view(np.uint8), block.count))
    through = min(packed.packed_size, packed.rle_size) + len(firsts) * size
    return _split(block, codes, firsts) if through < _WORTHWHILE * direct else None


def _cap(count: int, options: EncodingOptions) -> int:
    return min(count // options.dict_divisor, options.dict_max_size)


def _split(
    block: FixedBlock | VariableBlock, codes: np.typing.NDArray[np.uint32], firsts: np.typing.NDArray[np.uint32]
) -> DictionaryBlock:
    items = pick(block, firsts.astype(np.int64))
    return DictionaryBlock(FixedBlock(32, codes.view(np.uint8), block.count), items)
