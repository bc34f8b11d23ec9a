"""Leaves -> pages: split by level budget, then the first structural encoding that fits.

::

    nothing but nulls, or nothing visible      constant page without a value
    one value everywhere (2.2)                 constant page
    few distinct values                        mini-block with a dictionary
    widest value >= 256 bytes, or requested   full-zip
    else                                       mini-block; full-zip when a chunk's levels would not fit their words

Levels of a page with lists stay below 16 KiB of packed bits, as the official writer keeps them: the counts in a chunk
header have 16 bits. (FORMAT B.2, B.3)
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lance_core.codecs.blocks import Block, DictionaryBlock, FixedBlock, ListBlock, StructBlock, VariableBlock
from lance_core.codecs.choose import choose_dictionary
from lance_core.codecs.fixed_size_list import has_values, holds_bits, row_bits
from lance_core.codecs.options import EncodingOptions
from lance_core.codecs.packed import is_fixed
from lance_core.errors import InputError
from lance_core.format.layout import FullZipLayout, RepDefLayer
from lance_core.format.version import FileVersion
from lance_core.pages.encoded import EncodedPage
from lance_core.pages.leaf import ConstantValues, Leaf, LeafValues, max_def, max_rep, max_visible_def
from lance_core.pages.select import check_slots, cut_entries
from lance_core.pages.value_slots import take_slots
from lance_core.pages.write.constant import encode_all_null, encode_constant
from lance_core.pages.write.fullzip import encode_full_zip
from lance_core.pages.write.miniblock import encode_mini_block
from lance_core.pages.write.sparse import encode_around

FULL_ZIP_BITS = 256 * 8
LEVEL_BUDGET_BITS = 131_072
_STRUCTURAL = {"miniblock": False, "fullzip": True}

__all__ = ["EncodedPage", "encode_pages", "split_rows"]


def encode_pages(leaf: Leaf, options: EncodingOptions, *, row_items: int = 1) -> list[EncodedPage]:
    """One leaf (about 8 MiB of values) as pages, in order; several only for lists. No rows give no page.

    `row_items`: rows of the leaf that belong together, as the items of a fixed-size list of structs do; no page cuts them.

    `leaf.values` has one slot per visible entry; what is under a null does not matter, but should be zeros or empty to
    compress well. Raises CorruptFileError when levels and values disagree, UnsupportedEncodingError for blocks that the
    version cannot hold.
    """
    if leaf.num_rows == 0:
        return []
    check_slots(leaf)
    return [encode_page(part, options) for part in split_rows(leaf, row_items)]


def encode_page(leaf: Leaf, options: EncodingOptions) -> EncodedPage:
    """One page, whatever its levels take."""
    values = leaf.values
    if (isinstance(values, ConstantValues) and values.scalar is None) or values.count == 0 or _all_null(leaf):
        return encode_all_null(leaf, options)
    if options.version is FileVersion.V2_3 and leaf.rep is not None and any(options.dimensions):
        return _encode_sparse(leaf, options)
    page = encode_constant(leaf, options)
    if page is not None:
        return page
    assert not isinstance(values, ConstantValues)
    chosen = choose_dictionary(values, options) or values
    if not wants_full_zip(chosen, options):
        page = encode_mini_block(leaf, chosen, options)
        if page is not None:
            return page
    if isinstance(values, ListBlock) and holds_bits(values):
        raise InputError(f"a fixed-size list of {row_bits(values)} bits and their nulls is too large for a chunk")
    return encode_full_zip(leaf, values, options)


def _encode_sparse(leaf: Leaf, options: EncodingOptions) -> EncodedPage:
    """Structure and values apart; zipped values leave out the nulls."""
    values = leaf.values
    inner = encode_page(_plain_leaf(values), replace(options, dimensions=()))
    if isinstance(inner.layout, FullZipLayout) and leaf.def_ is not None:
        visible = leaf.def_[leaf.def_ <= max_visible_def(leaf.layers)]
        stored = take_slots(values, np.flatnonzero(visible == 0))
        assert not isinstance(stored, ConstantValues)
        inner = encode_full_zip(_plain_leaf(stored), stored, options)
    return encode_around(leaf, inner, options.dimensions)


def _plain_leaf(values: LeafValues) -> Leaf:
    return Leaf(values, None, None, (RepDefLayer.ALL_VALID_ITEM,), values.count)


def _all_null(leaf: Leaf) -> bool:
    return leaf.def_ is not None and bool(leaf.def_.all())


def wants_full_zip(values: Block, options: EncodingOptions) -> bool:
    """Whether the values are too wide for chunks, or the user asked; dictionaries always go in chunks."""
    if isinstance(values, DictionaryBlock):
        return False
    if (isinstance(values, StructBlock) and not is_fixed(values)) or (
        isinstance(values, ListBlock) and not has_values(values)
    ):
        return True
    if isinstance(values, ListBlock) and holds_bits(values):
        # The official reader takes no rows that end within a byte, and no bitmaps of nulls before bits.
        return False
    if options.structural is not None:
        return _STRUCTURAL[options.structural]
    return _widest_bits(values) >= FULL_ZIP_BITS


def _widest_bits(values: Block) -> int:
    if isinstance(values, VariableBlock):
        return int(np.diff(values.offsets).max(initial=0)) * 8
    if isinstance(values, ListBlock):
        return row_bits(values)
    if isinstance(values, StructBlock):
        return sum(_widest_bits(child) for child in values.children)
    return values.bits if isinstance(values, FixedBlock) else values.indices.bits


def split_rows(leaf: Leaf, row_items: int = 1) -> list[Leaf]:
    """Cut a leaf with lists so that no part has more levels than the budget; `row_items` rows are never cut apart."""
    if leaf.rep is None:
        return [leaf]
    bits = max_rep(leaf.layers).bit_length() + max_def(leaf.layers).bit_length()
    room = LEVEL_BUDGET_BITS // bits
    if len(leaf.rep) <= room:
        return [leaf]
    bounds = np.append(np.flatnonzero(leaf.rep == max_rep(leaf.layers)), np.int64(len(leaf.rep)))[::row_items]
    cuts = [0]
    while cuts[-1] < len(bounds) - 1:
        limit = int(bounds[cuts[-1]]) + room
        cuts.append(max(int(np.searchsorted(bounds, limit, "right")) - 1, cuts[-1] + 1))
    return cut_entries(leaf, bounds[cuts].tolist(), (np.diff(cuts) * row_items).tolist())
