"""The writer's choice: which encoding a block gets. Ordered rules over statistics that are computed once.

::

    choose_chunks(FixedBlock(64, small numbers), options)    EncodedChunks(InlineBitpacking(64), ...)
    choose_chunks(VariableBlock(urls), options)              EncodedChunks(Fsst(table, Variable(Flat(32))), ...)
    choose_values(VariableBlock(one huge value), options)    EncodedValues(General(zstd, Variable(Flat(32))), ...)

Any choice made here is readable by every reader of the version; the rules decide size and speed only.
(Spec: what the official writer chooses, FORMAT B.)
"""

from __future__ import annotations

from typing import Literal, cast

import numpy as np

from lance_core.arrays import Bools, Ints
from lance_core.codecs import bitpack, byte_stream_split, fixed_size_list, flat, fsst, general, packed, rle, variable
from lance_core.codecs.blocks import Block, FixedBlock, ListBlock, Pieces, StructBlock, VariableBlock
from lance_core.codecs.choose_dictionary import choose_dictionary
from lance_core.codecs.choose_levels import choose_levels
from lance_core.codecs.constant import is_constant
from lance_core.codecs.encoded import EncodedBlock, EncodedChunks, EncodedLevels, EncodedValues
from lance_core.codecs.options import EncodingOptions
from lance_core.codecs.statistics import WORD_BITS, FixedStatistics
from lance_core.errors import UnsupportedEncodingError
from lance_core.format.encoding import BufferCompression, CompressionScheme, Flat, Fsst, PackedStruct, Variable
from lance_core.format.version import FileVersion

__all__ = [
    "EncodedBlock",
    "EncodedChunks",
    "EncodedLevels",
    "EncodedValues",
    "EncodingOptions",
    "are_flat",
    "choose_block",
    "choose_chunks",
    "choose_dictionary",
    "choose_levels",
    "choose_values",
    "is_constant",
]

FSST_MIN_BYTES = 32 * 1024
FSST_MIN_LENGTH = 5
HUGE_VALUE_BYTES = 32 * 1024
"""One value longer than this makes a full-zip page try zstd."""
_PACK_SHARE = 0.95
"""Bit packing that saves less is not worth unpacking."""
_COMPRESSED_CHUNK_BYTES = 16_384
_BLOCK_MIN_BYTES = 256
_SPLIT_SIZES = (4, 8)


def choose_chunks(block: Block, options: EncodingOptions) -> EncodedChunks:
    """Values for mini-block pages. Of a DictionaryBlock pass `indices` (and `items` to `choose_block`).

    Raises UnsupportedEncodingError for blocks that have no chunk form (structs with variable children).
    """
    if isinstance(block, FixedBlock):
        return _fixed_chunks(block, options)
    if isinstance(block, VariableBlock):
        return _variable_chunks(block, options)
    if isinstance(block, ListBlock):
        return fixed_size_list.encode_chunks(block, max_values=options.max_chunk_values)
    if isinstance(block, StructBlock) and packed.is_fixed(block):
        rows, bits = packed.join_rows(block)
        return packed.encode_chunks(_flat_chunks(rows, options), bits)
    raise UnsupportedEncodingError(f"there is no chunk encoding for {type(block).__name__}")


def choose_block(block: Block, options: EncodingOptions) -> EncodedBlock:
    """Dictionary items as one buffer: bit packed or lz4 (2.2 and newer) where that is smaller."""
    if isinstance(block, FixedBlock):
        plain = EncodedBlock(*flat.encode_block(block))
    elif isinstance(block, VariableBlock):
        plain = EncodedBlock(*variable.encode_block(block))
    else:
        raise UnsupportedEncodingError(f"there is no block encoding for {type(block).__name__}")
    if options.version < FileVersion.V2_2 or options.dict_compression == "none":
        return plain
    if options.dict_compression in (None, "fsst") and isinstance(block, FixedBlock) and block.bits in WORD_BITS:
        packed_block = EncodedBlock(*bitpack.encode_block(block))
        if len(packed_block.data) < 0.8 * len(plain.data):
            return packed_block
    if len(plain.data) < _BLOCK_MIN_BYTES:
        return plain
    scheme = "zstd" if options.dict_compression == "zstd" else "lz4"
    compression = _scheme(cast("Literal['lz4', 'zstd']", scheme), options.dict_compression_level)
    squeezed = EncodedBlock(*general.encode_block(plain.encoding, plain.data, compression))
    return squeezed if len(squeezed.data) < len(plain.data) else plain


