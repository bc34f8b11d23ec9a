"""Plain pages of many columns at once: numbers without nulls, of one width and one count, that nothing makes smaller.

::

    values   row 0: column a   row 1: column b   ...          statistics of all rows in a few calls
    page     |header|values|header|values|...                 the first by the usual way, the others in its image

A wide table has thousands of such columns of a few thousand rows, of which each would cost more calls than bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lance_core.arrays import Bools, Bytes
from lance_core.codecs.bitpack import BLOCK, bit_lengths
from lance_core.codecs.blocks import FixedBlock
from lance_core.codecs.choose import are_flat, choose_dictionary
from lance_core.codecs.options import EncodingOptions
from lance_core.format.encoding import Flat
from lance_core.format.layout import MiniBlockLayout, RepDefLayer
from lance_core.format.version import FileVersion
from lance_core.pages.encoded import EncodedPage, as_buffer
from lance_core.pages.leaf import Leaf
from lance_core.pages.write.encode import encode_page

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
