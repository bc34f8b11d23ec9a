"""Offsets kept apart from the bytes they point into (2.3, unstable): values of `Variable` whose offsets are not Flat.

::

    "hello", "b", "cc"    Variable(Delta(32, base 0, OutOfLineBitpacking(32 to 3 bits)))
                          buffer 0  5 1 2 packed      buffer 1  hellobcc
    "", "", "a", ""       Variable(Rle(Range(32, start 0, step 1), Flat(32)))
                          buffer 0  u64 0, 3 2        buffer 1  a           offsets 0 0 0 1 1 as runs
    "ab", ""              Variable(Rle(Range(32, start 0, step 2), Range(32, start 1, step 1)))
                          buffer 0  ab                         offsets 0 2 2: runs of 1 and 2
    "ab", "cd", "ef"      Variable(Range(32, start 0, step 2))              buffer 0  abcdef
    "", ""                Variable(Constant(0))                             buffer 0  nothing
    "", "abc", ""         Variable(Dictionary(Flat(8), Flat(32), 2 items))  buffer 0  u64 4, u64 8, 0 0 1 1, 0 3
                          buffer 1  abc                        sizes of the indices and items, indices, items

Each chunk's offsets count from the beginning of that chunk's bytes; buffers of offsets are in block form.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_core.arrays import Ints
from lance_core.codecs.blocks import FixedBlock, Pieces, VariableBlock
from lance_core.codecs.dispatch import Codecs, total
from lance_core.codecs.gather import gather, require_sizes, words
from lance_core.errors import CorruptFileError, UnsupportedEncodingError
from lance_core.format.encoding import CompressiveEncoding, Constant, Delta, Dictionary, Range, Rle

_INT32_MAX = 2**31 - 1
_MAX_VALUES = 1 << 28


def num_offset_buffers(offsets: CompressiveEncoding) -> int:
    """Buffers in front of the bytes. Raises UnsupportedEncodingError for offsets that no writer makes."""
    if isinstance(offsets, Rle):
        return int(not _is_without_bytes(offsets))
    inner = offsets.deltas if isinstance(offsets, Delta) else offsets
    if isinstance(offsets, Delta | Range | Constant | Dictionary):
        return int(not isinstance(inner, Range | Constant))
    raise UnsupportedEncodingError(f"Variable with offsets of {type(offsets).__name__} is not supported")


def decode_apart(offsets: CompressiveEncoding, buffers: tuple[Pieces, ...], counts: Ints, codecs: Codecs) -> VariableBlock:
    """The values of all chunks; CorruptFileError for offsets that leave their chunk."""
    count, data = total(counts), buffers[-1]
    if count > _MAX_VALUES:
        raise CorruptFileError(f"{count} values in one read")
    if isinstance(offsets, Delta):
        bits, firsts = offsets.uncompressed_bits, np.full(len(counts), min(offsets.base, 1 << 62), np.int64)
        lengths, _ = _numbers(offsets.deltas, buffers[:-1], counts, codecs)
    else:
        stored, bits = _numbers(offsets, buffers[:-1], counts + 1, codecs)
        lasts = np.cumsum(counts + 1) - 1
        firsts, lengths = stored[lasts - counts], np.delete(np.diff(stored), lasts[:-1])
    if bits not in (32, 64):
        raise CorruptFileError(f"Variable with offsets of {bits} bits: expected 32 or 64")
    if len(lengths) and not 0 <= int(lengths.min()) <= int(lengths.max()) <= len(data.data):
        raise CorruptFileError("Variable: offsets decrease or point outside their chunk")
    ends: Ints = np.zeros(count + 1, np.int64)
    np.cumsum(lengths, out=ends[1:])
    stops = np.cumsum(counts)
    sizes = ends[stops] - ends[stops - counts]
    if (firsts < 0).any() or (firsts + sizes > data.sizes).any():
        raise CorruptFileError("Variable: offsets point outside their chunk")
    wide = bits == 64 or int(ends[-1]) > _INT32_MAX
    joined: npt.NDArray[np.int32] | npt.NDArray[np.int64] = ends if wide else ends.astype(np.int32)
    return VariableBlock(joined, gather(data.data, data.starts + firsts, sizes))


def _is_without_bytes(encoding: Rle) -> bool:
    return isinstance(encoding.values, Range | Constant) and isinstance(encoding.run_lengths, Range | Constant)


def _runs(encoding: Rle, counts: Ints) -> Ints:
    """Runs whose values and lengths are both progressions, for each chunk from the beginning."""
    first, step, _ = _progression(encoding.values)
    shortest, growth, _ = _progression(encoding.run_lengths)
    if shortest < 1:
        raise CorruptFileError("Variable: one of the runs has no offsets")
    found = [np.empty(0, np.int64)]
    for count in counts.tolist():
        # Each run holds one offset at least; what is beyond the count may be as large as it likes.
        ends = np.cumsum(min(shortest, count + 1) + np.arange(count, dtype=np.int64) * min(growth, count + 1))
        num_runs = int(np.searchsorted(ends, count)) + 1
        if not count or num_runs > count or ends[num_runs - 1] != count or first + num_runs * step >= 1 << 62:
            raise CorruptFileError(f"Variable: the runs do not hold {count} offsets")
        values = first + np.arange(num_runs, dtype=np.int64) * step
        found.append(np.repeat(values, np.diff(ends[:num_runs], prepend=0)))
    return np.concatenate(found)


def _progression(encoding: CompressiveEncoding) -> tuple[int, int, int]:
    """(first number, step, bits) of an encoding without bytes."""
    if isinstance(encoding, Range):
        return max(encoding.start, 0), max(encoding.step, 0), encoding.uncompressed_bits
    value = (encoding.value or b"") if isinstance(encoding, Constant) else b""
    return min(int.from_bytes(value, "little"), 1 << 62), 0, 8 * len(value)


def _numbers(encoding: CompressiveEncoding, buffers: tuple[Pieces, ...], counts: Ints, codecs: Codecs) -> tuple[Ints, int]:
    """(`counts` numbers for each chunk, joined; their bits as described)."""
    if isinstance(encoding, Constant):
        value = encoding.value or b""
        number = min(int.from_bytes(value, "little"), 1 << 62)
        return np.full(total(counts), number, np.int64), 8 * len(value)
    if isinstance(encoding, Rle) and _is_without_bytes(encoding):
        return _runs(encoding, counts), _progression(encoding.values)[2]
    if isinstance(encoding, Dictionary):
        return _looked_up(encoding, buffers[0], counts, codecs)
    if isinstance(encoding, Range):
        block = codecs.decode(encoding, (), counts)
    else:
        block = codecs.decode_block(encoding, buffers[0], counts)
    if not isinstance(block, FixedBlock) or block.bits not in (8, 16, 32, 64):
        raise CorruptFileError("Variable: offsets are not integers")
    return words(block.data, f"u{block.bits // 8}")[: block.count].astype(np.int64), block.bits


def _looked_up(encoding: Dictionary, pieces: Pieces, counts: Ints, codecs: Codecs) -> tuple[Ints, int]:
    """Numbers that are indices into each chunk's own items."""
    require_sizes(pieces, np.full(len(pieces), 16, np.int64), "Variable: offsets by dictionary")
    sizes = words(gather(pieces.data, pieces.starts, np.full(len(pieces), 16, np.int64)), "u8").reshape(-1, 2)
    room = pieces.sizes.astype(np.uint64) - np.uint64(16)
    if (sizes > room[:, None]).any() or (sizes.sum(axis=1) != room).any():
        raise CorruptFileError("Variable: the parts of a dictionary of offsets do not fill their buffer")
    split = sizes.astype(np.int64)
    starts = pieces.starts + 16
    indices, _ = _numbers(encoding.indices, (Pieces(pieces.data, starts, split[:, 0]),), counts, codecs)
    if not 0 <= encoding.num_items * len(counts) <= _MAX_VALUES:
        raise CorruptFileError(f"{encoding.num_items} items in a dictionary of offsets")
    num_items = np.full(len(counts), encoding.num_items, np.int64)
    items, bits = _numbers(encoding.items, (Pieces(pieces.data, starts + split[:, 0], split[:, 1]),), num_items, codecs)
    if len(indices) and int(indices.max()) >= encoding.num_items:
        raise CorruptFileError(f"Variable: offset {int(indices.max())} of {encoding.num_items} in a dictionary")
    found: Ints = items[np.repeat(np.arange(len(counts)) * encoding.num_items, counts) + indices]
    return found, bits
