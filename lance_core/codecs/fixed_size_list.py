"""Fixed-size lists, nested to any depth, with validity of the items.

::

    3 rows of [a, b], second item of row 1 null, FixedSizeList(2, has_validity, Flat(8))
        chunk form     buffer 0  37 (0b110111: row-major item bits)     buffer 1  a0 b0 a1 ?? a2 b2
        full-zip row   03 a0 b0   |   01 a1 ??   |   03 a2 b2           each row with its own bitmap bytes

With nested lists every nullable layer has a bitmap of its items, outermost first, then come the values. Bits (validity
or boolean values) are contiguous over the rows of a chunk. (Spec: compressive encodings, "fixed size list".)
"""

from __future__ import annotations

import numpy as np

from lance_core.arrays import Bytes, Ints
from lance_core.codecs.blocks import Block, FixedBlock, ListBlock, Pieces
from lance_core.codecs.dispatch import Codecs, Values, total
from lance_core.codecs.encoded import EncodedChunks, EncodedValues
from lance_core.codecs.gather import gather, require_sizes
from lance_core.errors import CorruptFileError, UnsupportedEncodingError
from lance_core.format.encoding import CompressiveEncoding, Constant, FixedSizeList, Flat

TARGET_CHUNK_BYTES = 8186
_MAX_ITEMS = 1 << 40


def num_buffers(encoding: FixedSizeList, codecs: Codecs) -> int:
    """One for each layer with validity, and the values' own."""
    return int(encoding.has_validity) + codecs.num_buffers(encoding.values)


def decode(encoding: FixedSizeList, buffers: tuple[Pieces, ...], counts: Ints, codecs: Codecs) -> Block:
    """ListBlock; CorruptFileError for impossible dimensions or chunks too small."""
    dimension = _dimension(encoding, counts)
    item_counts = counts * dimension
    validity = None
    if encoding.has_validity:
        validity = _bitmap(codecs.decode(Flat(1), buffers[:1], item_counts))
    items = codecs.decode(encoding.values, buffers[int(encoding.has_validity) :], item_counts)
    return ListBlock(dimension, items, int(counts.sum()), validity)


def decode_block(encoding: FixedSizeList, piece: Pieces, counts: Ints, codecs: Codecs) -> Block:
    """Lists as one buffer of items; with validity (2.3) as rows of `[bitmaps][values]`."""
    dimension = _dimension(encoding, counts)
    if _has_validity(encoding):
        return _decode_rows(encoding, piece, counts, codecs)
    return ListBlock(dimension, codecs.decode_block(encoding.values, piece, counts * dimension), int(counts.sum()))


def _has_validity(encoding: CompressiveEncoding) -> bool:
    return isinstance(encoding, FixedSizeList) and (encoding.has_validity or _has_validity(encoding.values))


def _decode_rows(encoding: FixedSizeList, piece: Pieces, counts: Ints, codecs: Codecs) -> Block:
    layers, leaf = _layers(encoding)
    size = sum(_row_sizes(layers, leaf.bits_per_value)[1])
    require_sizes(piece, counts * size, "FixedSizeList block")
    return decode_values(
        encoding, FixedBlock(size * 8, gather(piece.data, piece.starts, counts * size), total(counts)), codecs
    )


def decode_values(encoding: FixedSizeList, payload: Values, codecs: Codecs) -> Block:
    """ListBlock from rows of `[bitmaps][values]`; items that are all null are a FixedBlock of 0 bits."""
    if not isinstance(payload, FixedBlock) or payload.bits % 8:
        raise CorruptFileError("a page of FixedSizeList values has payloads of variable width, expected fixed")
    layers, leaf = _layers(encoding)
    bits = leaf.bits_per_value
    num_items, sizes = _row_sizes(layers, bits)
    if sum(sizes) * 8 != payload.bits:
        raise CorruptFileError(f"FixedSizeList rows have {payload.bits} bits, expected {sum(sizes) * 8}")
    grid = payload.data[: payload.count * sum(sizes)].reshape(payload.count, sum(sizes))
    columns = _columns(grid, sizes)
    # Rows of one byte each stay a strided view when they are only reshaped.
    values = np.ascontiguousarray(columns[-1]).reshape(-1) if bits != 1 else _pack_rows(columns[-1], num_items[-1])
    block: Block = FixedBlock(bits, values, payload.count * num_items[-1])
    bitmaps = iter(columns[:-1])
    validities = [
        _pack_rows(next(bitmaps), n) if layer.has_validity else None for layer, n in zip(layers, num_items, strict=True)
    ]
    for depth in range(len(layers) - 1, -1, -1):
        outer = payload.count * (num_items[depth - 1] if depth else 1)
        block = ListBlock(layers[depth].items_per_value, block, outer, validities[depth])
    return block


