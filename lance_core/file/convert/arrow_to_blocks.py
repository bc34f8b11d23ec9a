"""Arrow arrays -> blocks for the encoders, without copying wherever the two agree on the bytes.

    int64 [1, null, 3]           FixedBlock(64, 01.. ??.. 03.., 3)          nulls are levels, not part of the block
    string ["a", null, "bc"]     VariableBlock([0, 1, 1, 3], "abc")         a null has length zero

`block_of(values_to_arrow(block))` is the block again; `lance_core.file.convert.values` is the way back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.arrays import Bools, Bytes
from lance_core.arrow.buffers import bytes_of
from lance_core.arrow.kinds import as_dictionary, as_fixed_size_list, as_struct
from lance_core.arrow_numpy import numpy_of
from lance_core.codecs.blocks import Block, DictionaryBlock, FixedBlock, ListBlock, StructBlock, VariableBlock
from lance_core.errors import InputError
from lance_core.file.convert.values import is_variable
from lance_core.pages.leaf import ConstantValues, LeafValues


def validity_of(array: pa.Array[Any]) -> Bools | None:
    """True where the array has a value, None when it has one everywhere. For dictionaries the value counts too."""
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.bool_)
    if pa.types.is_dictionary(array.type) and as_dictionary(array).dictionary.null_count:
        return _dictionary_validity(as_dictionary(array))
    if array.null_count == 0:
        return None
    return _bits(array.buffers()[0], array.offset, len(array))


def _bits(buffer: pa.Buffer | None, offset: int, count: int) -> Bools:
    first = offset // 8
    data = _bytes(buffer)[first : (offset + count + 7) // 8]
    bits = np.unpackbits(data, count=offset - 8 * first + count, bitorder="little")
    return bits[offset - 8 * first :].view(np.bool_)


def _dictionary_validity(array: pa.DictionaryArray[Any, Any]) -> Bools:
    item_valid = validity_of(array.dictionary)
    key_valid = validity_of(array.indices)
    keys = numpy_of(array.indices.fill_null(0), may_copy=True)
    valid: Bools = np.ones(len(array), np.bool_) if item_valid is None else item_valid[keys]
    return valid if key_valid is None else valid & key_valid


def block_of(array: pa.Array[Any]) -> LeafValues:
    """The values of an array of a storage type, one slot for each entry, null or not. InputError for other types."""
    arrow_type = array.type
    types = pa.types
    if types.is_null(arrow_type) or (types.is_struct(arrow_type) and arrow_type.num_fields == 0):
        return ConstantValues(len(array))
    if types.is_dictionary(arrow_type):
        return _dictionary(as_dictionary(array))
    if types.is_boolean(arrow_type):
        return FixedBlock(1, _bitmap(array), len(array))
    if types.is_fixed_size_list(arrow_type):
        return _fixed_size_list(as_fixed_size_list(array))
    if types.is_struct(arrow_type):
        return _struct(as_struct(array))
    if types.is_string(arrow_type) or types.is_binary(arrow_type):
        return _variable(array, np.dtype(np.int32))
    if types.is_large_string(arrow_type) or types.is_large_binary(arrow_type):
        return _variable(array, np.dtype(np.int64))
    if types.is_nested(arrow_type):
        raise InputError(f"values of type {arrow_type} cannot be stored in one column")
    return _fixed(array)


def _bytes(buffer: pa.Buffer | None) -> Bytes:
    return np.empty(0, np.uint8) if buffer is None else bytes_of(buffer)


def _fixed(array: pa.Array[Any]) -> FixedBlock:
    return FixedBlock(array.type.bit_width, fixed_bytes(array), len(array))


def fixed_bytes(array: pa.Array[Any]) -> Bytes:
    """The bytes of values of whole bytes, those under nulls among them."""
    width = array.type.bit_width // 8
    return _bytes(array.buffers()[1])[array.offset * width : (array.offset + len(array)) * width]


def _bitmap(array: pa.Array[Any]) -> Bytes:
    buffer = array.buffers()[1]
    if buffer is None:
        return np.empty(0, np.uint8)
    if array.offset % 8 == 0:
        return _bytes(buffer)[array.offset // 8 : (array.offset + len(array) + 7) // 8]
    return np.packbits(_bits(buffer, array.offset, len(array)), bitorder="little")


def _variable(array: pa.Array[Any], dtype: np.dtype[Any]) -> VariableBlock:
    if len(array) == 0:
        return VariableBlock(np.zeros(1, dtype), np.empty(0, np.uint8))
    offsets: npt.NDArray[Any] = _bytes(array.buffers()[1]).view(dtype)[array.offset : array.offset + len(array) + 1]
    valid = validity_of(array)
    if valid is not None and bool((np.diff(offsets)[~valid] != 0).any()):
        # Bytes hidden under nulls must not be stored.
        empty = b"" if pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type) else ""
        return _variable(pc.fill_null(array, pa.scalar(empty, array.type)), dtype)
    start, end = int(offsets[0]), int(offsets[-1])
    data = _bytes(array.buffers()[2])[start:end]
    return VariableBlock(offsets - offsets[0] if start else offsets, data)


def _fixed_size_list(array: pa.FixedSizeListArray[Any, Any]) -> ListBlock:
    dimension = array.type.list_size
    items = array.values.slice(array.offset * dimension, len(array) * dimension)
    valid = validity_of(items)
    validity = None if valid is None else np.packbits(valid, bitorder="little")
    return ListBlock(dimension, _items(items), len(array), validity)


def _items(items: pa.Array[Any]) -> Block:
    """The items of fixed-size lists: of a fixed width, or of none at all when every one is null."""
    if pa.types.is_null(items.type) or (is_variable(items.type) and items.null_count == len(items)):
        return FixedBlock(0, np.empty(0, np.uint8), len(items))
    if pa.types.is_fixed_size_list(items.type) and items.null_count == len(items):
        items = pa.nulls(len(items), items.type)  # nor do the items of these have values
    block = _plain(block_of(items))
    if isinstance(block, FixedBlock | ListBlock):
        return block
    raise InputError(f"items of a fixed-size list must have a fixed width, got {items.type}", cure="Make it a list.")


def _struct(array: pa.StructArray) -> StructBlock:
    children = []
    for number in range(array.type.num_fields):
        child = array.field(number)
        if child.null_count and not _nulls_are_outer(child, array):
            name = array.type.field(number).name
            raise InputError(
                f"field {name!r} of a packed struct holds a null",
                cure="Fill the nulls, or write the struct without lance-encoding:packed.",
            )
        children.append(_plain(block_of(child)))
    return StructBlock(tuple(children), len(array))


def _nulls_are_outer(child: pa.Array[Any], parent: pa.StructArray) -> bool:
    outer = validity_of(parent)
    inner = validity_of(child)
    return outer is not None and inner is not None and not bool((outer & ~inner).any())


def _plain(values: LeafValues) -> Block:
    if isinstance(values, ConstantValues):
        raise InputError("a column of nulls or empty structs cannot be part of another value")
    return values


def _dictionary(array: pa.DictionaryArray[Any, Any]) -> DictionaryBlock | ConstantValues:
    keys = array.indices
    if keys.null_count:
        keys = keys.fill_null(0)
    indices = numpy_of(keys, may_copy=True)
    items = array.dictionary
    if items.null_count:
        kept = validity_of(items)
        assert kept is not None
        # Keys of dropped null items point anywhere; they are null by their levels.
        places = np.maximum(np.cumsum(kept) - 1, 0).astype(indices.dtype)
        indices, items = places[indices], items.drop_null()
    if len(items) == 0:
        return ConstantValues(len(array))
    data = np.ascontiguousarray(indices).view(np.uint8)
    return DictionaryBlock(FixedBlock(8 * indices.dtype.itemsize, data, len(array)), _plain(block_of(items)))
