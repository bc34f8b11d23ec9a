"""About how many bytes of memory the values of each row take.

::

    row_sizes(pa.array(["a", None, "four"]))        1  0  4
    row_sizes(pa.array([[1, 2], []], list<int64>))  16 0
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pyarrow as pa

from lance_core.arrays import Ints
from lance_core.arrow_numpy import numpy_of


def row_sizes(array: Any) -> Ints:
    """Bytes of the values in each row, without offsets and validity; a value that a dictionary holds counts in each row."""
    kind, test = array.type, pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return row_sizes(array.storage)
    if test.is_dictionary(kind):
        return row_sizes(array.dictionary_decode())
    if test.is_run_end_encoded(kind):
        return row_sizes(cast("Any", pa.compute).run_end_decode(array))
    if test.is_string(kind) or test.is_large_string(kind) or test.is_binary(kind) or test.is_large_binary(kind):
        return numpy_of(pa.compute.binary_length(array).fill_null(0), may_copy=True).astype(np.int64)
    if test.is_string_view(kind) or test.is_binary_view(kind):
        return row_sizes(array.cast(pa.large_binary()))
    if test.is_struct(kind):
        fields = [row_sizes(array.field(place)) for place in range(kind.num_fields)]
        return np.sum(fields, axis=0, dtype=np.int64) if fields else np.zeros(len(array), np.int64)
    if test.is_fixed_size_list(kind):
        items = row_sizes(array.values.slice(array.offset * kind.list_size, len(array) * kind.list_size))
        return items.reshape(len(array), kind.list_size).sum(axis=1) if kind.list_size else np.zeros(len(array), np.int64)
    if test.is_list(kind) or test.is_large_list(kind) or test.is_map(kind):
        return _of_lists(array)
    if test.is_null(kind):
        return np.zeros(len(array), np.int64)
    try:
        width = kind.bit_width
    except ValueError:
        # A type whose rows cannot be told apart: each has its share.
        return np.full(len(array), array.nbytes // max(1, len(array)), np.int64)
    return np.full(len(array), -(-width // 8), np.int64)


def _of_lists(array: Any) -> Ints:
    if not len(array):
        return np.zeros(0, np.int64)
    offsets = numpy_of(array.offsets, may_copy=True).astype(np.int64)
    is_map = pa.types.is_map(array.type)
    items = row_sizes(array.keys) + row_sizes(array.items) if is_map else row_sizes(array.values)
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(items)])
    sizes: Ints = before[offsets[1:]] - before[offsets[:-1]]
    return sizes
