"""Decoded leaves -> Arrow arrays: lists get their offsets, structs their validity, leaves their values.

    leaf x of list<struct<x>>   nesting [list: offsets, validity] [struct: validity] [item: validity] + values
    array                       ListArray(offsets, StructArray([values of x, ...]))

A flat column needs none of that: each page becomes one array, and no bytes are copied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa

from lance_core.arrow.buffers import buffer_of, nulls
from lance_core.arrow.kinds import as_dictionary, as_list, as_struct
from lance_core.arrow_numpy import arrow_of, numpy_of
from lance_core.errors import CorruptFileError
from lance_core.file.convert.tree import LeafNode, ListNode, Node, StructNode, is_packed, leaves
from lance_core.file.convert.values import bitmap, join_to_arrow, to_arrow
from lance_core.format.layout import RepDefLayer
from lance_core.pages.leaf import Leaf
from lance_core.pages.levels.join import join_levels
from lance_core.pages.levels.unravel import Nesting, unravel

_MAX_INT32 = 2**31 - 1


def flat_array(leaf: Leaf, arrow_type: pa.DataType) -> pa.Array[Any]:
    """Rows of one page of a column that is not nested."""
    if len(leaf.layers) != 1 or leaf.rep is not None:
        raise CorruptFileError(f"a column of type {arrow_type} has {len(leaf.layers)} nesting layers, expected 1")
    valid = None if leaf.def_ is None else leaf.def_ == 0
    if valid is not None and len(valid) != leaf.values.count:
        raise CorruptFileError(f"found {len(valid)} definition levels for {leaf.values.count} values")
    return to_arrow(leaf.values, arrow_type, bitmap(valid))


def leaf_array(leaf: Leaf, node: LeafNode) -> pa.Array[Any]:
    """Rows of one page of a column that is a leaf (2.1 and newer)."""
    if is_packed(node.field) and pa.types.is_struct(node.type) and not node.type.num_fields:
        # There is nothing to pack: the official library takes a page without a value and levels for one of nulls.
        return pa.nulls(leaf.values.count, node.type) if leaf.def_ is None else flat_array(leaf, node.type)
    return flat_array(leaf, node.type)


@dataclass(frozen=True, slots=True)
class _Column:
    """One leaf of a nested column: its layers from the outermost inwards, and its values with their validity."""

    nesting: Sequence[Nesting]
    values: pa.Array[Any]


@dataclass(frozen=True, slots=True)
class LeafPath:
    """A leaf with a column, and the nodes from the root down to it."""

    leaf: LeafNode
    column: int
    nodes: tuple[Node, ...]


def leaf_paths(node: Node) -> tuple[LeafPath, ...]:
    """The leaves below a node that have a column."""
    return tuple(LeafPath(leaf, leaf.column, tuple(_path(node, leaf))) for leaf in leaves(node) if leaf.column is not None)


def nested_array(node: Node, paths: Sequence[LeafPath], pages: Mapping[int, Sequence[Leaf]], num_rows: int) -> pa.Array[Any]:
    """All rows of a nested field; `paths` are its `leaf_paths`, `pages` holds the leaves of each column, in order.

    Leaves without a column in `pages` become nulls. CorruptFileError when the columns contradict each other.
    """
    columns = {
        path.column: _column(path, pages[path.column])
        for path in paths
        if path.column in pages and not _is_without_levels(path.leaf, pages[path.column])
    }
    if not columns:
        return missing(node, num_rows)
    array = _build(node, columns, 0, num_rows)
    if len(array) != num_rows:
        raise CorruptFileError(f"field {node.field.name!r} has {len(array)} rows, expected {num_rows}")
    return array


def _column(path: LeafPath, pages: Sequence[Leaf]) -> _Column:
    leaf = path.leaf
    if not pages:
        return _Column(_no_rows(path), nulls(0, leaf.type))
    joined = join_levels(pages)
    dimensions = [node.dimension or 1 if isinstance(node, ListNode) else 1 for node in path.nodes]
    if len(dimensions) != len(joined.layers):
        raise CorruptFileError(
            f"column {leaf.field.name!r} has {len(joined.layers)} nesting layers, expected {len(dimensions)}"
        )
    nesting = unravel(joined.rep, joined.def_, joined.layers, joined.num_visible, dimensions=dimensions[::-1])
    valid = nesting[-1].validity
    if nesting[-1].length != joined.num_visible:
        raise CorruptFileError(f"found {nesting[-1].length} value slots for {joined.num_visible} values")
    together = join_to_arrow(joined.values, leaf.type, valid)
    if together is not None:
        return _Column(nesting, together)
    arrays = []
    start = 0
    for values in joined.values:
        part = None if valid is None else valid[start : start + values.count]
        start += values.count
        arrays.append(to_arrow(values, leaf.type, bitmap(part)))
    return _Column(nesting, concat(arrays, leaf.type))


def _is_without_levels(leaf: LeafNode, pages: Sequence[Leaf]) -> bool:
    """Whether it is a struct without fields, of which the official writer says nothing but its rows, wherever it is."""
    if not pa.types.is_struct(leaf.type) or leaf.type.num_fields:
        return False
    return bool(pages) and all(len(page.layers) == 1 and page.rep is None and page.def_ is None for page in pages)


def _path(root: Node, leaf: LeafNode) -> list[Node]:
    """The nodes from the root to a leaf."""
    if root is leaf:
        return [root]
    children = root.children if isinstance(root, StructNode) else (root.item,) if isinstance(root, ListNode) else ()
    for child in children:
        below = _path(child, leaf)
        if below:
            return [root, *below]
    return []


def _no_rows(path: LeafPath) -> list[Nesting]:
    result = []
    for node in path.nodes:
        is_list = isinstance(node, ListNode) and not node.dimension
        layer = RepDefLayer.ALL_VALID_LIST if is_list else RepDefLayer.ALL_VALID_ITEM
        result.append(Nesting(layer, 0, None, np.zeros(1, np.int64) if is_list else None))
    return result


def concat(arrays: Sequence[pa.Array[Any]], arrow_type: pa.DataType) -> pa.Array[Any]:
    """The arrays as one; dictionaries are unified."""
    if not arrays:
        return nulls(0, arrow_type)
    if len(arrays) == 1:
        return arrays[0]
    if pa.types.is_dictionary(arrow_type):
        plain: list[Any] = [plain_dictionary(as_dictionary(array)) for array in arrays]
        return pa.concat_arrays(pa.chunked_array(plain, cast("Any", arrow_type)).unify_dictionaries().chunks)
    if _has_dictionaries(arrow_type):
        return pa.concat_arrays([plain_dictionaries(array) for array in arrays])
    return pa.concat_arrays(arrays)


def _has_dictionaries(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return True
    return pa.types.is_nested(kind) and any(_has_dictionaries(kind.field(at).type) for at in range(kind.num_fields))


def plain_dictionaries(array: pa.Array[Any]) -> pa.Array[Any]:
    """The same array; dictionaries anywhere in it have their nulls among the keys."""
    kind: Any = array.type
    if pa.types.is_dictionary(kind):
        return plain_dictionary(as_dictionary(array))
    if not _has_dictionaries(kind):
        return array
    if pa.types.is_struct(kind):
        fields = as_struct(array)
        children = [plain_dictionaries(fields.field(at)) for at in range(kind.num_fields)]
        return pa.StructArray.from_arrays(children, fields=[*kind], mask=array.is_null())
    own = 1 if pa.types.is_fixed_size_list(kind) else 2
    values = plain_dictionaries(as_list(array).values)
    return pa.Array.from_buffers(kind, len(array), array.buffers()[:own], offset=array.offset, children=[values])


def plain_dictionary(array: pa.DictionaryArray[Any, Any]) -> pa.DictionaryArray[Any, Any]:
    """The same array with its nulls among the keys: Arrow does not unify dictionaries that hold a null."""
    items = array.dictionary
    if not items.null_count:
        return array
    valid = numpy_of(items.is_valid(), may_copy=True)
    places = arrow_of(np.cumsum(valid) - 1, mask=~valid).cast(array.type.index_type)
    return pa.DictionaryArray.from_arrays(places.take(array.indices), items.drop_null())


def copied(array: pa.Array[Any]) -> pa.Array[Any]:
    """The array in buffers of its own, without an offset."""
    if pa.types.is_dictionary(array.type):
        array = plain_dictionary(as_dictionary(array))
    # `take` would do as well, but it gets slices of nested fixed-size lists wrong; joining gets them right.
    return pa.concat_arrays([array, array.slice(0, 0)])


def missing(node: Node, length: int) -> pa.Array[Any]:
    """What there is of a field without values: nulls, or structs that have no fields."""
    is_struct = isinstance(node, StructNode) or (pa.types.is_struct(node.type) and not node.type.num_fields)
    if not is_struct or all(leaf.column is None for leaf in leaves(node)):
        return nulls(length, node.type)
    children = [missing(child, length) for child in node.children] if isinstance(node, StructNode) else []
    return pa.Array.from_buffers(node.type, length, [None], children=children)


def _build(node: Node, columns: Mapping[int, _Column], depth: int, length: int) -> pa.Array[Any]:
    """The array of a node with `length` slots."""
    known = next((columns[leaf.column] for leaf in leaves(node) if leaf.column is not None and leaf.column in columns), None)
    if known is None:
        return missing(node, length)
    nesting = known.nesting[depth]
    if nesting.length != length:
        raise CorruptFileError(f"field {node.field.name!r} has {nesting.length} slots, its parent has {length}")
    if isinstance(node, LeafNode):
        return known.values
    if isinstance(node, StructNode):
        children = [_build(child, columns, depth + 1, length) for child in node.children]
        return pa.Array.from_buffers(node.type, length, [bitmap(nesting.validity)], children=children)
    if node.dimension:
        item = _build(node.item, columns, depth + 1, length * node.dimension)
        return pa.Array.from_buffers(node.type, length, [bitmap(nesting.validity)], children=[item])
    return _build_list(node, columns, depth, nesting)


def _build_list(node: ListNode, columns: Mapping[int, _Column], depth: int, nesting: Nesting) -> pa.Array[Any]:
    if nesting.offsets is None:
        raise CorruptFileError(f"the pages of list {node.field.name!r} have no list layer where the schema has one")
    num_items = int(nesting.offsets[-1])
    item = _build(node.item, columns, depth + 1, num_items)
    offsets = nesting.offsets
    if not pa.types.is_large_list(node.type):
        if num_items > _MAX_INT32:
            raise CorruptFileError(f"{num_items} list items do not fit in {node.type}")
        buffer = buffer_of(offsets.astype(np.int32))
    else:
        buffer = buffer_of(np.ascontiguousarray(offsets, np.int64))
    return pa.Array.from_buffers(node.type, nesting.length, [bitmap(nesting.validity), buffer], children=[item])
