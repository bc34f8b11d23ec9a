"""Leaves -> pages: split by level budget, then the first structural encoding that fits.

::

    nothing but nulls, or nothing visible      constant page without a value
    one value everywhere (2.2)                 constant page
    few distinct values                        mini-block with a dictionary
    widest value >= 256 bytes, or requested   full-zip
    else                                       mini-block; full-zip when a chunk's levels would not fit their words

Levels of a page with lists stay below 16 KiB of packed bits, as the official writer keeps them: the counts in a chunk
header have 16 bits. (FORMAT B.2, B.3)

Plain pages of many columns at once: numbers without nulls, of one width and one count, that nothing makes smaller.

::

    values   row 0: column a   row 1: column b   ...          statistics of all rows in a few calls
    page     |header|values|header|values|...                 the first by the usual way, the others in its image

A wide table has thousands of such columns of a few thousand rows, of which each would cost more calls than bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from lance_core.arrays import Bools, Bytes
from lance_core.codecs.bitpack import BLOCK, bit_lengths
from lance_core.codecs.blocks import Block, DictionaryBlock, FixedBlock, ListBlock, StructBlock, VariableBlock
from lance_core.codecs.choose import are_flat, choose_dictionary
from lance_core.codecs.fixed_size_list import has_values, holds_bits, row_bits
from lance_core.codecs.options import EncodingOptions
from lance_core.codecs.packed import is_fixed
from lance_core.errors import InputError
from lance_core.format.encoding import Flat
from lance_core.format.layout import FullZipLayout, MiniBlockLayout, RepDefLayer
from lance_core.format.version import FileVersion
from lance_core.pages.leaf import ConstantValues, EncodedPage, Leaf, LeafValues, as_buffer, max_def, max_rep, max_visible_def
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


MAX_PAGE_BYTES = 256 << 10
_VERSIONS = frozenset((FileVersion.V2_1, FileVersion.V2_2))
_LAYERS = (RepDefLayer.ALL_VALID_ITEM,)

Rows = npt.NDArray[np.unsignedinteger]
"""A column's values in each row: shape (columns, values), contiguous."""


def can_encode(bits: int, options: EncodingOptions) -> bool:
    """Whether columns of this width and these options may be encoded together."""
    is_plain = options.compression is None and options.structural is None and not options.dimensions
    return bits in (32, 64) and is_plain and options.version in _VERSIONS


def encode_flat(values: Rows, options: EncodingOptions) -> list[EncodedPage | None]:
    """The page of each column, as `encode_page` would make it; None where the values do not stay as they are."""
    pages: list[EncodedPage | None] = [None] * len(values)
    flat = [number for number in np.flatnonzero(_stay(values, options)).tolist() if not _is_smaller(values[number], options)]
    if not flat:
        return pages
    first = encode_page(_leaf(values[flat[0]]), options)
    pages[flat[0]] = first
    for number, data in zip(flat[1:], _in_its_image(first, values, flat[1:]), strict=False):
        pages[number] = EncodedPage(first.layout, (first.buffers[0], as_buffer(data)), first.num_rows)
    return pages


def _stay(values: Rows, options: EncodingOptions) -> Bools:
    """Whether each column is neither constant nor better packed or kept as runs."""
    widths = bit_lengths(np.bitwise_or.reduceat(values, np.arange(0, values.shape[1], BLOCK), axis=1).reshape(-1))
    runs = np.count_nonzero(values[:, 1:] != values[:, :-1], axis=1) + 1
    kept = are_flat(8 * values.itemsize, values.shape[1], runs, widths.reshape(len(values), -1), options)
    stays: Bools = kept & (values[:, 0] != values[:, -1])
    return stays


def _is_smaller(column: Rows, options: EncodingOptions) -> bool:
    return choose_dictionary(_block(column), options) is not None


def _block(column: Rows) -> FixedBlock:
    return FixedBlock(8 * column.itemsize, column.view(np.uint8), len(column))


def _leaf(column: Rows) -> Leaf:
    return Leaf(_block(column), None, None, _LAYERS, len(column))


def _in_its_image(page: EncodedPage, values: Rows, numbers: Sequence[int]) -> Sequence[Bytes]:
    """The chunks of other columns, which differ from those of the page in their values only; none if unsure."""
    layout = page.layout
    if not isinstance(layout, MiniBlockLayout) or not isinstance(layout.value_compression, Flat) or not numbers:
        return ()
    words = np.frombuffer(page.buffers[0], "<u4" if layout.has_large_chunk else "<u2")
    model = np.frombuffer(page.buffers[1], np.uint8)
    per_chunk = 1 << (int(words[0]) & 15) if len(words) > 1 else values.shape[1]
    chunk, size = (int(words[0] >> 4) + 1) * 8, per_chunk * values.itemsize
    num_full = values.shape[1] // per_chunk
    rest = (values.shape[1] - num_full * per_chunk) * values.itemsize
    header = 8
    if (chunk, len(words)) != (header + (size + 7 & -8), num_full + (rest > 0)):
        return ()
    raw = values.view(np.uint8)[np.array(numbers)] if len(numbers) < len(values) else values.view(np.uint8)
    out: Bytes = np.empty((len(numbers), len(model)), np.uint8)
    end = num_full * chunk
    whole, heads = out[:, :end].reshape(len(out), num_full, chunk), model[:end].reshape(num_full, chunk)
    whole[:, :, :header] = heads[:, :header]
    whole[:, :, header : header + size] = raw[:, : num_full * size].reshape(len(out), num_full, size)
    whole[:, :, header + size :] = heads[:, header + size :]
    out[:, end:] = model[end:]
    if rest:
        out[:, end + header : end + header + rest] = raw[:, num_full * size :]
    return [*out]
