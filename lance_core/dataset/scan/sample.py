"""Random rows of a table by position.

::

    sample_indices(1000, 3, randomize_order=True) -> [412, 7, 958]
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_core.errors import InputError


def sample_indices(total: int, count: int, *, randomize_order: bool) -> npt.NDArray[np.int64]:
    """`count` different positions below `total`, in random or ascending order. InputError when there are not that many."""
    if count < 0 or count > total:
        raise InputError(f"cannot sample {count} of {total} rows", cure="Request at most as many rows as the table has.")
    chosen = np.random.default_rng().choice(total, size=count, replace=False, shuffle=randomize_order)
    picked: npt.NDArray[np.int64] = chosen.astype(np.int64) if randomize_order else np.sort(chosen).astype(np.int64)
    return picked
