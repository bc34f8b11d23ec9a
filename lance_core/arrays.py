"""Names of the array types that signatures share. One dimension unless a docstring says more."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Levels = npt.NDArray[np.uint16]
"""Repetition or definition levels."""
Addresses = npt.NDArray[np.uint64]
"""Row addresses: the fragment in the upper 32 bits, the row in it in the lower."""
Ids = npt.NDArray[np.uint64]
"""Row ids: stable ids where the table has them, addresses otherwise."""
Floats = npt.NDArray[np.float32]
