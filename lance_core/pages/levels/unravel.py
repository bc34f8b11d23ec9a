"""Levels -> Arrow nesting, for reading. Walks the layers from the outermost inwards, dropping entries that end there.

::

    layers (NULLABLE_ITEM, NULL_AND_EMPTY_LIST)     def_ 1 = null item, 2 = null list, 3 = empty list
    rep   1 0 1 1 1                                 outermost: offsets [0, 2, 2, 2, 3], validity [1, 0, 1, 1]
    def_  0 1 2 3 0                                 leaf:      validity [1, 0, 1]

A slot of a layer with k lists further inside is an entry with rep >= k that no outer list ended. A fixed-size list of
structs has one entry per item; its own slot is the first of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lance_core.arrays import Bools, Ints, Levels
from lance_core.errors import CorruptFileError
from lance_core.format.layout import RepDefLayer
from lance_core.kernels.levels import split_lists
from lance_core.pages.leaf import max_def, max_rep


@dataclass(frozen=True, slots=True, eq=False)
class Nesting:
    """One layer of a column, as Arrow has it.

    `length`: slots. `validity`: bool per slot, None when all are valid. `offsets`: int64, length + 1, from 0, for lists
    only; they index into the slots of the next layer inwards.
    """

    layer: RepDefLayer
    length: int
    validity: Bools | None
    offsets: Ints | None = None


def unravel(
    rep: Levels | None,
    def_: Levels | None,
    layers: tuple[RepDefLayer, ...],
    num_visible: int,
    *,
    dimensions: Sequence[int] | None = None,
) -> list[Nesting]:
    """The layers from the outermost inwards; the last is the leaf item and has `num_visible` slots.

    `dimensions` runs like `layers` (innermost first): the dimension of each fixed-size list of structs, 1 elsewhere.
    Raises CorruptFileError when the levels contradict the layers.
    """
    sizes = tuple(dimensions) if dimensions is not None else (1,) * len(layers)
    check_levels(rep, def_, layers)
    if rep is not None and len(rep) and int(rep[0]) != max_rep(layers):
        raise CorruptFileError(f"the first repetition level is {int(rep[0])}, expected {max_rep(layers)}")
    if def_ is None and rep is None:
        return _all_valid(layers, sizes, num_visible)
    walk = _Walk(rep, def_, layers, sizes)
    result = [walk.step(number) for number in reversed(range(len(layers)))]
    if result and result[-1].length != num_visible:
        raise CorruptFileError(f"the levels describe {result[-1].length} values, the page has {num_visible}")
    return result


def check_levels(rep: Levels | None, def_: Levels | None, layers: tuple[RepDefLayer, ...]) -> None:
    """Refuse levels that the layers cannot have produced (CorruptFileError)."""
    if rep is None and max_rep(layers):
        raise CorruptFileError("a page with lists has no repetition levels")
    if rep is not None and len(rep) and int(rep.max()) > max_rep(layers):
        raise CorruptFileError(f"repetition level {int(rep.max())}, the page's layers allow {max_rep(layers)}")
    if def_ is not None and len(def_) and int(def_.max()) > max_def(layers):
        raise CorruptFileError(f"definition level {int(def_.max())}, the page's layers allow {max_def(layers)}")
    if rep is not None and def_ is not None and len(rep) != len(def_):
        raise CorruptFileError(f"{len(rep)} repetition levels do not match {len(def_)} definition levels")


def _all_valid(layers: tuple[RepDefLayer, ...], sizes: Sequence[int], num_visible: int) -> list[Nesting]:
    result = []
    length = num_visible
    for layer, size in zip(layers, sizes, strict=True):
        length = _divide(length, size)
        result.append(Nesting(layer, length, None))
    return result[::-1]


def _divide(count: int, size: int) -> int:
    if count % size:
        raise CorruptFileError(f"{count} items do not fill fixed-size lists of {size}")
    return count // size


class _Walk:
    """Entries that are still alive at the current layer."""

    def __init__(
        self, rep: Levels | None, def_: Levels | None, layers: tuple[RepDefLayer, ...], sizes: Sequence[int]
    ) -> None:
        self.rep, self.def_, self.layers = rep, def_, layers
        self.inner_lists = max_rep(layers)
        self.inner_levels = max_def(layers)
        self.spans = _spans(layers, sizes)

    def step(self, number: int) -> Nesting:
        layer = self.layers[number]
        upper = self.inner_levels
        self.inner_levels -= layer.num_def_levels
        return self._list(number, layer, upper) if layer.is_list else self._item(number, layer)

    def _item(self, number: int, layer: RepDefLayer) -> Nesting:
        def_ = self._slots(self.def_, self.spans[number])
        length = self._num_slots(self.spans[number])
        # A slot under a null parent is null too: its value means nothing.
        valid = def_ <= self.inner_levels if def_ is not None and layer.num_def_levels else None
        return Nesting(layer, length, valid)

    def _list(self, number: int, layer: RepDefLayer, upper: int) -> Nesting:
        assert self.rep is not None
        is_slot = self.rep >= self.inner_lists
        self.inner_lists -= 1
        if self.def_ is None:
            slot_defs = None
            offsets = _offsets(is_slot, None if self.inner_lists == 0 else self.rep >= self.inner_lists)
        else:
            offsets, slot_defs = self._split(self.rep, self.def_, int(np.count_nonzero(is_slot)))
        offsets = _divide_offsets(offsets, self.spans[number - 1])
        validity = _list_validity(layer, slot_defs, self.inner_levels, upper)
        return Nesting(layer, len(offsets) - 1, validity, offsets)

    def _split(self, rep: Levels, def_: Levels, num_slots: int) -> tuple[Ints, Levels]:
        """Offsets and definition levels of the lists; entries that end here are dropped from the walk."""
        facts = np.array([self.inner_lists + 1, self.inner_lists, self.inner_levels], np.int64)
        offsets, slot_defs = np.empty(num_slots + 1, np.int64), np.empty(num_slots + 1, np.uint16)
        next_rep, next_def = np.empty(len(rep) + 1, np.uint16), np.empty(len(rep) + 1, np.uint16)
        rep, def_ = np.ascontiguousarray(rep), np.ascontiguousarray(def_)
        kept = split_lists(rep, def_, facts, offsets, slot_defs, next_rep, next_def)
        if kept < len(rep):
            self.rep, self.def_ = next_rep[:kept], next_def[:kept]
        return offsets, slot_defs[:num_slots]

    def _slots(self, values: Levels | None, span: int) -> Levels | None:
        if values is None:
            return None
        if self.rep is not None and self.inner_lists:
            values = values[self.rep >= self.inner_lists]
        _divide(len(values), span)
        return values[::span]

    def _num_slots(self, span: int) -> int:
        if self.rep is None:
            return _divide(0 if self.def_ is None else len(self.def_), span)
        if not self.inner_lists:
            return _divide(len(self.rep), span)
        return _divide(int(np.count_nonzero(self.rep >= self.inner_lists)), span)


def _spans(layers: tuple[RepDefLayer, ...], sizes: Sequence[int]) -> list[int]:
    """Entries of each layer's slot: the product of the dimensions down to the next list or the leaf."""
    spans: list[int] = []
    for layer, size in zip(layers, sizes, strict=True):
        below = spans[-1] if spans else 1
        spans.append(1 if layer.is_list else below * size)
    return spans


def _offsets(is_slot: Bools, is_item: Bools | None) -> Ints:
    """How many items are before each slot, and in all."""
    starts = np.flatnonzero(is_slot)
    if is_item is None:
        before, total = starts.astype(np.int64), len(is_slot)
    else:
        counted = np.cumsum(is_item, dtype=np.int64)
        before = counted[starts] - is_item[starts]
        total = int(counted[-1]) if len(counted) else 0
    return np.append(before, np.int64(total))


def _divide_offsets(offsets: Ints, span: int) -> Ints:
    """Entries to slots of fixed-size lists inside."""
    if span > 1:
        if (offsets % span).any():
            raise CorruptFileError(f"list items do not fill fixed-size lists of {span}")
        offsets //= span
    return offsets


def _list_validity(layer: RepDefLayer, defs: Levels | None, lower: int, upper: int) -> Bools | None:
    if defs is None or layer not in (RepDefLayer.NULLABLE_LIST, RepDefLayer.NULL_AND_EMPTY_LIST):
        return None
    valid = defs <= lower
    if layer is RepDefLayer.NULL_AND_EMPTY_LIST:
        valid |= defs == upper
    return valid
