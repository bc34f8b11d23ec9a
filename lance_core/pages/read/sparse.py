"""Reading sparse pages (2.3, unstable): structure as positions, apart from the values.

::

    list<int32> [[7, 8], null, [], [null]]
    list layer    4 slots: non-empty 0, 3 with counts 2, 1; null 1
    item layer    3 slots: null 2
    values        7 8 ? in chunks, 7 8 when zipped: zipped values leave the nulls out

Children of a null are null in every layer below. The structure is decoded as a whole and turned into the levels of a dense
page, so that nothing above this file knows the difference.

The ascending positions and the counts of a sparse structure (2.3), each a stream of u64.

::

    Constant(None)            no numbers                              Constant(8 bytes)    all the same
    Range(start, step)        start, start + step, ...                no buffer either
    Rle(Range, Range)         runs whose values and lengths are both ranges: no buffer, and as many runs as make the count
    Delta(base, deltas)       base, then one difference for each further number
    Dictionary(indices, items)   one buffer: u64 size of the indices, u64 size of the items, indices, items
    anything else             one buffer in block form
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lance_core.arrays import Bools, Bytes, Ints, Levels
from lance_core.codecs.blocks import Block, FixedBlock, Pieces
from lance_core.codecs.dispatch import Codecs
from lance_core.codecs.gather import words
from lance_core.errors import CorruptFileError, InputError
from lance_core.fetch import Fetch
from lance_core.format import encoding as enc
from lance_core.format.layout import (
    ConstantLayout,
    FullZipLayout,
    IndexedLayout,
    MiniBlockLayout,
    Page,
    RepDefLayer,
    SparseFixedSizeList,
    SparseLayout,
    SparseList,
    SparseValidity,
)
from lance_core.pages.buffers import part, request
from lance_core.pages.leaf import ConstantValues, Leaf, max_rep, max_visible_def
from lance_core.pages.levels.build import ItemStep, ListStep, Step, build_levels
from lance_core.pages.read import constant, fullzip, indexed, miniblock
from lance_core.pages.rows import RowSelection
from lance_core.pages.select import select_entries
from lance_core.pages.value_slots import take_slots

_INNER: dict[type, Any] = {
    MiniBlockLayout: miniblock,
    FullZipLayout: fullzip,
    ConstantLayout: constant,
    IndexedLayout: indexed,
}
_ALL_VALID = (RepDefLayer.ALL_VALID_ITEM,)


@dataclass(frozen=True, slots=True, eq=False)
class SparseIndex:
    """The page as levels (`structure`, its values are only counted), and how to get at its values.

    `values_before`: for each entry, how many values are stored before it, one more for the end (int64).
    """

    structure: Leaf
    values_before: Ints
    values_page: Page
    values_index: Any


def load(layout: SparseLayout, page: Page, codecs: Codecs) -> Fetch[SparseIndex]:
    """The whole structure, then what the values need for random access."""
    own = _own_buffers(layout)
    if len(page.buffers) < own:
        raise CorruptFileError(f"a sparse page has {len(page.buffers)} buffers, but its values need {own}")
    if page.num_rows > MAX_NUMBERS:
        raise CorruptFileError(f"a sparse page declares {page.num_rows} rows, which is impossible")
    streams = yield from request([part(page, number) for number in range(own, len(page.buffers))])
    structure = _structure(layout, page, iter(streams), codecs)
    before = _values_before(structure, layout)
    values_page = _values_page(layout, page, own, int(before[-1]))
    module = _INNER[type(values_page.layout)]
    index = yield from module.load(values_page.layout, values_page, codecs)
    return SparseIndex(structure, before, values_page, index)


def scan(layout: SparseLayout, page: Page, codecs: Codecs) -> Fetch[Leaf]:
    """Every row."""
    index = yield from load(layout, page, codecs)
    return (yield from read(layout, page, index, RowSelection.all(page.num_rows), codecs))


def read(layout: SparseLayout, page: Page, index: SparseIndex, rows: RowSelection, codecs: Codecs) -> Fetch[Leaf]:
    """The rows."""
    starts, ends = _entries(index.structure, rows)
    leaf = select_entries(index.structure, starts, ends, rows.num_rows)
    low, high = index.values_before[starts], index.values_before[ends]
    wanted = RowSelection.ranges(list(zip(low.tolist(), high.tolist(), strict=True)))
    module, inner = _INNER[type(index.values_page.layout)], index.values_page
    found: Leaf = yield from module.read(inner.layout, inner, index.values_index, wanted, codecs)
    return replace(leaf, values=_spread(leaf, found))


def _own_buffers(layout: SparseLayout) -> int:
    values = layout.values
    if isinstance(values, MiniBlockLayout):
        return 2 + (values.dictionary is not None)
    if isinstance(values, FullZipLayout | IndexedLayout):
        zipped = values if isinstance(values, FullZipLayout) else values.items
        return 1 + (zipped.bits_per_offset is not None) + isinstance(values, IndexedLayout)
    return 0


def _values_page(layout: SparseLayout, page: Page, own: int, count: int) -> Page:
    """The values as a page without levels, one row per value."""
    values = replace(layout.values, layers=_ALL_VALID)
    if isinstance(values, MiniBlockLayout):
        values = replace(values, num_items=count, repetition_index_depth=0)
    # A page without values has none for structs without fields too.
    return Page(values, page.buffers[:own], count)


def _structure(layout: SparseLayout, page: Page, buffers: Iterator[Bytes], codecs: Codecs) -> Leaf:
    steps: list[Step] = []
    num_slots = first = _top_slots(layout, page)
    for layer in layout.layers:
        if isinstance(layer, SparseList):
            step, num_slots = _list(layer, num_slots, buffers, codecs), layer.num_child_slots
            steps.append(step)
        elif isinstance(layer, SparseFixedSizeList):
            steps.append(ItemStep(_validity(layer.validity, num_slots, buffers, codecs), layer.dimension))
            num_slots *= layer.dimension
        else:
            steps.append(ItemStep(_validity(layer, num_slots, buffers, codecs)))
        if num_slots > MAX_NUMBERS:
            raise CorruptFileError(f"a sparse page has {num_slots} slots, which is impossible")
    try:
        built = build_levels(steps, first)
    except InputError as error:
        raise CorruptFileError(f"the sparse structure is inconsistent: {error}") from None
    if built.num_rows != page.num_rows:
        raise CorruptFileError(f"the sparse structure has {built.num_rows} rows, the page has {page.num_rows}")
    return Leaf(ConstantValues(built.num_visible), built.rep, built.def_, built.layers, built.num_rows)


def _top_slots(layout: SparseLayout, page: Page) -> int:
    """Slots of the outermost layer: pages count the items of fixed-size lists that no list holds."""
    slots = page.num_rows
    for layer in layout.layers:
        if isinstance(layer, SparseList):
            break
        if isinstance(layer, SparseFixedSizeList):
            if layer.dimension <= 0 or slots % layer.dimension:
                raise CorruptFileError(f"{slots} items do not fill fixed-size lists of {layer.dimension}")
            slots //= layer.dimension
    return slots


def _list(layer: SparseList, num_slots: int, buffers: Iterator[Bytes], codecs: Codecs) -> ListStep:
    count = layer.num_non_empty_positions
    positions = _positions(layer.non_empty_positions, count, num_slots, buffers, codecs)
    counts = read_numbers(layer.counts, buffers, count, codecs)
    if len(counts) and (int(counts.min()) < 1 or int(counts.max()) > MAX_NUMBERS):
        raise CorruptFileError("a non-empty list has no items")
    lengths = np.zeros(num_slots, np.int64)
    lengths[positions] = counts
    offsets = np.append(np.int64(0), np.cumsum(lengths))
    if int(offsets[-1]) != layer.num_child_slots:
        raise CorruptFileError(f"the lists have {int(offsets[-1])} items in total, expected {layer.num_child_slots}")
    return ListStep(offsets, _validity(layer.validity, num_slots, buffers, codecs))


def _validity(layer: SparseValidity, num_slots: int, buffers: Iterator[Bytes], codecs: Codecs) -> Bools | None:
    positions = _positions(layer.positions, layer.num_positions, num_slots, buffers, codecs)
    if not layer.are_valid and len(positions) == 0:
        return None
    validity = np.full(num_slots, not layer.are_valid)
    validity[positions] = layer.are_valid
    return validity


def _positions(encoding: Any, count: int, num_slots: int, buffers: Iterator[Bytes], codecs: Codecs) -> Ints:
    if count > num_slots:
        raise CorruptFileError(f"{count} positions do not fit in {num_slots} slots")
    positions = read_numbers(encoding, buffers, count, codecs)
    if len(positions) and (positions[0] < 0 or positions[-1] >= num_slots or (np.diff(positions) <= 0).any()):
        raise CorruptFileError(f"positions are not ascending within {num_slots} slots")
    return positions


def _values_before(structure: Leaf, layout: SparseLayout) -> Ints:
    """How many values are stored before each entry; the zipped ones count themselves, and so tell whether nulls are."""
    if structure.def_ is None:
        return np.arange(structure.num_levels + 1, dtype=np.int64)
    values = layout.values
    with_nulls = isinstance(values, MiniBlockLayout | IndexedLayout) or (
        isinstance(values, FullZipLayout) and values.num_items == structure.values.count
    )
    before = np.zeros(structure.num_levels + 1, np.int64)
    np.cumsum(structure.def_ <= (max_visible_def(structure.layers) if with_nulls else 0), out=before[1:])
    return before


def _entries(structure: Leaf, rows: RowSelection) -> tuple[Ints, Ints]:
    if len(rows.starts) == 0:
        return np.zeros(1, np.int64), np.zeros(1, np.int64)
    if structure.rep is None:
        return rows.starts, rows.ends
    bounds = np.append(np.flatnonzero(structure.rep == max_rep(structure.layers)), np.int64(len(structure.rep)))
    return bounds[rows.starts], bounds[rows.ends]


def _spread(leaf: Leaf, found: Leaf) -> Any:
    """The stored values, with a slot for each null among them."""
    if found.values.count == leaf.values.count:
        return found.values
    if found.values.count == 0:
        return ConstantValues(leaf.values.count)
    if isinstance(found.values, ConstantValues):
        return ConstantValues(leaf.values.count, found.values.scalar)
    assert leaf.def_ is not None
    visible: Levels = leaf.def_[leaf.def_ <= max_visible_def(leaf.layers)]
    # A null's slot repeats a neighbour: what it holds does not matter.
    return take_slots(found.values, np.maximum(np.cumsum(visible == 0) - 1, 0))


MAX_NUMBERS = 1 << 28
"""More slots than any page has: what a damaged count may make us allocate."""


def read_numbers(encoding: enc.CompressiveEncoding, buffers: Iterator[Bytes], count: int, codecs: Codecs) -> Ints:
    """`count` numbers (int64), taking as many buffers as the encoding has. CorruptFileError when they do not add up."""
    if not 0 <= count <= MAX_NUMBERS:
        raise CorruptFileError(f"a sparse structure has {count} numbers, which is impossible")
    if isinstance(encoding, enc.Constant):
        return _constant(encoding, count)
    if isinstance(encoding, enc.Range):
        _word(encoding.uncompressed_bits)
        return _range(encoding, count)
    if (
        isinstance(encoding, enc.Rle)
        and isinstance(encoding.values, enc.Range)
        and isinstance(encoding.run_lengths, enc.Range)
    ):
        _word(encoding.values.uncompressed_bits)
        num_runs = _num_runs(encoding.run_lengths, count)
        return np.repeat(_range(encoding.values, num_runs), _range(encoding.run_lengths, num_runs))
    if isinstance(encoding, enc.Delta):
        return _delta(encoding, buffers, count, codecs)
    data = next(buffers, None)
    if data is None:
        raise CorruptFileError("a sparse structure has fewer buffers than streams")
    if isinstance(encoding, enc.Dictionary):
        return _dictionary(encoding, data, count, codecs)
    return _plain(codecs.decode_block(encoding, Pieces.whole(data), np.array([count], np.int64)))


def _range(encoding: enc.Range, count: int) -> Ints:
    last = encoding.start + encoding.step * max(count - 1, 0)
    if encoding.start < 0 or encoding.step < 0 or last >= 1 << 62:
        raise CorruptFileError(f"a range ends at {last}, which is impossible")
    return encoding.start + np.arange(count, dtype=np.int64) * encoding.step


def _num_runs(lengths: enc.Range, count: int) -> int:
    """How many numbers of the range, each at least 1, add up to the count."""
    found = 0
    if lengths.start >= 1 and lengths.step >= 0:
        found = bisect.bisect_left(range(count + 1), count, key=lambda runs: _sum(lengths, runs))
    if _sum(lengths, found) != count:
        raise CorruptFileError(
            f"runs of {lengths.start}, {lengths.start + lengths.step}, ... numbers are not {count} together"
        )
    return found


def _sum(numbers: enc.Range, count: int) -> int:
    return numbers.start * count + numbers.step * (count * (count - 1) // 2)


def _word(bits: int) -> None:
    if bits != 64:
        raise CorruptFileError(f"positions have {bits} bits, expected 64")


def _constant(encoding: enc.Constant, count: int) -> Ints:
    if encoding.value is None:
        if count:
            raise CorruptFileError(f"{count} numbers have no value")
        return np.empty(0, np.int64)
    if len(encoding.value) != 8:
        raise CorruptFileError(f"a number has {len(encoding.value)} bytes")
    return np.full(count, int.from_bytes(encoding.value, "little", signed=True), np.int64)


def _delta(encoding: enc.Delta, buffers: Iterator[Bytes], count: int, codecs: Codecs) -> Ints:
    _word(encoding.uncompressed_bits)
    if count == 0 or encoding.base >= 1 << 62:
        raise CorruptFileError(f"the differences do not match {count} numbers from {encoding.base}")
    deltas = read_numbers(encoding.deltas, buffers, count - 1, codecs)
    if len(deltas) and (int(deltas.min()) < 0 or int(deltas.max()) > 1 << 32):
        raise CorruptFileError("positions are not ascending")
    return encoding.base + np.append(np.int64(0), np.cumsum(deltas))


def _dictionary(encoding: enc.Dictionary, data: Bytes, count: int, codecs: Codecs) -> Ints:
    sizes = words(data[:16], np.uint64).tolist()
    if len(sizes) != 2 or sum(sizes) != len(data) - 16:
        raise CorruptFileError(f"the parts of a dictionary of numbers have {sizes} bytes, which do not match {len(data)}")
    split = 16 + int(sizes[0])
    counts = np.array([count], np.int64)
    indices = _plain(codecs.decode_block(encoding.indices, Pieces.whole(data[16:split]), counts))
    items = read_numbers(encoding.items, iter([data[split:]]), encoding.num_items, codecs)
    if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < len(items):
        raise CorruptFileError(f"dictionary index {int(indices.max())} of {len(items)} numbers")
    numbers: Ints = items[indices]
    return numbers


def _plain(block: Block) -> Ints:
    if not isinstance(block, FixedBlock) or block.bits not in (8, 16, 32, 64):
        raise CorruptFileError("positions are not integers")
    return words(block.data, f"u{block.bits // 8}")[: block.count].astype(np.int64)
