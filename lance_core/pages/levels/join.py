"""Levels of several pages as one. Pages of one column may differ in their layers: levels are renumbered first.

::

    page 1   layers (NULLABLE_ITEM,)     def_ 0 1 0
    page 2   layers (ALL_VALID_ITEM,)    no levels, 2 values
    joined   layers (NULLABLE_ITEM,)     def_ 0 1 0 0 0

The values stay apart (they may be constants, dictionaries or plain); the caller turns each into Arrow and joins those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lance_core.arrays import Levels
from lance_core.errors import CorruptFileError
from lance_core.format.layout import RepDefLayer
from lance_core.pages.leaf import Leaf, LeafValues, max_def, max_rep

_LISTS = {
    (False, False): RepDefLayer.ALL_VALID_LIST,
    (True, False): RepDefLayer.NULLABLE_LIST,
    (False, True): RepDefLayer.EMPTYABLE_LIST,
    (True, True): RepDefLayer.NULL_AND_EMPTY_LIST,
}
_HAS_NULL = (RepDefLayer.NULLABLE_ITEM, RepDefLayer.NULLABLE_LIST, RepDefLayer.NULL_AND_EMPTY_LIST)
_HAS_EMPTY = (RepDefLayer.EMPTYABLE_LIST, RepDefLayer.NULL_AND_EMPTY_LIST)


@dataclass(frozen=True, slots=True, eq=False)
class JoinedLevels:
    """Levels of several leaves in order, and their values, one entry per leaf; `num_visible` slots in all."""

    rep: Levels | None
    def_: Levels | None
    layers: tuple[RepDefLayer, ...]
    values: tuple[LeafValues, ...]
    num_visible: int
    num_rows: int


def join_levels(leaves: Sequence[Leaf]) -> JoinedLevels:
    """Leaves of one column, at least one, as one. CorruptFileError when their nesting differs."""
    if len(leaves) == 1:
        return _one(leaves[0])
    layers = common_layers([leaf.layers for leaf in leaves])
    values = tuple(leaf.values for leaf in leaves)
    num_visible = sum(item.count for item in values)
    num_rows = sum(leaf.num_rows for leaf in leaves)
    rep = _concatenate([_rep_of(leaf, layers) for leaf in leaves]) if max_rep(layers) else None
    def_ = None
    if any(leaf.def_ is not None or leaf.is_all_null for leaf in leaves):
        def_ = _concatenate([_def_of(leaf, layers) for leaf in leaves])
    return JoinedLevels(rep, def_, layers, values, num_visible, num_rows)


def _one(leaf: Leaf) -> JoinedLevels:
    rep = _rep_of(leaf, leaf.layers) if max_rep(leaf.layers) else None
    def_ = _def_of(leaf, leaf.layers) if leaf.def_ is not None or leaf.is_all_null else None
    return JoinedLevels(rep, def_, leaf.layers, (leaf.values,), leaf.values.count, leaf.num_rows)


def common_layers(layers: Sequence[tuple[RepDefLayer, ...]]) -> tuple[RepDefLayer, ...]:
    """For each position the layer that allows whatever any page allows there."""
    if all(item == layers[0] for item in layers):
        return layers[0]
    if any(len(item) != len(layers[0]) for item in layers):
        raise CorruptFileError(f"pages of one column have {sorted({len(item) for item in layers})} nesting layers")
    return tuple(_union(position) for position in zip(*layers, strict=True))


def _union(layers: tuple[RepDefLayer, ...]) -> RepDefLayer:
    if len({layer.is_list for layer in layers}) > 1:
        raise CorruptFileError("pages of one column disagree on which layers are lists")
    has_null = any(layer in _HAS_NULL for layer in layers)
    if layers[0].is_list:
        return _LISTS[has_null, any(layer in _HAS_EMPTY for layer in layers)]
    return RepDefLayer.NULLABLE_ITEM if has_null else RepDefLayer.ALL_VALID_ITEM


def _rep_of(leaf: Leaf, layers: tuple[RepDefLayer, ...]) -> Levels:
    if leaf.rep is None:
        raise CorruptFileError("a page with lists has no repetition levels")
    return leaf.rep


def _def_of(leaf: Leaf, layers: tuple[RepDefLayer, ...]) -> Levels:
    if leaf.def_ is None:
        return np.full(leaf.num_levels, 1 if leaf.is_all_null else 0, np.uint16)
    if leaf.layers == layers:
        return leaf.def_
    if len(leaf.def_) and int(leaf.def_.max()) > max_def(leaf.layers):
        raise CorruptFileError(f"definition level {int(leaf.def_.max())}, the page's layers allow {max_def(leaf.layers)}")
    renumbered: Levels = _renumbering(leaf.layers, layers)[leaf.def_]
    return renumbered


def _renumbering(old: tuple[RepDefLayer, ...], new: tuple[RepDefLayer, ...]) -> Levels:
    """New definition level by old definition level."""
    table = [0]
    level = 0
    for narrow, wide in zip(old, new, strict=True):
        if narrow in _HAS_NULL:
            table.append(level + 1)
        if narrow in _HAS_EMPTY:
            table.append(level + (2 if wide in _HAS_NULL else 1))
        level += wide.num_def_levels
    return np.array(table, np.uint16)


def _concatenate(parts: Sequence[Levels]) -> Levels:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
