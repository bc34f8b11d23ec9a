"""Batches -> pages of files 2.1 and newer: one stream of pages per leaf.

batch {a: int64, s: struct<x, y>}      column 0: a     column 1: s.x     column 2: s.y

Columns that files of a version cannot hold although a schema can express them: refused with the first rows.

    struct<a: struct<>, b>         2.1 and on    a struct without fields has no levels: readers lose what is beside it
    fixed_size_list<struct<list>>  2.2           such levels can be written, but the official reader does not take them
    struct<a, fixed_size_list<struct>>  2.2, 2.3 readers misread its items as rows; in 2.3 they read nulls of the struct

    list<fixed_size_list<struct<x, y>>>  2.3     a null fixed-size list among several items: the official reader fails

A table of no rows may have such columns. Nothing is written that only this library could read back.

Arrow arrays -> leaves: a nested array comes apart into one stream of values per leaf, with its nesting steps.

    list<struct<x, y>>      leaf x   steps (ListStep offsets+validity, ItemStep struct validity, ItemStep x validity)
                            leaf y   the same first two steps, its own last one

Slices of one leaf from several batches are joined before they become a page.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.arrays import Bools, Ints
from lance_core.arrow.buffers import bytes_of, take
from lance_core.arrow.kinds import as_list, as_struct
from lance_core.cached import cached_property
from lance_core.codecs.options import EncodingOptions
from lance_core.errors import InputError
from lance_core.file.convert.arrow_to_blocks import block_of, fixed_bytes, validity_of
from lance_core.file.convert.assemble import concat, copied
from lance_core.file.convert.tree import (
    LeafNode,
    ListNode,
    Node,
    StructNode,
    assign_columns,
    build_tree,
    is_old_blob,
    is_packed,
    leaves,
)
from lance_core.file.v2.columns21 import row_scales
from lance_core.format.layout import BlobLayout, PageLayout, RepDefLayer
from lance_core.format.schema import Schema
from lance_core.format.version import FileVersion
from lance_core.pages.leaf import ConstantValues, EncodedPage, Leaf
from lance_core.pages.levels.build import ItemStep, ListStep, Step, build_levels
from lance_core.pages.write.encode import MAX_PAGE_BYTES, Rows, can_encode, encode_flat, encode_pages


class LeafEncoder:
    """Knows the columns of a new file and turns rows of each into pages."""

    def __init__(self, schema: Schema, version: FileVersion) -> None:
        self._version = version
        columns = assign_columns(schema)
        self._nodes: list[Node] = [build_tree(schema, field, columns) for field in schema.top_level]
        self._leaves: list[LeafNode] = [leaf for node in self._nodes for leaf in leaves(node)]
        self._firsts = list(itertools.accumulate((len(list(leaves(node))) for node in self._nodes), initial=0))
        self._old_blobs = [version is FileVersion.V2_1 and is_old_blob(leaf.field) for leaf in self._leaves]
        self._dimensions = [found for node in self._nodes for found in _dimensions(node)]
        scales = [found for node in self._nodes for found in row_scales(node)]
        self._outer = [outer for _, outer, _ in scales]
        self._inner = [inner if version is FileVersion.V2_3 else 1 for _, _, inner in scales]
        settings = [found for node in self._nodes for found in _settings(node, {})]
        self._options = [EncodingOptions.parse(found, version) for found in settings]
        self._never_null = [(node, found) for node in self._nodes for found in _never_null(node)]
        self._widths = [_plain_width(node) for node in self._nodes for _ in leaves(node)]

    @property
    def num_columns(self) -> int:
        """Columns the file will have."""
        return len(self._leaves)

    @property
    def fields(self) -> tuple[int, ...]:
        """The field id of each column."""
        return tuple(leaf.field.id for leaf in self._leaves)

    def name(self, column: int) -> str:
        """What to call a column in messages."""
        return self._leaves[column].field.name

    def split(self, field: int, array: pa.Array[Any]) -> Iterator[tuple[int, LeafSlice]]:
        """(column, rows) of every column of one top-level field, from its storage array."""
        return enumerate(split(self._nodes[field], array), self._firsts[field])

    def encode(self, column: int, slices: Sequence[LeafSlice]) -> list[EncodedPage]:
        """The pages of some rows of one column."""
        node = self._leaves[column]
        if self._version is FileVersion.V2_3:
            self._check_fixed_in_lists(column, slices)
        try:
            leaf = leaf_of(join_slices(slices))
        except InputError as error:
            raise InputError(f"column {node.field.name!r}: {error}") from error
        if is_empty_struct(node):
            check_empty_struct(leaf, node, self._version)
        options = self._options[column]
        if self._version is FileVersion.V2_3:
            options = replace(options, dimensions=self._dimensions[column])
        encoded = encode_pages(leaf, options, row_items=self._outer[column])
        pages = [_with_inner_items(page, self._inner[column]) for page in encoded]
        return [_as_blobs(page, slices) for page in pages] if self._old_blobs[column] else pages

    def _check_fixed_in_lists(self, column: int, slices: Sequence[LeafSlice]) -> None:
        """InputError for a null fixed-size list in a list, unless each row has one item.

        The official reader takes the number of rows for that of the items, and finds that the fields below do not agree.
        """
        whole, depths = self._never_null[column]
        slots = (item.steps[: depth + 1] for depth in depths for item in slices)
        if any(_has_nulls(steps[-1]) and not all(map(_has_one_item, steps)) for steps in slots):
            why = "readers of version 2.3 refuse files with a null fixed-size list of structs in a list"
            raise _refused(whole, why, "Leave the null out, make its structs null instead, or make it a list of any length.")

    def encode_together(self, rows: Sequence[tuple[int, Sequence[LeafSlice]]]) -> list[list[EncodedPage]]:
        """The pages of some rows of several columns, as `encode` makes them; short plain columns are encoded as one."""
        made: dict[int, EncodedPage] = {}
        alike: dict[tuple[int, int], list[int]] = {}
        for number, (column, slices) in enumerate(rows):
            count = sum(item.num_rows for item in slices)
            width = self._widths[column]
            is_short = 0 < width * count <= 8 * MAX_PAGE_BYTES and not any(
                item.steps[0].validity is not None for item in slices
            )
            if is_short and can_encode(width, self._options[column]):
                alike.setdefault((width, count), []).append(number)
        for (width, count), numbers in alike.items():
            for options, members in self._by_options(rows, numbers).items():
                if len(members) > 1:
                    values = _stacked([rows[number][1] for number in members], width, count)
                    pages = zip(members, encode_flat(values, options), strict=True)
                    made.update((number, page) for number, page in pages if page is not None)
        return [[made[number]] if number in made else self.encode(*item) for number, item in enumerate(rows)]

    def _by_options(
        self, rows: Sequence[tuple[int, Sequence[LeafSlice]]], numbers: Sequence[int]
    ) -> dict[EncodingOptions, list[int]]:
        found: dict[EncodingOptions, list[int]] = {}
        for number in numbers:
            found.setdefault(self._options[rows[number][0]], []).append(number)
        return found

    def column_encoding(self, column: int) -> object:
        """Nothing: pages describe themselves."""
        return None


def _plain_width(node: Node) -> int:
    """Bits of the values of a top-level column of numbers, 0 for any other."""
    if not isinstance(node, LeafNode) or is_old_blob(node.field) or not pa.types.is_primitive(node.type):
        return 0
    return 0 if pa.types.is_boolean(node.type) else node.type.bit_width


def _stacked(columns: Sequence[Sequence[LeafSlice]], width: int, count: int) -> Rows:
    """The values of each column in a row."""
    stacked = np.empty((len(columns), count), f"<u{width // 8}")
    for row, slices in zip(stacked.view(np.uint8), columns, strict=True):
        start = 0
        for item in slices:
            data = fixed_bytes(item.values)
            row[start : start + len(data)] = data
            start += len(data)
    return stacked


def _settings(node: Node, outer: Mapping[str, bytes]) -> Iterator[Mapping[str, bytes]]:
    """The metadata that speaks for each leaf: its own, and where that is silent, what is said of the fields it is in."""
    known = {**outer, **node.field.metadata}
    if isinstance(node, LeafNode):
        yield known
    for child in node.children if isinstance(node, StructNode) else (node.item,) if isinstance(node, ListNode) else ():
        yield from _settings(child, known)


def _dimensions(node: Node, outer: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """For each leaf the dimensions of its nesting layers, innermost first: 0 for all but fixed-size lists of structs."""
    known = (node.dimension if isinstance(node, ListNode) else 0, *outer)
    if isinstance(node, LeafNode):
        yield known
    for child in node.children if isinstance(node, StructNode) else (node.item,) if isinstance(node, ListNode) else ():
        yield from _dimensions(child, known)


def _with_inner_items(page: EncodedPage, inner: int) -> EncodedPage:
    """The page with its length in items of the fixed-size lists of structs that its lists hold, as 2.3 counts."""
    return page if inner == 1 else replace(page, num_rows=page.num_rows * inner)


def _as_blobs(page: EncodedPage, slices: Sequence[LeafSlice]) -> EncodedPage:
    """A page of (position, size) pairs as what it is; nulls are in the pairs (size 0, the level in the position)."""
    has_nulls = any(pc.any(pc.equal(as_struct(item.values).field(1), cast("Any", 0))).as_py() for item in slices)
    layer = RepDefLayer.NULLABLE_ITEM if has_nulls else RepDefLayer.ALL_VALID_ITEM
    inner = cast(PageLayout, page.layout)
    return replace(page, layout=BlobLayout(inner, (layer,)))


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


@dataclass(frozen=True, eq=False)
class LeafSlice:
    """Some rows of one leaf: nesting steps from the outermost inwards, and the values with their nulls."""

    steps: tuple[Step, ...]
    values: pa.Array[Any]
    num_rows: int

    @cached_property
    def num_bytes(self) -> int:
        """Bytes held for these rows, about."""
        nesting = sum(_step_bytes(step) for step in self.steps[:-1])
        return int(self.values.nbytes) + nesting


def _step_bytes(step: Step) -> int:
    # Levels become two bytes each at most; validity is a byte per slot here.
    return 8 * len(step.offsets) if isinstance(step, ListStep) else 0 if step.validity is None else len(step.validity)


def split(
    node: Node, array: pa.Array[Any], outer: tuple[Step, ...] = (), num_rows: int | None = None
) -> Iterator[LeafSlice]:
    """The leaves of one field's array, in the order of `tree.leaves`. The array has the node's storage type."""
    rows = len(array) if num_rows is None else num_rows
    if isinstance(node, LeafNode):
        yield LeafSlice((*outer, ItemStep(validity_of(array))), array, rows)
    elif isinstance(node, StructNode):
        steps = (*outer, ItemStep(validity_of(array)))
        for number, child in enumerate(node.children):
            yield from split(child, as_struct(array).field(number), steps, rows)
    elif node.dimension:
        steps = (*outer, ItemStep(validity_of(array), node.dimension))
        items = as_list(array).values.slice(array.offset * node.dimension, len(array) * node.dimension)
        yield from split(node.item, items, steps, rows)
    else:
        offsets = _offsets(array)
        items = as_list(array).values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
        yield from split(node.item, items, (*outer, ListStep(offsets - offsets[0], validity_of(array))), rows)


def _has_nulls(step: Step) -> bool:
    return step.validity is not None and not bool(step.validity.all())


def _has_one_item(step: Step) -> bool:
    """Whether each list has one item."""
    return not isinstance(step, ListStep) or bool((np.diff(step.offsets) == 1).all())


def _never_null(node: Node, depth: int = 0, in_list: bool = False) -> Iterator[tuple[int, ...]]:
    """Of each leaf the steps above it that are fixed-size lists of several leaves, in a list."""
    if isinstance(node, LeafNode):
        yield ()
        return
    is_fixed = isinstance(node, ListNode) and bool(node.dimension)
    here = (depth,) if is_fixed and in_list and len(list(leaves(node))) > 1 else ()
    for child in _children(node):
        below = _never_null(child, depth + 1, in_list or (isinstance(node, ListNode) and not is_fixed))
        yield from ((*here, *found) for found in below)


def _offsets(array: pa.Array[Any]) -> Ints:
    dtype = np.int64 if pa.types.is_large_list(array.type) else np.int32
    buffer = array.buffers()[1]
    if buffer is None or len(array) == 0:
        return np.zeros(1, np.int64)
    return bytes_of(buffer).view(dtype)[array.offset : array.offset + len(array) + 1].astype(np.int64)


def join_slices(slices: Sequence[LeafSlice]) -> LeafSlice:
    """Several slices of one leaf as one."""
    if len(slices) == 1:
        return slices[0]
    lengths = [_slot_counts(item) for item in slices]
    steps = tuple(
        _join_steps([item.steps[depth] for item in slices], [counts[depth] for counts in lengths])
        for depth in range(len(slices[0].steps))
    )
    values = concat([item.values for item in slices], slices[0].values.type)
    return LeafSlice(steps, values, sum(item.num_rows for item in slices))


def _slot_counts(item: LeafSlice) -> list[int]:
    """Slots at each step."""
    counts = [item.num_rows]
    for step in item.steps[:-1]:
        counts.append(int(step.offsets[-1]) if isinstance(step, ListStep) else counts[-1] * step.dimension)
    return counts


def _join_steps(steps: Sequence[Step], counts: Sequence[int]) -> Step:
    validity = _join_validity([step.validity for step in steps], counts)
    first = steps[0]
    if isinstance(first, ItemStep):
        return ItemStep(validity, first.dimension)
    parts = [np.zeros(1, np.int64)]
    base = 0
    for step in steps:
        if not isinstance(step, ListStep):
            raise InputError("batches of one column are nested differently")
        parts.append(step.offsets[1:].astype(np.int64) + base)
        base += int(step.offsets[-1])
    return ListStep(np.concatenate(parts), validity)


def _join_validity(parts: Sequence[Bools | None], counts: Sequence[int]) -> Bools | None:
    if all(part is None for part in parts):
        return None
    return np.concatenate(
        [np.ones(count, np.bool_) if part is None else part for part, count in zip(parts, counts, strict=True)]
    )


def leaf_of(item: LeafSlice) -> Leaf:
    """The slice as a leaf: levels built, invisible slots dropped from the values."""
    levels = build_levels(item.steps, item.num_rows)
    if levels.def_ is not None and bool(levels.def_.all()):
        # Nothing has a value: a page of levels alone, whatever the type.
        return Leaf(ConstantValues(levels.num_visible), levels.rep, levels.def_, levels.layers, levels.num_rows)
    values = item.values
    if levels.slots is not None:
        values = _take_slots(values, levels.slots)
    return Leaf(block_of(values), levels.rep, levels.def_, levels.layers, levels.num_rows)


def _take_slots(values: pa.Array[Any], slots: Ints) -> pa.Array[Any]:
    if len(slots) == 0:
        return values.slice(0, 0)
    first = int(slots[0])
    if int(slots[-1]) - first + 1 == len(slots):
        return values.slice(first, len(slots))
    if pa.types.is_fixed_size_list(values.type) and values.offset:
        return take(copied(values), slots)
    return take(values, slots)
