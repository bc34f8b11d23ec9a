"""Posting lists of a partition as the columns of its file.

::

    _posting list<large_binary>   blocks of 128 documents            _max_score f32   the best of them
    _length u32                   documents                          _impacts list<large_binary>
    _compressed_position large_binary, _position_block_offset list<u32>      with positions

Row i is the list of token i. (Spec: FORMAT E.4.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrow.buffers import buffer_of
from lance_core.index.text.scoring import SATURATION, idf_of, length_codes, norms_of
from lance_core.kernels.postings import BLOCK, GROUP, encode_impacts, encode_positions, encode_postings

_BYTES = pa.list_(pa.field("item", pa.large_binary()))


@dataclass(frozen=True, eq=False)
class Lists:
    """All lists one after the other: list t ends at `ends[t]`; its places (if any) begin at `place_starts[t]`."""

    ends: Any
    documents: Any
    counts: Any
    place_starts: Any
    places: Any | None = None


def encode_lists(lists: Lists, lengths: Any, total_tokens: int) -> pa.Table:
    """The columns; scores are those of this partition alone."""
    sizes = np.diff(lists.ends, prepend=0)
    num_blocks = -(-sizes // BLOCK)
    idf = idf_of(sizes, len(lengths))
    data, block_ends, best = _blocks(lists, lengths, total_tokens, int(num_blocks.sum()))
    scores = best * np.repeat(idf, num_blocks)
    starts = np.concatenate([[0], block_ends[:-1]]).astype(np.int64) if len(block_ends) else np.empty(0, np.int64)
    data[starts[:, None] + np.arange(4)] = scores.astype("<f4").view(np.uint8).reshape(-1, 4)
    firsts = np.concatenate([[0], np.cumsum(num_blocks)]).astype(np.int32)
    most = np.maximum.reduceat(scores, firsts[:-1]) if len(sizes) else np.empty(0, np.float32)
    columns = {
        "_posting": _binary_lists(firsts, data, block_ends),
        "_max_score": pa.array(most.astype(np.float32)),
        "_length": pa.array(sizes.astype(np.uint32)),
        "_impacts": _impacts(lists, lengths, num_blocks),
    }
    if lists.places is not None:
        columns.update(_positions(lists, firsts))
    schema = pa.schema([pa.field(name, column.type, nullable=False) for name, column in columns.items()])
    return pa.Table.from_arrays([*columns.values()], schema=schema)


def _blocks(lists: Lists, lengths: Any, total_tokens: int, num_blocks: int) -> tuple[Any, Any, Any]:
    """(bytes, where each block ends, the best score without idf of each)."""
    norms = norms_of(lengths, total_tokens, len(lengths))
    counts = lists.counts.astype(np.float32)
    weights = SATURATION * counts / (counts + norms[lists.documents])
    out = np.empty(10 * len(counts) + 16 * num_blocks, np.uint8)
    best, block_ends = np.empty(num_blocks, np.float32), np.empty(num_blocks, np.int64)
    scratch = np.empty(BLOCK, np.uint32)
    encode_postings(lists.ends, lists.documents, lists.counts, weights, scratch, best, out, block_ends)
    used = int(block_ends[-1]) if num_blocks else 0
    return out[:used].copy(), block_ends, best


def _impacts(lists: Lists, lengths: Any, num_blocks: Any) -> Any:
    entries = num_blocks + -(-num_blocks // GROUP)
    total = int(entries.sum())
    out = np.empty(10 * total + 8 * 2 * len(lists.counts), np.uint8)
    ends = np.empty(total, np.int64)
    pairs = np.empty(BLOCK * GROUP, np.int64), np.empty(BLOCK * GROUP, np.int64)
    encode_impacts(lists.ends, lists.documents, lists.counts, length_codes(lengths), *pairs, out, ends)
    used = int(ends[-1]) if total else 0
    return _binary_lists(np.concatenate([[0], np.cumsum(entries)]).astype(np.int32), out[:used].copy(), ends)


def _positions(lists: Lists, firsts: Any) -> dict[str, Any]:
    assert lists.places is not None
    num_blocks = int(firsts[-1])
    out = np.empty(6 * len(lists.places) + num_blocks + 8, np.uint8)
    block_starts, ends = np.empty(num_blocks, np.int64), np.empty(len(lists.ends), np.int64)
    scratch = np.empty(BLOCK, np.uint32)
    encode_positions(lists.ends, lists.counts, lists.place_starts, lists.places, scratch, out, block_starts, ends)
    offsets = np.concatenate([[0], ends]).astype(np.int64)
    used = int(offsets[-1])
    streams = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(ends), [None, buffer_of(offsets), buffer_of(out[:used].copy())]
    )
    starts = pa.ListArray.from_arrays(pa.array(firsts, pa.int32()), pa.array(block_starts.astype(np.uint32)))
    return {"_compressed_position": streams, "_position_block_offset": starts}


def _binary_lists(firsts: Any, data: Any, ends: Any) -> Any:
    offsets = np.concatenate([[0], ends]).astype(np.int64)
    values = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(ends), [None, buffer_of(offsets), buffer_of(data)])
    return pa.ListArray.from_arrays(pa.array(firsts, pa.int32()), values).cast(_BYTES)
