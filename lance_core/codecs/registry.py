"""The literal table of codecs: which module reads and writes which description.

How other rooms use this floor (all names below are importable from here or from `choose`)::

    CODECS.decode(encoding, buffers, counts) -> Block           mini-block value buffers, many chunks in one call
    CODECS.decode_block(encoding, piece, counts) -> Block       levels of many chunks, dictionary items
    CODECS.decode_values(encoding, payload) -> Block            full-zip payloads
    CODECS.num_buffers(encoding) -> int
    choose.choose_chunks(block, options) -> EncodedChunks       the writer's side of the four lines above
    choose.choose_block(block, options) -> EncodedBlock
    choose.choose_values(block, options) -> EncodedValues
    choose.choose_levels(levels, counts, options) -> EncodedLevels
"""

from __future__ import annotations

from types import MappingProxyType

from lance_core.codecs import (
    bitpack,
    byte_stream_split,
    constant,
    dictionary,
    fixed_size_list,
    flat,
    fsst,
    general,
    packed,
    ranges,
    rle,
    variable,
)
from lance_core.codecs.dispatch import Codec, Codecs, Values
from lance_core.format.encoding import (
    ByteStreamSplit,
    Constant,
    Dictionary,
    FixedSizeList,
    Flat,
    Fsst,
    General,
    InlineBitpacking,
    OutOfLineBitpacking,
    PackedStruct,
    Range,
    Rle,
    Variable,
    VariablePackedStruct,
)

__all__ = ["CODECS", "Codec", "Codecs", "Values"]

# Delta (2.3, unstable) is not here: it describes offsets and positions (`offsets`, `pages/sparse_numbers`) and is refused
# by name anywhere else.
CODECS = Codecs(
    MappingProxyType(
        {
            Flat: flat,
            Variable: variable,
            Constant: constant,
            OutOfLineBitpacking: bitpack,
            InlineBitpacking: bitpack,
            Fsst: fsst,
            Dictionary: dictionary,
            Rle: rle,
            Range: ranges,
            ByteStreamSplit: byte_stream_split,
            General: general,
            FixedSizeList: fixed_size_list,
            PackedStruct: packed,
            VariablePackedStruct: packed,
        }
    )
)
