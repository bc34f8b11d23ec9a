"""An open partition: its documents in memory, posting lists read when a token is requested.

::

    partition.list_of("run")     Posting(documents=[0, 7], counts=[1, 3])         places only on request
    partition.ids[documents]     row addresses, or stable row ids

Positions of posting lists as releases 0.28 to 8 of the official library wrote them.

::

    _position list<list<binary>>      of each document: how many (u32), full blocks of 128, the last ones as u32

Names of the files of a full-text index: `part_0_invert.lance`.

Blocks of 256 documents, which posting lists of format version 3 may have, decoded with numpy.

::

    full block   u32 first, u8 width, deltas (0 first)                                 8 lanes, LSB first
                 u8 width, u8 exceptions, counts' low bits; each exception: u8 which, varint high bits
    last block   varint deltas (the first absolute), varint counts

256 values of `width` bits are in eight lanes: value i in lane i % 8, word w of lane j at the u32 of number 8 w + j. No block
has a score in front, as blocks of 128 do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrow.kinds import as_list
from lance_core.arrow_numpy import numpy_of
from lance_core.cached import cached_property
from lance_core.errors import CorruptFileError
from lance_core.format.schema import Schema
from lance_core.index.base import IndexFolder, read_all
from lance_core.index.text.scoring import rounded_lengths
from lance_core.index.text.token_map import TokenMap
from lance_core.io.cache import shared_cache
from lance_core.kernels.plain_postings import Blocks, packed_group, short_block, unpack_block, varints_at
from lance_core.kernels.postings import BLOCK, decode_positions, decode_postings


@dataclass(frozen=True, eq=False)
class Posting:
    """The documents of a token, ascending, how often each has it, and where (one document after the other)."""

    documents: Any
    counts: Any
    places: Any | None = None
    _impacts: list[tuple[Any, Any]] = field(default_factory=list, repr=False)

    def impacts(self, lengths: Any) -> tuple[Any, Any]:
        """Counts and lengths of which one pair is at least as good as any document: for each count the shortest document.

        `lengths` are those of all documents of the partition, the same in each call.
        """
        if not self._impacts:
            self._impacts.append(_best_pairs(self.counts, lengths[self.documents]))
        return self._impacts[0]


def _best_pairs(counts: Any, lengths: Any) -> tuple[Any, Any]:
    steps = np.minimum(counts, _MOST_COUNT)
    shortest = np.full(_MOST_COUNT + 1, np.iinfo(np.uint32).max, np.uint32)
    np.minimum.at(shortest, steps, lengths.astype(np.uint32))
    found = np.zeros(_MOST_COUNT + 1, np.uint32)
    np.maximum.at(found, steps, counts)
    there = np.flatnonzero(found)
    return found[there], shortest[there]


_MOST_COUNT = 63
"""Greater counts are one pair: the greatest of them, and the shortest of their documents."""


@dataclass(frozen=True, eq=False)
class Window:
    """Lists from `first` on: list number first + t has the documents up to `ends[t]`, from where the one before it ends."""

    first: int
    ends: Any
    documents: Any
    counts: Any
    places: Any | None = None


_WINDOW_DOCUMENTS = 1 << 20
_LIST_COST = 8
_NOTHING = Posting(np.empty(0, np.uint32), np.empty(0, np.uint32), np.empty(0, np.uint32))


class TextPartition:
    """One of the parts of a full-text index."""

    _block_size = BLOCK

    def __init__(
        self, folder: IndexFolder, number: int, token_format: str, *, has_fixed_tails: bool = False, block_size: int = BLOCK
    ) -> None:
        self._folder, self._number, self._has_fixed_tails = folder, number, has_fixed_tails
        self._block_size = block_size
        self._set_documents(read_all(folder.open(part_file(number, DOCS)), ["_rowid", "_num_tokens"]))
        self._file = folder.open(part_file(number, LISTS))
        schema = self._file.schema
        ids = {item.name: item.id for item in schema.top_level}
        missing = {"_posting", "_length"} - ids.keys()
        if missing:
            raise CorruptFileError(f"{self._file.path} has the columns {', '.join(ids)}, expected _posting, _length")
        names: tuple[str, ...] = ("_compressed_position", "_position_block_offset")
        if has_fixed_tails and "_position" in ids:
            names = ("_position",)
        self.has_places = names[0] in ids
        if self.has_places and names[-1] not in ids:
            raise CorruptFileError(f"{self._file.path} has positions, but not the offsets of their blocks")
        self._lists = schema.project({child.id for child in schema.descend(ids["_posting"])})
        self._places = (
            schema.project({child.id for name in names for child in schema.descend(ids[name])}) if self.has_places else None
        )
        sizes = read_all(self._file, ["_length"])
        self.sizes = numpy_of(sizes.column(0))
        self.tokens = TokenMap(folder.open(part_file(number, TOKENS)), token_format, len(self.sizes))

    def _set_documents(self, docs: pa.RecordBatch) -> None:
        self.ids = numpy_of(docs.column(0))
        self.lengths = numpy_of(docs.column(1))
        self.num_documents = len(self.ids)
        self.total_tokens = int(self.lengths.sum(dtype=np.uint64))

    @cached_property
    def scored_lengths(self) -> Any:
        """The lengths of documents by which they are scored: rounded where blocks have 256 documents."""
        return rounded_lengths(self.lengths) if self._block_size == WIDE_BLOCK else self.lengths

    def count_of(self, token: str) -> int:
        """How many documents have a token."""
        number = self.tokens.get(token)
        return 0 if number is None else int(self.sizes[number])

    def similar(self, token: str, *, edits: int, prefix_length: int, most: int) -> list[str]:
        """Tokens at most so many edits away, in the order of their bytes."""
        return self.tokens.similar(token, edits=edits, prefix_length=prefix_length, most=most)

    def list_of(self, token: str, *, with_places: bool = False) -> Posting:
        """The documents of a token. Raises CorruptFileError."""
        number = self.tokens.get(token)
        if number is None:
            return _NOTHING
        found: Posting = self._cached(number, "list", partial(self._read, number))
        if not with_places:
            return found
        places = self._cached(number, "places", partial(self._read_places, number, found))
        return Posting(found.documents, found.counts, places)

    def _cached(self, number: int, what: str, make: Any) -> Any:
        return shared_cache().get_or_make((*self._folder.key, what, self._number, number), make)

    def windows(self, *, with_places: bool) -> Iterator[Window]:
        """All lists in their order, so many at a time as have about a million documents. Raises CorruptFileError."""
        first = 0
        for end in ends_of_windows(self.sizes):
            beside = None
            column = self._read_rows(self._lists, first, end).column(0)
            if with_places and self._places is not None:
                beside = self._read_rows(self._places, first, end)
            yield self._window(first, column, beside)
            first = end

    def _read_rows(self, schema: Schema, first: int, end: int) -> pa.RecordBatch:
        batch = next(self._file.read(schema, ranges=[(first, end)], batch_size=end - first), None)
        if batch is None or batch.num_rows != end - first:
            raise CorruptFileError(f"{self._file.path}: the lists {first} to {end} cannot be read")
        return batch

    def _read(self, number: int) -> tuple[Posting, int]:
        found = self._window(number, self._file.take(self._lists, np.array([number])).column(0))
        return Posting(found.documents, found.counts), found.documents.nbytes * 2 + 200

    def _window(self, first: int, column: Any, beside: pa.RecordBatch | None = None) -> Window:
        """The lists from `first` on, of which the file has these columns."""
        sizes = self.sizes[first : first + len(column)].astype(np.int64)
        starts, data, num_blocks = _blocks_of(column)
        if len(num_blocks) != len(sizes) or not np.array_equal(num_blocks, -(-sizes // self._block_size)):
            raise CorruptFileError(
                f"{self._file.path}: a list from {first} on has a number of blocks that does not match its documents"
            )
        ends = np.cumsum(sizes)
        total = int(ends[-1]) if len(ends) else 0
        if len(sizes) and int(sizes.max()) > len(self.ids):
            raise CorruptFileError(
                f"{self._file.path}: a list has more documents than the partition, which has {len(self.ids)}"
            )
        firsts = _firsts_of(sizes, num_blocks, ends, self._block_size)
        documents, counts = np.empty(total, np.uint32), np.empty(total, np.uint32)
        if self._block_size == WIDE_BLOCK:
            code = decode_wide_postings(data, starts, firsts, documents, counts)
        else:
            code = decode_postings(data, starts, firsts, int(self._has_fixed_tails), documents, counts)
        steps = documents[1:] > documents[:-1]
        inner = ends[:-1]
        steps[inner[(inner > 0) & (inner < total)] - 1] = True
        if code < 0 or (total and int(documents.max()) >= len(self.ids)) or not steps.all():
            raise CorruptFileError(
                f"{self._file.path}: a list from {first} on is damaged ({code})", cure="Rebuild the index."
            )
        places = None if beside is None else self._decoded_places(first, num_blocks, firsts, counts, beside)
        return Window(first, ends, documents, counts, places)

    def _read_places(self, number: int, found: Posting) -> tuple[Any, int]:
        if self._places is None:
            raise CorruptFileError(f"{self._file.path} has no positions")
        size = self._block_size
        num_blocks = np.array([-(-len(found.documents) // size)], np.int64)
        firsts = np.minimum(np.arange(num_blocks[0] + 1) * size, len(found.documents)).astype(np.int64)
        row = self._file.take(self._places, np.array([number]))
        places = self._decoded_places(number, num_blocks, firsts, found.counts, row)
        return places, places.nbytes + 200

    def _decoded_places(self, first: int, num_blocks: Any, firsts: Any, counts: Any, rows: pa.RecordBatch) -> Any:
        if rows.num_columns == 1:
            return places_of(rows.column(0), counts, self._file.path)
        data, starts, has_same = _streams_of(rows, num_blocks)
        total = int(counts.sum(dtype=np.uint64))
        good = has_same and bool((np.diff(starts) >= 0).all())
        places = np.empty(total if good and total <= BLOCK * (len(data) + 1) else 0, np.uint32)
        if not good or decode_positions(data, starts, firsts, counts, places) != total:
            raise CorruptFileError(f"{self._file.path}: the positions of a list from {first} on are damaged")
        return places


def ends_of_windows(sizes: Any) -> list[int]:
    """Where windows of lists end that have about so many documents, or one list with more."""
    steps = np.cumsum(np.minimum(sizes, _WINDOW_DOCUMENTS).astype(np.int64) + _LIST_COST) // _WINDOW_DOCUMENTS
    return [*(np.flatnonzero(np.diff(steps)) + 1).tolist(), len(sizes)] if len(sizes) else []


def _firsts_of(sizes: Any, num_blocks: Any, ends: Any, size: int) -> Any:
    """Where the documents of each block begin among those of all lists, and the end."""
    before = np.cumsum(num_blocks) - num_blocks
    firsts = np.repeat(ends - sizes - size * before, num_blocks) + size * np.arange(int(num_blocks.sum()))
    return np.append(firsts, ends[-1:] if len(ends) else 0).astype(np.int64)


def _blocks_of(column: Any) -> tuple[Any, Any, Any]:
    """(offsets of blocks int64 from 0, bytes, number of blocks of each list) of lists of large binaries."""
    if column.null_count or column.values.null_count:
        return np.zeros(1, np.int64), np.empty(0, np.uint8), np.empty(0, np.int64)
    ends = numpy_of(column.offsets).astype(np.int64)
    starts, data = _bytes_of(column.values.slice(int(ends[0]), int(ends[-1] - ends[0])))
    return starts, data, np.diff(ends)


def _streams_of(rows: pa.RecordBatch, num_blocks: Any) -> tuple[Any, Any, bool]:
    """(bytes, where the blocks of all lists begin and the end, whether they are so many as they should be)."""
    streams, begins = rows.column(0), rows.column(1)
    nothing = np.empty(0, np.uint8), np.zeros(1, np.int64), False
    if streams.null_count or begins.null_count:
        return nothing
    offsets, data = _bytes_of(streams)
    ends = numpy_of(as_list(begins).offsets).astype(np.int64)
    if not np.array_equal(np.diff(ends), num_blocks):
        return nothing
    values: Any = numpy_of(as_list(begins).values.slice(int(ends[0]), int(ends[-1] - ends[0])))
    starts = values.astype(np.int64) + np.repeat(offsets[:-1], num_blocks)
    # What is before the first block of a list belongs to none.
    has_gaps = bool((values[(ends[:-1] - ends[0])[num_blocks > 0]] != 0).any())
    return data, np.append(starts, len(data)), not has_gaps


def _bytes_of(blocks: Any) -> tuple[Any, Any]:
    """(offsets int64 from 0, bytes) of an array of large binaries."""
    held = blocks.buffers()
    if len(blocks) == 0 or held[2] is None:
        return np.zeros(len(blocks) + 1, np.int64), np.empty(0, np.uint8)
    offsets = np.frombuffer(held[1], np.int64, len(blocks) + 1, blocks.offset * 8)
    data = np.frombuffer(held[2], np.uint8)
    return offsets - offsets[0], data[int(offsets[0]) : int(offsets[-1])]


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


METADATA = "metadata.lance"
TOKENS, DOCS, LISTS = "tokens", "docs", "invert"


def part_file(number: int, what: str) -> str:
    """The name of a partition's file."""
    return f"part_{number}_{what}.lance"


