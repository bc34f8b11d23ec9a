"""Columns that files of a version cannot hold although a schema can express them: refused with the first rows.

    struct<a: struct<>, b>         2.1 and on    a struct without fields has no levels: readers lose what is beside it
    fixed_size_list<struct<list>>  2.2           such levels can be written, but the official reader does not take them
    struct<a, fixed_size_list<struct>>  2.2, 2.3 readers misread its items as rows; in 2.3 they read nulls of the struct

A table of no rows may have such columns. Nothing is written that only this library could read back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from lance_core.errors import InputError
from lance_core.file.convert.tree import LeafNode, ListNode, Node, StructNode, is_packed
from lance_core.format.version import FileVersion
from lance_core.pages.leaf import Leaf

_FLATTEN = "Make it a list, or split the column into several columns."


def refusal_of(nodes: Sequence[Node], version: FileVersion) -> InputError | None:
    """Why no rows of these fields can be stored; None when some can."""
    return next((found for node in nodes for found in _refusals(node, version)), None)


def refusal_of_values(node: Node, version: FileVersion) -> InputError | None:
    """Why a field can only be stored where all its rows are null; None when it can hold values, or no rows at all."""
    if version is not FileVersion.V2_3 or not isinstance(node, StructNode) or not _has_uneven_children(node):
        return None
    why = "readers misread the number of rows of a fixed-size list of structs beside other fields, unless all rows are null"
    return _refused(node, why, "Store the list in a separate column.")


def check_empty_struct(leaf: Leaf, node: LeafNode, version: FileVersion) -> None:
    """InputError for rows of a struct without fields that would not come back as they are.

    Its page has no value and no levels (in 2.3 it has, which the official reader overlooks). A packed one reads as null; in
    2.3 only where no slot is null and nothing says that it cannot be.
    """
    num_valid = leaf.values.count if leaf.def_ is None else int(np.count_nonzero(leaf.def_ == 0))
    if not is_packed(node.field):
        num_lost = leaf.values.count - num_valid
        if num_lost:
            raise _refused(node, f"without fields its {num_lost} nulls would be lost", "Add a field to the struct.")
        return
    if version is FileVersion.V2_3:
        is_kept = num_valid < leaf.values.count or (leaf.rep is not None and not node.field.nullable)
    else:
        is_kept = False
    if num_valid and not is_kept:
        raise _refused(node, "a packed struct without fields would be read as null", "Do not pack it.")


def is_empty_struct(node: Node) -> bool:
    """Whether it is a struct without fields."""
    return isinstance(node, LeafNode) and pa.types.is_struct(node.type) and node.type.num_fields == 0


def _refused(node: Node, why: str, cure: str) -> InputError:
    return InputError(f"column {node.field.name!r} has type {node.type}: {why}", cure=cure)


def _refusals(node: Node, version: FileVersion) -> Iterator[InputError]:
    if version >= FileVersion.V2_1:
        if not _is_all_empty(node, version):
            yield from _empty_below(node)
        if _has_uneven_children(node) and not refusal_of_values(node, version):
            why = "readers misread the number of rows of a fixed-size list of structs beside other fields"
            yield _refused(node, why, "Store the list in a separate column.")
    if version in (FileVersion.V2_1, FileVersion.V2_2):
        yield from _lists_and_fixed(node)
    if version is FileVersion.V2_0:
        yield from _lists_of_texts(node)


def _children(node: Node) -> tuple[Node, ...]:
    if isinstance(node, LeafNode):
        return ()
    return node.children if isinstance(node, StructNode) else (node.item,)


def _is_all_empty(node: Node, version: FileVersion) -> bool:
    """Whether there are no fields but structs without fields, so that nothing beside them could be lost."""
    if isinstance(node, LeafNode):
        return is_empty_struct(node) and not is_packed(node.field)
    if isinstance(node, ListNode) and not (node.dimension and version is FileVersion.V2_3):
        return False
    return all(_is_all_empty(child, version) for child in _children(node))


def _empty_below(node: Node) -> Iterator[InputError]:
    for child in _children(node):
        if is_empty_struct(child) and not is_packed(child.field):
            why = "a struct without fields is only supported as a top-level column"
            yield _refused(node, why, "Add a field to the struct, or remove the struct.")
        yield from _empty_below(child)


_FIXED_WIDTH = (pa.types.is_primitive, pa.types.is_decimal, pa.types.is_fixed_size_binary, pa.types.is_null)


def _lists_of_texts(node: Node) -> Iterator[InputError]:
    """Fixed-size lists of values of any length: neither library reads those of 2.0 back."""
    if isinstance(node, LeafNode) and pa.types.is_fixed_size_list(node.type):
        item = node.type.value_type
        while pa.types.is_fixed_size_list(item):
            item = item.value_type
        types = pa.types
        if not (
            types.is_primitive(item) or types.is_decimal(item) or types.is_fixed_size_binary(item) or types.is_null(item)
        ):
            yield _refused(node, "the items of a fixed-size list must have a fixed width", _FLATTEN)
    for child in _children(node):
        yield from _lists_of_texts(child)


def _lists_and_fixed(node: Node, *, in_list: bool = False) -> Iterator[InputError]:
    """Fixed-size lists of structs in a list or map, and those whose first leaf, which tells their lengths, is in a list."""
    if isinstance(node, ListNode):
        if node.dimension and (in_list or _begins_with_list(node.item)):
            yield _refused(node, "lists and fixed-size lists of structs cannot be nested in each other", _FLATTEN)
        in_list = in_list or not node.dimension
    for child in _children(node):
        yield from _lists_and_fixed(child, in_list=in_list)


def _begins_with_list(node: Node) -> bool:
    if isinstance(node, ListNode):
        return not node.dimension or _begins_with_list(node.item)
    return isinstance(node, StructNode) and _begins_with_list(node.children[0])


def _has_uneven_children(node: Node) -> bool:
    return len(set(_scales(node, 1))) > 1


def _scales(node: Node, factor: int) -> Iterator[int]:
    """How many slots a row has in each leaf, as far as fixed-size lists of structs multiply them."""
    if isinstance(node, LeafNode) or (isinstance(node, ListNode) and not node.dimension):
        yield factor
    else:
        for child in _children(node):
            yield from _scales(child, factor * (node.dimension if isinstance(node, ListNode) else 1))
