"""Build a full-text index: count the tokens of all documents, invert the counts, write one partition after the other.

::

    documents  ["a b", "b b"]      ->     tokens {a: 0, b: 1}, lists  0: [(doc 0, once)]  1: [(doc 0, once), (doc 1, twice)]
    part_0_tokens.lance  part_0_docs.lance  part_0_invert.lance      metadata.lance

A partition holds as many tokens as fit the memory that may be used; documents without tokens are in none.
(Spec: FORMAT E.4.)

Posting lists of a partition as the columns of its file.

::

    _posting list<large_binary>   blocks of 128 documents            _max_score f32   the best of them
    _length u32                   documents                          _impacts list<large_binary>
    _compressed_position large_binary, _position_block_offset list<u32>      with positions

Row i is the list of token i. Lists are encoded some at a time, so that only what is written grows with their number.
(Spec: FORMAT E.4.)
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrow.buffers import buffer_of
from lance_core.arrow_numpy import arrow_of, numpy_of
from lance_core.format.index import IndexFile
from lance_core.index.base import ID, VALUE, IndexFolder
from lance_core.index.memory import OPTION, memory_bytes
from lance_core.index.text.params import BLOCK_SIZE, TextParams, parse_params
from lance_core.index.text.partition import DOCS, LISTS, METADATA, TOKENS, part_file
from lance_core.index.text.scoring import SATURATION, idf_of, length_codes, norms_of
from lance_core.index.text.token_map import token_table
from lance_core.index.text.tokenize import Tokenizer, texts_of, tokenizer_of
from lance_core.kernels.postings import BLOCK, GROUP, encode_impacts, encode_positions, encode_postings
from lance_core.kernels.text import count_runs, keep_tokens, scatter_by_token

TOKEN_BYTES, PLACE_BYTES = 16, 11
"""So much memory an occurrence of a token takes until its partition is written, and its place."""
PIECE_BYTES = 400
"""And a distinct piece of text, as bytes and as a token, in two tables and the file's automaton."""
WINDOW_TOKENS = 1 << 20
"""Occurrences whose lists are encoded together."""
_NO_FRAGMENTS = bytes.fromhex("3a30000000000000")
_COMMON = {"posting_block_size": str(BLOCK_SIZE).encode(), "posting_tail_codec": b"varint_delta_v1", "format_version": b"2"}
_PLACES = {"positions_codec": b"packed_delta_v1", "positions_layout": b"shared_stream_v2"}


@dataclass(frozen=True, eq=False)
class _Known:
    """What became of pieces of text in the partition before: `words[numbers[piece]]`; less than 0: nothing."""

    numbers: Mapping[bytes, int]
    words: Sequence[str]

    def token_of(self, piece: bytes, tokenizer: Tokenizer) -> str | None:
        """The token of a piece; finding a stem takes longer than all else that is done with a new word."""
        number = self.numbers.get(piece)
        if number is None:
            return tokenizer.token_of(piece)
        return self.words[number] if number >= 0 else None


@dataclass
class _Partition:
    """What is known of the documents read so far. Documents are numbered in the order read."""

    known: _Known = field(default_factory=lambda: _Known({}, ()))
    vocabulary: dict[str, int] = field(default_factory=dict)
    pieces: dict[bytes, int] = field(default_factory=dict)
    tokens: list[Any] = field(default_factory=list)
    places: list[Any] = field(default_factory=list)
    ids: list[Any] = field(default_factory=list)
    lengths: list[Any] = field(default_factory=list)
    num_documents: int = 0
    num_tokens: int = 0

    @property
    def num_bytes(self) -> int:
        """Memory until it is written, about."""
        per_token = TOKEN_BYTES + PLACE_BYTES if self.places else TOKEN_BYTES
        return self.num_tokens * per_token + (len(self.pieces) + len(self.known.numbers)) * PIECE_BYTES

    def known_after(self, most: int) -> _Known:
        """What the next partition is given to know, which takes at most so many bytes."""
        if len(self.pieces) * PIECE_BYTES > most:
            return _Known({}, ())
        return _Known(self.pieces, [*self.vocabulary])


