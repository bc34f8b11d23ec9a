"""A few rows of a field without lists, value by value -> one Arrow array, whatever number of pages and files they are from.

::

    file 0   x  b"\\x07\\0\\0\\0"          x of rows 5, 3 of the answer
    file 1   x  b"\\x09\\0\\0\\0"    ->    one buffer 09 00 00 00 07 00 00 00, in the order of the answer

What Arrow does for one array it does for each page and each file otherwise: that is most of what such a read costs.

A handful of entries of a nested field -> one Arrow array, by plain Python: what `assemble` does for any number.

::

    rep   1 0 1        rows [5, null], []      offsets 0 2 2,  items 5 null
    def_  0 1 2

One row has some five items, and each operation of numpy takes as long as all of them here.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, cast

import numpy as np
import pyarrow as pa

from lance_core.arrow.buffers import buffer_of
from lance_core.codecs.blocks import DictionaryBlock, FixedBlock, VariableBlock
from lance_core.errors import CorruptFileError
from lance_core.file.convert.tree import LeafNode, ListNode, Node, StructNode, is_packed, leaves
from lance_core.file.convert.values import is_variable
from lance_core.file.to_user_types import finish
from lance_core.pages.leaf import Leaf, max_def, max_rep
from lance_core.pages.read.few_values import RowValues, join_values, packed_bits

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


_FEW = 24
"""Entries of a column up to which this is faster than numpy."""


@dataclass(frozen=True, slots=True)
class FewLeaf:
    """What is known of a leaf before its values: their width in bits (0: sizes differ), and how deep it is."""

    column: int
    bits: int
    depth: int


@dataclass(frozen=True, slots=True, eq=False)
class _Layer:
    """Slots of one layer: which are valid (None: all), where the items of each begin and the last ends (of a list)."""

    length: int
    valid: list[bool] | None
    offsets: list[int] | None


def few_leaves(node: Node, depth: int = 0) -> list[FewLeaf] | None:
    """The leaves of a field that has only lists, structs and plain values, all of which the file has; else None."""
    if isinstance(node, LeafNode):
        if node.column is None or not is_plain(node):
            return None
        bits = 0 if is_variable(node.type) else node.type.bit_width
        return None if bits == 1 else [FewLeaf(node.column, bits, depth)]
    if isinstance(node, ListNode):
        return None if node.dimension or pa.types.is_map(node.type) else few_leaves(node.item, depth + 1)
    found: list[FewLeaf] = []
    for child in node.children:
        below = few_leaves(child, depth + 1)
        if below is None:
            return None
        found += below
    return found


def few_entries(
    node: Node, known: Sequence[FewLeaf], pages: Mapping[int, Sequence[Leaf]], num_rows: int
) -> pa.Array[Any] | None:
    """All rows of a field, None where they are not few or not of the plain kind. CorruptFileError as in `nested_array`."""
    columns: dict[int, tuple[list[_Layer], Any]] = {}
    for item in known:
        found = pages.get(item.column, ())
        if len(found) != 1 or found[0].num_levels > _FEW or len(found[0].layers) != item.depth + 1:
            return None
        leaf = found[0]
        values = leaf.values
        numbers: list[int] | None = None
        if isinstance(values, DictionaryBlock):
            numbers, values = _numbers(values.indices), values.items
            # What is under a null may be any number.
            if numbers and max(numbers) >= values.count:
                return None
        if isinstance(values, FixedBlock):
            if values.bits != item.bits:
                return None
        elif not isinstance(values, VariableBlock) or item.bits:
            return None
        columns[item.column] = _layers(leaf), (values, numbers)
    built = _build_entries(node, columns, 0)
    if len(built) != num_rows:
        raise CorruptFileError(f"field {node.field.name!r} has {len(built)} rows, expected {num_rows}")
    return built


def _layers(leaf: Leaf) -> list[_Layer]:
    """The layers from the outermost inwards, as `unravel` finds them."""
    lists, levels = max_rep(leaf.layers), max_def(leaf.layers)
    if lists and leaf.rep is None:
        raise CorruptFileError("a page with lists has no repetition levels")
    reps = [0] * leaf.num_levels if leaf.rep is None else leaf.rep.tolist()
    defs = [0] * len(reps) if leaf.def_ is None else leaf.def_.tolist()
    if len(reps) != len(defs) or (reps and (max(reps) > lists or max(defs) > levels or reps[0] != lists)):
        raise CorruptFileError(f"levels {reps} and {defs}, the page's layers allow {lists} and {levels}")
    result = []
    for layer in reversed(leaf.layers):
        upper = levels
        levels -= layer.num_def_levels
        if not layer.is_list:
            slots = [level for rep, level in zip(reps, defs, strict=True) if rep >= lists]
            valid = [level <= levels for level in slots] if layer.num_def_levels else None
            result.append(_Layer(len(slots), valid, None))
            continue
        offsets, own, kept, items = [], [], [], 0
        for entry in zip(reps, defs, strict=True):
            rep, level = entry
            if rep >= lists:
                offsets.append(items)
                own.append(level)
            if level <= levels:
                kept.append(entry)
                items += rep >= lists - 1
        lists -= 1
        # An empty list has the highest level of its layer if there are nulls too, and the only one if there are none.
        has_nulls = layer.num_def_levels == 2 or layer.name == "NULLABLE_LIST"
        valid = [level <= levels or (layer.num_def_levels == 2 and level == upper) for level in own] if has_nulls else None
        result.append(_Layer(len(own), valid, [*offsets, items]))
        reps, defs = [rep for rep, _ in kept], [level for _, level in kept]
    if result[-1].length != leaf.values.count:
        raise CorruptFileError(f"the levels describe {result[-1].length} values, the page has {leaf.values.count}")
    return result


def _build_entries(node: Node, columns: Mapping[int, tuple[list[_Layer], Any]], depth: int) -> pa.Array[Any]:
    first = next(leaves(node))
    layers, values = columns[cast("int", first.column)]
    layer = layers[depth]
    validity = None if layer.valid is None or all(layer.valid) else buffer_of(packed_bits(layer.valid))
    if isinstance(node, LeafNode):
        return _entries_of_leaf(node.type, layer.length, validity, *values)
    children = [
        _build_entries(child, columns, depth + 1)
        for child in (node.children if isinstance(node, StructNode) else (node.item,))
    ]
    expected = layer.length if layer.offsets is None else layer.offsets[-1]
    if any(len(child) != expected for child in children):
        raise CorruptFileError(f"field {node.field.name!r} has children of {[len(child) for child in children]} slots")
    if isinstance(node, StructNode):
        return pa.Array.from_buffers(node.type, layer.length, [validity], children=children)
    if layer.offsets is None:
        raise CorruptFileError(f"the pages of list {node.field.name!r} have no list layer where the schema has one")
    offsets: Any = array("q" if pa.types.is_large_list(node.type) else "i", layer.offsets)
    return pa.Array.from_buffers(node.type, layer.length, [validity, buffer_of(offsets)], children=children)


def _numbers(indices: FixedBlock) -> list[int]:
    found: list[int] = np.frombuffer(indices.data, f"<u{indices.bits // 8}", indices.count).tolist()
    return found


def _entries_of_leaf(
    kind: pa.DataType,
    length: int,
    validity: pa.Buffer | None,
    values: FixedBlock | VariableBlock,
    numbers: Sequence[int] | None,
) -> pa.Array[Any]:
    at = range(length) if numbers is None else numbers
    if isinstance(values, FixedBlock):
        size = values.bits // 8
        if numbers is None:
            data = values.data[: length * size].tobytes()
        else:
            data = b"".join([values.data[number * size : (number + 1) * size].tobytes() for number in at])
        if len(data) != length * size:
            raise CorruptFileError(f"{length} values of {values.bits} bits in {len(data)} bytes")
        return pa.Array.from_buffers(kind, length, [validity, buffer_of(data)])
    ends = values.offsets
    items = [values.data[ends[number] : ends[number + 1]].tobytes() for number in at]
    is_large = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    offsets: Any = array("q" if is_large else "i", accumulate(map(len, items), initial=0))
    return pa.Array.from_buffers(kind, length, [validity, buffer_of(offsets), buffer_of(b"".join(items))])
