"""CRC-32C (Castagnoli), masked as the token map's footer has it.

::

    crc32c(b"123456789")  ->  0xE3069283
"""

from __future__ import annotations

import numpy as np

from lance_core.kernels.text import crc32c_of

_MASK = 0xA282EAD8
_POLYNOMIAL = 0x82F63B78


def crc32c(data: bytes) -> int:
    """The checksum of some bytes."""
    return crc32c_of(np.frombuffer(data, np.uint8), _TABLE) & 0xFFFFFFFF


def masked_crc32c(data: bytes) -> int:
    """The checksum, rotated and moved, so that a checksum of checksums is of use."""
    plain = crc32c(data)
    return ((plain >> 15 | plain << 17) + _MASK) & 0xFFFFFFFF


def _table() -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    values = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        values = np.where(values & 1, values >> np.uint32(1) ^ np.uint32(_POLYNOMIAL), values >> np.uint32(1))
    return values.astype(np.uint32)


_TABLE = _table()