def train(
    folder: IndexFolder, batches: Iterable[pa.RecordBatch], value_type: pa.DataType, **options: Any
) -> tuple[IndexFile, ...]:
    """Read all documents and write the files. Raises InputError, UnsupportedFeatureError for the options."""
    most = memory_bytes(options.get(OPTION))
    params = parse_params(options)
    tokenizer = tokenizer_of(params)
    files: list[IndexFile] = []
    numbers: list[int] = []
    partition = _Partition()
    for batch in batches:
        _add(partition, tokenizer, batch)
        if partition.num_bytes >= most:
            known = partition.known_after(most // 8)
            files.extend(_write(folder, len(numbers), partition, params))
            numbers.append(len(numbers))
            partition = _Partition(known)
    if partition.num_documents or not numbers:
        files.extend(_write(folder, len(numbers), partition, params))
        numbers.append(len(numbers))
    return (*files, write_metadata(folder, numbers, params))


def _add(partition: _Partition, tokenizer: Tokenizer, batch: pa.RecordBatch) -> None:
    cut = tokenizer.cut_texts(texts_of(batch.column(VALUE)))
    known = _numbers(partition, tokenizer, cut.pieces)
    count, has_places = len(cut.codes), tokenizer.params.with_position
    tokens, documents, places = np.empty(count, np.int32), np.empty(count, np.uint32), np.empty(count, np.uint32)
    lengths = np.zeros(len(cut.ends), np.uint32)
    counts = np.uint8(tokenizer.counts_places)
    kept = keep_tokens(known, cut.codes, cut.ends, 0, counts, tokens, documents, places, lengths)
    partition.tokens.append(tokens[:kept].copy())
    if has_places:
        farthest = int(places[:kept].max(initial=0))
        partition.places.append(places[:kept].astype(np.uint16 if farthest < 1 << 16 else np.uint32))
    living = lengths > 0
    partition.ids.append(numpy_of(batch.column(ID))[living])
    partition.lengths.append(lengths[living])
    partition.num_documents += int(living.sum())
    partition.num_tokens += kept


def _numbers(partition: _Partition, tokenizer: Tokenizer, pieces: list[bytes]) -> Any:
    """The numbers of the tokens that pieces of text become; less than 0: they are left out."""
    table, vocabulary, known = partition.pieces, partition.vocabulary, partition.known
    found = [*map(table.get, pieces)]
    for place in [place for place, number in enumerate(found) if number is None]:
        token = known.token_of(pieces[place], tokenizer)
        number = -1 if token is None else vocabulary.setdefault(token, len(vocabulary))
        found[place] = table[pieces[place]] = number
    return np.array(found, np.int32)


def _write(folder: IndexFolder, number: int, partition: _Partition, params: TextParams) -> list[IndexFile]:
    ids, lengths = _joined(partition.ids, np.uint64), _joined(partition.lengths, np.uint32)
    total = int(lengths.sum(dtype=np.uint64))
    lists = _lists(partition, len(partition.vocabulary), has_places=params.with_position)
    table = encode_lists(lists, lengths, total, has_places=params.with_position)
    tokens = token_table(partition.vocabulary)
    partition.vocabulary, partition.pieces = {}, {}
    docs = pa.schema([pa.field("_rowid", pa.uint64(), nullable=False), pa.field("_num_tokens", pa.uint32(), nullable=False)])
    metadata = {**_COMMON, **(_PLACES if params.with_position else {})}
    return [
        folder.write(part_file(number, LISTS), table, table.schema, metadata=metadata),
        folder.write(part_file(number, TOKENS), tokens, tokens.schema),
        folder.write(
            part_file(number, DOCS),
            pa.Table.from_arrays([arrow_of(ids), arrow_of(lengths)], schema=docs),
            docs,
            metadata={"total_tokens": str(total).encode()},
        ),
    ]


def _lists(partition: _Partition, size: int, *, has_places: bool) -> Iterator[Lists]:
    """Occurrences by document to documents by token, about `WINDOW_TOKENS` occurrences at a time."""
    starts, by_document, by_place = _by_token(partition, size, has_places=has_places)
    first = 0
    while first < size:
        end = int(np.searchsorted(starts, starts[first] + WINDOW_TOKENS, side="right")) - 1
        end = min(max(end, first + 1), size)
        mine = starts[first : end + 1]
        most = int(mine[-1] - mine[0])
        found, counts, ends = np.empty(most, np.uint32), np.empty(most, np.uint32), np.empty(end - first, np.int64)
        many = count_runs(mine, by_document, found, counts, ends)
        yield Lists(ends, found[:many], counts[:many], mine[:-1], by_place if has_places else None)
        first = end


def _by_token(partition: _Partition, size: int, *, has_places: bool) -> tuple[Any, Any, Any]:
    """(where the occurrences of each token begin, their documents, their places), of which what was read is given back."""
    starts = np.zeros(size + 1, np.int64)
    for tokens in partition.tokens:
        starts[1:] += np.bincount(tokens, minlength=size)
    np.cumsum(starts, out=starts)
    cursors, count = starts[:-1].copy(), int(starts[-1])
    by_document, by_place = np.empty(count, np.uint32), np.empty(count if has_places else 0, np.uint32)
    first = 0
    for at, (tokens, lengths) in enumerate(zip(partition.tokens, partition.lengths, strict=True)):
        documents = np.repeat(np.arange(first, first + len(lengths), dtype=np.uint32), lengths)
        places = partition.places[at].astype(np.uint32) if has_places else by_place
        scatter_by_token(tokens, documents, places, cursors, by_document, by_place)
        partition.tokens[at] = None
        if has_places:
            partition.places[at] = None
        first += len(lengths)
    return starts, by_document, by_place


def _joined(parts: list[Any], kind: Any) -> Any:
    return np.concatenate(parts) if parts else np.empty(0, kind)


def write_metadata(folder: IndexFolder, numbers: list[int], params: TextParams) -> IndexFile:
    """The file that says which partitions there are and how texts were cut."""
    schema = pa.schema([pa.field("deleted_fragments", pa.binary(), nullable=False)])
    metadata = {
        "params": params.to_json(),
        "partitions": json.dumps(numbers, separators=(",", ":")).encode(),
        "token_set_format": b"fst",
        **_COMMON,
        **(_PLACES if params.with_position else {}),
    }
    return folder.write(
        METADATA, pa.table([pa.array([_NO_FRAGMENTS], pa.binary())], schema=schema), schema, metadata=metadata
    )


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
    num_blocks = _concat([part.num_blocks for part in encoded], np.int64)
    columns = {
        "_posting": _binary_lists(num_blocks, _joined_streams([part.postings for part in encoded])),
        "_max_score": pa.array(_concat([part.best for part in encoded], np.float32)),
        "_length": pa.array(_concat([part.sizes for part in encoded], np.uint32)),
        "_impacts": _binary_lists(
            _concat([part.num_impacts for part in encoded], np.int64),
            _joined_streams([part.impacts for part in encoded]),
        ),
    }
    if has_places:
        columns["_compressed_position"] = _binary(
            _joined_streams([part.positions for part in encoded if part.positions is not None])
        )
        blocks = _concat([part.position_blocks for part in encoded], np.uint32)
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
    return _Stream(_concat([part.data for part in parts], np.uint8), _concat(ends, np.int64))


def _concat(parts: Sequence[Any], kind: Any) -> Any:
    return np.concatenate(parts) if parts else np.empty(0, kind)


def _offsets(sizes: Any) -> Any:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)


def _binary(stream: _Stream) -> Any:
    offsets = np.concatenate([[0], stream.ends]).astype(np.int64)
    held = [None, buffer_of(offsets), buffer_of(stream.data)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(stream.ends), held)


def _binary_lists(sizes: Any, stream: _Stream) -> Any:
    return pa.ListArray.from_arrays(pa.array(_offsets(sizes), pa.int32()), _binary(stream)).cast(_BYTES)
