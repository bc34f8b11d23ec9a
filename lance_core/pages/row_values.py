"""A few rows of a column without lists, each value by itself: what one page gives, and those of several as one.

::

    layers (NULLABLE_ITEM, NULLABLE_ITEM)     a struct x of y;  levels 0 1 2: a value, y is null, x is null
    nulls  2 1 0                              how deep the null is, from the outermost layer; 2 layers: no null

Pages of one column may differ in their layers, and so in what a level means; how deep a null is means the same in all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from lance_core.codecs.blocks import Block, FixedBlock, block_of
from lance_core.errors import CorruptFileError
from lance_core.format.layout import RepDefLayer


@dataclass(frozen=True, slots=True, eq=False)
class RowValues:
    """`items`: the bytes of each row's value; under a null anything of the same width.

    `bits`: their width, 0 where widths differ; a single bit is a byte, 0 or 1. `nulls`: for each row the number of layers
    around the one that is null, the number of all layers where there is a value; None when no row is null.
    """

    items: Sequence[bytes]
    nulls: Sequence[int] | None
    bits: int
    num_layers: int

    def block(self) -> Block:
        """The values as a decoded block."""
        if self.bits == 0:
            return block_of(self.items)
        data = np.frombuffer(b"".join(self.items), np.uint8)
        return FixedBlock(self.bits, np.packbits(data, bitorder="little") if self.bits == 1 else data, len(self.items))


def join_values(parts: Sequence[RowValues]) -> RowValues:
    """The rows of all parts, of which there is at least one. CorruptFileError when they are not of one kind."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    if any(part.bits != first.bits or part.num_layers != first.num_layers for part in parts):
        raise CorruptFileError("pages of one column hold values of different widths or nesting")
    items = [item for part in parts for item in part.items]
    if all(part.nulls is None for part in parts):
        return RowValues(items, None, first.bits, first.num_layers)
    nulls: list[int] = []
    for part in parts:
        nulls += [part.num_layers] * len(part.items) if part.nulls is None else part.nulls
    return RowValues(items, nulls, first.bits, first.num_layers)


def nulls_of(levels: Sequence[int], layers: tuple[RepDefLayer, ...]) -> list[int]:
    """How deep each row's null is. CorruptFileError for levels that the layers do not have."""
    depths = _depths(layers)
    try:
        return [depths[level] for level in levels]
    except IndexError:
        raise CorruptFileError(f"definition level {max(levels)}, the page's layers allow {len(depths) - 1}") from None


@lru_cache(maxsize=64)
def _depths(layers: tuple[RepDefLayer, ...]) -> tuple[int, ...]:
    """By definition level; `layers` runs from the innermost outwards and has no lists."""
    number = len(layers)
    return number, *(number - 1 - at for at, layer in enumerate(layers) if layer.num_def_levels)


def packed_bits(flags: Sequence[Any]) -> bytes:
    """Truth values as a bitmap, least significant bit first."""
    bits = 0
    for number, flag in enumerate(flags):
        if flag:
            bits |= 1 << number
    return bits.to_bytes(len(flags) + 7 >> 3, "little")
