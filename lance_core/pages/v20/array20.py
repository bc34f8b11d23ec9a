"""Reading pages of 2.0 files: a tree of array encodings over plain buffers. No chunks, no levels.

::

    SomeNulls(Flat(1, buffer 0), Flat(64, buffer 1))     validity bitmap, values
    Binary(Flat(64, 0), Flat(8, 1), null_adjustment)     end offset of each value; a null's is shifted up by the adjustment
    List(Flat(64, 0), adjustment, num_items)             the same for lists, whose items are in the next column

A row range is a byte range wherever widths are fixed, so nothing needs loading first: one round, two for Binary. The
validity of structs is not stored in 2.0. Constants and dictionaries come back as such.

The buffers at the leaves of 2.0 array encodings: row ranges of plain, bit-packed and compressed buffers.

::

    Flat(64), rows 3..5      bytes 24..40
    Flat(1), rows 3..10      bytes 0..2, then bits 3..10 of them
    Flat(8, "zstd")          the whole buffer: u64 raw size, frame; then the rows
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lance_core.arrays import Bools, Bytes, Ints
from lance_core.codecs.blocks import Block, DictionaryBlock, FixedBlock, ListBlock, Pieces, StructBlock, VariableBlock
from lance_core.codecs.dispatch import Codecs
from lance_core.codecs.gather import words
from lance_core.codecs.general import decompress
from lance_core.codecs.registry import CODECS
from lance_core.errors import CorruptFileError, UnsupportedEncodingError
from lance_core.fetch import Buffer, ByteRange, Fetch
from lance_core.format import encoding as enc
from lance_core.format import encoding20 as enc20
from lance_core.format.encoding import CompressionScheme
from lance_core.format.layout import Page, RepDefLayer
from lance_core.pages.buffers import join, part, request, require_buffers
from lance_core.pages.leaf import ConstantValues, Leaf, LeafValues
from lance_core.pages.read.lockstep import together
from lance_core.pages.rows import RowSelection
from lance_core.pages.value_slots import take_slots


@dataclass(frozen=True, slots=True, eq=False)
class ListRows:
    """Some rows of a 2.0 list column: items `starts[i]`..`ends[i]` (int64, counted from the page's first item).

    `validity`: bool per row, None when all are valid. `num_items`: items of the whole page, so that the next page's items
    begin after the sum of those before.
    """

    starts: Ints
    ends: Ints
    validity: Bools | None
    num_items: int


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """Values and which of them are valid (None: all)."""

    values: LeafValues
    validity: Bools | None = None


@dataclass(frozen=True, slots=True)
class _Source:
    page: Page
    codecs: Codecs
    zero_is_null: bool


def read_array(page: Page, rows: RowSelection, *, zero_is_null: bool, codecs: Codecs = CODECS) -> Fetch[Leaf]:
    """Rows of a column that holds values.

    `zero_is_null`: how dictionaries count: the automatic ones from 1 with 0 as null (every field whose logical type is
    not `dict:`), those of Arrow dictionary columns from 0. Leaves have one layer and no repetition.
    """
    rows.check(page.num_rows)
    source = _Source(page, codecs, zero_is_null)
    slots: Slots = yield from _read(page.layout, source, Ranges(rows.starts, rows.ends))
    if slots.values.count != rows.num_rows:
        raise CorruptFileError(f"found {slots.values.count} values for {rows.num_rows} rows")
    if slots.validity is None:
        layer = RepDefLayer.NULLABLE_ITEM if _is_nothing(slots.values) else RepDefLayer.ALL_VALID_ITEM
        return Leaf(slots.values, None, None, (layer,), rows.num_rows)
    def_ = (~slots.validity).astype(np.uint16)
    return Leaf(slots.values, None, def_, (RepDefLayer.NULLABLE_ITEM,), rows.num_rows)


def read_lists(page: Page, rows: RowSelection, *, codecs: Codecs = CODECS) -> Fetch[ListRows]:
    """Rows of a list column: where their items are. CorruptFileError for offsets that decrease or pass the items."""
    rows.check(page.num_rows)
    if not isinstance(page.layout, enc20.List):
        raise CorruptFileError(f"a list column has a page of {type(page.layout).__name__}")
    layout = page.layout
    source = _Source(page, codecs, False)
    ends = yield from _read_ends(layout.offsets, source, Ranges(rows.starts, rows.ends), layout.null_offset_adjustment)
    if len(ends.ends) and int(ends.ends.max()) > layout.num_items:
        raise CorruptFileError(f"a list ends at item {int(ends.ends.max())}, the page has {layout.num_items}")
    return ListRows(ends.starts, ends.ends, ends.validity, layout.num_items)


def _is_nothing(values: LeafValues) -> bool:
    return isinstance(values, ConstantValues) and values.scalar is None


def _read(encoding: object, source: _Source, ranges: Ranges) -> Fetch[Slots]:
    reader = _READERS.get(type(encoding))
    if reader is None:
        raise UnsupportedEncodingError(f"the 2.0 array encoding {type(encoding).__name__} is not supported at this position")
    return (yield from reader(encoding, source, ranges))


def _read_block(encoding: object, source: _Source, ranges: Ranges) -> Fetch[Block]:
    """Values that must be plain and without nulls."""
    slots: Slots = yield from _read(encoding, source, ranges)
    if slots.validity is not None or isinstance(slots.values, ConstantValues):
        raise CorruptFileError(f"nulls inside {type(encoding).__name__} are not supported")
    return slots.values


def _flat(encoding: enc20.Flat, source: _Source, ranges: Ranges) -> Fetch[Slots]:
    if encoding.bits_per_value == 1:
        return Slots((yield from read_bits(source.page, encoding, ranges)))
    return Slots((yield from read_bytes(source.page, encoding, ranges)))


def _no_nulls(encoding: enc20.NoNulls, source: _Source, ranges: Ranges) -> Fetch[Slots]:
    return (yield from _read(encoding.values, source, ranges))


def _some_nulls(encoding: enc20.SomeNulls, source: _Source, ranges: Ranges) -> Fetch[Slots]:
    validity, slots = yield from together(
        [_read_block(encoding.validity, source, ranges), _read(encoding.values, source, ranges)]
    )
    return Slots(slots.values, _and(_bools(validity), slots.validity))


def _bools(block: Block) -> Bools:
    if not isinstance(block, FixedBlock) or block.bits != 1:
        raise CorruptFileError("validity is not a bitmap")
    return np.unpackbits(block.data, count=block.count, bitorder="little").view(np.bool_)


def _and(one: Bools | None, other: Bools | None) -> Bools | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _all_nulls(encoding: enc20.AllNulls, source: _Source, ranges: Ranges) -> Fetch[Slots]:
    yield from ()
    return Slots(ConstantValues(ranges.count))


def _constant(encoding: enc20.Constant, source: _Source, ranges: Ranges) -> Fetch[Slots]:
    yield from ()
    return Slots(ConstantValues(ranges.count, (np.frombuffer(encoding.value, np.uint8),)))


def _fixed_size_list(encoding: enc20.FixedSizeList, source: _Source, ranges: Ranges) -> Fetch[Slots]:
    if not 0 < encoding.dimension < 1 << 31:
        raise CorruptFileError(f"fixed-size lists of {encoding.dimension} items are not supported")
    slots: Slots = yield from _read(encoding.items, source, ranges.times(encoding.dimension))
    items, validity = slots.values, slots.validity
    if isinstance(items, ConstantValues):
        items, validity = _no_bits(items), np.zeros(items.count, np.bool_)
    bitmap = None if validity is None else np.packbits(validity, bitorder="little")
    return Slots(ListBlock(encoding.dimension, items, ranges.count, bitmap))


def _no_bits(items: ConstantValues) -> FixedBlock:
    """Items that are all null, of whatever type: values without any bits."""
    if items.scalar is not None:
        raise UnsupportedEncodingError("constant items in a fixed-size list are not supported")
    # Their number comes from the list's dimension, which no bytes back up.
    if items.count > 1 << 28:
        raise CorruptFileError(f"a page of fixed-size lists has {items.count} null items")
    return FixedBlock(0, np.empty(0, np.uint8), items.count)


def _fixed_size_binary(encoding: enc20.FixedSizeBinary, source: _Source, ranges: Ranges) -> Fetch[Slots]:
    width = encoding.byte_width
    if not 0 <= width < 1 << 31:
        raise CorruptFileError(f"binary values of {width} bytes are not supported")
    block = yield from _read_block(encoding.bytes, source, ranges.times(width))
    if not isinstance(block, FixedBlock) or block.bits != 8:
        raise CorruptFileError("the bytes of binary values have another type")
    offsets = np.arange(ranges.count + 1, dtype=np.int64) * width
    return Slots(VariableBlock(_narrow(offsets), block.data))


def _binary(encoding: enc20.Binary, source: _Source, ranges: Ranges) -> Fetch[Slots]:
    ends = yield from _read_ends(encoding.indices, source, ranges, encoding.null_adjustment)
    block = yield from _read_block(encoding.bytes, source, ends.spans)
    if not isinstance(block, FixedBlock) or block.bits != 8:
        raise CorruptFileError("the bytes of binary values have another type")
    offsets = np.append(0, np.cumsum(ends.ends - ends.starts))
    if int(offsets[-1]) != block.count:
        raise CorruptFileError(f"values of {int(offsets[-1])} bytes do not fit in {block.count}")
    return Slots(VariableBlock(_narrow(offsets), block.data), ends.validity)


@dataclass(frozen=True, slots=True, eq=False)
class _Ends:
    starts: Ints
    ends: Ints
    validity: Bools | None
    spans: Ranges


def _read_ends(encoding: object, source: _Source, ranges: Ranges, adjustment: int) -> Fetch[_Ends]:
    """End offsets of some rows; a row starts where the one before it ends, so each range reads one entry more."""
    wider = Ranges(np.maximum(ranges.starts - 1, 0), ranges.ends)
    block = yield from _read_block(encoding, source, wider)
    if not isinstance(block, FixedBlock) or block.bits not in (32, 64) or adjustment < 0:
        raise CorruptFileError("end offsets are not 32-bit or 64-bit integers")
    stored = words(block.data, f"u{block.bits // 8}").astype(np.int64)
    plain = stored % adjustment if adjustment else stored
    has_before = (ranges.starts > 0).astype(np.int64)
    lengths = ranges.ends - ranges.starts
    firsts = np.cumsum(lengths + has_before) - lengths
    at = np.arange(ranges.count) + np.repeat(firsts - (np.cumsum(lengths) - lengths), lengths)
    ends = plain[at]
    starts = np.where(at > 0, plain[at - 1], 0) if len(at) else ends
    if len(ranges.starts) and ranges.starts[0] == 0:
        starts[0] = 0
    if (starts > ends).any() or (starts < 0).any():
        raise CorruptFileError("end offsets decrease")
    valid = None if adjustment == 0 else stored[at] < adjustment
    bounds = np.append(0, np.cumsum(lengths))
    spans = Ranges(starts[bounds[:-1]], ends[bounds[1:] - 1])
    return _Ends(starts, ends, None if valid is None or valid.all() else valid, spans)


def _narrow(offsets: Ints) -> Any:
    return offsets.astype(np.int32) if int(offsets[-1]) <= np.iinfo(np.int32).max else offsets


def _fsst(encoding: enc20.Fsst, source: _Source, ranges: Ranges) -> Fetch[Slots]:
    slots: Slots = yield from _read(encoding.binary, source, ranges)
    if not isinstance(slots.values, VariableBlock):
        raise CorruptFileError("FSST codes are not binary values")
    description = enc.Fsst(encoding.symbol_table, enc.Variable(enc.Flat(slots.values.offsets.dtype.itemsize * 8)))
    return Slots(source.codecs.decode_values(description, slots.values), slots.validity)


def _dictionary(encoding: enc20.Dictionary, source: _Source, ranges: Ranges) -> Fetch[Slots]:
    everything = Ranges.span(0, encoding.num_items)
    slots, items = yield from together([_read(encoding.indices, source, ranges), _read(encoding.items, source, everything)])
    if not isinstance(slots.values, FixedBlock) or slots.values.bits not in (8, 16, 32, 64):
        raise CorruptFileError("dictionary indices are not integers")
    numbers = words(slots.values.data, f"u{slots.values.bits // 8}")[: slots.values.count].astype(np.int64)
    validity = slots.validity
    if source.zero_is_null:
        validity = _and(validity, numbers > 0)
        numbers = np.maximum(numbers - 1, 0)
    if validity is not None:
        numbers = np.where(validity, numbers, 0)
    if _is_nothing(items.values) or (validity is not None and not validity.any()):
        return Slots(ConstantValues(ranges.count))
    if isinstance(items.values, ConstantValues) or (
        len(numbers) and not 0 <= numbers.min() <= numbers.max() < encoding.num_items
    ):
        raise CorruptFileError(f"a dictionary index is outside the {encoding.num_items} items")
    held: Any = items.values
    if items.validity is not None:
        # Nulls point to an item that is null. It is none of the dictionary's: with it, '' would be there twice.
        validity = _and(validity, items.validity[numbers])
        if validity is not None and not validity.any():
            return Slots(ConstantValues(ranges.count))
        held = take_slots(held, np.flatnonzero(items.validity))
        places = np.cumsum(items.validity) - 1
        numbers = np.where(validity, places[numbers], 0) if validity is not None else places[numbers]
    indices = FixedBlock(64, numbers.view(np.uint8), len(numbers))
    return Slots(DictionaryBlock(indices, held), None if validity is None or validity.all() else validity)


def _packed_struct(encoding: enc20.PackedStruct, source: _Source, ranges: Ranges) -> Fetch[Slots]:
    widths = [_inner_bits(inner) for inner in encoding.inner]
    if not widths or any(width <= 0 or width % 8 for width in widths):
        raise UnsupportedEncodingError(f"a packed struct with fields of {widths} bits is not supported")
    rows = yield from read_bytes(source.page, enc20.Flat(sum(widths), encoding.buffer), ranges)
    grid = rows.data.reshape(ranges.count, sum(widths) // 8)
    children, at = [], 0
    for width in widths:
        column = np.ascontiguousarray(grid[:, at : at + width // 8]).reshape(-1)
        children.append(FixedBlock(width, column, ranges.count))
        at += width // 8
    return Slots(StructBlock(tuple(children), ranges.count))


def _inner_bits(encoding: object) -> int:
    if isinstance(encoding, enc20.NoNulls):
        return _inner_bits(encoding.values)
    if isinstance(encoding, enc20.FixedSizeList):
        return encoding.dimension * _inner_bits(encoding.items)
    return encoding.bits_per_value if isinstance(encoding, enc20.Flat) else 0


def _bitpacked(encoding: enc20.Bitpacked, source: _Source, ranges: Ranges) -> Fetch[Slots]:
    return Slots((yield from read_packed(source.page, encoding, ranges)))


def _fast_lanes(encoding: enc20.BitpackedForNonNeg, source: _Source, ranges: Ranges) -> Fetch[Slots]:
    return Slots((yield from read_fast_lanes(source.page, encoding, ranges, source.codecs)))


_READERS: Mapping[type, Callable[[Any, _Source, Ranges], Fetch[Slots]]] = {
    enc20.Flat: _flat,
    enc20.NoNulls: _no_nulls,
    enc20.SomeNulls: _some_nulls,
    enc20.AllNulls: _all_nulls,
    enc20.Constant: _constant,
    enc20.FixedSizeList: _fixed_size_list,
    enc20.FixedSizeBinary: _fixed_size_binary,
    enc20.Binary: _binary,
    enc20.Fsst: _fsst,
    enc20.Dictionary: _dictionary,
    enc20.PackedStruct: _packed_struct,
    enc20.Bitpacked: _bitpacked,
    enc20.BitpackedForNonNeg: _fast_lanes,
}


_SCHEMES = {"zstd": CompressionScheme.ZSTD, "lz4": CompressionScheme.LZ4}
_BLOCK = 1024


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """Ranges of values, sorted but perhaps overlapping; `starts` and `ends` are int64."""

    starts: Ints
    ends: Ints

    @classmethod
    def span(cls, start: int, end: int) -> Ranges:
        """One range, or none when it is empty."""
        if end <= start:
            return cls(np.empty(0, np.int64), np.empty(0, np.int64))
        return cls(np.array([start], np.int64), np.array([end], np.int64))

    @property
    def count(self) -> int:
        """Values in all ranges."""
        return int((self.ends - self.starts).sum())

    def times(self, factor: int) -> Ranges:
        """The ranges of the items when each value has `factor` of them."""
        if len(self.ends) and int(self.ends[-1]) * factor >= 1 << 62:
            raise CorruptFileError(f"{int(self.ends[-1])} values of {factor} items are too many")
        return Ranges(self.starts * factor, self.ends * factor)


Parts = Generator[Sequence[ByteRange], Sequence[Buffer], list[Bytes]]


def _fetch(page: Page, buffer: enc20.BufferRef, starts: Ints, ends: Ints) -> Parts:
    """Byte ranges of one buffer."""
    if buffer.kind is not enc20.BufferKind.PAGE:
        raise UnsupportedEncodingError(f"values in a {buffer.kind.name.lower()} buffer are not supported")
    if buffer.index < 0:
        raise CorruptFileError(f"a page has no buffer {buffer.index}")
    require_buffers(page, buffer.index + 1, "2.0")
    pairs = zip(starts.tolist(), ends.tolist(), strict=True)
    return (yield from request([part(page, buffer.index, start, end) for start, end in pairs]))


def read_bytes(page: Page, encoding: enc20.Flat, ranges: Ranges) -> Fetch[FixedBlock]:
    """Values of whole bytes."""
    bits = encoding.bits_per_value
    if bits <= 0 or bits % 8 or bits > 1 << 32:
        raise CorruptFileError(f"Flat of {bits} bits per value: expected 1 or a multiple of 8")
    at = ranges.times(bits // 8)
    if encoding.scheme not in ("", "none"):
        raw = yield from _decompressed(page, encoding)
        if len(at.ends) and int(at.ends.max()) > len(raw):
            raise CorruptFileError(f"values end at byte {int(at.ends.max())}, the buffer has {len(raw)} bytes")
        parts = [raw[start:end] for start, end in zip(at.starts.tolist(), at.ends.tolist(), strict=True)]
    else:
        parts = yield from _fetch(page, encoding.buffer, at.starts, at.ends)
    return FixedBlock(bits, join(parts), ranges.count)


def _decompressed(page: Page, encoding: enc20.Flat) -> Fetch[Bytes]:
    scheme = _SCHEMES.get(encoding.scheme)
    if scheme is None:
        raise UnsupportedEncodingError(f"compression scheme {encoding.scheme!r} is not supported")
    require_buffers(page, encoding.buffer.index + 1, "2.0")
    size = page.buffers[encoding.buffer.index].size
    (data,) = yield from _fetch(page, encoding.buffer, np.zeros(1, np.int64), np.array([size], np.int64))
    pieces = decompress(Pieces.whole(data), scheme)
    start = int(pieces.starts[0])
    return pieces.data[start : start + int(pieces.sizes[0])]


def read_bits(page: Page, encoding: enc20.Flat, ranges: Ranges) -> Fetch[FixedBlock]:
    """A bitmap's ranges, joined bit by bit."""
    if encoding.scheme not in ("", "none"):
        raise UnsupportedEncodingError("compressed bitmaps are not supported")
    parts = yield from _fetch(page, encoding.buffer, ranges.starts // 8, -(-ranges.ends // 8))
    if len(parts) == 1 and int(ranges.starts[0]) % 8 == 0:
        return FixedBlock(1, parts[0], ranges.count)
    lengths = ranges.ends - ranges.starts
    plain = [
        np.unpackbits(data, bitorder="little")[first : first + length]
        for data, first, length in zip(parts, (ranges.starts % 8).tolist(), lengths.tolist(), strict=True)
    ]
    return FixedBlock(1, np.packbits(join(plain), bitorder="little"), ranges.count)


def read_packed(page: Page, encoding: enc20.Bitpacked, ranges: Ranges) -> Fetch[FixedBlock]:
    """Plain bit packing, lowest bits first; negative numbers keep their sign bit on top."""
    width, bits = encoding.compressed_bits, encoding.uncompressed_bits
    if bits not in (8, 16, 32, 64) or not 0 < width <= bits:
        raise CorruptFileError(f"Bitpacked values of {width} bits do not match numbers of {bits} bits")
    at = ranges.times(width)
    parts = yield from _fetch(page, encoding.buffer, at.starts // 8, -(-at.ends // 8))
    tables = []
    for data, first, length in zip(parts, (at.starts % 8).tolist(), (at.ends - at.starts).tolist(), strict=True):
        tables.append(np.unpackbits(data, bitorder="little")[first : first + length].reshape(-1, width))
    table = np.concatenate([np.empty((0, width), np.uint8), *tables])
    fill = (
        np.repeat(table[:, -1:], bits - width, axis=1) if encoding.signed else np.zeros((len(table), bits - width), np.uint8)
    )
    packed = np.packbits(np.concatenate([table, fill], axis=1).reshape(-1), bitorder="little")
    return FixedBlock(bits, packed, len(table))


def read_fast_lanes(page: Page, encoding: enc20.BitpackedForNonNeg, ranges: Ranges, codecs: Codecs) -> Fetch[FixedBlock]:
    """Blocks of 1,024 numbers in FastLanes order; whole blocks are read, then cut."""
    width, bits = encoding.compressed_bits, encoding.uncompressed_bits
    if bits not in (8, 16, 32, 64) or not 0 < width <= bits:
        raise CorruptFileError(f"BitpackedForNonNeg values of {width} bits do not match numbers of {bits} bits")
    first, last = ranges.starts // _BLOCK, -(-ranges.ends // _BLOCK)
    size = _BLOCK * width // 8
    parts = yield from _fetch(page, encoding.buffer, first * size, last * size)
    if not parts:
        return FixedBlock(bits, np.empty(0, np.uint8), 0)
    sizes = np.array([len(item) for item in parts], np.int64)
    pieces = Pieces(join(parts), np.cumsum(sizes) - sizes, sizes)
    counts = (last - first) * _BLOCK
    block = codecs.decode_block(enc.OutOfLineBitpacking(bits, enc.Flat(width)), pieces, counts)
    if not isinstance(block, FixedBlock):
        raise CorruptFileError("bit-packed values are not numbers")
    decoded = (np.cumsum(counts) - counts + ranges.starts % _BLOCK) * (bits // 8)
    lengths = (ranges.ends - ranges.starts) * (bits // 8)
    cut = [block.data[at : at + length] for at, length in zip(decoded.tolist(), lengths.tolist(), strict=True)]
    return FixedBlock(bits, join(cut), ranges.count)
