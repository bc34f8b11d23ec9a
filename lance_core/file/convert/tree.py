"""Which columns of a file a field needs: the field's nesting as a tree whose leaves name columns.

    field  list.struct                 ListNode
             item struct                 StructNode
               x  int32                    LeafNode(column 4)
               y  string                   LeafNode(column 5)

In 2.1 and newer only leaves have columns; packed structs, blobs and empty structs are leaves. A leaf without a column
(`column` is None) is not in this file and reads as null.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa

from lance_core.arrow.kinds import list_type, struct_type
from lance_core.arrow.logical import BLOB_METADATA, BLOB_V2, FIXED_SIZE_LIST_OF_STRUCT, LIST_TYPES, MAP, STRUCT
from lance_core.arrow.to_arrow import storage_type
from lance_core.errors import FormatError
from lance_core.file.blob_descriptors import DESCRIPTOR, PAIR
from lance_core.format.schema import Field, Schema, is_true


@dataclass(frozen=True, slots=True)
class LeafNode:
    """One column. `type` is the Arrow type its values are stored as."""

    field: Field
    type: pa.DataType
    column: int | None


@dataclass(frozen=True, slots=True)
class StructNode:
    """A struct of at least one field."""

    field: Field
    type: pa.DataType
    children: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ListNode:
    """A list, large list, map (whose item is the struct of entries), or fixed-size list of structs (dimension > 0)."""

    field: Field
    type: pa.DataType
    item: Node
    dimension: int = 0


Node = LeafNode | StructNode | ListNode


def build_tree(
    schema: Schema, field: Field, columns: Mapping[int, int], *, described: bool = False, packs: bool = True
) -> Node:
    """The tree of one field. `columns` maps field ids to columns of the file.

    `described`: the values of an old blob column are its (position, size) pairs, not the bytes they point at. `packs`:
    packed structs are one column each; legacy files know nothing of that and keep the fields apart.
    """
    if field.extension_name == BLOB_V2:
        return LeafNode(field, DESCRIPTOR, columns.get(field.id))
    if described and is_old_blob(field):
        return LeafNode(field, PAIR, columns.get(field.id))
    arrow_type = storage_type(schema, field)
    children = schema.children(field.id)
    logical = field.logical_type
    if logical == STRUCT:
        if (packs and is_packed(field)) or not children:
            return LeafNode(field, arrow_type, columns.get(field.id))
        below = tuple(build_tree(schema, child, columns, described=described, packs=packs) for child in children)
        return StructNode(field, _struct_of(struct_type(arrow_type), below), below)
    if logical in LIST_TYPES or logical == MAP:
        item = build_tree(schema, _only(field, children), columns, described=described, packs=packs)
        return ListNode(field, _list_of(arrow_type, item), item)
    if logical.startswith(FIXED_SIZE_LIST_OF_STRUCT):
        item = build_tree(schema, _only(field, children), columns, described=described, packs=packs)
        return ListNode(field, _list_of(arrow_type, item), item, list_type(arrow_type).list_size)
    return LeafNode(field, arrow_type, columns.get(field.id))


def _struct_of(arrow_type: pa.StructType, children: tuple[Node, ...]) -> pa.StructType:
    """The type with what is stored for its children: descriptors where the type says blobs."""
    if all(arrow_type.field(number).type == child.type for number, child in enumerate(children)):
        return arrow_type
    return pa.struct([arrow_type.field(number).with_type(child.type) for number, child in enumerate(children)])


def _list_of(arrow_type: pa.DataType, item: Node) -> pa.DataType:
    types = pa.types
    if types.is_map(arrow_type):
        entries = pa.struct([arrow_type.key_field, arrow_type.item_field])
        if entries == item.type:
            return arrow_type
        return cast("pa.DataType", pa.map_(cast("Any", arrow_type).key_field, item.type.field(1)))
    if list_type(arrow_type).value_type == item.type:
        return arrow_type
    value = list_type(arrow_type).value_field.with_type(item.type)
    if types.is_fixed_size_list(arrow_type):
        return cast("pa.DataType", pa.list_(value, arrow_type.list_size))
    return pa.large_list(value) if types.is_large_list(arrow_type) else pa.list_(value)


def _only(field: Field, children: tuple[Field, ...]) -> Field:
    if len(children) != 1:
        raise FormatError(f"{field.logical_type} {field.name!r} must have one child field, got {len(children)}")
    return children[0]


def is_packed(field: Field) -> bool:
    """Whether a struct's fields are stored together, row by row, in one column."""
    return any(is_true(field.metadata.get(key)) for key in ("packed", "lance-encoding:packed"))


def is_old_blob(field: Field) -> bool:
    """Whether a binary column keeps its values out of line, as 2.0 and 2.1 do."""
    return is_true(field.metadata.get(BLOB_METADATA)) and field.logical_type in ("large_binary", "binary")


def blob_below(node: Node) -> bool:
    """Whether the node is, or holds, a blob v2 column."""
    return any(leaf.field.extension_name == BLOB_V2 for leaf in leaves(node))


def leaves(node: Node) -> Iterator[LeafNode]:
    """The leaves of a tree, left to right: the order of columns in a new file."""
    if isinstance(node, LeafNode):
        yield node
    elif isinstance(node, StructNode):
        for child in node.children:
            yield from leaves(child)
    else:
        yield from leaves(node.item)


def assign_columns(schema: Schema) -> dict[int, int]:
    """Field id -> column for a new file (2.1 or newer) of this schema."""
    order = [leaf.field.id for field in schema.top_level for leaf in leaves(build_tree(schema, field, {}))]
    return {field_id: column for column, field_id in enumerate(order)}
