"""Where the bits of one-bit-and-more codes are in a file: signs by 32 rows, further bits by 64 numbers.

::

    signs    32 rows at a time, for each byte column 16 bytes of low halves, 16 of high halves, rows in the order 0 8 1 9 ...
             (low half of a byte: rows 0 to 15, high half: 16 to 31); rows that are left over are turned at the end
    levels   blocks of 64 numbers (the last one filled with zeros), in the layouts of `pack_levels`
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lance_core.arrays import Bytes

GROUP, BLOCK = 32, 64
ORDER = np.array([0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15])


def pack_signs(rows: Bytes) -> Bytes:
    """Sign bytes [n, width] of a partition as its file has them."""
    count, width = rows.shape
    whole = count // GROUP * GROUP
    groups = rows[:whole].reshape(-1, GROUP, width).transpose(0, 2, 1)
    low, high = groups & 15, groups >> 4
    halves = [part[:, :, ORDER] | (part[:, :, ORDER + 16] << 4) for part in (low, high)]
    packed = np.concatenate(halves, axis=2).reshape(-1)
    return np.concatenate([packed, np.ascontiguousarray(rows[whole:].T).reshape(-1)]).reshape(count, width)


def unpack_signs(stored: Bytes) -> Bytes:
    """The inverse of `pack_signs`."""
    count, width = stored.shape
    whole = count // GROUP * GROUP
    flat = np.ascontiguousarray(stored).reshape(-1)
    groups = flat[: whole * width].reshape(-1, width, GROUP)
    rows = np.empty((len(groups), width, GROUP), np.uint8)
    low, high = groups[:, :, :16], groups[:, :, 16:]
    rows[:, :, ORDER] = (low & 15) | (high << 4)
    rows[:, :, ORDER + 16] = (low >> 4) | (high & 0xF0)
    rest = flat[whole * width :].reshape(width, count - whole).T
    return np.concatenate([rows.transpose(0, 2, 1).reshape(-1, width), rest])


def level_bytes(dim: int, bits: int) -> int:
    """Bytes of levels a row."""
    return -(-dim // BLOCK) * BLOCK * bits // 8


def pack_levels(levels: Bytes, bits: int) -> Bytes:
    """Levels [n, dim] of `bits` bits each as rows of blocks [n, level_bytes(dim, bits)]."""
    count, dim = levels.shape
    blocks = -(-dim // BLOCK)
    padded = np.zeros((count, blocks * BLOCK), np.uint8)
    padded[:, :dim] = levels
    v = padded.reshape(count, blocks, 4, 16)
    parts = [plane.reshape(count, blocks, int(np.prod(plane.shape[2:]))) for plane in _planes(v, bits)]
    return np.concatenate(parts, axis=2).reshape(count, level_bytes(dim, bits))


def _planes(v: Any, bits: int) -> list[Any]:
    if bits == 1:
        return [np.packbits(v.reshape(*v.shape[:2], BLOCK), axis=2, bitorder="little")]
    if bits in (2, 3):
        low = v & 3
        first = low[:, :, 0] | (low[:, :, 1] << 2) | (low[:, :, 2] << 4) | (low[:, :, 3] << 6)
        return [first] if bits == 2 else [first, _top_plane(v >> 2)]
    if bits == 4:
        return [v[:, :, :, :8] | (v[:, :, :, 8:] << 4)]
    if bits == 5:
        low = v & 15
        halves = np.stack([low[:, :, 0] | (low[:, :, 1] << 4), low[:, :, 2] | (low[:, :, 3] << 4)], axis=2)
        return [halves, _top_plane(v >> 4)]
    if bits in (6, 7):
        last = v[:, :, 3] & 63
        runs = [(v[:, :, k] & 63) | (((last >> (2 * k)) & 3) << 6) for k in range(3)]
        return [np.stack(runs, axis=2)] if bits == 6 else [np.stack(runs, axis=2), _top_plane(v >> 6)]
    return [v]


def _top_plane(v: Any) -> Any:
    """Bit 0 of number 16 k + b of a block at bit 8 (b % 8) + 2 k + b // 8 of eight bytes."""
    out = np.zeros((*v.shape[:2], 8), np.uint8)
    for k in range(4):
        for b in range(16):
            out[:, :, b % 8] |= (v[:, :, k, b] & 1) << (2 * k + b // 8)
    return out


def unpack_levels(stored: Bytes, bits: int, dim: int) -> Bytes:
    """The inverse of `pack_levels`: levels [n, dim]."""
    count = len(stored)
    blocks = -(-dim // BLOCK)
    s = stored.reshape(count, blocks, BLOCK * bits // 8)
    v = np.zeros((count, blocks, 4, 16), np.uint8)
    if bits == 1:
        v[:] = np.unpackbits(s, axis=2, bitorder="little").reshape(v.shape)
    elif bits in (2, 3):
        for k in range(4):
            v[:, :, k] = (s[:, :, :16] >> (2 * k)) & 3
    elif bits == 4:
        units = s.reshape(count, blocks, 4, 8)
        v[:, :, :, :8], v[:, :, :, 8:] = units & 15, units >> 4
    elif bits == 5:
        for k in range(4):
            v[:, :, k] = (s[:, :, 16 * (k // 2) : 16 * (k // 2) + 16] >> (4 * (k % 2))) & 15
    elif bits in (6, 7):
        for k in range(3):
            run = s[:, :, 16 * k : 16 * k + 16]
            v[:, :, k] = run & 63
            v[:, :, 3] |= (run >> 6) << (2 * k)
    else:
        v[:] = s.reshape(v.shape)
    if bits in (3, 5, 7):
        top = s[:, :, -8:]
        for k in range(4):
            for b in range(16):
                v[:, :, k, b] |= ((top[:, :, b % 8] >> (2 * k + b // 8)) & 1) << (bits - 1)
    return np.ascontiguousarray(v.reshape(count, blocks * BLOCK)[:, :dim])
