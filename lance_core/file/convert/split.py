"""Arrow arrays -> leaves: a nested array comes apart into one stream of values per leaf, with its nesting steps.

    list<struct<x, y>>      leaf x   steps (ListStep offsets+validity, ItemStep struct validity, ItemStep x validity)
                            leaf y   the same first two steps, its own last one

Slices of one leaf from several batches are joined before they become a page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrays import Bools, Ints
from lance_core.arrow.buffers import bytes_of, take
from lance_core.arrow.kinds import as_list, as_struct
from lance_core.cached import cached_property
from lance_core.errors import InputError
from lance_core.file.convert.arrow_to_blocks import block_of, validity_of
from lance_core.file.convert.assemble import concat, copied
from lance_core.file.convert.tree import LeafNode, Node, StructNode
from lance_core.pages.leaf import ConstantValues, Leaf
from lance_core.pages.levels.build import ItemStep, ListStep, Step, build_levels


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
