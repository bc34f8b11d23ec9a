"""Kernels of full-text queries with numpy alone: lists of a few thousand documents (see `plain`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

_GROUP = 128
_LANES, _STEPS = 4, 32


def decode_postings(data: Any, starts: Any, firsts: Any, is_fixed: Any, documents: Any, counts: Any) -> int:
    """`postings.decode_postings`: a whole block at once, a short one number by number."""
    blocks = Blocks(_GROUP, 4, _whole_block, _fixed_block if is_fixed else short_block)
    return blocks.decode(data, starts, firsts, documents, counts)


Decode = Callable[[bytes, int, int, Any, Any], int]


@dataclass(frozen=True, slots=True)
class Blocks:
    """How lists are cut: documents of a full block, bytes before a block's numbers, decoders of full and last blocks."""

    size: int
    header: int
    full: Decode
    last: Decode

    def decode(self, data: Any, starts: Any, firsts: Any, documents: Any, counts: Any) -> int:
        """The blocks at `starts` into `documents` and `counts` from `firsts` on; 0, or less for damaged bytes."""
        whole = data.tobytes()
        for block in range(len(starts) - 1):
            at, end = int(starts[block]) + self.header, int(starts[block + 1])
            done, stop = int(firsts[block]), int(firsts[block + 1])
            if not 0 < stop - done <= self.size or at > end:
                return -1
            decode = self.full if stop - done == self.size else self.last
            code = decode(whole, at, end, documents[done:stop], counts[done:stop])
            if code < 0:
                return code
        return 0


def _whole_block(whole: bytes, at: int, end: int, documents: Any, counts: Any) -> int:
    if at + 5 > end:
        return -2
    first = int.from_bytes(whole[at : at + 4], "little")
    at += 4
    for out in (documents, counts):
        found = packed_group(whole, at, end)
        if found is None:
            return -4
        at += 1 + 16 * whole[at]
        out[:] = found
    total = np.cumsum(documents, dtype=np.uint64) + np.uint64(first)
    if int(total[-1]) >= 1 << 32:
        return -5
    documents[:] = total
    return 0 if at == end else -8


def packed_group(whole: bytes, at: int, end: int, lanes: int = _LANES, *, header: int = 1) -> npt.NDArray[np.uint32] | None:
    """32 numbers for each lane: a header that begins with their width, then lanes of packed words; None if damaged."""
    if at >= end or whole[at] > 32 or at + header + 4 * lanes * whole[at] > end:
        return None
    width = whole[at]
    if width == 0:
        return np.zeros(_STEPS * lanes, np.uint32)
    words = np.frombuffer(whole, np.uint8, 4 * lanes * width, at + header).reshape(width, lanes, 4)
    packed = np.ascontiguousarray(words.transpose(1, 0, 2)).reshape(lanes, 4 * width)
    bits = np.unpackbits(packed, axis=1, bitorder="little").reshape(lanes, _STEPS, width)
    values = bits.astype(np.uint64) @ (np.uint64(1) << np.arange(width, dtype=np.uint64))
    found: npt.NDArray[np.uint32] = values.T.reshape(-1).astype(np.uint32)
    return found


def unpack_block(whole: bytes) -> npt.NDArray[np.uint32] | None:
    """128 ascending numbers: the first as u32, then packed steps of which the first is 0; None for damaged bytes."""
    found = packed_group(whole, 4, len(whole))
    if found is None or len(whole) != 5 + 16 * whole[4]:
        return None
    total = np.cumsum(found, dtype=np.uint64) + np.uint64(int.from_bytes(whole[:4], "little"))
    return total.astype(np.uint32) if int(total[-1]) < 1 << 32 else None


def short_block(whole: bytes, at: int, end: int, documents: Any, counts: Any) -> int:
    """The last block of a list: varint deltas, then varint counts."""
    found, at = varints_at(whole, at, end, 2 * len(documents))
    if at != end or len(found) != 2 * len(documents):
        return -6
    total = np.cumsum(np.array(found[: len(documents)], np.uint64))
    if int(total[-1]) >= 1 << 32:
        return -7
    documents[:] = total
    counts[:] = np.array(found[len(documents) :], np.uint64).astype(np.uint32)
    return 0


def _fixed_block(whole: bytes, at: int, end: int, documents: Any, counts: Any) -> int:
    if at + 8 * len(documents) != end:
        return -9
    documents[:], counts[:] = np.frombuffer(whole, "<u4", 2 * len(documents), at).reshape(2, -1)
    return 0


def varints_at(whole: bytes, at: int, end: int, many: int) -> tuple[list[int], int]:
    """So many numbers of five bytes at most, fewer for damaged bytes, and where they end."""
    found: list[int] = []
    while len(found) < many:
        value = shift = 0
        while True:
            if at >= end or shift > 28:
                return found, at
            byte = whole[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        found.append(value)
    return found, at


def decode_positions(data: Any, starts: Any, firsts: Any, counts: Any, places: Any) -> int:
    """`postings.decode_positions`."""
    whole, done = data.tobytes(), 0
    for block in range(len(starts) - 1):
        at, end = int(starts[block]), int(starts[block + 1])
        sizes = counts[int(firsts[block]) : int(firsts[block + 1])].astype(np.int64)
        total = int(sizes.sum())
        if total > len(places) - done:
            return -1
        steps = places[done : done + total]
        for first in range(0, total - total % _GROUP, _GROUP):
            found = packed_group(whole, at, end)
            if found is None:
                return -3
            at += 1 + 16 * whole[at]
            steps[first : first + _GROUP] = found
        rest, at = varints_at(whole, at, end, total % _GROUP)
        if at != end or len(rest) != total % _GROUP:
            return -5
        steps[total - len(rest) :] = np.array(rest, np.uint64).astype(np.uint32)
        _add_up(steps, sizes)
        done += total
    return done


def _add_up(steps: npt.NDArray[np.uint32], sizes: npt.NDArray[np.int64]) -> None:
    """Each document's steps as places: sums that begin again, modulo 2^32."""
    sums = np.append(0, np.cumsum(steps, dtype=np.uint64)).astype(np.uint64)
    begins = np.cumsum(sizes) - sizes
    steps[:] = sums[1:] - np.repeat(sums[begins], sizes)


def add_scores(documents: Any, counts: Any, norms: Any, weight: Any, saturation: Any, scores: Any) -> int:
    """`text.add_scores`."""
    if len(documents) and int(documents.max()) >= len(norms):
        return -1
    many = counts.astype(np.float32)
    np.add.at(scores, documents, np.float32(weight) * (np.float32(saturation) * many / (many + norms[documents])))
    return 0
