"""Reading blob pages (2.1): where each value is in the file, instead of the value.

::

    inner page of (position u64, size u64)      ->  StructBlock(position, size), one slot per row
    size 0, position 0                              an empty value
    size 0, position = def << 16                    a null; its level moves to `def_`

The descriptors of 2.2 blobs ("blob v2") are ordinary packed structs in full-zip pages and need nothing from here.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lance_core.codecs.blocks import Block, FixedBlock, StructBlock
from lance_core.codecs.gather import words
from lance_core.errors import CorruptFileError, UnsupportedEncodingError
from lance_core.format.layout import BlobLayout, Page
from lance_core.pages.leaf import Leaf, LeafValues, max_def, max_rep
from lance_core.pages.select import whole_leaf


def inner_page(layout: BlobLayout, page: Page) -> Page:
    """The page of descriptors: the same buffers under the inner layout."""
    if isinstance(layout.inner_layout, BlobLayout):
        raise CorruptFileError("a blob page contains a blob page")
    return replace(page, layout=layout.inner_layout)


def from_descriptors(layout: BlobLayout, inner: Leaf) -> Leaf:
    """The descriptors with their levels taken out of the positions."""
    if max_rep(layout.layers) or inner.rep is not None or inner.def_ is not None:
        raise UnsupportedEncodingError("blobs inside lists are not supported")
    block = _pair(inner.values)
    if not max_def(layout.layers):
        return replace(inner, values=block, layers=layout.layers)
    position, size = (words(_data(child), np.uint64) for child in block.children)
    levels = np.where(size == 0, position >> np.uint64(16), np.uint64(0))
    if len(levels) and int(levels.max()) > max_def(layout.layers):
        raise CorruptFileError(f"definition level {int(levels.max())} in a blob page that allows {max_def(layout.layers)}")
    def_ = levels.astype(np.uint16)
    cleared = np.where(def_ > 0, np.uint64(0), position)
    children = (FixedBlock(64, cleared.view(np.uint8), len(cleared)), block.children[1])
    return whole_leaf(StructBlock(children, block.count), None, def_, layout.layers, inner.num_rows)


def _pair(values: LeafValues) -> StructBlock:
    if not isinstance(values, StructBlock) or len(values.children) != 2:
        raise CorruptFileError("blob descriptors are not pairs of position and size")
    return values


def _data(block: Block) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    if not isinstance(block, FixedBlock) or block.bits != 64:
        raise CorruptFileError("blob positions and sizes are not 64-bit numbers")
    return block.data
