from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_core.codecs.blocks import FixedBlock
from lance_core.errors import CorruptFileError, InputError
from lance_core.format.layout import RepDefLayer
from lance_core.pages.leaf import ConstantValues, Leaf
from lance_core.pages.levels.build import ItemStep, ListStep, build_levels
from lance_core.pages.levels.join import join_levels
from lance_core.pages.levels.unravel import unravel
from tests.pages.page_nesting import arrays, rebuild, steps_of, types

R = RepDefLayer


def _round_trip(array: pa.Array) -> pa.Array:
    steps, leaf, dimensions = steps_of(array)
    built = build_levels(steps, len(array))
    items = np.asarray(leaf.fill_null(0)) if built.slots is None else np.asarray(leaf.fill_null(0))[built.slots]
    assert len(items) == built.num_visible
    nestings = unravel(built.rep, built.def_, built.layers, built.num_visible, dimensions=dimensions)
    return rebuild(array.type, nestings, items)


@settings(max_examples=300, deadline=None)
@given(types().flatmap(arrays))
def test_levels_keep_every_nesting(array: pa.Array) -> None:
    assert _round_trip(array).to_pylist() == array.to_pylist()


@settings(max_examples=150, deadline=None)
@given(types().flatmap(arrays), st.integers(0, 12), st.integers(0, 12))
def test_sliced_arrays_and_garbage_under_nulls(array: pa.Array, start: int, length: int) -> None:
    part = array.slice(min(start, len(array)), length)
    if "fixed_size_list" in str(array.type):
        part = pa.array(part.to_pylist(), array.type)
    assert _round_trip(part).to_pylist() == part.to_pylist()


@settings(max_examples=200, deadline=None)
@given(types(fixed_lists=False).flatmap(lambda type_: st.lists(arrays(type_, 5), min_size=1, max_size=4)))
def test_pages_with_different_layers_join(parts: list[pa.Array]) -> None:
    leaves, items = [], []
    for part in parts:
        steps, leaf, _ = steps_of(part)
        built = build_levels(steps, len(part))
        values = np.asarray(leaf.fill_null(0), np.int32)
        values = values if built.slots is None else values[built.slots]
        items.append(values)
        block = FixedBlock(32, values.view(np.uint8), len(values))
        leaves.append(Leaf(block, built.rep, built.def_, built.layers, built.num_rows))
    joined = join_levels(leaves)
    nestings = unravel(joined.rep, joined.def_, joined.layers, joined.num_visible)
    whole = pa.chunked_array(parts).combine_chunks()
    assert rebuild(parts[0].type, nestings, np.concatenate(items)).to_pylist() == whole.to_pylist()


def test_levels_as_the_format_numbers_them() -> None:
    steps, _, _ = steps_of(pa.array([[7, None], None, [], [8]], pa.list_(pa.int32())))
    built = build_levels(steps, 4)
    assert built.layers == (R.NULLABLE_ITEM, R.NULL_AND_EMPTY_LIST)
    assert built.rep is not None and built.rep.tolist() == [1, 0, 1, 1, 1]
    assert built.def_ is not None and built.def_.tolist() == [0, 1, 2, 3, 0]
    assert built.slots is not None and built.slots.tolist() == [0, 1, 2]


def test_null_struct_keeps_its_slot_but_not_above_a_list() -> None:
    flat, _, _ = steps_of(pa.array([{"f": 1}, None], pa.struct([("f", pa.int32())])))
    built = build_levels(flat, 2)
    assert (built.num_visible, built.slots, built.layers) == (2, None, (R.NULLABLE_ITEM, R.NULLABLE_ITEM))
    above, _, _ = steps_of(pa.array([{"f": [1]}, None], pa.struct([("f", pa.list_(pa.int32()))])))
    assert build_levels(above, 2).num_visible == 1


def test_no_nulls_means_no_levels() -> None:
    built = build_levels([ItemStep(np.ones(3, np.bool_)), ItemStep()], 3)
    assert (built.rep, built.def_, built.layers) == (None, None, (R.ALL_VALID_ITEM, R.ALL_VALID_ITEM))


def test_fixed_size_list_of_structs_repeats_its_null() -> None:
    built = build_levels([ItemStep(np.array([True, False]), 2), ItemStep(), ItemStep()], 2)
    assert built.def_ is not None and built.def_.tolist() == [0, 0, 3, 3]
    assert built.num_rows == 4
    nestings = unravel(None, built.def_, built.layers, 4, dimensions=(1, 1, 2))
    assert nestings[0].validity is not None and nestings[0].validity.tolist() == [True, False]


def test_all_null_page_joins_with_a_plain_one() -> None:
    plain = Leaf(FixedBlock(8, np.zeros(2, np.uint8), 2), None, None, (R.ALL_VALID_ITEM,), 2)
    nothing = Leaf(ConstantValues(3), None, None, (R.NULLABLE_ITEM,), 3)
    joined = join_levels([plain, nothing])
    assert joined.def_ is not None and joined.def_.tolist() == [0, 0, 1, 1, 1]
    assert (joined.num_visible, joined.num_rows) == (5, 5)


def test_list_offsets_must_not_decrease() -> None:
    with pytest.raises(InputError):
        build_levels([ListStep(np.array([0, 3, 1])), ItemStep()], 2)


@pytest.mark.parametrize(
    ("rep", "def_", "layers"),
    [
        ([1, 2], None, (R.ALL_VALID_ITEM, R.ALL_VALID_LIST)),
        ([0, 1], None, (R.ALL_VALID_ITEM, R.ALL_VALID_LIST)),
        (None, [0, 2], (R.NULLABLE_ITEM,)),
        ([1, 1], [0], (R.NULLABLE_ITEM, R.ALL_VALID_LIST)),
        (None, [0, 1], (R.NULLABLE_ITEM, R.ALL_VALID_LIST)),
    ],
)
def test_levels_that_contradict_the_layers(rep: object, def_: object, layers: tuple[R, ...]) -> None:
    arrays_ = [None if item is None else np.array(item, np.uint16) for item in (rep, def_)]
    with pytest.raises(CorruptFileError):
        unravel(arrays_[0], arrays_[1], layers, 2)
