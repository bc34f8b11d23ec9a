"""Setting the bits of a split-block filter: eight 32-bit words a block, one bit in each.

::

    hash h      block (h >> 32) * blocks >> 32      word i: bit (low half of h * salts[i]) >> 27
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lance_core.kernels.jit import kernel


@kernel("in:u8 in:u4 out:u4 -> i8")
def set_block_bits(hashes: Any, salts: Any, words: Any) -> Any:
    """Set the bits of all hashes; `words` has eight for each block."""
    num_blocks = np.uint64(len(words) // 8)
    for index in range(len(hashes)):
        value = hashes[index]
        block = np.int64(((value >> np.uint64(32)) * num_blocks) >> np.uint64(32)) * 8
        low = np.uint32(value & np.uint64(0xFFFFFFFF))
        for place in range(8):
            words[block + place] |= np.uint32(1) << (np.uint32(low * salts[place]) >> np.uint32(27))
    return 0
