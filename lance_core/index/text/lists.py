"""Posting lists of a partition as the columns of its file.

::

    _posting list<large_binary>   blocks of 128 documents            _max_score f32   the best of them
    _length u32                   documents                          _impacts list<large_binary>
    _compressed_position large_binary, _position_block_offset list<u32>      with positions

Row i is the list of token i. Lists are encoded some at a time, so that only what is written grows with their number.
(Spec: FORMAT E.4.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    """Some lists one after the other: list t ends at `ends[t]`; its places (if any) begin at `place_starts[t]`."""

    ends: Any
    documents: Any
    counts: Any
    place_starts: Any
    places: Any | None = None


@dataclass(frozen=True, eq=False)
class _Stream:
    """Byte strings one after the other: number i ends at `ends[i]`."""

    data: Any
    ends: Any


@dataclass(frozen=True, eq=False)
class _Encoded:
    """Some lists as bytes: how many documents, blocks and impacts each has, and the best score of each."""

    sizes: Any
    num_blocks: Any
    num_impacts: Any
    best: Any
    postings: _Stream
    impacts: _Stream
    positions: _Stream | None
    position_blocks: Any


def encode_lists(parts: Iterable[Lists], lengths: Any, total_tokens: int, *, has_places: bool) -> pa.Table:
    """The columns of the lists of all parts; scores are those of this partition alone."""
    norms, codes = norms_of(lengths, total_tokens, len(lengths)), length_codes(lengths)
    encoded = [_encoded(lists, norms, codes) for lists in parts]
    num_blocks = _joined([part.num_blocks for part in encoded], np.int64)
    columns = {
        "_posting": _binary_lists(num_blocks, _joined_streams([part.postings for part in encoded])),
        "_max_score": pa.array(_joined([part.best for part in encoded], np.float32)),
        "_length": pa.array(_joined([part.sizes for part in encoded], np.uint32)),
        "_impacts": _binary_lists(
            _joined([part.num_impacts for part in encoded], np.int64), _joined_streams([part.impacts for part in encoded])
        ),
    }
    if has_places:
        columns["_compressed_position"] = _binary(
            _joined_streams([part.positions for part in encoded if part.positions is not None])
        )
        blocks = _joined([part.position_blocks for part in encoded], np.uint32)
        columns["_position_block_offset"] = pa.ListArray.from_arrays(pa.array(_offsets(num_blocks), pa.int32()), blocks)
    schema = pa.schema([pa.field(name, column.type, nullable=False) for name, column in columns.items()])
    return pa.Table.from_arrays([*columns.values()], schema=schema)


def _encoded(lists: Lists, norms: Any, codes: Any) -> _Encoded:
    sizes = np.diff(lists.ends, prepend=0)
    num_blocks = -(-sizes // BLOCK)
    postings, best = _blocks(lists, norms, int(num_blocks.sum()))
    scores = best * np.repeat(idf_of(sizes, len(norms)), num_blocks)
    starts = np.concatenate([[0], postings.ends[:-1]]).astype(np.int64) if len(postings.ends) else np.empty(0, np.int64)
    postings.data[starts[:, None] + np.arange(4)] = scores.astype("<f4").view(np.uint8).reshape(-1, 4)
    most = np.maximum.reduceat(scores, _offsets(num_blocks)[:-1]) if len(sizes) else np.empty(0, np.float32)
    num_impacts = num_blocks + -(-num_blocks // GROUP)
    positions, position_blocks = _positions(lists, int(num_blocks.sum()))
    return _Encoded(
        sizes=sizes.astype(np.uint32),
        num_blocks=num_blocks,
        num_impacts=num_impacts,
        best=most.astype(np.float32),
        postings=postings,
        impacts=_impacts(lists, codes, int(num_impacts.sum())),
        positions=positions,
        position_blocks=position_blocks,
    )


def _blocks(lists: Lists, norms: Any, num_blocks: int) -> tuple[_Stream, Any]:
    """(the blocks, the best score without idf of each)."""
    counts = lists.counts.astype(np.float32)
    beneath = norms[lists.documents]
    beneath += counts
    counts *= SATURATION
    counts /= beneath
    out = np.empty(10 * len(counts) + 16 * num_blocks, np.uint8)
    best, ends = np.empty(num_blocks, np.float32), np.empty(num_blocks, np.int64)
    encode_postings(lists.ends, lists.documents, lists.counts, counts, np.empty(BLOCK, np.uint32), best, out, ends)
    return _stream(out, ends), best


def _impacts(lists: Lists, codes: Any, total: int) -> _Stream:
    out = np.empty(10 * total + 8 * 2 * len(lists.counts), np.uint8)
    ends = np.empty(total, np.int64)
    pairs = np.empty(BLOCK * GROUP, np.int64), np.empty(BLOCK * GROUP, np.int64)
    encode_impacts(lists.ends, lists.documents, lists.counts, codes, *pairs, out, ends)
    return _stream(out, ends)


def _positions(lists: Lists, num_blocks: int) -> tuple[_Stream | None, Any]:
    """(the places of each list, where its blocks begin in it)."""
    if lists.places is None:
        return None, np.empty(0, np.uint32)
    num_places = int(lists.counts.sum(dtype=np.int64))
    out = np.empty(6 * num_places + num_blocks + 8, np.uint8)
    block_starts, ends = np.empty(num_blocks, np.int64), np.empty(len(lists.ends), np.int64)
    scratch = np.empty(BLOCK, np.uint32)
    encode_positions(lists.ends, lists.counts, lists.place_starts, lists.places, scratch, out, block_starts, ends)
    return _stream(out, ends), block_starts.astype(np.uint32)


def _stream(out: Any, ends: Any) -> _Stream:
    return _Stream(out[: int(ends[-1]) if len(ends) else 0].copy(), ends)


def _joined_streams(parts: Sequence[_Stream]) -> _Stream:
    sizes = [len(part.data) for part in parts]
    firsts = np.cumsum([0, *sizes[:-1]]).tolist()
    ends = [part.ends + first for part, first in zip(parts, firsts, strict=False)]
    return _Stream(_joined([part.data for part in parts], np.uint8), _joined(ends, np.int64))


def _joined(parts: Sequence[Any], kind: Any) -> Any:
    return np.concatenate(parts) if parts else np.empty(0, kind)


def _offsets(sizes: Any) -> Any:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)


def _binary(stream: _Stream) -> Any:
    offsets = np.concatenate([[0], stream.ends]).astype(np.int64)
    held = [None, buffer_of(offsets), buffer_of(stream.data)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(stream.ends), held)


def _binary_lists(sizes: Any, stream: _Stream) -> Any:
    return pa.ListArray.from_arrays(pa.array(_offsets(sizes), pa.int32()), _binary(stream)).cast(_BYTES)
