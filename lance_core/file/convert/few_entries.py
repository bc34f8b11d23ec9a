"""A handful of entries of a nested field -> one Arrow array, by plain Python: what `assemble` does for any number.

::

    rep   1 0 1        rows [5, null], []      offsets 0 2 2,  items 5 null
    def_  0 1 2

One row has some five items, and each operation of numpy takes as long as all of them here.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, cast

import numpy as np
import pyarrow as pa

from lance_core.arrow.buffers import buffer_of
from lance_core.codecs.blocks import DictionaryBlock, FixedBlock, VariableBlock
from lance_core.errors import CorruptFileError
from lance_core.file.convert.few_rows import is_plain
from lance_core.file.convert.tree import LeafNode, ListNode, Node, StructNode, leaves
from lance_core.file.convert.values import is_variable
from lance_core.pages.leaf import Leaf, max_def, max_rep
from lance_core.pages.row_values import packed_bits

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
    built = _build(node, columns, 0)
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


def _build(node: Node, columns: Mapping[int, tuple[list[_Layer], Any]], depth: int) -> pa.Array[Any]:
    first = next(leaves(node))
    layers, values = columns[cast("int", first.column)]
    layer = layers[depth]
    validity = None if layer.valid is None or all(layer.valid) else buffer_of(packed_bits(layer.valid))
    if isinstance(node, LeafNode):
        return _leaf(node.type, layer.length, validity, *values)
    children = [
        _build(child, columns, depth + 1) for child in (node.children if isinstance(node, StructNode) else (node.item,))
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


def _leaf(
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
