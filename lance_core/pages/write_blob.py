"""Writing blob pages (2.1): pairs of position and size, with the levels of nulls in the positions. Drawn in `blob`."""

from __future__ import annotations

import numpy as np

from lance_core.codecs.blocks import FixedBlock, StructBlock
from lance_core.codecs.gather import words
from lance_core.codecs.options import EncodingOptions
from lance_core.errors import UnsupportedEncodingError
from lance_core.format.layout import BlobLayout, ConstantLayout, FullZipLayout, MiniBlockLayout, RepDefLayer
from lance_core.pages.encoded import EncodedPage
from lance_core.pages.leaf import Leaf
from lance_core.pages.write.encode import encode_page


def encode_blobs(leaf: Leaf, options: EncodingOptions) -> EncodedPage:
    """A page of blob descriptors.

    `leaf.values`: StructBlock of two 64-bit children, position in the file and size in bytes; an empty value is 0, 0.
    Blobs inside lists are refused.
    """
    values = leaf.values
    if leaf.rep is not None or not isinstance(values, StructBlock):
        raise UnsupportedEncodingError("blobs inside lists cannot be written to 2.1 files", cure="Use version 2.2.")
    if leaf.def_ is not None:
        position, size = (words(_data(child), np.uint64) for child in values.children)
        is_null = leaf.def_ > 0
        smuggled = np.where(is_null, leaf.def_.astype(np.uint64) << np.uint64(16), position)
        sizes = np.where(is_null, np.uint64(0), size)
        children = tuple(FixedBlock(64, item.view(np.uint8), values.count) for item in (smuggled, sizes))
        values = StructBlock(children, values.count)
    inner = encode_page(Leaf(values, None, None, (RepDefLayer.ALL_VALID_ITEM,), leaf.num_rows), options)
    assert isinstance(inner.layout, MiniBlockLayout | FullZipLayout | ConstantLayout)
    return EncodedPage(BlobLayout(inner.layout, leaf.layers), inner.buffers, leaf.num_rows)


def _data(child: object) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    assert isinstance(child, FixedBlock)
    return child.data
