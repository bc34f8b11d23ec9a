"""The ascending positions and the counts of a sparse structure (2.3), each a stream of u64.

::

    Constant(None)            no numbers                              Constant(8 bytes)    all the same
    Range(start, step)        start, start + step, ...                no buffer either
    Rle(Range, Range)         runs whose values and lengths are both ranges: no buffer, and as many runs as make the count
    Delta(base, deltas)       base, then one difference for each further number
    Dictionary(indices, items)   one buffer: u64 size of the indices, u64 size of the items, indices, items
    anything else             one buffer in block form
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator

import numpy as np

from lance_core.arrays import Bytes, Ints
from lance_core.codecs.blocks import Block, FixedBlock, Pieces
from lance_core.codecs.dispatch import Codecs
from lance_core.codecs.gather import words
from lance_core.errors import CorruptFileError
from lance_core.format import encoding as enc

MAX_NUMBERS = 1 << 28
"""More slots than any page has: what a damaged count may make us allocate."""


def read_numbers(encoding: enc.CompressiveEncoding, buffers: Iterator[Bytes], count: int, codecs: Codecs) -> Ints:
    """`count` numbers (int64), taking as many buffers as the encoding has. CorruptFileError when they do not add up."""
    if not 0 <= count <= MAX_NUMBERS:
        raise CorruptFileError(f"a sparse structure has {count} numbers, which is impossible")
    if isinstance(encoding, enc.Constant):
        return _constant(encoding, count)
    if isinstance(encoding, enc.Range):
        _word(encoding.uncompressed_bits)
        return _range(encoding, count)
    if (
        isinstance(encoding, enc.Rle)
        and isinstance(encoding.values, enc.Range)
        and isinstance(encoding.run_lengths, enc.Range)
    ):
        _word(encoding.values.uncompressed_bits)
        num_runs = _num_runs(encoding.run_lengths, count)
        return np.repeat(_range(encoding.values, num_runs), _range(encoding.run_lengths, num_runs))
    if isinstance(encoding, enc.Delta):
        return _delta(encoding, buffers, count, codecs)
    data = next(buffers, None)
    if data is None:
        raise CorruptFileError("a sparse structure has fewer buffers than streams")
    if isinstance(encoding, enc.Dictionary):
        return _dictionary(encoding, data, count, codecs)
    return _plain(codecs.decode_block(encoding, Pieces.whole(data), np.array([count], np.int64)))


def _range(encoding: enc.Range, count: int) -> Ints:
    last = encoding.start + encoding.step * max(count - 1, 0)
    if encoding.start < 0 or encoding.step < 0 or last >= 1 << 62:
        raise CorruptFileError(f"a range ends at {last}, which is impossible")
    return encoding.start + np.arange(count, dtype=np.int64) * encoding.step


def _num_runs(lengths: enc.Range, count: int) -> int:
    """How many numbers of the range, each at least 1, add up to the count."""
    found = 0
    if lengths.start >= 1 and lengths.step >= 0:
        found = bisect.bisect_left(range(count + 1), count, key=lambda runs: _sum(lengths, runs))
    if _sum(lengths, found) != count:
        raise CorruptFileError(
            f"runs of {lengths.start}, {lengths.start + lengths.step}, ... numbers are not {count} together"
        )
    return found


def _sum(numbers: enc.Range, count: int) -> int:
    return numbers.start * count + numbers.step * (count * (count - 1) // 2)


def _word(bits: int) -> None:
    if bits != 64:
        raise CorruptFileError(f"positions have {bits} bits, expected 64")


def _constant(encoding: enc.Constant, count: int) -> Ints:
    if encoding.value is None:
        if count:
            raise CorruptFileError(f"{count} numbers have no value")
        return np.empty(0, np.int64)
    if len(encoding.value) != 8:
        raise CorruptFileError(f"a number has {len(encoding.value)} bytes")
    return np.full(count, int.from_bytes(encoding.value, "little", signed=True), np.int64)


def _delta(encoding: enc.Delta, buffers: Iterator[Bytes], count: int, codecs: Codecs) -> Ints:
    _word(encoding.uncompressed_bits)
    if count == 0 or encoding.base >= 1 << 62:
        raise CorruptFileError(f"the differences do not match {count} numbers from {encoding.base}")
    deltas = read_numbers(encoding.deltas, buffers, count - 1, codecs)
    if len(deltas) and (int(deltas.min()) < 0 or int(deltas.max()) > 1 << 32):
        raise CorruptFileError("positions are not ascending")
    return encoding.base + np.append(np.int64(0), np.cumsum(deltas))


def _dictionary(encoding: enc.Dictionary, data: Bytes, count: int, codecs: Codecs) -> Ints:
    sizes = words(data[:16], np.uint64).tolist()
    if len(sizes) != 2 or sum(sizes) != len(data) - 16:
        raise CorruptFileError(f"the parts of a dictionary of numbers have {sizes} bytes, which do not match {len(data)}")
    split = 16 + int(sizes[0])
    counts = np.array([count], np.int64)
    indices = _plain(codecs.decode_block(encoding.indices, Pieces.whole(data[16:split]), counts))
    items = read_numbers(encoding.items, iter([data[split:]]), encoding.num_items, codecs)
    if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < len(items):
        raise CorruptFileError(f"dictionary index {int(indices.max())} of {len(items)} numbers")
    numbers: Ints = items[indices]
    return numbers


def _plain(block: Block) -> Ints:
    if not isinstance(block, FixedBlock) or block.bits not in (8, 16, 32, 64):
        raise CorruptFileError("positions are not integers")
    return words(block.data, f"u{block.bits // 8}")[: block.count].astype(np.int64)
