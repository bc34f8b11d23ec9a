"""Arrow nesting -> levels, for writing. Walks the steps from the outermost inwards, expanding one entry per list item.

::

    list<int32>  [[7, null], null, [], [8]]     ListStep(offsets [0,2,2,2,3], validity [1,0,1,1]), ItemStep([1,0,1])
    rep   1 0 1 1 1
    def_  0 1 2 3 0        layers (NULLABLE_ITEM, NULL_AND_EMPTY_LIST)
    slots 0 1     2        the leaf slots that are visible, in order

During the walk an entry that is null or empty carries a symbolic code (two per step); only when it is known which codes
occur do they become numbers, so that a page without nulls pays no level for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lance_core.arrays import Bools, Ints, Levels
from lance_core.errors import InputError, UnsupportedEncodingError
from lance_core.format.layout import RepDefLayer
from lance_core.kernels.levels import enter_lists, mark_nulls

_MAX_STEPS = 1000
_LIST_LAYERS = {
    (False, False): RepDefLayer.ALL_VALID_LIST,
    (True, False): RepDefLayer.NULLABLE_LIST,
    (False, True): RepDefLayer.EMPTYABLE_LIST,
    (True, True): RepDefLayer.NULL_AND_EMPTY_LIST,
}


@dataclass(frozen=True, slots=True, eq=False)
class ItemStep:
    """A struct, a fixed-size list of structs, or the leaf item itself.

    `validity`: bool per slot (True = valid), None when all are valid. `dimension` is 1 except for a fixed-size list of
    structs, whose children have `dimension` slots for each of its own.
    """

    validity: Bools | None = None
    dimension: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class ListStep:
    """A list, large list or map: `offsets` (n + 1, any integer type) index into the next step's slots."""

    offsets: npt.NDArray[np.int32] | npt.NDArray[np.int64]
    validity: Bools | None = None


Step = ItemStep | ListStep


@dataclass(frozen=True, slots=True, eq=False)
class BuiltLevels:
    """Levels ready for a page.

    `slots`: for each visible entry, which slot of the leaf array it owns (int64); None when the slots are simply all of
    the leaf array in order. `num_visible` counts them; `num_rows` counts rows as a page does (a fixed-size list of
    structs outside any list counts its items).
    """

    rep: Levels | None
    def_: Levels | None
    layers: tuple[RepDefLayer, ...]
    slots: Ints | None
    num_visible: int
    num_rows: int


def build_levels(steps: Sequence[Step], num_rows: int) -> BuiltLevels:
    """Levels of `num_rows` rows of one column; `steps` run from the outermost inwards and end with the leaf's ItemStep.

    What is under a null (values of a null list, children of a null struct) is ignored. Raises InputError when an array
    is too short for its slots.
    """
    if not steps or not isinstance(steps[-1], ItemStep) or steps[-1].dimension != 1 or len(steps) > _MAX_STEPS:
        raise InputError("the last of the nesting steps must be the leaf item")
    has_lists = any(isinstance(step, ListStep) for step in steps)
    if not has_lists and all(step.dimension == 1 for step in steps if isinstance(step, ItemStep)):
        return _flat(steps, num_rows)
    return _Walk(steps, num_rows).run()


def _flat(steps: Sequence[Step], num_rows: int) -> BuiltLevels:
    """No lists: one level per row, and every slot is visible."""
    layers: list[RepDefLayer] = []
    def_: Levels | None = None
    nulls_by_step = [_nulls(step.validity, num_rows) for step in steps]
    outer: Bools | None = None
    seen: list[Bools | None] = []
    for nulls in nulls_by_step:
        own = nulls if outer is None or nulls is None else nulls & ~outer
        own = own if own is not None and own.any() else None
        seen.append(own)
        outer = own if outer is None else outer if own is None else outer | own
    first = next((number for number, own in enumerate(seen) if own is not None), len(seen))
    for number, own in reversed(list(enumerate(seen))):
        layers.append(RepDefLayer.NULLABLE_ITEM if number >= first else RepDefLayer.ALL_VALID_ITEM)
        if own is not None:
            level = sum(layer.num_def_levels for layer in layers)
            # Entries of different steps do not overlap (`own` excludes what an outer step made null).
            part = own.view(np.uint8).astype(np.uint16)
            if level != 1:
                part *= np.uint16(level)
            def_ = part if def_ is None else def_ + part
    return BuiltLevels(None, def_, tuple(layers), None, num_rows, num_rows)


def _nulls(validity: Bools | None, count: int) -> Bools | None:
    if validity is None:
        return None
    _require(len(validity), count)
    nulls: Bools = ~validity[:count]
    return nulls


def _require(length: int, needed: int) -> None:
    if length < needed:
        raise InputError(f"a nesting step has {length} slots, its parent needs {needed}")


def _null_code(step: int) -> int:
    return 2 * step + 1


def _empty_code(step: int) -> int:
    return 2 * step + 2


