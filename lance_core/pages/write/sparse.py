"""Writing pages of 2.3 whose structure is kept as positions, apart from the values. The bytes are drawn in `read.sparse`.

list<int32> [null, [], null]      list layer: no lists with items, nulls at 0 and 2      item layer: nothing

Pages without values are written so, and those of lists around or inside fixed-size lists of structs, which the official
library does not read in dense pages. All others are dense, as 2.2 writes them: the official library reads either.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_core.errors import InputError
from lance_core.fetch import Buffer
from lance_core.format.encoding import CompressiveEncoding, Constant, Flat
from lance_core.format.layout import (
    ConstantLayout,
    FullZipLayout,
    MiniBlockLayout,
    RepDefLayer,
    SparseFixedSizeList,
    SparseLayer,
    SparseLayout,
    SparseList,
    SparseValidity,
)
from lance_core.pages.leaf import EncodedPage, Leaf, as_buffer
from lance_core.pages.levels.unravel import Nesting, unravel

Numbers = npt.NDArray[np.int64]
_NO_VALUES = ConstantLayout((RepDefLayer.ALL_VALID_ITEM,))


def encode_nothing(leaf: Leaf, dimensions: tuple[int, ...]) -> EncodedPage:
    """A page without values. `dimensions` (innermost first): fixed-size lists of structs among the layers, 0 elsewhere."""
    return encode_around(leaf, EncodedPage(_NO_VALUES, (), 0), dimensions)


def encode_around(leaf: Leaf, values: EncodedPage, dimensions: tuple[int, ...]) -> EncodedPage:
    """The structure of a leaf around its `values`, which were encoded as a page without levels."""
    if not isinstance(values.layout, ConstantLayout | MiniBlockLayout | FullZipLayout):
        raise InputError(f"a sparse page cannot contain a page of {type(values.layout).__name__}")
    sizes = dimensions or (0,) * len(leaf.layers)
    slots = tuple(max(size, 1) for size in sizes)
    steps = unravel(leaf.rep, leaf.def_, leaf.layers, leaf.values.count, dimensions=slots)
    buffers: list[Buffer] = []
    layers = tuple(_layer(step, size, buffers) for step, size in zip(steps, reversed(sizes), strict=True))
    return EncodedPage(SparseLayout(layers, values.layout), (*values.buffers, *buffers), leaf.num_rows)


def _layer(step: Nesting, dimension: int, buffers: list[Buffer]) -> SparseLayer:
    if step.offsets is not None:
        lengths = np.diff(step.offsets)
        filled = np.flatnonzero(lengths)
        positions = _numbers(filled, buffers)
        counts = _numbers(lengths[filled], buffers)
        return SparseList(int(step.offsets[-1]), positions, len(filled), counts, _validity(step, buffers))
    validity = _validity(step, buffers)
    return validity if dimension == 0 else SparseFixedSizeList(dimension, validity)


def _validity(step: Nesting, buffers: list[Buffer]) -> SparseValidity:
    if step.validity is None:
        return SparseValidity(False, Constant(None), 0)
    nulls = np.flatnonzero(~step.validity)
    if len(nulls) == step.length:
        return SparseValidity(True, Constant(None), 0)
    return SparseValidity(False, _numbers(nulls, buffers), len(nulls))


def _numbers(numbers: npt.NDArray[np.intp] | Numbers, buffers: list[Buffer]) -> CompressiveEncoding:
    if len(numbers) == 0:
        return Constant(None)
    buffers.append(as_buffer(np.ascontiguousarray(numbers, "<i8").view(np.uint8)))
    return Flat(64)
