"""A few rows of a field without lists, value by value -> one Arrow array, whatever number of pages and files they are from.

::

    file 0   x  b"\\x07\\0\\0\\0"          x of rows 5, 3 of the answer
    file 1   x  b"\\x09\\0\\0\\0"    ->    one buffer 09 00 00 00 07 00 00 00, in the order of the answer

What Arrow does for one array it does for each page and each file otherwise: that is most of what such a read costs.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import pyarrow as pa

from lance_core.arrow.buffers import buffer_of
from lance_core.errors import CorruptFileError
from lance_core.file.convert.tree import LeafNode, Node, StructNode, is_packed, leaves
from lance_core.file.convert.values import is_variable
from lance_core.file.to_user_types import finish
from lance_core.pages.row_values import RowValues, join_values, packed_bits

_MAX_INT32 = 2**31 - 1


@dataclass(frozen=True, slots=True, eq=False)
class FieldValues:
    """Rows of one field: the values of each of its leaves, in the order of `tree.leaves`."""

    node: Node
    leaves: Sequence[RowValues]


def has_short_way(node: Node) -> bool:
    """Whether a field is, or is a struct of, plain values that the file has."""
    if isinstance(node, StructNode):
        return all(has_short_way(child) for child in node.children)
    return isinstance(node, LeafNode) and node.column is not None and is_plain(node)


def is_plain(node: LeafNode) -> bool:
    """Whether a leaf has values of one width, or bytes, and no structure of its own."""
    kind, types = node.type, pa.types
    if types.is_null(kind) or is_packed(node.field):
        return False
    return types.is_primitive(kind) or types.is_decimal(kind) or is_variable(kind) or _has_bytes(kind)


def _has_bytes(kind: pa.DataType) -> bool:
    return pa.types.is_fixed_size_binary(kind) and kind.byte_width > 0


def field_values(node: Node, found: Sequence[tuple[int, RowValues]]) -> FieldValues:
    """The (column, rows of one page) pairs of a field, pages in order."""
    if isinstance(node, LeafNode) and len(found) == 1:
        return FieldValues(node, (found[0][1],))
    by_column: dict[int, list[RowValues]] = {}
    for column, values in found:
        by_column.setdefault(column, []).append(values)
    return FieldValues(node, [join_values(by_column[leaf.column]) for leaf in leaves(node) if leaf.column is not None])


def joined_array(parts: Sequence[FieldValues], field: pa.Field[Any], order: Sequence[int] | None) -> pa.Array[Any]:
    """The rows of one field of several files, in another order if one is given, as users see them."""
    first = parts[0]
    if len(parts) == 1 and order is None:
        return array_of(first, field)
    joined = [join_values(found) for found in zip(*(part.leaves for part in parts), strict=True)]
    if order is not None:
        joined = [_in_order(values, order) for values in joined]
    return array_of(FieldValues(first.node, joined), field)


def _in_order(values: RowValues, order: Sequence[int]) -> RowValues:
    nulls = None if values.nulls is None else [values.nulls[at] for at in order]
    return RowValues([values.items[at] for at in order], nulls, values.bits, values.num_layers)


def array_of(values: FieldValues, field: pa.Field[Any]) -> pa.Array[Any]:
    """The rows of one field as users see them. CorruptFileError when the pages hold values of another width."""
    return finish(_build(values.node, iter(values.leaves), len(values.leaves[0].items), 0)[0], field.type)


def _build(node: Node, found: Iterator[RowValues], length: int, depth: int) -> tuple[pa.Array[Any], RowValues]:
    """The array of a node, and the values of its first leaf, whose nulls are also those of the nodes around it."""
    if isinstance(node, StructNode):
        built = [_build(child, found, length, depth + 1) for child in node.children]
        first = built[0][1]
        children = [child for child, _ in built]
        return pa.Array.from_buffers(node.type, length, [_validity(first, depth)], children=children), first
    values = next(found)
    if values.num_layers != depth + 1 or len(values.items) != length:
        raise CorruptFileError(
            f"column {node.field.name!r} has {len(values.items)} rows of {values.num_layers} nesting layers, "
            f"expected {length} of {depth + 1}"
        )
    return _leaf(values, node.type, _validity(values, depth)), values


def _validity(values: RowValues, depth: int) -> pa.Buffer | None:
    """A slot under a null is null too, where the layer has nulls."""
    if values.nulls is None or depth not in values.nulls:
        return None
    return buffer_of(packed_bits([null > depth for null in values.nulls]))


def _leaf(values: RowValues, kind: pa.DataType, validity: pa.Buffer | None) -> pa.Array[Any]:
    items = values.items
    if (values.bits == 0) != is_variable(kind) or (values.bits and values.bits != kind.bit_width):
        raise CorruptFileError(f"the page holds values of {values.bits or 'varying'} bits, expected {kind}")
    if values.bits == 1:
        data = packed_bits([item != b"\0" for item in items])
    else:
        data = b"".join(items)
    if values.bits:
        return pa.Array.from_buffers(kind, len(items), [validity, buffer_of(data)])
    is_large = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    if len(data) > _MAX_INT32 and not is_large:
        raise CorruptFileError(f"{len(data)} bytes of values do not fit in {kind}")
    offsets: Any = array("q" if is_large else "i", accumulate(map(len, items), initial=0))
    return pa.Array.from_buffers(kind, len(items), [validity, buffer_of(offsets), buffer_of(data)])