WIDE_BLOCK = 256
_LANES = 8


def decode_wide_postings(data: Any, starts: Any, firsts: Any, documents: Any, counts: Any) -> int:
    """Blocks of one list or more: block b is at `starts[b]` to `starts[b + 1]`, and has the documents `firsts[b]` to
    `firsts[b + 1]`, 1 to 256, which are uint32 with their counts. 0, or less for damaged bytes."""
    return Blocks(WIDE_BLOCK, 0, _full_block, short_block).decode(data, starts, firsts, documents, counts)


def _full_block(whole: bytes, at: int, end: int, documents: Any, counts: Any) -> int:
    if at + 5 > end:
        return -2
    first = int.from_bytes(whole[at : at + 4], "little")
    steps = packed_group(whole, at + 4, end, _LANES)
    if steps is None:
        return -4
    total = np.cumsum(steps, dtype=np.uint64) + np.uint64(first)
    if int(total[-1]) >= 1 << 32:
        return -7
    documents[:] = total
    return _patched(whole, at + 5 + 4 * _LANES * whole[at + 4], end, counts)


def _patched(whole: bytes, at: int, end: int, counts: Any) -> int:
    """Numbers of few bits, and the high bits of those that have more."""
    if at + 2 > end:
        return -3
    width, many = whole[at], whole[at + 1]
    low = packed_group(whole, at, end, _LANES, header=2)
    if low is None:
        return -4
    counts[:], at = low, at + 2 + 4 * _LANES * width
    for _ in range(many):
        high, behind = varints_at(whole, at + 1, end, 1)
        if not high or high[0] << width >= 1 << 32:
            return -5
        counts[whole[at]] |= np.uint32(high[0] << width)
        at = behind
    return 0 if at == end else -8
