"""Measures of columns for gates: the lengths of vectors, and how far two columns are from being distributed alike.

::

    norms([[3, 4], null, [0, 0]])                           [5.0, 0.0]
    drift([1, 2, 3, 4], [1, 2, 3, 4])                       0.0
    drift([1, 2, 3, 4], [11, 12, 13, 14])                   1.0
    drift(["cat", "cat", "dog"], ["cat", "dog", "dog"])     0.333: a third of the labels would have to change

Numbers and times are compared by the Kolmogorov-Smirnov statistic, vectors by that of their lengths, all others by the total
variation of their values. Nulls do not count.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.arrow_numpy import numpy_of
from lance_core.errors import InputError


def norms(values: Any) -> Any:
    """The Euclidean length of each vector that is not null, as float64. InputError for a column without vectors."""
    column = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if not is_vector(column.type):
        raise InputError(f"{column.type} is no vector, so it has no length", cure="Name a column of lists of numbers.")
    column = pc.drop_null(column)
    flat, parents = pc.list_flatten(column), pc.list_parent_indices(column)
    return np.sqrt(np.bincount(numpy_of(parents), weights=np.square(_floats(flat)), minlength=len(column)))


def is_vector(kind: Any) -> bool:
    """Whether a type is a list of numbers, of a fixed size or of any."""
    types = pa.types
    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return is_list and (types.is_floating(kind.value_type) or types.is_integer(kind.value_type))


def drift(before: Any, now: Any) -> float:
    """How far two columns of one type are apart: 0.0 alike, 1.0 nothing in common. InputError for other types."""
    kind, types = now.type, pa.types
    if is_vector(kind):
        return _statistic(norms(before), norms(now))
    is_number = types.is_floating(kind) or types.is_integer(kind) or types.is_decimal(kind)
    if is_number or (types.is_temporal(kind) and not types.is_interval(kind)):
        return _statistic(_floats(pc.drop_null(before)), _floats(pc.drop_null(now)))
    if types.is_nested(kind) or types.is_interval(kind) or isinstance(kind, pa.BaseExtensionType):
        raise InputError(f"values of {kind} cannot be compared by max_drift", cure="Compare them by callable or sql.")
    return _variation(pc.drop_null(before), pc.drop_null(now))


def _floats(column: Any) -> Any:
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    types = pa.types
    if types.is_temporal(column.type):
        column = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
    return numpy_of(column.cast(pa.float64(), safe=False), may_copy=True)


def _statistic(before: Any, now: Any) -> float:
    """The largest difference of the shares of values up to a place; NaN stands behind all numbers."""
    first, second = np.sort(before), np.sort(now)
    places = np.concatenate([first, second])
    shares = [np.searchsorted(found, places, side="right") / len(found) for found in (first, second)]
    return float(np.abs(shares[0] - shares[1]).max())


def _variation(before: Any, now: Any) -> float:
    """Half of the sum of the differences of each value's shares."""
    shares: list[dict[Any, float]] = []
    for column in (before, now):
        plain = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if pa.types.is_dictionary(plain.type):
            plain = plain.cast(plain.type.value_type)
        counted = pc.value_counts(plain)
        counts: list[Any] = counted.field("counts").to_pylist()
        shares.append(dict(zip(counted.field("values").to_pylist(), (n / len(plain) for n in counts), strict=True)))
    first, second = shares
    return sum(abs(first.get(value, 0.0) - second.get(value, 0.0)) for value in first.keys() | second.keys()) / 2
