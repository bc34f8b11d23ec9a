"""Tables of vectors from plain Python or numpy data.

::

    vec_to_table({"a": [1.0, 2.0], "b": [3.0, 4.0]})      id: string, vector: fixed_size_list<float>[2]
    vec_to_table(numpy.zeros((3, 8)))                     vector: fixed_size_list<float>[8]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.arrow_numpy import arrow_of
from lance_core.errors import InputError

Vectors = Mapping[Any, Sequence[float]] | Sequence[Sequence[float]] | npt.NDArray[Any]


def vec_to_table(
    data: Vectors, names: str | Sequence[str] | None = None, ndim: int | None = None, check_ndim: bool = True
) -> pa.Table:
    """A table of float32 vectors; a mapping's keys become a column before them.

    `names` are those of the columns: "vector", after "id" for a mapping. `ndim` is the vectors' dimension, found out when
    left out; `check_ndim` compares all with it. Raises InputError.
    """
    keyed = isinstance(data, Mapping)
    rows = list(data.values()) if isinstance(data, Mapping) else data
    default = ["id", "vector"] if keyed else ["vector"]
    chosen = default if names is None else [names] if isinstance(names, str) else list(names)
    if len(chosen) != len(default):
        raise InputError(f"expected {len(default)} column names, got {chosen}")
    vectors = _vectors(rows, ndim, check=check_ndim)
    arrays = [pa.array([*data]), vectors] if isinstance(data, Mapping) else [vectors]
    return pa.Table.from_arrays(arrays, names=chosen)


def _vectors(rows: Any, ndim: int | None, *, check: bool) -> pa.Array[Any]:
    if not isinstance(rows, list | tuple | np.ndarray) or len(rows) == 0:
        raise InputError(f"expected vectors in a dict, a list or an array, got an empty {type(rows).__name__}")
    size = len(rows[0]) if ndim is None else ndim
    wrong = next((row for row in rows if len(row) != size), None) if check else None
    if wrong is not None:
        raise InputError(f"expected vectors of {size} dimensions, got one of {len(wrong)}")
    try:
        flat = np.asarray(rows, np.float32).reshape(-1)
    except (TypeError, ValueError) as error:
        raise InputError(f"the values are not vectors of numbers: {error}") from error
    made: pa.Array[Any] = pa.FixedSizeListArray.from_arrays(arrow_of(flat), size)
    return made
