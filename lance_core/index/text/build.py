"""Build a full-text index: count the tokens of all documents, invert the counts, write one partition after the other.

::

    documents  ["a b", "b b"]      ->     tokens {a: 0, b: 1}, lists  0: [(doc 0, once)]  1: [(doc 0, once), (doc 1, twice)]
    part_0_tokens.lance  part_0_docs.lance  part_0_invert.lance      metadata.lance

A partition holds as many tokens as fit the memory that may be used; documents without tokens are in none.
(Spec: FORMAT E.4.)
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrow_numpy import arrow_of, numpy_of
from lance_core.format.index import IndexFile
from lance_core.index.base import ID, VALUE, IndexFolder
from lance_core.index.memory import OPTION, memory_bytes
from lance_core.index.text.file_names import DOCS, LISTS, METADATA, TOKENS, part_file
from lance_core.index.text.lists import Lists, encode_lists
from lance_core.index.text.params import BLOCK_SIZE, TextParams, parse_params
from lance_core.index.text.token_map import token_table
from lance_core.index.text.tokenize import Tokenizer, texts_of, tokenizer_of
from lance_core.kernels.text import count_runs, keep_tokens, scatter_by_token

TOKEN_BYTES = 40
"""So much memory an occurrence of a token takes until its partition is written, and half as much again with a place."""
PIECE_BYTES = 400
"""And a distinct piece of text, as bytes and as a token, in two tables and the file's automaton."""
_NO_FRAGMENTS = bytes.fromhex("3a30000000000000")
_COMMON = {"posting_block_size": str(BLOCK_SIZE).encode(), "posting_tail_codec": b"varint_delta_v1", "format_version": b"2"}
_PLACES = {"positions_codec": b"packed_delta_v1", "positions_layout": b"shared_stream_v2"}


@dataclass
class _Partition:
    """What is known of the documents read so far. Documents are numbered in the order read."""

    vocabulary: dict[str, int] = field(default_factory=dict)
    pieces: dict[bytes, int] = field(default_factory=dict)
    tokens: list[Any] = field(default_factory=list)
    documents: list[Any] = field(default_factory=list)
    places: list[Any] = field(default_factory=list)
    ids: list[Any] = field(default_factory=list)
    lengths: list[Any] = field(default_factory=list)
    num_documents: int = 0
    num_tokens: int = 0

    @property
    def num_bytes(self) -> int:
        """Memory until it is written, about."""
        per_token = TOKEN_BYTES * 3 // 2 if self.places else TOKEN_BYTES
        return self.num_tokens * per_token + len(self.pieces) * PIECE_BYTES


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
            files.extend(_write(folder, len(numbers), partition, params))
            numbers.append(len(numbers))
            partition = _Partition(vocabulary={}, pieces={})
    if partition.num_documents or not numbers:
        files.extend(_write(folder, len(numbers), partition, params))
        numbers.append(len(numbers))
    return (*files, write_metadata(folder, numbers, params))


def _add(partition: _Partition, tokenizer: Tokenizer, batch: pa.RecordBatch) -> None:
    cut = tokenizer.cut_texts(texts_of(batch.column(VALUE)))
    known = np.fromiter((_number(partition, tokenizer, piece) for piece in cut.pieces), np.int32, len(cut.pieces))
    count, has_places = len(cut.codes), tokenizer.params.with_position
    tokens, documents, places = np.empty(count, np.int32), np.empty(count, np.uint32), np.empty(count, np.uint32)
    lengths = np.zeros(len(cut.ends), np.uint32)
    counts = np.uint8(tokenizer.counts_places)
    first = partition.num_documents
    kept = keep_tokens(known, cut.codes, cut.ends, first, counts, tokens, documents, places, lengths)
    partition.tokens.append(tokens[:kept].copy())
    partition.documents.append(documents[:kept].copy())
    if has_places:
        partition.places.append(places[:kept].copy())
    living = lengths > 0
    partition.ids.append(numpy_of(batch.column(ID))[living])
    partition.lengths.append(lengths[living])
    partition.num_documents += int(living.sum())
    partition.num_tokens += kept


def _number(partition: _Partition, tokenizer: Tokenizer, piece: bytes) -> int:
    number = partition.pieces.get(piece)
    if number is None:
        token = tokenizer.token_of(piece)
        number = -1 if token is None else partition.vocabulary.setdefault(token, len(partition.vocabulary))
        partition.pieces[piece] = number
    return number


def _write(folder: IndexFolder, number: int, partition: _Partition, params: TextParams) -> list[IndexFile]:
    ids, lengths = _joined(partition.ids, np.uint64), _joined(partition.lengths, np.uint32)
    lists = _lists(partition, has_places=params.with_position)
    tokens = token_table(partition.vocabulary)
    partition.vocabulary, partition.pieces = {}, {}
    docs = pa.schema([pa.field("_rowid", pa.uint64(), nullable=False), pa.field("_num_tokens", pa.uint32(), nullable=False)])
    total = int(lengths.sum(dtype=np.uint64))
    table = encode_lists(lists, lengths, total)
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


def _lists(partition: _Partition, *, has_places: bool) -> Lists:
    """Occurrences by document to documents by token."""
    tokens, documents = _joined(partition.tokens, np.int32), _joined(partition.documents, np.uint32)
    places = _joined(partition.places, np.uint32)
    partition.tokens, partition.documents, partition.places = [], [], []
    size = len(partition.vocabulary)
    starts = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(tokens, minlength=size), out=starts[1:])
    by_document, by_place = np.empty(len(tokens), np.uint32), np.empty(len(tokens) if has_places else 0, np.uint32)
    scatter_by_token(tokens, documents, places, starts[:-1].copy(), by_document, by_place)
    del tokens, documents, places
    found, counts = np.empty(len(by_document), np.uint32), np.empty(len(by_document), np.uint32)
    ends = np.empty(size, np.int64)
    many = count_runs(starts, by_document, found, counts, ends)
    return Lists(ends, found[:many].copy(), counts[:many].copy(), starts[:-1], by_place if has_places else None)


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
