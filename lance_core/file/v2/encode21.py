"""Batches -> pages of files 2.1 and newer: one stream of pages per leaf.

batch {a: int64, s: struct<x, y>}      column 0: a     column 1: s.x     column 2: s.y
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from lance_core.arrow.kinds import as_struct
from lance_core.codecs.options import EncodingOptions
from lance_core.errors import InputError
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

    def column_encoding(self, column: int) -> object:
        """Nothing: pages describe themselves."""
        return None


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
