"""The order of values in indices: nulls first, then ascending; floats by their bits, -NaN < -inf < -0.0 < 0.0 < inf < NaN.

::

    order_of([2, null, 1])  ->  [1, 2, 0]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import compute

pc: Any = compute  # the stubs know only some of what the kernels take


def order_of(values: Any) -> npt.NDArray[np.int64]:
    """The positions of an Arrow array's values in index order; equal values keep theirs."""
    if pa.types.is_floating(values.type):
        keys = float_keys(values)
        nulls = _nulls(values)
        order = np.lexsort((keys, ~nulls)) if nulls.any() else np.argsort(keys, kind="stable")
        return order.astype(np.int64)
    found = pc.sort_indices(values).to_numpy().astype(np.int64)
    present = len(values) - values.null_count
    result: npt.NDArray[np.int64] = np.concatenate([found[present:], found[:present]])
    return result


def float_keys(values: Any) -> npt.NDArray[np.int64]:
    """Integers that order as the bits of floats do (what lies under nulls is anything)."""
    width = values.type.bit_width // 8
    floats = np.frombuffer(values.buffers()[1], f"f{width}", len(values), values.offset * width) if len(values) else ()
    bits = np.asarray(floats, f"f{width}").view(f"i{width}")
    keys: npt.NDArray[np.int64] = np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits).astype(np.int64)
    return keys


def extremes(values: Any) -> tuple[Any, Any]:
    """The smallest and largest value (Arrow scalars) that is not null; nulls when there is none."""
    present = values.drop_null() if values.null_count else values
    if len(present) == 0:
        nothing = pa.scalar(None, values.type)
        return nothing, nothing
    if pa.types.is_floating(values.type):
        keys = float_keys(present)
        return present[int(keys.argmin())], present[int(keys.argmax())]
    try:
        both = pc.min_max(present)
        return both["min"], both["max"]
    except pa.ArrowNotImplementedError:
        order = order_of(present)
        return present[int(order[0])], present[int(order[-1])]


def _nulls(values: Any) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = values.is_null().to_numpy(zero_copy_only=False)
    return found


def is_ordered(data_type: pa.DataType) -> bool:
    """Whether an index can sort values of a type."""
    t = pa.types
    tests = (
        t.is_boolean, t.is_integer, t.is_floating, t.is_string, t.is_large_string, t.is_binary, t.is_large_binary,
        t.is_decimal, t.is_temporal, t.is_fixed_size_binary,
    )  # fmt: skip
    return any(test(data_type) for test in tests) and not t.is_interval(data_type)
