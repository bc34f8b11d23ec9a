"""Results of encoders: the description, and where the bytes are.

::

    EncodedChunks(Flat(64), counts [1024, 1024, 7], buffers (Pieces(data, [0, 8192, 16384], [8192, 8192, 56]),))
"""

from __future__ import annotations

from dataclasses import dataclass

from lance_core.arrays import Ints
from lance_core.codecs.blocks import FixedBlock, Pieces, VariableBlock
from lance_core.format.encoding import CompressiveEncoding


@dataclass(frozen=True, slots=True)
class EncodedChunks:
    """Values cut into mini-block chunks.

    `counts` (int64) holds the values per chunk: powers of two up to 4,096, except the last, which holds the rest.
    `buffers` has one entry per value buffer of a chunk, each with one piece per chunk.
    """

    encoding: CompressiveEncoding
    counts: Ints
    buffers: tuple[Pieces, ...]


@dataclass(frozen=True, slots=True)
class EncodedValues:
    """Values encoded one by one for a full-zip page.

    `payload` is a FixedBlock (the page says `bits_per_value` = payload.bits) or a VariableBlock (each value has a
    length word of 32 or 64 bits, as wide as the payload's offsets).
    """

    encoding: CompressiveEncoding
    payload: FixedBlock | VariableBlock


@dataclass(frozen=True, slots=True)
class EncodedBlock:
    """Values as one self-contained buffer (dictionary items, levels of a page)."""

    encoding: CompressiveEncoding
    data: bytes


@dataclass(frozen=True, slots=True)
class EncodedLevels:
    """Levels of many chunks: one description, one buffer per chunk."""

    encoding: CompressiveEncoding
    pieces: Pieces
