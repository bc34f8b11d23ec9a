"""Rows that no index covers: tokenized and counted in memory, then searched like a partition."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrow_numpy import numpy_of
from lance_core.cached import cached_property
from lance_core.index.base import ID, VALUE
from lance_core.index.text.partition import Posting
from lance_core.index.text.token_map import TokensByLetter
from lance_core.index.text.tokenize import Tokenizer, texts_of
from lance_core.kernels.text import count_runs, keep_tokens, scatter_by_token


class MemoryPartition:
    """Documents by token, places included; `ids` are what the batches of (value, id) say."""

    def __init__(self, tokenizer: Tokenizer, batches: Iterable[pa.RecordBatch]) -> None:
        self._vocabulary: dict[str, int] = {}
        pieces: dict[bytes, int] = {}
        parts = [self._count(tokenizer, batch, pieces) for batch in batches]
        del pieces
        tokens, documents, places, self.ids, self.lengths = self._joined(parts)
        self.scored_lengths = self.lengths
        self.num_documents, self.total_tokens = len(self.ids), len(tokens)
        size = len(self._vocabulary)
        starts = np.zeros(size + 1, np.int64)
        np.cumsum(np.bincount(tokens, minlength=size), out=starts[1:])
        by_document, by_place = np.empty(len(tokens), np.uint32), np.empty(len(tokens), np.uint32)
        scatter_by_token(tokens, documents, places, starts[:-1].copy(), by_document, by_place)
        found, counts = np.empty(len(tokens), np.uint32), np.empty(len(tokens), np.uint32)
        ends = np.empty(size, np.int64)
        count_runs(starts, by_document, found, counts, ends)
        self._places, self._place_starts = by_place, starts
        self._documents, self._counts, self._ends = found, counts, ends

    def _count(
        self, tokenizer: Tokenizer, batch: pa.RecordBatch, pieces: dict[bytes, int]
    ) -> tuple[Any, Any, Any, Any, Any]:
        cut = tokenizer.cut_texts(texts_of(batch.column(VALUE)))
        for piece in cut.pieces:
            if piece not in pieces:
                pieces[piece] = self._number(tokenizer.token_of(piece))
        known = np.fromiter(map(pieces.__getitem__, cut.pieces), np.int32, len(cut.pieces))
        size = len(cut.codes)
        tokens, documents, places = np.empty(size, np.int32), np.empty(size, np.uint32), np.empty(size, np.uint32)
        lengths = np.zeros(len(cut.ends), np.uint32)
        counts = np.uint8(tokenizer.counts_places)
        kept = keep_tokens(known, cut.codes, cut.ends, 0, counts, tokens, documents, places, lengths)
        living = lengths > 0
        return tokens[:kept], documents[:kept], places[:kept], numpy_of(batch.column(ID))[living], lengths[living]

    def _joined(self, parts: list[tuple[Any, Any, Any, Any, Any]]) -> tuple[Any, Any, Any, Any, Any]:
        first, documents = 0, []
        for part in parts:
            documents.append(part[1] + np.uint32(first))
            first += len(part[3])
        kinds: tuple[Any, ...] = (np.int32, np.uint32, np.uint32, np.uint64, np.uint32)
        columns = [[part[place] for part in parts] for place in range(5)]
        columns[1] = documents
        joined = [
            np.concatenate(column) if column else np.empty(0, kind) for column, kind in zip(columns, kinds, strict=True)
        ]
        return joined[0], joined[1], joined[2], joined[3], joined[4]

    def _number(self, token: str | None) -> int:
        return -1 if token is None else self._vocabulary.setdefault(token, len(self._vocabulary))

    def count_of(self, token: str) -> int:
        """How many documents have a token."""
        return len(self.list_of(token).documents)

    def list_of(self, token: str, *, with_places: bool = False) -> Posting:
        """The documents of a token."""
        number = self._vocabulary.get(token)
        if number is None:
            nothing = np.empty(0, np.uint32)
            return Posting(nothing, nothing, nothing)
        here = slice(int(self._ends[number - 1]) if number else 0, int(self._ends[number]))
        places = self._places[self._place_starts[number] : self._place_starts[number + 1]] if with_places else None
        return Posting(self._documents[here], self._counts[here], places)

    def among(self, ascending: Any) -> Among:
        """The same documents, of which only those with such ids count."""
        return Among(self, np.isin(self.ids, ascending))

    @cached_property
    def _spelled(self) -> TokensByLetter:
        return TokensByLetter(sorted(token.encode() for token in self._vocabulary))

    def similar(self, token: str, *, edits: int, prefix_length: int, most: int) -> list[str]:
        """Tokens at most so many edits away, in the order of their bytes."""
        return self._spelled.similar(token, edits=edits, prefix_length=prefix_length, most=most)


class Among:
    """Some of the documents of a partition: what is counted are these, lists name the others too."""

    def __init__(self, whole: MemoryPartition, kept: Any) -> None:
        self.whole, self.kept = whole, kept
        self.ids, self.lengths = whole.ids, whole.lengths
        self.scored_lengths = self.lengths
        self.num_documents = int(kept.sum())
        self.total_tokens = int(whole.lengths[kept].sum(dtype=np.uint64))

    def count_of(self, token: str) -> int:
        """How many of the documents have a token."""
        return int(self.kept[self.whole.list_of(token).documents].sum())

    def list_of(self, token: str, *, with_places: bool = False) -> Posting:
        """The documents of a token."""
        return self.whole.list_of(token, with_places=with_places)

    def similar(self, token: str, *, edits: int, prefix_length: int, most: int) -> list[str]:
        """Tokens at most so many edits away, in the order of their bytes."""
        return self.whole.similar(token, edits=edits, prefix_length=prefix_length, most=most)
