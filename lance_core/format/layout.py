"""Structural encodings: how a page of files 2.1 and newer arranges values, levels and nulls in its buffers.

`layers` always runs from the innermost layer (the leaf item) outwards. (Spec: file format, "structural encodings".)
Layouts mirror `lance.encodings21.PageLayout`; what 2.3 (`lance.encodings23`) adds is at the end.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from lance_core.fetch import ByteRange
from lance_core.format.encoding import CompressiveEncoding


class RepDefLayer(enum.IntEnum):
    """What one nesting layer can be: its share of the definition levels follows from it."""

    UNSPECIFIED = 0
    ALL_VALID_ITEM = 1
    ALL_VALID_LIST = 2
    NULLABLE_ITEM = 3
    NULLABLE_LIST = 4
    EMPTYABLE_LIST = 5
    NULL_AND_EMPTY_LIST = 6

    @property
    def is_list(self) -> bool:
        """Whether the layer is a list (and so takes one repetition level)."""
        return _IS_LIST[self]

    @property
    def num_def_levels(self) -> int:
        """Definition levels this layer uses up."""
        return _NUM_DEF_LEVELS[self]


# By the numbers of the layers: they are looked up some hundred times for a row.
_IS_LIST = (False, False, True, False, True, True, True)
_NUM_DEF_LEVELS = (0, 0, 0, 1, 1, 1, 2)


@dataclass(frozen=True, slots=True)
class MiniBlockLayout:
    """Small values in chunks of at most 4,096, each chunk with its levels and value buffers."""

    value_compression: CompressiveEncoding
    layers: tuple[RepDefLayer, ...]
    num_items: int
    num_buffers: int = 1
    rep_compression: CompressiveEncoding | None = None
    def_compression: CompressiveEncoding | None = None
    dictionary: CompressiveEncoding | None = None
    num_dictionary_items: int = 0
    repetition_index_depth: int = 0
    has_large_chunk: bool = False


@dataclass(frozen=True, slots=True)
class FullZipLayout:
    """Large values row by row, each behind a control word. Exactly one of the two widths is set."""

    value_compression: CompressiveEncoding
    layers: tuple[RepDefLayer, ...]
    num_items: int
    num_visible_items: int
    bits_rep: int = 0
    bits_def: int = 0
    bits_per_value: int | None = None
    bits_per_offset: int | None = None


@dataclass(frozen=True, slots=True)
class ConstantLayout:
    """One value, or none at all (all null), with the levels if there are any."""

    layers: tuple[RepDefLayer, ...]
    inline_value: bytes | None = None
    rep_compression: CompressiveEncoding | None = None
    def_compression: CompressiveEncoding | None = None
    num_rep_values: int = 0
    num_def_values: int = 0


@dataclass(frozen=True, slots=True)
class BlobLayout:
    """Descriptors (position, size) of values that are out of line."""

    inner_layout: PageLayout
    layers: tuple[RepDefLayer, ...]


@dataclass(frozen=True, slots=True)
class SparseValidity:
    """Which slots of a layer are null, as ascending positions (2.3): of the null slots, or of the valid ones."""

    are_valid: bool
    positions: CompressiveEncoding
    num_positions: int


@dataclass(frozen=True, slots=True)
class SparseList:
    """A list layer of 2.3: which slots have items, how many each of those has, which are null."""

    num_child_slots: int
    non_empty_positions: CompressiveEncoding
    num_non_empty_positions: int
    counts: CompressiveEncoding
    validity: SparseValidity


@dataclass(frozen=True, slots=True)
class SparseFixedSizeList:
    """A layer of fixed-size lists of structs (2.3)."""

    dimension: int
    validity: SparseValidity


SparseLayer = SparseValidity | SparseList | SparseFixedSizeList


@dataclass(frozen=True, slots=True)
class IndexedLayout:
    """Values that are kept once and pointed at (2.3, in sparse pages). Buffers: the indices, then those of `items`."""

    indices: CompressiveEncoding
    items: FullZipLayout
    layers: tuple[RepDefLayer, ...] = (RepDefLayer.ALL_VALID_ITEM,)


@dataclass(frozen=True, slots=True)
class SparseLayout:
    """Structure apart from values (2.3): `layers` from the outermost inwards; `values` is a layout without levels.

    Buffers: first those of `values` (a layout without levels), then one for each stream of numbers that has any.
    """

    layers: tuple[SparseLayer, ...]
    values: MiniBlockLayout | FullZipLayout | ConstantLayout | IndexedLayout


PageLayout = MiniBlockLayout | FullZipLayout | ConstantLayout | BlobLayout
"""The dense layouts of 2.3 are read as the layouts of 2.2 that they are."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a column: its description, where its buffers are, its rows.

    `priority` is the number of the page's first row in the file.
    """

    layout: object
    buffers: tuple[ByteRange, ...]
    num_rows: int
    priority: int = 0


@dataclass(frozen=True, slots=True)
class FileColumn:
    """One column of a 2.x file. `encoding` is the column's own encoding message (2.0 blobs), usually None."""

    pages: tuple[Page, ...]
    buffers: tuple[ByteRange, ...] = ()
    encoding: object = None