class _Walk:
    """The entries so far: the slot each owns in the current step, its level codes, and whether it is cut off."""

    def __init__(self, steps: Sequence[Step], num_rows: int) -> None:
        self.steps = steps
        self.inner_lists = sum(isinstance(step, ListStep) for step in steps)
        self.slot: Ints = np.arange(num_rows, dtype=np.int64)
        self.rep: Levels | None = np.full(num_rows, self.inner_lists, np.uint16) if self.inner_lists else None
        self.code: Levels = np.zeros(num_rows, np.uint16)
        self.cut: Bools = np.zeros(num_rows, np.bool_)
        self.has_outer_list = False
        self.num_rows = num_rows

    def run(self) -> BuiltLevels:
        for number, step in enumerate(self.steps):
            if isinstance(step, ListStep):
                self._enter_list(number, step)
            else:
                self._mark_nulls(number, step.validity)
                if step.dimension != 1:
                    self._multiply(step.dimension)
        codes = np.array([bool((self.code == code).any()) for code in range(2 * len(self.steps) + 1)])
        layers, numbers = _number(self.steps, codes)
        def_ = np.take(numbers, self.code, mode="clip") if numbers.any() else None
        visible = self._visible_slots()
        return BuiltLevels(self.rep, def_, layers, visible, len(visible), self.num_rows)

    def _visible_slots(self) -> Ints:
        num_cut = int(np.count_nonzero(self.cut))
        if num_cut in (0, len(self.cut)):
            return self.slot[: len(self.cut) - num_cut]
        # Slots ascend, so those that are side by side need not be picked one by one.
        first, last = int(np.argmin(self.cut)), len(self.cut) - 1 - int(np.argmin(self.cut[::-1]))
        low, high = int(self.slot[first]), int(self.slot[last])
        if high - low + 1 == len(self.cut) - num_cut:
            return np.arange(low, high + 1, dtype=np.int64)
        picked: Ints = self.slot[~self.cut]
        return picked

    def _mark_nulls(self, number: int, validity: Bools | None) -> None:
        if validity is None:
            return
        bad = mark_nulls(self.slot, np.ascontiguousarray(validity).view(np.uint8), _null_code(number), self.code)
        if bad < 0:
            _require(len(validity), int(self.slot[-1 - bad]) + 1)

    def _enter_list(self, number: int, step: ListStep) -> None:
        assert self.rep is not None
        self._mark_nulls(number, step.validity)
        self.inner_lists -= 1
        offsets = np.ascontiguousarray(step.offsets, np.int64)
        room = len(self.slot) + (int(offsets[-1]) - int(offsets[0]) if len(offsets) else 0)
        if room < len(self.slot):
            raise InputError("list offsets decrease")
        slot, code, rep = np.empty(room, np.int64), np.empty(room, np.uint16), np.empty(room, np.uint16)
        facts = np.array([_empty_code(number), self.inner_lists], np.int64)
        count = enter_lists(self.slot, self.code, self.rep, offsets, facts, slot, code, rep)
        if count < 0:
            _require(len(offsets) - 1, int(self.slot[-1 - count]) + 1)
            raise InputError("list offsets decrease")
        self.slot, self.code, self.rep = slot[:count], code[:count], rep[:count]
        # Whatever is null or empty at a list has nothing further inside: it keeps one entry and owns no slot.
        self.cut = self.code != 0
        self.has_outer_list = True

    def _multiply(self, dimension: int) -> None:
        counts = np.where(self.cut, 1, dimension).astype(np.int64)
        self._expand(counts, np.where(self.cut, self.slot, self.slot * dimension))
        if not self.has_outer_list:
            self.num_rows *= dimension

    def _expand(self, counts: Ints, starts: Ints) -> None:
        """Repeat each entry; the copies of one entry own consecutive slots, and all but the first get the inner rep."""
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        firsts = ends - counts
        self.slot = np.repeat(starts - firsts, counts) + np.arange(total, dtype=np.int64)
        self.code = np.repeat(self.code, counts)
        self.cut = np.repeat(self.cut, counts)
        if self.rep is not None:
            rep = np.full(total, self.inner_lists, np.uint16)
            rep[firsts] = self.rep
            self.rep = rep


def _nullable(steps: Sequence[Step], codes: Bools) -> list[bool]:
    """Which layers may be null: children of a null struct are, and the official reader counts on their layers to say so."""
    result: list[bool] = []
    for number in range(len(steps)):
        inherited = number > 0 and isinstance(steps[number - 1], ItemStep) and result[-1]
        result.append(inherited or bool(codes[_null_code(number)]))
    return result


def _number(steps: Sequence[Step], codes: Bools) -> tuple[tuple[RepDefLayer, ...], Levels]:
    """Layers (innermost first) and the definition level of each code that occurs."""
    layers: list[RepDefLayer] = []
    numbers = np.zeros(len(codes), np.uint16)
    level = 0
    nullable = _nullable(steps, codes)
    for number in reversed(range(len(steps))):
        has_null, has_empty = nullable[number], bool(codes[_empty_code(number)])
        if isinstance(steps[number], ListStep):
            layers.append(_LIST_LAYERS[has_null, has_empty])
        else:
            layers.append(RepDefLayer.NULLABLE_ITEM if has_null else RepDefLayer.ALL_VALID_ITEM)
        for code, used in ((_null_code(number), has_null), (_empty_code(number), has_empty)):
            if used:
                level += 1
                numbers[code] = level
    if level > np.iinfo(np.uint16).max:
        raise UnsupportedEncodingError("the definition levels do not fit in 16 bits")
    return tuple(layers), numbers
