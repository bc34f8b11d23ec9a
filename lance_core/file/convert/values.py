"""Decoded values -> Arrow arrays, without copying wherever the two agree on the bytes.

    FixedBlock(64, data, 3)              int64, double, timestamp ...: the same bytes
    VariableBlock(offsets, data)         string, binary: the same two buffers
    DictionaryBlock(indices, items)      a dictionary array, or the items taken one by one
    ListBlock / StructBlock              fixed-size list of the items / struct of the children

Slots under a null hold arbitrary bytes; the validity bitmap beside them is all that counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.arrays import Bools
from lance_core.arrow.buffers import buffer_of, bytes_of, nulls
from lance_core.arrow.kinds import dictionary_type, list_type
from lance_core.arrow_numpy import arrow_of, number_type, numpy_of
from lance_core.codecs.blocks import Block, DictionaryBlock, FixedBlock, ListBlock, StructBlock, VariableBlock
from lance_core.codecs.dictionary import flatten
from lance_core.errors import CorruptFileError
from lance_core.pages.leaf import ConstantValues, LeafValues

_MAX_INT32 = 2**31 - 1


def bitmap(valid: Bools | None) -> pa.Buffer | None:
    """An Arrow validity buffer of a bool array; None stays None."""
    if valid is None:
        return None
    return buffer_of(np.packbits(valid, bitorder="little"))


def to_arrow(values: LeafValues, arrow_type: pa.DataType, validity: pa.Buffer | None = None) -> pa.Array[Any]:
    """The values as an array of exactly `arrow_type`. CorruptFileError when the page holds values of another width."""
    if isinstance(values, ConstantValues):
        return _constant(values, arrow_type, validity)
    if isinstance(values, DictionaryBlock):
        return _dictionary(values, arrow_type, validity)
    types = pa.types
    if types.is_dictionary(arrow_type):
        plain = to_arrow(values, arrow_type.value_type, validity)
        return _encode_dictionary(plain, arrow_type)
    if isinstance(values, FixedBlock):
        return _fixed(values, arrow_type, validity)
    if isinstance(values, VariableBlock):
        return _variable(values, arrow_type, validity)
    if isinstance(values, ListBlock):
        return _fixed_size_list(values, arrow_type, validity)
    return _struct(values, arrow_type, validity)


def join_to_arrow(values: Sequence[LeafValues], arrow_type: pa.DataType, valid: Bools | None) -> pa.Array[Any] | None:
    """The values of several pages as one array, without an array for each; None where `to_arrow` of each must do.

    That are numbers in dictionaries of values of one width: they are looked up right where they belong.
    """
    types = pa.types
    if (
        types.is_nested(arrow_type)
        or types.is_dictionary(arrow_type)
        or types.is_null(arrow_type)
        or is_variable(arrow_type)
    ):
        return None
    blocks = [item for item in values if isinstance(item, DictionaryBlock) and isinstance(item.items, FixedBlock)]
    width = arrow_type.bit_width // 8
    is_fixed = all(isinstance(block.items, FixedBlock) and block.items.bits == arrow_type.bit_width for block in blocks)
    if len(blocks) < max(2, len(values)) or not is_fixed or arrow_type.bit_width not in (8, 16, 32, 64):
        return None
    out = np.empty(sum(block.count for block in blocks), f"<u{width}")
    start = 0
    for block in blocks:
        items = to_arrow(block.items, arrow_type)
        own = None if valid is None else valid[start : start + block.count]
        indices = _indices(block, len(items), own)
        if len(items) == 0 and len(indices):
            return None
        table = np.frombuffer(cast("Any", items.buffers()[1]), f"<u{width}", len(items))
        # As in `_take_fixed`: the indices were checked.
        np.take(table, indices, out=out[start : start + block.count], mode="clip")
        start += block.count
    return pa.Array.from_buffers(arrow_type, len(out), [bitmap(valid), buffer_of(out)])


def _mismatch(found: str, arrow_type: pa.DataType) -> CorruptFileError:
    return CorruptFileError(f"the page holds {found}, expected {arrow_type} according to the schema")


def _fixed(block: FixedBlock, arrow_type: pa.DataType, validity: pa.Buffer | None) -> pa.Array[Any]:
    no_width = not pa.types.is_fixed_size_binary(arrow_type) or arrow_type.byte_width > 0
    if pa.types.is_null(arrow_type) or (block.bits == 0 and no_width):
        # No bits at all: items of fixed-size lists that are all null.
        return nulls(block.count, arrow_type)
    if pa.types.is_fixed_size_list(arrow_type) and block.bits % arrow_type.list_size == 0:
        # Lists inside packed structs are stored as one wide value.
        items = FixedBlock(block.bits // arrow_type.list_size, block.data, block.count * arrow_type.list_size)
        return _fixed_size_list(ListBlock(arrow_type.list_size, items, block.count), arrow_type, validity)
    if pa.types.is_boolean(arrow_type) and block.bits == 8:
        # Full-zip pages hold whole bytes.
        packed = np.packbits(block.data[: block.count] != 0, bitorder="little")
        return _fixed(FixedBlock(1, packed, block.count), arrow_type, validity)
    if pa.types.is_nested(arrow_type) or is_variable(arrow_type) or arrow_type.bit_width != block.bits:
        raise _mismatch(f"values of {block.bits} bits", arrow_type)
    needed = (block.count * block.bits + 7) // 8
    if len(block.data) < needed:
        raise CorruptFileError(f"{block.count} values of {block.bits} bits need {needed} bytes, got {len(block.data)}")
    return pa.Array.from_buffers(arrow_type, block.count, [validity, buffer_of(block.data)])


def is_variable(arrow_type: pa.DataType) -> bool:
    """Whether values of the type differ in their sizes."""
    return bool(_is_small_variable(arrow_type) or _is_large_variable(arrow_type))


def _is_small_variable(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(arrow_type) or pa.types.is_binary(arrow_type))


def _is_large_variable(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_large_string(arrow_type) or pa.types.is_large_binary(arrow_type))


def _variable(block: VariableBlock, arrow_type: pa.DataType, validity: pa.Buffer | None) -> pa.Array[Any]:
    if not is_variable(arrow_type):
        raise _mismatch("values of variable width", arrow_type)
    dtype = np.dtype(np.int64 if _is_large_variable(arrow_type) else np.int32)
    offsets: npt.NDArray[np.int32] | npt.NDArray[np.int64] = block.offsets
    if offsets.dtype != dtype:
        if dtype == np.int32 and len(offsets) and int(offsets[-1]) > _MAX_INT32:
            raise CorruptFileError(f"{int(offsets[-1])} bytes of values do not fit in {arrow_type}")
        offsets = offsets.astype(dtype)
    buffers = [validity, buffer_of(offsets), buffer_of(block.data)]
    return pa.Array.from_buffers(arrow_type, block.count, buffers)


def _fixed_size_list(block: ListBlock, arrow_type: pa.DataType, validity: pa.Buffer | None) -> pa.Array[Any]:
    if not pa.types.is_fixed_size_list(arrow_type) or arrow_type.list_size != block.dimension:
        raise _mismatch(f"lists of {block.dimension} items", arrow_type)
    item_validity = None if block.validity is None else buffer_of(block.validity)
    items = to_arrow(block.items, arrow_type.value_type, item_validity)
    if len(items) < block.count * block.dimension:
        raise CorruptFileError(f"{block.count} lists of {block.dimension} hold only {len(items)} items")
    return pa.Array.from_buffers(arrow_type, block.count, [validity], children=[items])


def _struct(block: StructBlock, arrow_type: pa.DataType, validity: pa.Buffer | None) -> pa.Array[Any]:
    if not pa.types.is_struct(arrow_type) or arrow_type.num_fields != len(block.children):
        raise _mismatch(f"structs of {len(block.children)} fields", arrow_type)
    children = [to_arrow(child, arrow_type.field(i).type) for i, child in enumerate(block.children)]
    return pa.Array.from_buffers(arrow_type, block.count, [validity], children=children)


def _fewer_items(indices: Any, items: Any, index_type: Any, validity: pa.Buffer | None) -> tuple[Any, Any]:
    """Keys and items of which there are more than the keys' type can name: those of several pages, which repeat, or items
    that no key names. Raises CorruptFileError where too many are in use."""
    if validity is not None:
        indices = np.where(np.unpackbits(bytes_of(validity), count=len(indices), bitorder="little") > 0, indices, 0)
    used = np.unique(indices).astype(np.int64)
    coded = pc.dictionary_encode(items.take(arrow_of(used)), null_encoding="encode")
    if len(coded.dictionary) - 1 > _largest(index_type):
        raise CorruptFileError(f"a dictionary of {len(items)} items does not fit keys of type {index_type}")
    places = np.zeros(len(items), np.int64)
    places[used] = numpy_of(coded.indices)
    return places[indices], coded.dictionary


def _dictionary(block: DictionaryBlock, arrow_type: pa.DataType, validity: pa.Buffer | None) -> pa.Array[Any]:
    is_dictionary = pa.types.is_dictionary(arrow_type)
    items = to_arrow(block.items, list_type(arrow_type).value_type if is_dictionary else arrow_type)
    indices = _indices(block, len(items), validity)
    if is_dictionary:
        index_type = dictionary_type(arrow_type).index_type
        if len(items) - 1 > _largest(index_type):
            indices, items = _fewer_items(indices, items, index_type, validity)
        keys = np.ascontiguousarray(indices).astype(number_type(index_type), copy=False)
        array = pa.Array.from_buffers(index_type, len(keys), [validity, buffer_of(keys)])
        return pa.DictionaryArray.from_arrays(array, items)
    if not pa.types.is_nested(arrow_type) and not is_variable(arrow_type) and arrow_type.bit_width >= 8:
        return _take_fixed(items, indices, arrow_type, validity)
    if isinstance(block.items, VariableBlock) and len(items):
        numbers = FixedBlock(8 * indices.dtype.itemsize, np.ascontiguousarray(indices).view(np.uint8), len(indices))
        return to_arrow(flatten(DictionaryBlock(numbers, block.items)), arrow_type, validity)
    array = pa.Array.from_buffers(pa.from_numpy_dtype(indices.dtype), len(indices), [validity, buffer_of(indices)])
    return pc.take(items, array, boundscheck=False)


def _indices(block: DictionaryBlock, num_items: int, validity: pa.Buffer | Bools | None) -> npt.NDArray[np.unsignedinteger]:
    dtype = np.dtype(f"<u{block.indices.bits // 8}")
    indices = block.indices.data[: block.count * dtype.itemsize].view(dtype)
    if len(indices) and int(indices.max()) >= num_items:
        if validity is None:
            raise CorruptFileError(f"dictionary index {int(indices.max())}, the dictionary has {num_items} items")
        # Slots under a null may hold anything; point them at item 0.
        valid = validity
        if isinstance(valid, pa.Buffer):
            valid = np.unpackbits(bytes_of(valid), count=len(indices), bitorder="little").astype(np.bool_)
        if valid.any() and int(indices[valid].max()) >= num_items:
            raise CorruptFileError(f"dictionary index {int(indices[valid].max())}, the dictionary has {num_items} items")
        indices = np.where(valid, indices, dtype.type(0))
    return indices


def _take_fixed(
    items: pa.Array[Any], indices: npt.NDArray[np.unsignedinteger], arrow_type: pa.DataType, validity: pa.Buffer | None
) -> pa.Array[Any]:
    width = arrow_type.bit_width // 8
    if len(items) == 0:
        return nulls(len(indices), arrow_type)
    table = np.frombuffer(cast("Any", items.buffers()[1]), np.uint8)[: len(items) * width].view(f"V{width}")
    # numpy gathers words fast and opaque bytes slowly.
    if width in (1, 2, 4, 8):
        table = table.view(f"<u{width}")
    # The indices were checked: clipping is the mode that does not check them again.
    picked = np.take(table, indices, mode="clip")
    return pa.Array.from_buffers(arrow_type, len(indices), [validity, buffer_of(picked.view(np.uint8))])


def _largest(index_type: pa.DataType) -> int:
    bits = index_type.bit_width
    return int(2 ** (bits - 1) - 1 if pa.types.is_signed_integer(index_type) else 2**bits - 1)


def _encode_dictionary(plain: pa.Array[Any], arrow_type: pa.DictionaryType[Any, Any, Any]) -> pa.Array[Any]:
    encoded = plain.dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices.cast(arrow_type.index_type), encoded.dictionary)


def _constant(values: ConstantValues, arrow_type: pa.DataType, validity: pa.Buffer | None) -> pa.Array[Any]:
    if pa.types.is_struct(arrow_type) and arrow_type.num_fields == 0:
        return pa.Array.from_buffers(arrow_type, values.count, [validity], children=[])
    if values.scalar is None:
        return nulls(values.count, arrow_type)
    is_dictionary = pa.types.is_dictionary(arrow_type)
    item = _scalar(values.scalar, list_type(arrow_type).value_type if is_dictionary else arrow_type)
    if is_dictionary:
        keys = np.zeros(values.count, number_type(dictionary_type(arrow_type).index_type))
        array = pa.Array.from_buffers(dictionary_type(arrow_type).index_type, len(keys), [validity, buffer_of(keys)])
        return pa.DictionaryArray.from_arrays(array, item)
    repeated: pa.Array[Any] = pa.repeat(item[0], values.count)
    if validity is None:
        return repeated
    return pa.Array.from_buffers(arrow_type, values.count, [validity, *repeated.buffers()[1:]])


def _scalar(buffers: tuple[npt.NDArray[np.uint8], ...], arrow_type: pa.DataType) -> pa.Array[Any]:
    """The constant as an array of one value."""
    if is_variable(arrow_type):
        if len(buffers) != 2:
            raise _mismatch(f"a constant of {len(buffers)} buffers", arrow_type)
        dtype = np.int64 if _is_large_variable(arrow_type) else np.int32
        block: Block = VariableBlock(buffers[0].view(dtype), buffers[1])
        if block.count != 1 or int(block.offsets[0]) != 0 or int(block.offsets[1]) > len(buffers[1]):  # type: ignore[union-attr]
            raise CorruptFileError("the constant of the page is malformed")
        return to_arrow(block, arrow_type)
    if len(buffers) != 1 or pa.types.is_nested(arrow_type):
        raise _mismatch(f"a constant of {len(buffers)} buffers", arrow_type)
    return _fixed(FixedBlock(arrow_type.bit_width, buffers[0], 1), arrow_type, None)
