"""Writing pages of 2.0 files: array encodings over plain buffers, as the official writer chooses them.

::

    int64 with nulls        SomeNulls(Flat(1, 0), Flat(64, 1))
    utf8 "ab", null, "c"    Binary(ends 2, 2 + 4, 3 as u64; bytes "abc"; null_adjustment 4)
    list column             List(ends, adjustment, num_items); the items are the next column's affair
    struct column           SimpleStruct, no buffers; its fields are the next columns. Struct nulls cannot be written
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_core.arrays import Bools, Bytes, Ints
from lance_core.codecs.blocks import Block, DictionaryBlock, FixedBlock, ListBlock, Pieces, StructBlock, VariableBlock
from lance_core.codecs.choose import choose_dictionary
from lance_core.codecs.dictionary import index_array
from lance_core.codecs.general import compress
from lance_core.codecs.options import EncodingOptions
from lance_core.errors import InputError, UnsupportedEncodingError
from lance_core.fetch import Buffer
from lance_core.format import encoding20 as enc20
from lance_core.format.encoding import BufferCompression, CompressionScheme
from lance_core.pages.leaf import ConstantValues, EncodedPage, LeafValues, as_buffer

_MAX_DICTIONARY = 100
_SCHEMES = {"zstd": CompressionScheme.ZSTD, "lz4": CompressionScheme.LZ4}


@dataclass(slots=True)
class _Writer:
    """The buffers of the page being made."""

    options: EncodingOptions
    buffers: list[Buffer] = field(default_factory=list)

    def add(self, data: Bytes) -> enc20.BufferRef:
        self.buffers.append(as_buffer(data))
        return enc20.BufferRef(len(self.buffers) - 1)


def encode_values(
    values: LeafValues, validity: Bools | None, options: EncodingOptions, *, is_text: bool = False
) -> EncodedPage:
    """A page of values, one slot per row.

    `validity`: bool per row, None when all are valid. `is_text`: the column is utf8 (not large), whose readers also take
    automatic dictionaries. A DictionaryBlock makes a page of an Arrow dictionary column, with indices as wide as they are.
    """
    writer = _Writer(options)
    all_null = isinstance(values, ConstantValues) or (validity is not None and not validity.any())
    if all_null and not isinstance(values, VariableBlock):
        if isinstance(values, ConstantValues) and values.scalar is not None:
            raise UnsupportedEncodingError("2.0 files have no constant pages; expand the constant first")
        return EncodedPage(enc20.AllNulls(), (), values.count)
    assert not isinstance(values, ConstantValues)
    nulls = None if validity is None or validity.all() else ~validity
    chosen = choose_dictionary(values, options) if is_text else None
    layout: enc20.ArrayEncoding
    if chosen is not None and chosen.items.count <= _MAX_DICTIONARY:
        layout = _automatic_dictionary(writer, chosen, nulls)
    else:
        layout = _array(writer, values, nulls)
    return EncodedPage(layout, tuple(writer.buffers), values.count)


def encode_lists(
    offsets: npt.NDArray[np.int32] | npt.NDArray[np.int64], validity: Bools | None, options: EncodingOptions
) -> EncodedPage:
    """A page of a list column from its offsets (rows + 1, from 0); a null list must be empty, its items left out."""
    plain = offsets.astype(np.int64)
    if len(plain) == 0 or int(plain[0]) != 0 or (np.diff(plain) < 0).any():
        raise InputError("list offsets must start at 0 and not decrease")
    if validity is not None and (np.diff(plain)[~validity] != 0).any():
        raise InputError("a null list must have no items in a 2.0 file")
    writer = _Writer(options)
    num_items = int(plain[-1])
    stored = _ends(writer, plain, None if validity is None else ~validity, num_items + 1)
    layout = enc20.List(stored, num_items + 1, num_items)
    return EncodedPage(layout, tuple(writer.buffers), len(plain) - 1)


def encode_struct(num_rows: int) -> EncodedPage:
    """The page of a struct's own column."""
    return EncodedPage(enc20.SimpleStruct(), (), num_rows)


def _array(writer: _Writer, values: Block, nulls: Bools | None) -> enc20.ArrayEncoding:
    if isinstance(values, VariableBlock):
        return _binary(writer, values, nulls)
    if isinstance(values, DictionaryBlock):
        return _dictionary(writer, values, nulls)
    if isinstance(values, StructBlock):
        if nulls is not None:
            raise InputError("2.0 files cannot hold null packed structs", cure="Use data_storage_version 2.1 or newer.")
        return _packed_struct(writer, values)
    validity = None
    if nulls is not None:
        validity = enc20.Flat(1, writer.add(np.packbits(~nulls, bitorder="little")))
    plain = _list(writer, values) if isinstance(values, ListBlock) else _flat(writer, values)
    return enc20.NoNulls(plain) if validity is None else enc20.SomeNulls(validity, plain)


def _flat(writer: _Writer, values: FixedBlock) -> enc20.Flat:
    size = (values.count * values.bits + 7) // 8
    return enc20.Flat(values.bits, writer.add(values.data[:size]))