def choose_values(block: Block, options: EncodingOptions) -> EncodedValues:
    """Values for full-zip pages, each encoded alone. Nulls are the page's affair: it leaves their payloads out."""
    if isinstance(block, FixedBlock):
        return EncodedValues(Flat(block.bits), block)
    if isinstance(block, VariableBlock):
        return _variable_values(block, options)
    if isinstance(block, ListBlock):
        return fixed_size_list.encode_values(block)
    if isinstance(block, StructBlock):
        return _struct_values(block, options)
    raise UnsupportedEncodingError(f"there is no full-zip encoding for {type(block).__name__}")


def _fixed_chunks(block: FixedBlock, options: EncodingOptions) -> EncodedChunks:
    if block.bits not in WORD_BITS or not block.count or options.compression == "none":
        return _compressed(block, options) or _flat_chunks(block, options)
    statistics = FixedStatistics.of(block)
    squeezed = _compressed(block, options)
    best = min(statistics.plain_size, _size(squeezed) if squeezed else statistics.plain_size)
    runs = statistics.rle_size
    if statistics.num_runs < options.rle_threshold * block.count and runs < min(best, statistics.packed_size):
        return rle.encode_chunks(block, max_values=min(rle.CHUNK_VALUES, options.max_chunk_values))
    may_pack = options.max_chunk_values >= bitpack.BLOCK
    if may_pack and statistics.packed_size < min(best, _PACK_SHARE * statistics.plain_size):
        return bitpack.encode_chunks(block, widths=statistics.widths)
    return squeezed or _flat_chunks(block, options)


