"""Some rows of several pages of one flat column: one request, one header parse and one call of the codec for all of them.

::

    page 0   rows 3, 900       chunks 0, 0            3 chunks in one request,
    page 1   rows 12           chunk  0           ->  4 values picked out of them
    page 2   row  7000         chunk  3

Rows far apart are in as many pages, and what a page costs beside its bytes is what a read costs. Pages are read together if
their descriptions are the same and they have neither lists nor a dictionary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lance_core.arrays import Ints
from lance_core.codecs.blocks import Picks
from lance_core.codecs.dispatch import Codecs
from lance_core.errors import CorruptFileError
from lance_core.fetch import Fetch
from lance_core.format.layout import MiniBlockLayout
from lance_core.pages.buffers import check_part, request_ranges
from lance_core.pages.chunks import read_headers
from lance_core.pages.leaf import Leaf
from lance_core.pages.read.lists import PageRows
from lance_core.pages.read.miniblock import decode_chunks, decode_picks
from lance_core.pages.select import check_slots, select_entries


def are_pickable(layouts: Sequence[object]) -> bool:
    """Whether rows of pages of these layouts may be read together: mini-block, no lists, no dictionary, all the same."""
    first = layouts[0] if layouts else None
    if not isinstance(first, MiniBlockLayout) or first.dictionary is not None or first.rep_compression is not None:
        return False
    if first.repetition_index_depth:
        return False
    shape = replace(first, num_items=0)
    return all(isinstance(item, MiniBlockLayout) and replace(item, num_items=0) == shape for item in layouts)


def read_picked(layout: MiniBlockLayout, parts: Sequence[PageRows], codecs: Codecs) -> Fetch[Leaf]:
    """The rows of all parts, in order. The pages are `are_pickable`."""
    found = [_chunks_of(part) for part in parts]
    bases = np.cumsum([0, *(len(starts) for starts, *_ in found)])
    starts, ends, counts = (np.concatenate([item[place] for item in found]) for place in (0, 1, 2))
    owners = np.concatenate([item[3] + base for item, base in zip(found, bases.tolist(), strict=False)])
    picks = Picks(owners, np.concatenate([item[4] for item in found]))
    data, at = yield from request_ranges(starts, ends)
    headers = read_headers(layout, data, at, at + (ends - starts))
    picked = decode_picks(layout, None, headers, counts, picks, codecs)
    if picked is not None:
        return picked
    leaf = decode_chunks(layout, None, headers, counts, codecs)
    check_slots(leaf)
    entries = (np.cumsum(counts) - counts)[owners] + picks.positions
    return select_entries(leaf, entries, entries + 1, len(picks))


def _chunks_of(part: PageRows) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Start, end and number of values of each chunk of a page that holds a row; the chunk of each row, its place in it."""
    table, numbers = part.table, part.rows.to_indices()
    if len(numbers) and int(numbers[-1]) >= int(table.values[-1]):
        raise CorruptFileError(f"row {int(numbers[-1])} was requested of {int(table.values[-1])} values")
    chunk_of = table.values.searchsorted(numbers, "right") - 1
    is_first = np.append(True, chunk_of[1:] != chunk_of[:-1]) if len(chunk_of) else np.empty(0, np.bool_)
    chunks = chunk_of[is_first]
    low, high = table.bounds[chunks], table.bounds[chunks + 1]
    check_part(part.page, 1, low, high)
    first = part.page.buffers[1].start
    counts = table.values[chunks + 1] - table.values[chunks]
    return low + first, high + first, counts, np.cumsum(is_first) - 1, numbers - table.values[chunk_of]