def encode_chunks(block: ListBlock, *, max_values: int = 4096) -> EncodedChunks:
    """Chunks of a power of two of rows, near 8 KiB."""
    encoding, dimensions, bitmaps, leaf = _describe(block)
    row_bits = int(np.prod(dimensions)) * (leaf.bits + 1)
    per_chunk = 1
    while per_chunk * 2 <= max_values and per_chunk * 2 * row_bits <= TARGET_CHUNK_BYTES * 8:
        per_chunk *= 2
    starts = np.arange(0, block.count, per_chunk, dtype=np.int64)
    counts = np.diff(np.append(starts, block.count))
    buffers, items = [], 1
    for dimension, bitmap in zip(dimensions, bitmaps, strict=True):
        items *= dimension
        if bitmap is not None:
            buffers.append(_cut_bits(bitmap, counts * items))
    flat = counts * items
    if leaf.bits == 1:
        buffers.append(_cut_bits(leaf.data, flat))
    else:
        sizes = flat * (leaf.bits // 8)
        buffers.append(Pieces(leaf.data, np.cumsum(sizes) - sizes, sizes))
    return EncodedChunks(encoding, counts, tuple(buffers))


def encode_values(block: ListBlock) -> EncodedValues:
    """Rows of `[bitmaps][values]`."""
    encoding, dimensions, bitmaps, leaf = _describe(block)
    columns: list[Bytes] = []
    items = 1
    for dimension, bitmap in zip(dimensions, bitmaps, strict=True):
        items *= dimension
        if bitmap is not None:
            columns.append(_unpack_rows(bitmap, block.count, items))
    if leaf.bits == 1:
        columns.append(_unpack_rows(leaf.data, block.count, items))
    elif leaf.bits:
        columns.append(leaf.data[: leaf.count * (leaf.bits // 8)].reshape(block.count, items * (leaf.bits // 8)))
    rows = columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1)
    return EncodedValues(encoding, FixedBlock(rows.shape[1] * 8, np.ascontiguousarray(rows).reshape(-1), block.count))


def has_values(block: ListBlock) -> bool:
    """Whether there are any: lists of nothing but nulls are bitmaps alone, which only full-zip pages hold."""
    return _describe(block)[3].bits > 0


def holds_bits(block: ListBlock) -> bool:
    """Whether its innermost items are booleans."""
    return _describe(block)[3].bits == 1


def row_bits(block: ListBlock) -> int:
    """Bits of one row in full-zip form: what decides between mini-block and full-zip."""
    _, dimensions, bitmaps, leaf = _describe(block)
    items, size = 1, 0
    for dimension, bitmap in zip(dimensions, bitmaps, strict=True):
        items *= dimension
        size += (items + 7) // 8 if bitmap is not None else 0
    return 8 * (size + (items * leaf.bits + 7) // 8)


def _dimension(encoding: FixedSizeList, counts: Ints) -> int:
    dimension = encoding.items_per_value
    largest = int(counts.max()) if len(counts) else 0
    if dimension <= 0 or dimension * max(largest, 1) > _MAX_ITEMS:
        raise CorruptFileError(f"FixedSizeList of dimension {dimension} with chunks of {largest} rows")
    return dimension


def _bitmap(block: Block) -> Bytes:
    if not isinstance(block, FixedBlock):
        raise CorruptFileError("FixedSizeList: validity is not a bitmap")
    return block.data


def _layers(encoding: FixedSizeList) -> tuple[list[FixedSizeList], Flat]:
    layers: list[FixedSizeList] = []
    inner: CompressiveEncoding = encoding
    while isinstance(inner, FixedSizeList):
        layers.append(inner)
        inner = inner.values
    if isinstance(inner, Constant) and inner.value is None and any(layer.has_validity for layer in layers):
        # Nothing but null items: the rows are bitmaps without values.
        return layers, Flat(0)
    if not isinstance(inner, Flat) or inner.compression is not None:
        raise UnsupportedEncodingError(f"FixedSizeList of {type(inner).__name__} in a full-zip page is not supported")
    if inner.bits_per_value != 1 and (inner.bits_per_value <= 0 or inner.bits_per_value % 8):
        raise CorruptFileError(f"FixedSizeList of Flat({inner.bits_per_value})")
    return layers, inner


def _row_sizes(layers: list[FixedSizeList], bits: int) -> tuple[list[int], list[int]]:
    """Items of a row down to each layer; bytes of each bitmap of a row, then of its values."""
    num_items: list[int] = []
    sizes: list[int] = []
    items = 1
    for layer in layers:
        items *= layer.items_per_value
        if not 0 < items * max(bits, 1) <= _MAX_ITEMS:
            raise CorruptFileError(f"FixedSizeList of {items} items per row")
        num_items.append(items)
        if layer.has_validity:
            sizes.append((items + 7) // 8)
    return num_items, [*sizes, (items * bits + 7) // 8]


def _columns(grid: Bytes, sizes: list[int]) -> list[Bytes]:
    ends = np.cumsum(sizes).tolist()
    return [grid[:, end - size : end] for size, end in zip(sizes, ends, strict=True)]


def _pack_rows(rows: Bytes, num_bits: int) -> Bytes:
    """Rows of bitmap bytes as one bitmap without gaps."""
    if num_bits % 8 == 0:
        return np.ascontiguousarray(rows).reshape(-1)
    bits = np.unpackbits(rows, axis=1, count=num_bits, bitorder="little")
    return np.packbits(bits.reshape(-1), bitorder="little")


def _unpack_rows(bitmap: Bytes, count: int, num_bits: int) -> Bytes:
    """One bitmap cut into rows of whole bytes."""
    if num_bits % 8 == 0:
        return bitmap[: count * num_bits // 8].reshape(count, num_bits // 8)
    bits = np.unpackbits(bitmap, count=count * num_bits, bitorder="little").reshape(count, num_bits)
    return np.packbits(bits, axis=1, bitorder="little")


def _cut_bits(bitmap: Bytes, counts: Ints) -> Pieces:
    """A bitmap cut so that each chunk starts at a byte."""
    sizes = (counts + 7) >> 3
    starts = np.cumsum(sizes) - sizes
    if not (counts[:-1] & 7).any():
        return Pieces(bitmap, starts, sizes)
    rows = _unpack_rows(bitmap, len(counts) - 1, int(counts[0])).reshape(-1)
    tail = np.unpackbits(bitmap, count=int(counts.sum()), bitorder="little")[int(counts[:-1].sum()) :]
    return Pieces(np.concatenate([rows, np.packbits(tail, bitorder="little")]), starts, sizes)


def _describe(block: ListBlock) -> tuple[FixedSizeList, list[int], list[Bytes | None], FixedBlock]:
    """The description, dimensions and bitmaps outermost first, and the flat items."""
    dimensions: list[int] = []
    bitmaps: list[Bytes | None] = []
    inner: Block = block
    while isinstance(inner, ListBlock):
        dimensions.append(inner.dimension)
        bitmaps.append(inner.validity)
        inner = inner.items
    if not isinstance(inner, FixedBlock):
        raise UnsupportedEncodingError("fixed-size lists of variable-width items have no encoding")
    encoding: CompressiveEncoding = Flat(inner.bits) if inner.bits else Constant(None)
    for dimension, bitmap in zip(reversed(dimensions), reversed(bitmaps), strict=True):
        encoding = FixedSizeList(dimension, bitmap is not None, encoding)
    if not isinstance(encoding, FixedSizeList):
        raise UnsupportedEncodingError("not a fixed-size list")
    return encoding, dimensions, bitmaps, inner
