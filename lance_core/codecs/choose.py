"""The writer's choice: which encoding a block gets. Ordered rules over statistics that are computed once.

::

    choose_chunks(FixedBlock(64, ...), options) -> EncodedChunks(InlineBitpacking(64), ...)

Any choice made here is readable by every reader of the version; the rules decide size and speed only.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_core.codecs import flat, variable
from lance_core.codecs.blocks import Block, FixedBlock, Ints, Pieces, VariableBlock
from lance_core.codecs.encoded import EncodedBlock, EncodedChunks, EncodedLevels, EncodedValues
from lance_core.codecs.options import EncodingOptions
from lance_core.errors import UnsupportedEncodingError
from lance_core.format.encoding import Flat, Variable

__all__ = ["choose_block", "choose_chunks", "choose_levels", "choose_values"]


def choose_chunks(block: Block, options: EncodingOptions) -> EncodedChunks:
    """Values for mini-block pages (widest value below 256 bytes; `DictionaryBlock.indices` are passed, not the block)."""
    if isinstance(block, FixedBlock):
        return flat.encode_chunks(block, max_values=options.max_chunk_values)
    if isinstance(block, VariableBlock):
        return variable.encode_chunks(block, max_values=options.max_chunk_values)
    raise _no_encoder(block)


def choose_block(block: Block, options: EncodingOptions) -> EncodedBlock:
    """Dictionary items as one buffer."""
    if isinstance(block, FixedBlock):
        return EncodedBlock(*flat.encode_block(block))
    if isinstance(block, VariableBlock):
        return EncodedBlock(*variable.encode_block(block))
    raise _no_encoder(block)


def choose_values(block: Block, options: EncodingOptions) -> EncodedValues:
    """Values for full-zip pages, each encoded alone."""
    if isinstance(block, FixedBlock):
        return EncodedValues(Flat(block.bits), block)
    if isinstance(block, VariableBlock):
        return EncodedValues(Variable(Flat(block.offsets.dtype.itemsize * 8)), block)
    raise _no_encoder(block)


def choose_levels(levels: npt.NDArray[np.uint16], counts: Ints, options: EncodingOptions) -> EncodedLevels:
    """Repetition or definition levels of many chunks: `counts` (int64) levels belong to each chunk, in order."""
    data = np.ascontiguousarray(levels, "<u2").view(np.uint8)
    return EncodedLevels(Flat(16), Pieces(data, (np.cumsum(counts) - counts) * 2, counts * 2))


def _no_encoder(block: Block) -> UnsupportedEncodingError:
    return UnsupportedEncodingError(f"no encoder for {type(block).__name__}")
