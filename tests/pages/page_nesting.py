"""Arrow arrays with one leaf <-> nesting steps, for the tests of levels."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from lance_core.pages.levels.build import ItemStep, ListStep, Step
from lance_core.pages.levels.unravel import Nesting


def types(max_depth: int = 4, *, fixed_lists: bool = True) -> st.SearchStrategy[pa.DataType]:
    def extend(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
        kinds = [
            inner.map(pa.list_),
            inner.map(pa.large_list),
            inner.map(lambda item: pa.struct([("f", item)])),
        ]
        if fixed_lists:
            kinds.append(
                st.tuples(inner, st.integers(1, 3)).map(lambda pair: pa.list_(pa.struct([("f", pair[0])]), pair[1]))
            )
        return st.one_of(kinds)

    return st.recursive(st.just(pa.int32()), extend, max_leaves=max_depth)


def values(type_: pa.DataType) -> st.SearchStrategy[object]:
    if pa.types.is_struct(type_):
        some: st.SearchStrategy[object] = values(type_.field(0).type).map(lambda item: {"f": item})
    elif pa.types.is_fixed_size_list(type_):
        some = st.lists(values(type_.value_type), min_size=type_.list_size, max_size=type_.list_size)
    elif pa.types.is_list(type_) or pa.types.is_large_list(type_):
        some = st.lists(values(type_.value_type), max_size=4)
    else:
        some = st.integers(-5, 5)
    return st.one_of(st.none(), some, some, some)


def arrays(type_: pa.DataType, max_size: int = 12) -> st.SearchStrategy[pa.Array]:
    return st.lists(values(type_), max_size=max_size).map(lambda rows: pa.array(rows, type_))


def steps_of(array: pa.Array) -> tuple[list[Step], pa.Array, list[int]]:
    """Steps outermost first, the leaf array, and dimensions innermost first (as `unravel` wants them)."""
    steps: list[Step] = []
    dimensions: list[int] = []
    while True:
        valid = None if array.null_count == 0 else np.asarray(array.is_valid())
        type_ = array.type
        if pa.types.is_list(type_) or pa.types.is_large_list(type_):
            steps.append(ListStep(array.offsets.to_numpy(), valid))
            array = array.values
        elif pa.types.is_fixed_size_list(type_):
            steps.append(ItemStep(valid, type_.list_size))
            dimensions.append(type_.list_size)
            array = array.values
            continue
        elif pa.types.is_struct(type_):
            steps.append(ItemStep(valid))
            array = array.field(0)
        else:
            steps.append(ItemStep(valid))
            dimensions.append(1)
            return steps, array, dimensions[::-1]
        dimensions.append(1)


def rebuild(type_: pa.DataType, nestings: list[Nesting], leaf: np.ndarray) -> pa.Array:
    nesting, rest = nestings[0], nestings[1:]
    nulls = None if nesting.validity is None else ~nesting.validity
    mask = None if nulls is None else pa.array(nulls, pa.bool_())
    if pa.types.is_struct(type_):
        return pa.StructArray.from_arrays([rebuild(type_.field(0).type, rest, leaf)], fields=[type_.field(0)], mask=mask)
    if pa.types.is_fixed_size_list(type_):
        child = rebuild(type_.value_type, rest, leaf)
        return pa.FixedSizeListArray.from_arrays(child, type=type_, mask=mask)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        child = rebuild(type_.value_type, rest, leaf)
        kind = pa.LargeListArray if pa.types.is_large_list(type_) else pa.ListArray
        width = np.int64 if kind is pa.LargeListArray else np.int32
        return kind.from_arrays(pa.array(nesting.offsets.astype(width)), child, type=type_, mask=mask)
    return pa.array(leaf, type_, mask=nulls)
