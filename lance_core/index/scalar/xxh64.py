"""The hash xxh64 with seed 0 over many values at once (numpy; the algorithm is public, written from its description).

::

    hash_rows(np.array([[1, 0, 0, 0, 0, 0, 0, 0]], np.uint8))     one 64-bit hash per row of equally long inputs
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

UInt64Array = npt.NDArray[np.uint64]

_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(number)
    for number in (
        11400714785074694791,
        14029467366897019727,
        1609587929392839161,
        9650029242287828579,
        2870177450012600261,
    )
)
_START = (11400714785074694791 + 14029467366897019727) % (1 << 64)


def hash_rows(rows: npt.NDArray[np.uint8]) -> UInt64Array:
    """xxh64 of each row of a [count, length] array of bytes."""
    count, length = rows.shape
    with np.errstate(over="ignore"):
        if length >= 32:
            state, position = _long(rows)
        else:
            state, position = np.full(count, _P5, np.uint64), 0
        state = state + np.uint64(length)
        while position + 8 <= length:
            state = _rotate(state ^ _round(np.zeros(count, np.uint64), _words(rows, position, 8)), 27) * _P1 + _P4
            position += 8
        if position + 4 <= length:
            state = _rotate(state ^ (_words(rows, position, 4) * _P1), 23) * _P2 + _P3
            position += 4
        while position < length:
            state = _rotate(state ^ (rows[:, position].astype(np.uint64) * _P5), 11) * _P1
            position += 1
        return _avalanche(state)


def _long(rows: npt.NDArray[np.uint8]) -> tuple[UInt64Array, int]:
    count, length = rows.shape
    starts = (_START, int(_P2), 0, (1 << 64) - int(_P1))
    lanes = [np.full(count, start, np.uint64) for start in starts]
    position = 0
    while position + 32 <= length:
        lanes = [_round(lane, _words(rows, position + 8 * number, 8)) for number, lane in enumerate(lanes)]
        position += 32
    state = _rotate(lanes[0], 1) + _rotate(lanes[1], 7) + _rotate(lanes[2], 12) + _rotate(lanes[3], 18)
    for lane in lanes:
        state = (state ^ _round(np.zeros(count, np.uint64), lane)) * _P1 + _P4
    return state, position


def _round(lane: UInt64Array, words: UInt64Array) -> UInt64Array:
    result: UInt64Array = _rotate(lane + words * _P2, 31) * _P1
    return result


def _rotate(values: UInt64Array, bits: int) -> UInt64Array:
    result: UInt64Array = (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))
    return result


def _words(rows: npt.NDArray[np.uint8], position: int, width: int) -> UInt64Array:
    part = np.ascontiguousarray(rows[:, position : position + width])
    words: UInt64Array = part.view(f"<u{width}").reshape(-1).astype(np.uint64)
    return words


def _avalanche(state: UInt64Array) -> UInt64Array:
    state = (state ^ (state >> np.uint64(33))) * _P2
    state = (state ^ (state >> np.uint64(29))) * _P3
    result: UInt64Array = state ^ (state >> np.uint64(32))
    return result
