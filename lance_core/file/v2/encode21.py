"""Batches -> pages of files 2.1 and newer: one stream of pages per leaf.

batch {a: int64, s: struct<x, y>}      column 0: a     column 1: s.x     column 2: s.y
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.arrow.kinds import as_struct
from lance_core.codecs.options import EncodingOptions
from lance_core.errors import InputError
from lance_core.file.convert.arrow_to_blocks import fixed_bytes
from lance_core.file.convert.split import LeafSlice, join_slices, leaf_of, split
from lance_core.file.convert.tree import (
    LeafNode,
    ListNode,
    Node,
    StructNode,
    assign_columns,
    build_tree,
    is_old_blob,
    leaves,
)
from lance_core.file.v2.columns21 import row_scales
from lance_core.file.writable import check_empty_struct, is_empty_struct
from lance_core.format.layout import BlobLayout, PageLayout, RepDefLayer
from lance_core.format.schema import Schema
from lance_core.format.version import FileVersion
from lance_core.pages.encoded import EncodedPage
from lance_core.pages.write.alike_flat import MAX_PAGE_BYTES, Rows, can_encode, encode_flat
from lance_core.pages.write.encode import encode_pages


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
