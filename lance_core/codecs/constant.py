"""Constant values: found here for the writer (constant pages); as a compressive encoding it is known but refused.

::

    is_constant(FixedBlock(32, 07000000 07000000 07000000, 3))   ->   b"\\x07\\0\\0\\0"
"""

from __future__ import annotations

import numpy as np

from lance_core.arrays import Bytes, Ints
from lance_core.codecs.blocks import Block, FixedBlock, Pieces, VariableBlock
from lance_core.codecs.dispatch import Codecs, Values
from lance_core.errors import UnsupportedEncodingError
from lance_core.format.encoding import Constant


def is_constant(block: Block) -> bytes | None:
    """The one value that every slot holds, else None. A bool is one byte, 0 or 1; an empty block has none.

    Lists, structs and dictionaries are never called constant.
    """
    if isinstance(block, FixedBlock):
        return _constant_fixed(block)
    if isinstance(block, VariableBlock):
        return _constant_variable(block)
    return None


def num_buffers(encoding: Constant, codecs: Codecs) -> int:
    """No buffer."""
    return 0


def decode(encoding: Constant, buffers: tuple[Pieces, ...], counts: Ints, codecs: Codecs) -> Block:
    """Refused: constant pages have a layout of their own, and no writer puts this into chunks."""
    raise UnsupportedEncodingError("Constant as a compressive encoding is not supported")


def decode_block(encoding: Constant, piece: Pieces, counts: Ints, codecs: Codecs) -> Block:
    """Refused as in `decode`."""
    raise UnsupportedEncodingError("Constant as a compressive encoding is not supported")


def decode_values(encoding: Constant, payload: Values, codecs: Codecs) -> Block:
    """Refused as in `decode`."""
    raise UnsupportedEncodingError("Constant as a compressive encoding is not supported")


def _constant_fixed(block: FixedBlock) -> bytes | None:
    if not block.count:
        return None
    if block.bits == 1:
        ones = int(np.unpackbits(block.data, count=block.count, bitorder="little").sum())
        return bytes([ones > 0]) if ones in (0, block.count) else None
    size = block.bits // 8
    data = block.data[: block.count * size]
    first, last = data[:size], data[-size:]
    if not np.array_equal(first, last):
        return None
    return first.tobytes() if _repeats(data, size) else None


def _constant_variable(block: VariableBlock) -> bytes | None:
    if not block.count:
        return None
    start, stop, end = int(block.offsets[0]), int(block.offsets[1]), int(block.offsets[-1])
    size = stop - start
    if end - start != size * block.count or (np.diff(block.offsets[:65]) != size).any():
        return None
    data = block.data[start:end]
    if not _repeats(data, size) or (np.diff(block.offsets) != size).any():
        return None
    return data[:size].tobytes()


def _repeats(data: Bytes, size: int) -> bool:
    """Whether the bytes equal themselves moved by `size`. A short look first: most blocks end there."""
    if size == 0:
        return True
    head = data[: 64 * size]
    return np.array_equal(head[size:], head[:-size]) and np.array_equal(data[size:], data[:-size])
