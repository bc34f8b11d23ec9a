"""Positions of posting lists as releases 0.28 to 8 of the official library wrote them.

::

    _position list<list<binary>>      of each document: how many (u32), full blocks of 128, the last ones as u32
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lance_core.arrow.kinds import as_list
from lance_core.arrow_numpy import numpy_of
from lance_core.errors import CorruptFileError
from lance_core.kernels.plain_postings import unpack_block

_BLOCK = 128


def places_of(column: Any, counts: Any, what: str) -> Any:
    """The positions of the documents of some lists, one document after the other. Raises CorruptFileError."""
    documents = as_list(column.flatten())
    pieces = documents.flatten()
    held: Any = pieces.buffers()
    firsts = numpy_of(documents.offsets).astype(np.int64)
    firsts = firsts - firsts[0]
    if len(documents) != len(counts) or pieces.null_count or (len(counts) and held[2] is None):
        raise CorruptFileError(f"{what}: positions are of {len(documents)} documents, the lists have {len(counts)}")
    if not len(counts):
        return np.empty(0, np.uint32)
    offsets = np.frombuffer(held[1], np.int64, len(pieces) + 1, pieces.offset * 8)
    data = np.frombuffer(held[2], np.uint8)
    begins = offsets[firsts[:-1]]
    wanted = counts.astype(np.int64)
    num_pieces = 1 + -(-wanted // _BLOCK)
    good = np.array_equal(np.diff(firsts), num_pieces) and (np.diff(offsets)[firsts[:-1]] == 4).all()
    if not good or not np.array_equal(_words(data, begins), wanted):
        raise CorruptFileError(f"{what}: the positions of a document do not match its count")
    ends = np.cumsum(wanted)
    out = np.empty(int(ends[-1]), np.uint32)
    # The last, short pieces of all documents at once; full blocks one by one: few documents have a word 128 times.
    rest = wanted % _BLOCK
    last = firsts[1:] - 1
    if (np.where(rest > 0, offsets[last + 1] - offsets[last], 0) != 4 * rest).any():
        raise CorruptFileError(f"{what}: the positions of a document are cut off")
    steps = np.arange(int(rest.sum())) - np.repeat(np.cumsum(rest) - rest, rest)
    out[np.repeat(ends - rest, rest) + steps] = _words(data, np.repeat(offsets[last], rest) + 4 * steps)
    for document in np.flatnonzero(wanted >= _BLOCK).tolist():
        at = int(ends[document] - wanted[document])
        for piece in range(int(firsts[document]) + 1, int(firsts[document]) + 1 + int(wanted[document]) // _BLOCK):
            found = unpack_block(data[offsets[piece] : offsets[piece + 1]].tobytes())
            if found is None:
                raise CorruptFileError(f"{what}: a block of positions is damaged")
            out[at : at + _BLOCK] = found
            at += _BLOCK
    return out


def _words(data: Any, starts: Any) -> Any:
    """The u32 at each of some places."""
    found = data[starts[:, None] + np.arange(4)].astype(np.uint32)
    return found @ (np.uint32(1) << (np.uint32(8) * np.arange(4, dtype=np.uint32)))
