"""Writing constant pages: all null, or one value with or without nulls. The bytes are drawn in `constant`.

Levels are plain u16, except those of an all-null page in 2.2, which are in block form and counted in the layout.
"""

from __future__ import annotations

import numpy as np

from lance_core.arrays import Bytes, Levels
from lance_core.codecs.blocks import Block, FixedBlock, VariableBlock
from lance_core.codecs.choose import choose_levels
from lance_core.codecs.constant import is_constant
from lance_core.codecs.options import EncodingOptions
from lance_core.fetch import Buffer
from lance_core.format.encoding import CompressiveEncoding
from lance_core.format.layout import ConstantLayout, RepDefLayer
from lance_core.format.version import FileVersion
from lance_core.pages.leaf import ConstantValues, EncodedPage, Leaf, as_buffer, max_visible_def
from lance_core.pages.value_slots import take_slots
from lance_core.pages.write.sparse import encode_nothing

MAX_INLINE_BYTES = 32
_SAMPLE = 64
_NULL_ITEM = (RepDefLayer.NULLABLE_ITEM,)
_ALL_VALID = (RepDefLayer.ALL_VALID_ITEM,)


def encode_all_null(leaf: Leaf, options: EncodingOptions) -> EncodedPage:
    """A page without any value: every leaf item is null, or no entry owns a slot."""
    if options.version is FileVersion.V2_3:
        return encode_nothing(leaf, options.dimensions)
    if leaf.rep is None and (leaf.def_ is None or leaf.layers == _NULL_ITEM):
        return EncodedPage(ConstantLayout(_NULL_ITEM), (), leaf.num_rows)
    if options.version < FileVersion.V2_2:
        return EncodedPage(ConstantLayout(leaf.layers), (_plain(leaf.rep), _plain(leaf.def_)), leaf.num_rows)
    rep_encoding, rep = _packed(leaf.rep, options)
    def_encoding, def_ = _packed(leaf.def_, options)
    layout = ConstantLayout(
        leaf.layers,
        rep_compression=rep_encoding,
        def_compression=def_encoding,
        num_rep_values=0 if leaf.rep is None else len(leaf.rep),
        num_def_values=0 if leaf.def_ is None else len(leaf.def_),
    )
    return EncodedPage(layout, (rep, def_), leaf.num_rows)


def encode_constant(leaf: Leaf, options: EncodingOptions) -> EncodedPage | None:
    """A page of one value, or None when the values differ or the version has no such pages (2.1)."""
    if options.version < FileVersion.V2_2:
        return None
    scalar = _scalar(leaf)
    if scalar is None:
        return None
    inline = scalar[0].tobytes() if len(scalar) == 1 and len(scalar[0]) <= MAX_INLINE_BYTES else None
    if options.version is FileVersion.V2_3 and (inline is None or leaf.layers != _ALL_VALID or leaf.def_ is not None):
        return None  # its dense pages have room for a few bytes and no levels
    buffers: list[Buffer] = [] if inline is not None else [_scalar_buffer(scalar)]
    if leaf.rep is not None or leaf.def_ is not None:
        buffers += [_plain(leaf.rep), _plain(leaf.def_)]
    return EncodedPage(ConstantLayout(leaf.layers, inline_value=inline), tuple(buffers), leaf.num_rows)


def _scalar(leaf: Leaf) -> tuple[Bytes, ...] | None:
    """The one value of all slots that are not null, as arrow value buffers."""
    values = leaf.values
    if isinstance(values, ConstantValues):
        return values.scalar
    if not isinstance(values, FixedBlock | VariableBlock):
        return None
    valid = _valid_slots(leaf)
    if valid is None:
        return _of_block(values)
    # Look at a few before copying all that are valid.
    if len(valid) > _SAMPLE and _of_block(take_slots(values, valid[:: len(valid) // _SAMPLE])) is None:
        return None
    return _of_block(take_slots(values, valid))


def _valid_slots(leaf: Leaf) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
    if leaf.def_ is None:
        return None
    def_ = leaf.def_ if leaf.rep is None else leaf.def_[leaf.def_ <= max_visible_def(leaf.layers)]
    return np.flatnonzero(def_ == 0)


def _of_block(block: Block | ConstantValues) -> tuple[Bytes, ...] | None:
    assert not isinstance(block, ConstantValues)
    value = is_constant(block)
    if value is None:
        return None
    data = np.frombuffer(value, np.uint8)
    if isinstance(block, VariableBlock):
        return np.array([0, len(value)], block.offsets.dtype).view(np.uint8), data
    return (data,)


def _scalar_buffer(scalar: tuple[Bytes, ...]) -> bytes:
    head = np.array([len(scalar), *(len(item) for item in scalar)], "<u4")
    return b"".join((head.tobytes(), *(item.tobytes() for item in scalar)))


def _plain(levels: Levels | None) -> Buffer:
    return b"" if levels is None else as_buffer(levels.astype("<u2", copy=False).view(np.uint8))


def _packed(levels: Levels | None, options: EncodingOptions) -> tuple[CompressiveEncoding | None, Buffer]:
    if levels is None:
        return None, b""
    encoded = choose_levels(levels, np.array([len(levels)], np.int64), options)
    start = int(encoded.pieces.starts[0])
    return encoded.encoding, as_buffer(encoded.pieces.data[start : start + int(encoded.pieces.sizes[0])])