def are_flat(bits: int, count: int, num_runs: Ints, widths: Ints, options: EncodingOptions) -> Bools:
    """Whether values of each of many blocks stay plain, as `choose_chunks` decides without a wish for a compressor.

    `num_runs`: runs of each block; `widths`: bits of each 1,024 of its values, shape (blocks, parts).
    """
    plain, size = count * bits // 8, bits // 8
    packed_size = (widths * (bitpack.BLOCK // 8) + size).sum(axis=1)
    runs = (num_runs + count // rle.MAX_RUN + 1) * (size + 1)
    by_runs = (num_runs < options.rle_threshold * count) & (runs < np.minimum(plain, packed_size))
    by_bits = (packed_size < min(plain, _PACK_SHARE * plain)) & (options.max_chunk_values >= bitpack.BLOCK)
    kept: Bools = ~by_runs & ~by_bits
    return kept


def _flat_chunks(block: FixedBlock, options: EncodingOptions) -> EncodedChunks:
    target = options.chunk_bytes or flat.TARGET_CHUNK_BYTES
    return flat.encode_chunks(block, max_values=options.max_chunk_values, target_bytes=target)


def _compressed(block: FixedBlock, options: EncodingOptions) -> EncodedChunks | None:
    """Plain values or byte planes behind the general compressor that the user requested; None if that does not pay."""
    compression = _wanted(options)
    if compression is None or block.bits == 1 or not block.count:
        return None
    target = options.chunk_bytes or _COMPRESSED_CHUNK_BYTES
    plain = flat.encode_chunks(block, max_values=options.max_chunk_values, target_bytes=target)
    size = block.bits // 8
    if options.bss != "off" and size in _SPLIT_SIZES:
        planes = byte_stream_split.encode_chunks(plain, size)
        if options.bss == "on" or _trial(planes, compression) < 0.95 * _trial(plain, compression):
            plain = planes
    squeezed = general.encode_chunks(plain, compression)
    return squeezed if squeezed is not plain else None


def _variable_chunks(block: VariableBlock, options: EncodingOptions) -> EncodedChunks:
    target = options.chunk_bytes or variable.TARGET_CHUNK_BYTES
    compression = _wanted(options)
    if compression is not None:
        large = options.chunk_bytes or _COMPRESSED_CHUNK_BYTES
        plain = variable.encode_chunks(block, max_values=options.max_chunk_values, target_bytes=large)
        return general.encode_chunks(plain, compression)
    found = fsst.encode(block) if _may_use_symbols(block, options) else None
    if found is None:
        return variable.encode_chunks(block, max_values=options.max_chunk_values, target_bytes=target)
    table, codes = found
    inner = variable.encode_chunks(codes, max_values=options.max_chunk_values, target_bytes=target)
    return EncodedChunks(Fsst(table, inner.encoding), inner.counts, inner.buffers)


def _variable_values(block: VariableBlock, options: EncodingOptions) -> EncodedValues:
    encoding = Variable(Flat(block.offsets.dtype.itemsize * 8))
    wanted = _wanted(options)
    largest = int(np.diff(block.offsets).max()) if block.count else 0
    if wanted is not None or (largest > HUGE_VALUE_BYTES and options.compression is None):
        # Value by value it is always zstd: the official reader stumbles over nulls between values packed with lz4.
        zstd = wanted is not None and wanted.scheme is CompressionScheme.ZSTD
        compression = wanted if wanted is not None and zstd else BufferCompression(CompressionScheme.ZSTD, 0)
        if wanted is not None or _shrinks(block, compression):
            return EncodedValues(*general.encode_values(encoding, block, compression))
        return EncodedValues(encoding, block)
    found = fsst.encode(block) if _may_use_symbols(block, options) else None
    if found is None:
        return EncodedValues(encoding, block)
    return EncodedValues(Fsst(found[0], encoding), found[1])


def _struct_values(block: StructBlock, options: EncodingOptions) -> EncodedValues:
    if packed.is_fixed(block) and options.version < FileVersion.V2_2:
        rows, bits = packed.join_rows(block)
        return EncodedValues(PackedStruct(bits, Flat(rows.bits)), rows)
    if options.version < FileVersion.V2_2:
        raise UnsupportedEncodingError(
            "packed structs with variable-width children need storage version 2.2",
            cure="Write with data_storage_version='2.2' or without lance-encoding:packed.",
        )
    return packed.encode_values([choose_values(child, options) for child in block.children], block.count)


def _may_use_symbols(block: VariableBlock, options: EncodingOptions) -> bool:
    """FSST only for enough bytes and long enough values; requested by name, always."""
    if options.compression == "none" or not block.count:
        return False
    if options.compression == "fsst":
        return True
    num_bytes = int(block.offsets[-1]) - int(block.offsets[0]) + len(block.offsets) * block.offsets.dtype.itemsize
    return num_bytes >= FSST_MIN_BYTES and int(np.diff(block.offsets).max()) >= FSST_MIN_LENGTH


def _wanted(options: EncodingOptions) -> BufferCompression | None:
    """The general compressor that the field's metadata asks for."""
    if options.compression not in ("lz4", "zstd"):
        return None
    return _scheme(options.compression, options.compression_level)


def _scheme(name: Literal["lz4", "zstd"], level: int | None) -> BufferCompression:
    return BufferCompression(CompressionScheme.ZSTD if name == "zstd" else CompressionScheme.LZ4, level)


def _size(encoded: EncodedChunks) -> int:
    return sum(int(pieces.sizes.sum()) for pieces in encoded.buffers)


def _trial(encoded: EncodedChunks, compression: BufferCompression) -> int:
    """Compressed size of a few chunks spread over the block."""
    pieces, numbers = encoded.buffers[0], _spread(len(encoded.counts), 3)
    few = Pieces(pieces.data, pieces.starts[numbers], pieces.sizes[numbers])
    return int(general.compress(few, compression).sizes.sum())


def _shrinks(block: VariableBlock, compression: BufferCompression) -> bool:
    """Whether a few values spread over the block compress by a twentieth."""
    numbers = _spread(block.count, 4)
    starts = block.offsets[numbers].astype(np.int64)
    sizes = np.minimum(block.offsets[numbers + 1].astype(np.int64) - starts, 1 << 18)
    squeezed = general.compress(Pieces(block.data, starts, sizes), compression)
    return int(squeezed.sizes.sum()) <= 0.95 * int(sizes.sum())


def _spread(count: int, samples: int) -> np.typing.NDArray[np.int64]:
    return np.unique(np.linspace(0, max(count - 1, 0), samples).astype(np.int64))
