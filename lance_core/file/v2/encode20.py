"""Batches -> pages of 2.0 files: every struct, list and leaf is a column of its own.

list<int32>  [[7, null], null, [8]]      column 0: List(ends 2, 2 + 4, 3)      column 1: 7, null, 8
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.arrays import Ints
from lance_core.arrow.kinds import as_list, as_struct
from lance_core.arrow_numpy import numpy_of
from lance_core.codecs.options import EncodingOptions
from lance_core.errors import InputError
from lance_core.file.blob.write import is_blob
from lance_core.file.convert.arrow_to_blocks import block_of, validity_of
from lance_core.file.convert.assemble import concat
from lance_core.file.convert.tree import LeafNode, Node, StructNode, build_tree
from lance_core.file.v2.columns20 import assign_columns20, own_fields
from lance_core.format.encoding20 import AllNulls, BlobColumnEncoding
from lance_core.format.schema import Schema
from lance_core.format.version import FileVersion
from lance_core.pages.leaf import ConstantValues, EncodedPage
from lance_core.pages.v20.encode20 import encode_lists, encode_struct, encode_values


@dataclass(frozen=True, slots=True, eq=False)
class HeaderSlice:
    """Slots of a struct: nothing but their number."""

    num_slots: int
    num_rows: int
    num_bytes: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class ListSlice:
    """Item counts of some lists (0 for nulls), and which are valid."""

    lengths: Ints
    validity: npt.NDArray[np.bool_] | None
    num_rows: int

    @property
    def num_bytes(self) -> int:
        """Bytes held."""
        return 8 * len(self.lengths)


@dataclass(frozen=True, slots=True, eq=False)
class ValueSlice:
    """Values of a leaf."""

    values: pa.Array[Any]
    num_rows: int

    @property
    def num_bytes(self) -> int:
        """Bytes held."""
        return int(self.values.nbytes)


Slice = HeaderSlice | ListSlice | ValueSlice


class ArrayEncoder:
    """Knows the columns of a new 2.0 file and turns rows of each into pages."""

    def __init__(self, schema: Schema) -> None:
        self._nodes: list[Node] = [build_tree(schema, field, {}) for field in schema.top_level]
        columns = assign_columns20(self._nodes)
        self._firsts = list(itertools.accumulate((len(list(own_fields(node))) for node in self._nodes), initial=0))
        self._ids = tuple(columns)
        by_id = schema.by_id
        self._blobs = [is_blob(by_id[item], FileVersion.V2_0) for item in self._ids]
        self._options = [EncodingOptions.parse(by_id[item].metadata, FileVersion.V2_0) for item in self._ids]

    @property
    def num_columns(self) -> int:
        """Columns the file will have."""
        return len(self._ids)

    @property
    def fields(self) -> tuple[int, ...]:
        """The field id of each column."""
        return self._ids

    def split(self, field: int, array: pa.Array[Any]) -> Iterator[tuple[int, Slice]]:
        """(column, rows) of every column of one top-level field, from its storage array."""
        return enumerate(_split(self._nodes[field], array, len(array)), self._firsts[field])

    def encode(self, column: int, slices: Sequence[Slice]) -> list[EncodedPage]:
        """The page of some rows of one column."""
        return [_encode(self._options[column], slices)]

    def encode_together(self, rows: Sequence[tuple[int, Sequence[ValueSlice]]]) -> list[list[EncodedPage]]:
        """The pages of some rows of several columns."""
        return [self.encode(column, slices) for column, slices in rows]

    def column_encoding(self, column: int) -> object:
        """Blob columns say so."""
        return BlobColumnEncoding() if self._blobs[column] else None


def _split(node: Node, array: pa.Array[Any], num_rows: int) -> Iterator[Slice]:
    if pa.types.is_struct(node.type) and array.null_count:
        raise InputError(
            f"struct {node.field.name!r} holds {array.null_count} nulls, which 2.0 files cannot hold",
            cure="Use storage version 2.1 or newer.",
        )
    if isinstance(node, LeafNode):
        if pa.types.is_struct(node.type) and node.type.num_fields == 0:
            yield HeaderSlice(len(array), num_rows)
        else:
            yield ValueSlice(array, num_rows)
    elif isinstance(node, StructNode):
        yield HeaderSlice(len(array), num_rows)
        for number, child in enumerate(node.children):
            yield from _split(child, as_struct(array).field(number), num_rows)
    elif node.dimension or pa.types.is_map(node.type):
        raise InputError(
            f"column {node.field.name!r} has type {node.type}, which 2.0 files cannot hold",
            cure="Use storage version 2.2.",
        )
    else:
        lengths = numpy_of(pc.fill_null(pc.list_value_length(array), 0).cast(pa.int64()), may_copy=True)
        yield ListSlice(lengths, validity_of(array), num_rows)
        yield from _split(node.item, as_list(array).flatten(), num_rows)


def _encode(options: EncodingOptions, slices: Sequence[Slice]) -> EncodedPage:
    first = slices[0]
    if isinstance(first, HeaderSlice):
        return encode_struct(sum(item.num_slots for item in slices if isinstance(item, HeaderSlice)))
    if isinstance(first, ListSlice):
        return _encode_lists(options, [item for item in slices if isinstance(item, ListSlice)])
    values = concat([item.values for item in slices if isinstance(item, ValueSlice)], first.values.type)
    if not len(values) and not pa.types.is_struct(values.type):
        # List items of which there are none: a page without rows, as the official writer leaves it.
        return EncodedPage(AllNulls(), (), 0)
    valid = validity_of(values)
    nothing = valid is not None and not valid.any() and pa.types.is_fixed_size_list(values.type)
    block = ConstantValues(len(values)) if nothing else block_of(values)
    return encode_values(block, valid, options, is_text=pa.types.is_string(values.type))


def _encode_lists(options: EncodingOptions, slices: Sequence[ListSlice]) -> EncodedPage:
    offsets = np.cumsum(np.concatenate([np.zeros(1, np.int64), *(item.lengths for item in slices)]))
    valid = None
    if any(item.validity is not None for item in slices):
        valid = np.concatenate(
            [np.ones(len(item.lengths), np.bool_) if item.validity is None else item.validity for item in slices]
        )
    return encode_lists(offsets, valid, options)
