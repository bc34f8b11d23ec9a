"""Typed casts for arrays and types whose kind the caller has checked. Nothing is checked or converted."""

from __future__ import annotations

from typing import Any, TypeAlias, cast

import pyarrow as pa

ListLike: TypeAlias = "pa.ListArray[Any]"
"""Any kind of list: offsets only where the kind has them."""


def as_struct(array: pa.Array[Any]) -> pa.StructArray:
    """An array of structs."""
    return cast("pa.StructArray", array)


def as_list(array: pa.Array[Any]) -> ListLike:
    """An array of lists, large lists, lists of a fixed size or maps."""
    return cast("pa.ListArray[Any]", array)


def as_fixed_size_list(array: pa.Array[Any]) -> pa.FixedSizeListArray[Any, Any]:
    """An array of lists of a fixed size."""
    return cast("pa.FixedSizeListArray[Any, Any]", array)


def as_dictionary(array: pa.Array[Any]) -> pa.DictionaryArray[Any, Any]:
    """A dictionary-encoded array."""
    return cast("pa.DictionaryArray[Any, Any]", array)


def as_extension(array: pa.Array[Any]) -> pa.ExtensionArray[Any]:
    """An array of an extension type."""
    return cast("pa.ExtensionArray[Any]", array)


def struct_type(type_: pa.DataType) -> pa.StructType:
    """A type of structs."""
    return cast("pa.StructType", type_)


def list_type(type_: pa.DataType) -> pa.FixedSizeListType[Any, Any]:
    """A type of lists; `list_size` only where it is fixed."""
    return cast("pa.FixedSizeListType[Any, Any]", type_)


def dictionary_type(type_: pa.DataType) -> pa.DictionaryType[Any, Any, Any]:
    """A type of dictionaries."""
    return cast("pa.DictionaryType[Any, Any, Any]", type_)
