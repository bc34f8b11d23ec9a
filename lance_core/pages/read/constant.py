"""Reading constant pages: one value or none, and the levels if there are any.

::

    inline value       no buffers, or [rep, def]
    scalar buffer      [scalar], or [scalar, rep, def]       u32 n, n u32 lengths, n arrow value buffers
    "abc" as utf8      02000000 08000000 03000000 | 00000000 03000000 | 616263
    no value           all null: no buffers, or [rep, def]

Levels are plain u16 unless the layout counts them, then they are in block form. The value is never repeated here; see
`expand`.
"""

from __future__ import annotations

import numpy as np

from lance_core.arrays import Bytes, Levels
from lance_core.codecs.blocks import Block, FixedBlock, Pieces, VariableBlock
from lance_core.codecs.dispatch import Codecs
from lance_core.codecs.gather import words
from lance_core.errors import CorruptFileError
from lance_core.fetch import Fetch
from lance_core.format.encoding import CompressiveEncoding
from lance_core.format.layout import ConstantLayout, Page
from lance_core.pages.buffers import part, request
from lance_core.pages.leaf import ConstantValues, Leaf, max_rep
from lance_core.pages.read.miniblock import as_levels
from lance_core.pages.rows import RowSelection
from lance_core.pages.select import num_visible, select_rows, whole_leaf


def load(layout: ConstantLayout, page: Page, codecs: Codecs) -> Fetch[Leaf]:
    """The whole page: it is small, and any row needs all of it."""
    parts = yield from request([part(page, number) for number in range(len(page.buffers))])
    has_scalar = layout.inline_value is None and len(parts) in (1, 3)
    scalar = _scalar(parts.pop(0)) if has_scalar else None
    if layout.inline_value is not None:
        scalar = (np.frombuffer(layout.inline_value, np.uint8),)
    if len(parts) not in (0, 2):
        raise CorruptFileError(f"a constant page has {len(page.buffers)} buffers, which is impossible")
    rep, def_ = _all_levels(layout, parts, codecs) if parts else (None, None)
    if rep is None and max_rep(layout.layers):
        raise CorruptFileError("a constant page with lists has no repetition levels")
    levels = rep if rep is not None else def_
    num_levels = page.num_rows if levels is None else len(levels)
    values = ConstantValues(num_visible(def_, layout.layers, num_levels), scalar)
    return whole_leaf(values, rep, def_, layout.layers, page.num_rows)


def inline_values(layout: ConstantLayout, count: int) -> ConstantValues:
    """`count` rows of a page without buffers: its inline value, or nothing at all (every row null)."""
    scalar = None if layout.inline_value is None else (np.frombuffer(layout.inline_value, np.uint8),)
    return ConstantValues(count, scalar)


def scan(layout: ConstantLayout, page: Page, codecs: Codecs) -> Fetch[Leaf]:
    """Every row."""
    return load(layout, page, codecs)


def read(layout: ConstantLayout, page: Page, index: Leaf, rows: RowSelection, codecs: Codecs) -> Fetch[Leaf]:
    """The rows; the index has it all."""
    yield from request([])
    return select_rows(index, rows)


def expand(values: ConstantValues, *, bits: int | None = None) -> Block:
    """Repeat the constant: `bits` is the fixed width of a value (1 for bool), None for variable width.

    Without a value (all null) the slots are zeros or empty. The caller may prefer to repeat it in its own way.
    """
    if bits is None:
        return _expand_variable(values)
    width = max(bits // 8, 1)
    one = np.zeros(width, np.uint8) if values.scalar is None else values.scalar[0]
    if len(one) != width or (values.scalar is not None and len(values.scalar) != 1):
        raise CorruptFileError(f"a constant of {len(one)} bytes does not match values of {bits} bits")
    if bits == 1:
        return FixedBlock(1, np.full((values.count + 7) // 8, 255 if one[0] else 0, np.uint8), values.count)
    return FixedBlock(bits, np.tile(one, values.count), values.count)


def _expand_variable(values: ConstantValues) -> VariableBlock:
    if values.scalar is None:
        return VariableBlock(np.zeros(values.count + 1, np.int32), np.empty(0, np.uint8))
    if len(values.scalar) != 2 or len(values.scalar[0]) not in (8, 16):
        raise CorruptFileError("the constant of a variable-width page is not a pair of offsets and bytes")
    stored, data = values.scalar
    first, last = words(stored, f"u{len(stored) // 2}").astype(np.int64).tolist()
    if not 0 <= first <= last <= len(data):
        raise CorruptFileError(f"the constant's offsets {first}, {last} are outside its {len(data)} bytes")
    size = last - first
    wide = len(stored) == 16 or size * values.count > np.iinfo(np.int32).max
    offsets = np.arange(values.count + 1, dtype=np.int64) * size
    repeated = np.tile(data[first:last], values.count)
    return VariableBlock(offsets, repeated) if wide else VariableBlock(offsets.astype(np.int32), repeated)


def _scalar(data: Bytes) -> tuple[Bytes, ...]:
    """The arrow value buffers of a scalar."""
    if len(data) < 4:
        raise CorruptFileError(f"a scalar of {len(data)} bytes is too short")
    count = int(words(data[:4], np.uint32)[0])
    at = 4 + 4 * count
    if not 1 <= count <= 3 or len(data) < at:
        raise CorruptFileError(f"a scalar of {count} buffers does not fit in {len(data)} bytes")
    sizes = words(data[4:at], np.uint32).astype(np.int64)
    if int(sizes.sum()) > len(data) - at:
        raise CorruptFileError(f"a scalar's buffers of {sizes.tolist()} bytes do not fit in its {len(data)} bytes")
    ends = at + np.cumsum(sizes)
    return tuple(data[end - size : end] for end, size in zip(ends.tolist(), sizes.tolist(), strict=True))


def _all_levels(layout: ConstantLayout, parts: list[Bytes], codecs: Codecs) -> tuple[Levels | None, Levels | None]:
    rep = _levels(layout.rep_compression, layout.num_rep_values, parts[0], codecs)
    return rep, _levels(layout.def_compression, layout.num_def_values, parts[1], codecs)


def _levels(encoding: CompressiveEncoding | None, count: int, data: Bytes, codecs: Codecs) -> Levels | None:
    if encoding is None:
        if len(data) % 2:
            raise CorruptFileError(f"levels of {len(data)} bytes are not 16-bit numbers")
        return words(data, np.uint16) if len(data) else None
    # A width of zero bits claims levels without bytes: cap what a damaged count may allocate.
    if not 0 <= count <= (len(data) + 1 << 20):
        raise CorruptFileError(f"{count} levels do not match {len(data)} bytes")
    return as_levels(codecs.decode_block(encoding, Pieces.whole(data), np.array([count], np.int64)))
