"""The writer's choice: which encoding a block gets. Ordered rules over statistics that are computed once.

::

    choose_chunks(FixedBlock(64, small numbers), options)    EncodedChunks(InlineBitpacking(64), ...)
    choose_chunks(VariableBlock(urls), options)              EncodedChunks(Fsst(table, Variable(Flat(32))), ...)
    choose_values(VariableBlock(one huge value), options)    EncodedValues(General(zstd, Variable(Flat(32))), ...)

Any choice made here is readable by every reader of the version; the rules decide size and speed only.
(Spec: what the official writer chooses, FORMAT B.)

How repetition and definition levels are written: the smallest of plain, bit packed and (from 2.2 on) run lengths.

::

    levels 0 0 1 0 ... in chunks of 1,024   ->   OutOfLineBitpacking(16 to 1 bit), 128 bytes a chunk

Decide whether a dictionary is worthwhile: distinct values are counted up to a limit, so that a "no" is found early.

::

    1,000 strings, 4 of them distinct   ->   DictionaryBlock(indices of 32 bits, 4 items)        else None

Statistics for the writer's rules, computed once per block.

::

    FixedStatistics.of(values 7 7 7 9 of 64 bits)   num_runs 2, widths [4], plain 32 bytes, packed 520, runs 18
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from lance_core.arrays import Bools, Ints
from lance_core.codecs import bitpack, byte_stream_split, fixed_size_list, flat, fsst, general, packed, rle, variable
from lance_core.codecs.blocks import Block, DictionaryBlock, FixedBlock, ListBlock, Pieces, StructBlock, VariableBlock
from lance_core.codecs.constant import is_constant
from lance_core.codecs.encoded import EncodedBlock, EncodedChunks, EncodedLevels, EncodedValues
from lance_core.codecs.options import EncodingOptions
from lance_core.errors import UnsupportedEncodingError
from lance_core.format.encoding import BufferCompression, CompressionScheme, Flat, Fsst, PackedStruct, Variable
from lance_core.format.version import FileVersion
from lance_core.kernels import distinct as kernels
from lance_core.kernels.bytes import copy_runs

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


_TINY = 64
_RUN_BYTES = 3


def choose_levels(levels: npt.NDArray[np.uint16], counts: Ints, options: EncodingOptions) -> EncodedLevels:
    """Levels of many chunks: `counts` (int64) levels belong to each chunk, in order. One description, a piece per chunk."""
    values = np.ascontiguousarray(levels, "<u2")
    if len(values) <= _TINY:
        return encode_plain(values, counts)
    width = int(bitpack.bit_lengths(np.array([values.max()], np.uint16))[0])
    packed_size = int(bitpack.out_of_line_words(counts, width, 16).sum()) * 2
    if options.version >= FileVersion.V2_2:
        num_runs = rle.count_runs(values) + len(values) // rle.MAX_RUN + len(counts)
        if num_runs * _RUN_BYTES + 8 * len(counts) < packed_size:
            return EncodedLevels(*rle.encode_pieces(values, counts))
    if packed_size >= 2 * len(values):
        return encode_plain(values, counts)
    return EncodedLevels(*bitpack.encode_out_of_line(values, counts, width=width))


def encode_plain(levels: npt.NDArray[np.uint16], counts: Ints) -> EncodedLevels:
    """Levels as 16-bit numbers."""
    data = np.ascontiguousarray(levels, "<u2").view(np.uint8)
    return EncodedLevels(Flat(16), Pieces(data, (np.cumsum(counts) - counts) * 2, counts * 2))


MIN_VALUES = 100
_INDEX_BYTES = 4
_WORTHWHILE = 0.9
"""A dictionary of numbers must save a tenth over packing them directly, which reads faster."""


def choose_dictionary(block: Block, options: EncodingOptions) -> DictionaryBlock | None:
    """The block as a dictionary with 32-bit indices, or None when that does not pay.

    Numbers of 64 and 128 bits from 2.2 on, byte strings in every version. The caller encodes `indices` with
    `choose_chunks` and `items` with `choose_block`.
    """
    if block.count < MIN_VALUES or options.compression == "none":
        return None
    if isinstance(block, VariableBlock):
        return _of_strings(block, options)
    if isinstance(block, FixedBlock) and block.bits in (64, 128) and options.version >= FileVersion.V2_2:
        return _of_numbers(block, options)
    return None


def _of_strings(block: VariableBlock, options: EncodingOptions) -> DictionaryBlock | None:
    width = block.offsets.dtype.itemsize
    plain = int(block.offsets[-1]) - int(block.offsets[0]) + (block.count + 1) * width
    room = options.dict_size_ratio * plain - block.count * width
    limit = min(_cap(block.count, options), int(room / (plain / block.count + width)))
    found = None if has_many_distinct(block, limit) else number_variable(block, limit)
    return None if found is None else _split(block, *found)


def _of_numbers(block: FixedBlock, options: EncodingOptions) -> DictionaryBlock | None:
    size = block.bits // 8
    room = (options.dict_size_ratio * size - _INDEX_BYTES) * block.count
    limit = min(_cap(block.count, options), int(room / 16))
    found = None if has_many_distinct(block, limit) else number_fixed(block, limit)
    if found is None:
        return None
    codes, firsts = found
    direct = block.count * size
    if block.bits == 64:
        statistics = FixedStatistics.of(block)
        direct = min(direct, statistics.packed_size, statistics.rle_size)
    packed = FixedStatistics.of(FixedBlock(32, codes.view(np.uint8), block.count))
    through = min(packed.packed_size, packed.rle_size) + len(firsts) * size
    return _split(block, codes, firsts) if through < _WORTHWHILE * direct else None


def _cap(count: int, options: EncodingOptions) -> int:
    return min(count // options.dict_divisor, options.dict_max_size)


def _split(
    block: FixedBlock | VariableBlock, codes: np.typing.NDArray[np.uint32], firsts: np.typing.NDArray[np.uint32]
) -> DictionaryBlock:
    items = pick(block, firsts.astype(np.int64))
    return DictionaryBlock(FixedBlock(32, codes.view(np.uint8), block.count), items)


_SAMPLE = 4096
WORD_BITS = (8, 16, 32, 64)
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(9)], np.uint64)


@dataclass(frozen=True, slots=True)
class FixedStatistics:
    """Of values of 8, 16, 32 or 64 bits: runs of equal neighbours, and the bits each block of 1,024 needs."""

    bits: int
    count: int
    num_runs: int
    widths: Ints

    @classmethod
    def of(cls, block: FixedBlock) -> FixedStatistics:
        """Two passes over the values."""
        values = bitpack.unsigned(block)
        return cls(block.bits, block.count, rle.count_runs(values), bitpack.block_widths(values))

    @property
    def plain_size(self) -> int:
        """Bytes of plain values."""
        return self.count * self.bits // 8

    @property
    def packed_size(self) -> int:
        """Bytes of inline bit packing."""
        return bitpack.inline_size(self.widths, self.bits)

    @property
    def rle_size(self) -> int:
        """Bytes of runs; an upper bound, because long runs and chunk edges cut some."""
        return (self.num_runs + self.count // rle.MAX_RUN + 1) * (self.bits // 8 + 1)


def number_fixed(block: FixedBlock, limit: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]] | None:
    """(number of each value, where each distinct value appears first), None above `limit` distinct values."""
    size = block.bits // 8
    data = block.data[: block.count * size]
    if size == 8:
        return _number(limit, block.count, kernels.number_words, (np.ascontiguousarray(data).view("<u8"),))
    offsets = np.arange(block.count + 1, dtype=np.int64) * size
    return number_variable(VariableBlock(offsets, data), limit)


def number_variable(block: VariableBlock, limit: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]] | None:
    """The same for byte strings."""
    first, last = int(block.offsets[0]), int(block.offsets[-1])
    padded = np.empty(last - first + 8, np.uint8)
    padded[: last - first] = block.data[first:last]
    offsets = np.ascontiguousarray(block.offsets - block.offsets[0] if first else block.offsets)
    return _number(limit, block.count, kernels.number_strings, (offsets, padded, _MASKS))


def pick(block: FixedBlock | VariableBlock, numbers: Ints) -> FixedBlock | VariableBlock:
    """Some values of a block, in the order of `numbers` (which are inside it)."""
    if isinstance(block, FixedBlock):
        size = block.bits // 8
        rows = block.data[: block.count * size].reshape(block.count, size)
        return FixedBlock(block.bits, rows[numbers].reshape(-1), len(numbers))
    starts = block.offsets[numbers].astype(np.int64)
    sizes = block.offsets[numbers + 1].astype(np.int64) - starts
    ends = np.cumsum(sizes)
    out = np.empty(int(sizes.sum()), np.uint8)
    copy_runs(np.ascontiguousarray(block.data), starts, sizes, ends - sizes, out)
    offsets: npt.NDArray[Any] = np.append(0, ends).astype(block.offsets.dtype)
    return VariableBlock(offsets, out)


def has_many_distinct(block: FixedBlock | VariableBlock, limit: int) -> bool:
    """Whether two small samples make more than `limit` distinct values all but certain.

    One sample is the first values, the other spread over the block: repeats nearby or afar keep the question open. With
    d distinct among m drawn values, about m * m / (2 * (m - d)) exist (the birthday bound).
    """
    if block.count < 4 * _SAMPLE:
        return False
    # Spread with chance: a fixed step could run in time with a period of the values.
    step = block.count // _SAMPLE
    near = np.arange(_SAMPLE, dtype=np.int64)
    for numbers in (near, near * step + np.random.default_rng(block.count).integers(0, step, _SAMPLE)):
        drawn = pick(block, numbers)
        found = number_fixed(drawn, _SAMPLE) if isinstance(drawn, FixedBlock) else number_variable(drawn, _SAMPLE)
        repeats = 0 if found is None else _SAMPLE - len(found[1])
        # Twice the limit for safety; the bound holds for few repeats only.
        if repeats > _SAMPLE // 10 or repeats * 4 * limit > _SAMPLE * _SAMPLE:
            return False
    return True


def _number(
    limit: int, count: int, kernel: Any, values: tuple[npt.NDArray[Any], ...]
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]] | None:
    if limit <= 0:
        return None
    slot_bits = max(6, (2 * limit).bit_length())
    slots = np.full(1 << slot_bits, -1, np.int32)
    codes, firsts = np.empty(count, np.uint32), np.empty(limit, np.uint32)
    found = kernel(*values, kernels.FACTOR, 64 - slot_bits, limit, slots, codes, firsts)
    return (codes, firsts[:found]) if found >= 0 else None
