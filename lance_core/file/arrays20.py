"""Arrow arrays -> array encodings of 2.0 files: a description and the buffers it points at.

    int64 [1, null]       SomeNulls(Flat(1, buffer 0), Flat(64, buffer 1))     01 | 01.. 00..
    string ["a", null]    Binary(ends [1, 1 + 2], bytes "a", null_adjustment 2)

Bytes are stored plainly; only `lance-encoding:compression` (zstd, lz4) on variable-width columns compresses them, and few
distinct strings become a dictionary whose index 0 means null. (Spec: file format 2.0.)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import lz4.block
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import zstandard

from lance_core.codecs.blocks import FixedBlock, StructBlock, VariableBlock
from lance_core.codecs.options import EncodingOptions
from lance_core.errors import InputError
from lance_core.fetch import Buffer
from lance_core.file.blocks_of import block_of, validity_of
from lance_core.format import encoding20 as enc

_MIN_DICTIONARY_ROWS = 100
_MAX_DICTIONARY_ITEMS = 99
_SAMPLE = 4096
Ints = npt.NDArray[np.int64]


@dataclass
class ArrayPage:
    """Collects the buffers of one page while its description is built."""

    options: EncodingOptions
    buffers: list[Buffer] = field(default_factory=list)

    def add(self, data: npt.NDArray[np.generic] | bytes) -> enc.BufferRef:
        """Store a buffer; says how to point at it."""
        self.buffers.append(data if isinstance(data, bytes) else np.ascontiguousarray(data).reshape(-1).view(np.uint8).data)
        return enc.BufferRef(len(self.buffers) - 1)

    def encode(self, array: pa.Array) -> enc.ArrayEncoding:
        """The description of an array of a storage type. InputError for what 2.0 cannot hold."""
        types = pa.types
        arrow_type = array.type
        if types.is_null(arrow_type):
            return enc.AllNulls()
        if types.is_dictionary(arrow_type):
            return self._dictionary(array)
        if types.is_string(arrow_type) and _has_few_values(array):
            return self._automatic_dictionary(array)
        if types.is_struct(arrow_type):
            return self._packed_struct(array)
        if types.is_fixed_size_list(arrow_type):
            return self._fixed_size_list(array)
        values = None if array.null_count == len(array) and len(array) else block_of(array)
        if isinstance(values, VariableBlock) or _is_variable(arrow_type):
            return self._binary(block_of(array) if values is None else values, validity_of(array))
        if values is None:
            return enc.AllNulls()
        return self._nullable(array, values)

    def offsets(self, ends: Ints, valid: npt.NDArray[np.bool_] | None, adjustment: int) -> enc.ArrayEncoding:
        """End offsets, those of nulls shifted up."""
        stored = ends if valid is None else np.where(valid, ends, ends + adjustment)
        return enc.NoNulls(enc.Flat(64, self.add(stored.astype("<u8"))))

    def _nullable(self, array: pa.Array, values: object) -> enc.ArrayEncoding:
        if not isinstance(values, FixedBlock):
            raise InputError(f"values of type {array.type} cannot be stored in a 2.0 file")
        valid = validity_of(array)
        if valid is None:
            return enc.NoNulls(enc.Flat(values.bits, self.add(values.data)))
        validity = enc.Flat(1, self.add(np.packbits(valid, bitorder="little")))
        return enc.SomeNulls(validity, enc.Flat(values.bits, self.add(values.data)))

    def _fixed_size_list(self, array: pa.FixedSizeListArray) -> enc.ArrayEncoding:
        dimension = array.type.list_size
        valid = validity_of(array)
        validity = None if valid is None else enc.Flat(1, self.add(np.packbits(valid, bitorder="little")))
        items = array.values.slice(array.offset * dimension, len(array) * dimension)
        if items.null_count == len(items) and not pa.types.is_nested(items.type):
            items = _spelled_out(items)
        lists = enc.FixedSizeList(dimension, self.encode(items))
        return enc.NoNulls(lists) if validity is None else enc.SomeNulls(validity, lists)

    def _binary(self, values: object, valid: npt.NDArray[np.bool_] | None) -> enc.ArrayEncoding:
        assert isinstance(values, VariableBlock)
        size = int(values.offsets[-1])
        adjustment = size + 1
        indices = self.offsets(values.offsets[1:].astype(np.int64), valid, adjustment)
        return enc.Binary(indices, self._bytes(values.data[:size]), adjustment)

    def _bytes(self, data: npt.NDArray[np.uint8]) -> enc.Flat:
        scheme = self.options.compression
        if scheme == "zstd":
            level = 3 if self.options.compression_level is None else self.options.compression_level
            frame = zstandard.ZstdCompressor(level=level).compress(data.tobytes())
            return enc.Flat(8, self.add(len(data).to_bytes(8, "little") + frame), "zstd", self.options.compression_level)
        if scheme == "lz4":
            block = lz4.block.compress(data.tobytes(), store_size=False)
            return enc.Flat(8, self.add(len(data).to_bytes(4, "little") + block), "lz4")
        return enc.Flat(8, self.add(data))

    def _automatic_dictionary(self, array: pa.Array) -> enc.ArrayEncoding:
        encoded = array.dictionary_encode()
        keys = encoded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
        # Index 0 stands for null; the items count from 1.
        indices = enc.NoNulls(enc.Flat(8, self.add((keys + 1).astype(np.uint8))))
        items = encoded.dictionary if len(encoded.dictionary) else pa.array([""], array.type)
        return enc.Dictionary(indices, self._binary(block_of(items), None), len(items))

    def _dictionary(self, array: pa.DictionaryArray) -> enc.ArrayEncoding:
        keys = array.indices.fill_null(0).to_numpy(zero_copy_only=False)
        items = array.dictionary
        valid = validity_of(array.indices)
        if valid is not None:
            # Keys have no validity here: nulls point at an item that is null.
            if len(items) > np.iinfo(keys.dtype).max:
                raise InputError(f"a dictionary of {len(items)} items and nulls does not fit {array.type.index_type} keys")
            keys = np.where(valid, keys, keys.dtype.type(len(items)))
            items = pa.concat_arrays([items, pa.nulls(1, items.type)])
        indices = enc.NoNulls(enc.Flat(8 * keys.dtype.itemsize, self.add(keys)))
        # A dictionary of strings must not become one of dictionaries.
        values = self._binary(block_of(items), validity_of(items)) if _is_variable(items.type) else self.encode(items)
        return enc.Dictionary(indices, values, len(items))

    def _packed_struct(self, array: pa.StructArray) -> enc.ArrayEncoding:
        block = block_of(array)
        if array.null_count or not isinstance(block, StructBlock):
            raise InputError("packed structs of 2.0 files hold no nulls", cure="Use storage version 2.1 or newer.")
        columns = []
        inner = []
        for number, child in enumerate(block.children):
            data, described = _packed_child(child, array.type.field(number))
            columns.append(data.reshape(len(array), -1))
            inner.append(described)
        return enc.PackedStruct(tuple(inner), self.add(np.concatenate(columns, axis=1)))


def _packed_child(child: object, described: pa.Field) -> tuple[npt.NDArray[np.uint8], enc.ArrayEncoding]:
    # The buffer of an inner encoding is not looked at; the struct's own is.
    if isinstance(child, FixedBlock) and child.bits % 8 == 0:
        return child.data, enc.NoNulls(enc.Flat(child.bits, enc.BufferRef(0)))
    raise InputError(f"field {described.name!r} of type {described.type} cannot be packed into a struct of a 2.0 file")


def _spelled_out(items: pa.Array) -> pa.Array:
    """Nulls with bytes of their own: a page of fixed-size lists needs them."""
    if pa.types.is_null(items.type):
        raise InputError("fixed-size lists of nulls cannot be stored")
    data = np.zeros((len(items) * items.type.bit_width + 7) // 8, np.uint8)
    empty = np.zeros((len(items) + 7) // 8, np.uint8)
    return pa.Array.from_buffers(items.type, len(items), [pa.py_buffer(empty), pa.py_buffer(data)])


def _is_variable(arrow_type: pa.DataType) -> bool:
    types = pa.types
    small = types.is_string(arrow_type) or types.is_binary(arrow_type)
    return bool(small or types.is_large_string(arrow_type) or types.is_large_binary(arrow_type))


def _has_few_values(array: pa.Array) -> bool:
    if len(array) < _MIN_DICTIONARY_ROWS:
        return False
    # A sample settles nearly all columns that do not qualify.
    sample = array.slice(0, _SAMPLE)
    if len(sample.unique()) > _MAX_DICTIONARY_ITEMS:
        return False
    return len(array) == len(sample) or len(array.unique().drop_null()) <= _MAX_DICTIONARY_ITEMS
