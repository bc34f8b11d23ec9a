"""BLAKE2b (RFC 7693) of many slices at once: digests of sixteen bytes, without a key, with a personalisation.

::

    digest_slices(data, starts, ends, first_state(b"lance:row"), ORDER, INITIAL, out)
    out[2 * row : 2 * row + 2]        the digest of data[starts[row]:ends[row]], as two little-endian numbers

The eight mixings of a round are written out, so that the sixteen words of a state stay in registers.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_core.kernels.jit import kernel, load_u64

SIZE = 16
BLOCK = 128
INITIAL = np.array(
    [
        0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
        0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179,
    ],
    np.uint64,
)  # fmt: skip
"""RFC 7693, section 2.6."""
_SIGMA = (
    "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15", "14 10 4 8 9 15 13 6 1 12 0 2 11 7 5 3",
    "11 8 12 0 5 2 15 13 10 14 3 6 7 1 9 4", "7 9 3 1 13 12 11 14 2 6 5 10 4 0 15 8",
    "9 0 5 7 2 4 10 15 14 1 11 12 6 8 3 13", "2 12 6 10 0 11 8 3 4 13 7 5 15 14 1 9",
    "12 5 1 15 14 13 4 10 0 7 6 3 9 2 8 11", "13 11 7 14 12 1 3 9 5 0 15 4 8 6 2 10",
    "6 15 14 9 11 3 0 8 12 2 13 7 1 4 10 5", "10 2 8 4 7 6 1 5 15 11 9 14 3 12 13 0",
)  # fmt: skip
ORDER = np.array([int(place) for line in (*_SIGMA, *_SIGMA[:2]) for place in line.split()], np.int64)
"""Which word of a block each mixing of the twelve rounds takes (section 2.7)."""


def first_state(person: bytes, salt: bytes = b"") -> npt.NDArray[np.uint64]:
    """The state before the first block (section 2.5, with salt and personalisation of BLAKE2's own parameter block)."""
    parameters = bytes([SIZE, 0, 1, 1]).ljust(32, b"\0") + salt.ljust(16, b"\0") + person.ljust(16, b"\0")
    state: npt.NDArray[np.uint64] = INITIAL ^ np.frombuffer(parameters, "<u8")
    return state


def _plainly(data: Any, starts: Any, ends: Any, state: Any, order: Any, initial: Any, out: Any) -> int:
    """By hashlib. A copy of a begun hash is twice as quick as a new one with its arguments."""
    if len(starts) and (int(starts.min()) < 0 or int(ends.max()) > len(data) or bool((ends < starts).any())):
        return -1
    told = (state ^ initial)[4:].astype("<u8").tobytes()
    begin = hashlib.blake2b(digest_size=SIZE, salt=told[:16], person=told[16:]).copy
    view, made = memoryview(data), []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        part = begin()
        part.update(view[start:end])
        made.append(part.digest())
    out[:] = np.frombuffer(b"".join(made), "<u8")
    return 0


def _work(data: Any, starts: Any, ends: Any, state: Any, order: Any, initial: Any, out: Any) -> float:
    return 16.0 * len(starts)


@kernel("in:u1 in:i8 in:i8 in:u8 in:i8 in:u8 out:u8 -> i8", plain=_plainly, weight=_work)
def digest_slices(data: Any, starts: Any, ends: Any, state: Any, order: Any, initial: Any, out: Any) -> Any:
    """The digest of each slice. `state`: of `first_state`. -1 for a slice that is not within `data`."""
    r1, r16, r24, r32 = np.uint64(1), np.uint64(16), np.uint64(24), np.uint64(32)
    r40, r48, r63 = np.uint64(40), np.uint64(48), np.uint64(63)
    block, held = np.zeros(16, np.uint64), np.zeros(8, np.uint64)
    for row in range(len(starts)):
        start, end = starts[row], ends[row]
        if start < 0 or end < start or end > len(data):
            return -1
        for place in range(8):
            held[place] = state[place]
        done = np.int64(0)
        is_last = False
        while not is_last:
            left = end - start - done
            is_last = left <= 128
            for word in range(16):
                at = start + done + 8 * word
                if at + 8 <= end:
                    block[word] = load_u64(data, at)
                    continue
                found = np.uint64(0)
                for place in range(max(np.int64(0), end - at)):
                    found |= np.uint64(data[at + place]) << np.uint64(8 * place)
                block[word] = found
            done += min(left, np.int64(128))
            v0, v1, v2, v3 = held[0], held[1], held[2], held[3]
            v4, v5, v6, v7 = held[4], held[5], held[6], held[7]
            v8, v9, v10, v11 = initial[0], initial[1], initial[2], initial[3]
            v12, v13, v14, v15 = initial[4] ^ np.uint64(done), initial[5], initial[6], initial[7]
            if is_last:
                v14 = ~v14
            for turn in range(12):
                at = np.int64(16) * turn
                v0 += v4 + block[order[at + 0]]
                v12 ^= v0
                v12 = (v12 >> r32) | (v12 << r32)
                v8 += v12
                v4 ^= v8
                v4 = (v4 >> r24) | (v4 << r40)
                v0 += v4 + block[order[at + 1]]
                v12 ^= v0
                v12 = (v12 >> r16) | (v12 << r48)
                v8 += v12
                v4 ^= v8
                v4 = (v4 >> r63) | (v4 << r1)
                v1 += v5 + block[order[at + 2]]
                v13 ^= v1
                v13 = (v13 >> r32) | (v13 << r32)
                v9 += v13
                v5 ^= v9
                v5 = (v5 >> r24) | (v5 << r40)
                v1 += v5 + block[order[at + 3]]
                v13 ^= v1
                v13 = (v13 >> r16) | (v13 << r48)
                v9 += v13
                v5 ^= v9
                v5 = (v5 >> r63) | (v5 << r1)
                v2 += v6 + block[order[at + 4]]
                v14 ^= v2
                v14 = (v14 >> r32) | (v14 << r32)
                v10 += v14
                v6 ^= v10
                v6 = (v6 >> r24) | (v6 << r40)
                v2 += v6 + block[order[at + 5]]
                v14 ^= v2
                v14 = (v14 >> r16) | (v14 << r48)
                v10 += v14
                v6 ^= v10
                v6 = (v6 >> r63) | (v6 << r1)
                v3 += v7 + block[order[at + 6]]
                v15 ^= v3
                v15 = (v15 >> r32) | (v15 << r32)
                v11 += v15
                v7 ^= v11
                v7 = (v7 >> r24) | (v7 << r40)
                v3 += v7 + block[order[at + 7]]
                v15 ^= v3
                v15 = (v15 >> r16) | (v15 << r48)
                v11 += v15
                v7 ^= v11
                v7 = (v7 >> r63) | (v7 << r1)
                v0 += v5 + block[order[at + 8]]
                v15 ^= v0
                v15 = (v15 >> r32) | (v15 << r32)
                v10 += v15
                v5 ^= v10
                v5 = (v5 >> r24) | (v5 << r40)
                v0 += v5 + block[order[at + 9]]
                v15 ^= v0
                v15 = (v15 >> r16) | (v15 << r48)
                v10 += v15
                v5 ^= v10
                v5 = (v5 >> r63) | (v5 << r1)
                v1 += v6 + block[order[at + 10]]
                v12 ^= v1
                v12 = (v12 >> r32) | (v12 << r32)
                v11 += v12
                v6 ^= v11
                v6 = (v6 >> r24) | (v6 << r40)
                v1 += v6 + block[order[at + 11]]
                v12 ^= v1
                v12 = (v12 >> r16) | (v12 << r48)
                v11 += v12
                v6 ^= v11
                v6 = (v6 >> r63) | (v6 << r1)
                v2 += v7 + block[order[at + 12]]
                v13 ^= v2
                v13 = (v13 >> r32) | (v13 << r32)
                v8 += v13
                v7 ^= v8
                v7 = (v7 >> r24) | (v7 << r40)
                v2 += v7 + block[order[at + 13]]
                v13 ^= v2
                v13 = (v13 >> r16) | (v13 << r48)
                v8 += v13
                v7 ^= v8
                v7 = (v7 >> r63) | (v7 << r1)
                v3 += v4 + block[order[at + 14]]
                v14 ^= v3
                v14 = (v14 >> r32) | (v14 << r32)
                v9 += v14
                v4 ^= v9
                v4 = (v4 >> r24) | (v4 << r40)
                v3 += v4 + block[order[at + 15]]
                v14 ^= v3
                v14 = (v14 >> r16) | (v14 << r48)
                v9 += v14
                v4 ^= v9
                v4 = (v4 >> r63) | (v4 << r1)
            held[0] ^= v0 ^ v8
            held[1] ^= v1 ^ v9
            held[2] ^= v2 ^ v10
            held[3] ^= v3 ^ v11
            held[4] ^= v4 ^ v12
            held[5] ^= v5 ^ v13
            held[6] ^= v6 ^ v14
            held[7] ^= v7 ^ v15
        out[2 * row], out[2 * row + 1] = held[0], held[1]
    return 0