def _list(writer: _Writer, values: ListBlock) -> enc20.FixedSizeList:
    nulls = None
    if values.validity is not None:
        bits = np.unpackbits(values.validity, count=values.count * values.dimension, bitorder="little")
        nulls = bits == 0 if not bits.all() else None
    if isinstance(values.items, FixedBlock) and not values.items.bits:
        return enc20.FixedSizeList(values.dimension, enc20.AllNulls())
    return enc20.FixedSizeList(values.dimension, _array(writer, values.items, nulls))


def _binary(writer: _Writer, values: VariableBlock, nulls: Bools | None) -> enc20.Binary:
    offsets = values.offsets.astype(np.int64)
    if nulls is not None and (np.diff(offsets)[nulls] != 0).any():
        raise InputError("a null value must have no bytes in a 2.0 file")
    data = values.data[int(offsets[0]) : int(offsets[-1])]
    indices = _ends(writer, offsets - offsets[0], nulls, len(data) + 1)
    compression = writer.options.compression
    scheme = _SCHEMES.get(compression or "")
    if scheme is None or not len(data):
        return enc20.Binary(indices, enc20.Flat(8, writer.add(data)), len(data) + 1)
    packed = compress(Pieces.whole(data), BufferCompression(scheme, writer.options.compression_level))
    bytes_ = enc20.Flat(8, writer.add(packed.data), compression or "", writer.options.compression_level)
    return enc20.Binary(indices, bytes_, len(data) + 1)


def _ends(writer: _Writer, offsets: Ints, nulls: Bools | None, adjustment: int) -> enc20.NoNulls:
    ends = offsets[1:] if nulls is None else offsets[1:] + nulls * np.int64(adjustment)
    return enc20.NoNulls(enc20.Flat(64, writer.add(ends.astype("<u8").view(np.uint8))))


def _dictionary(writer: _Writer, values: DictionaryBlock, nulls: Bools | None) -> enc20.Dictionary:
    """Indices from 0; nulls point to a null item behind the others."""
    numbers = index_array(values)
    items: Block = values.items
    item_nulls = None
    if nulls is not None:
        limit = (1 << (values.indices.bits - 1)) - 1
        if items.count > limit:
            raise InputError(
                f"an index of {values.indices.bits} bits has no value left for null among {items.count} dictionary items"
            )
        numbers = np.where(nulls, numbers.dtype.type(items.count), numbers)
        items = _with_one_more(items)
        item_nulls = np.arange(items.count) == items.count - 1
    indices = enc20.NoNulls(enc20.Flat(values.indices.bits, writer.add(np.ascontiguousarray(numbers).view(np.uint8))))
    return enc20.Dictionary(indices, _array(writer, items, item_nulls), items.count)


def _with_one_more(items: Block) -> Block:
    if isinstance(items, VariableBlock):
        offsets: Any = np.append(items.offsets, items.offsets[-1:])
        return VariableBlock(offsets, items.data)
    if isinstance(items, FixedBlock) and items.bits == 1:
        bits = np.unpackbits(items.data, count=items.count, bitorder="little")
        return FixedBlock(1, np.packbits(np.append(bits, np.uint8(0)), bitorder="little"), items.count + 1)
    if isinstance(items, FixedBlock) and items.bits % 8 == 0:
        size = items.count * (items.bits // 8)
        data = np.concatenate((items.data[:size], np.zeros(items.bits // 8, np.uint8)))
        return FixedBlock(items.bits, data, items.count + 1)
    raise UnsupportedEncodingError(f"a dictionary of {type(items).__name__} with nulls is not supported in 2.0 files")


def _automatic_dictionary(writer: _Writer, values: DictionaryBlock, nulls: Bools | None) -> enc20.Dictionary:
    """Indices of 8 bits from 1; 0 is null."""
    numbers = (index_array(values) + 1).astype(np.uint8)
    if nulls is not None:
        numbers[nulls] = 0
    indices = enc20.NoNulls(enc20.Flat(8, writer.add(numbers)))
    return enc20.Dictionary(indices, _array(writer, values.items, None), values.items.count)


def _packed_struct(writer: _Writer, values: StructBlock) -> enc20.PackedStruct:
    columns, inner = [], []
    for child in values.children:
        described, items = _packed_field(child)
        width = items.bits * items.count // 8 // max(values.count, 1)
        inner.append(described)
        columns.append(items.data[: values.count * width].reshape(values.count, width))
    rows = writer.add(np.ascontiguousarray(np.concatenate(columns, axis=1)).reshape(-1))
    return enc20.PackedStruct(tuple(inner), rows)


def _packed_field(block: Block) -> tuple[enc20.NoNulls, FixedBlock]:
    """What a field is, as if it had a buffer of its own (only the shared one exists), and its plain values."""
    if isinstance(block, ListBlock) and block.validity is None:
        described, items = _packed_field(block.items)
        return enc20.NoNulls(enc20.FixedSizeList(block.dimension, described)), items
    if not isinstance(block, FixedBlock) or block.bits % 8 or not block.bits:
        raise UnsupportedEncodingError("2.0 files pack only structs of fixed-width fields")
    return enc20.NoNulls(enc20.Flat(block.bits, enc20.BufferRef(0))), block
